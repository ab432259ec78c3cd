"""Numbers that the host needs, wherever they are computed: bounds of slices, indices and sizes of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise.nature import Nature, nature, of_method
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.tree import last_name

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_HANDING_ON = (cst.BinaryOperation, cst.UnaryOperation, cst.IfExp, cst.Tuple, cst.List, cst.Element, cst.NamedExpr)
_CONVERTING = frozenset("builtins.int builtins.round builtins.max builtins.min".split())


def becomes_size(model: Model, number: cst.BaseExpression) -> bool:
    """Whether a number becomes a bound of a slice, an index or a size, under another name perhaps."""
    work: list[cst.CSTNode] = [number]
    for node in work:  # it grows while the loop runs
        above = model.parent(node)
        match above:
            case cst.Slice() | cst.Index():
                return True
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
                binding = model.binding(name)
                reads = binding.reads if binding is not None else []
                work += [r for r in reads if r not in work and binding is not None and reaches(model, binding, name, r)]
            case cst.Arg() if isinstance(call := model.parent(above), cst.Call):
                if _takes_size(model, call):
                    return True
                if model.call(call).callee in _CONVERTING:
                    work.append(call)
            case _ if isinstance(above, _HANDING_ON):
                work.append(above)
    return False


def _takes_size(model: Model, node: cst.Call) -> bool:
    """`torch.arange(n)`, `range(n)`, `x.expand(n, -1)`, `F.interpolate(x, size=(n, n))`"""
    call = model.call(node)
    if call.target is not None or call.foreign is not None:
        return False
    return nature(call) is Nature.SHAPED or of_method(last_name(node.func)) is Nature.SHAPED
