"""Networks that are one of several classes, as a name of the settings says: what each of them returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model

_KEEPING = ("to", "cuda", "cpu", "float", "eval", "train")


def passes_of_chosen(model: Model, call: Call) -> list[tuple[Model, Function]]:
    """The `forward` of each class whose network a pass may run; none where it may be another one as well."""
    network = call.receiver if call.method == "forward" else call.node.func
    binding = model.binding(network) if network is not None else None
    writes = binding.writes if binding is not None else ()
    if any(write.kind != "assign" or write.unpacked for write in writes):
        return []
    found = [_pass_of(model, _bare(write.value)) for write in writes]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else []


def _bare(node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """`Net()` of `Net().to(device)`."""
    while True:
        match node:
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name))) if name in _KEEPING:
                node = inner
            case _:
                return node


def _pass_of(model: Model, node: cst.BaseExpression | None) -> tuple[Model, Function] | None:
    name = model.call(node).callee if isinstance(node, cst.Call) else None
    behind = model.class_behind(name) if name is not None else None
    forward = behind[1].method("forward") if behind is not None else None
    return (behind[0], forward) if behind is not None and forward is not None else None
