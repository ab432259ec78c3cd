"""Learning rates that a project computes with NumPy: optimizers and schedulers keep them as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.arguments import string_value
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model
    from torchlint.source import Source

_BY_FUNCTION = ("torch.optim.lr_scheduler.LambdaLR", "torch.optim.lr_scheduler.MultiplicativeLR")
_SETTERS = re.compile(r"""\b(LambdaLR|MultiplicativeLR)\(|\[["']lr["']\]\s*[-+*/]?=[^=]""")
_NUMPY = re.compile(r"\bnumpy\b")
_WITHOUT_NUMPY = ("builtins.", "math.", "torch.", "time.", "bisect.")
_MOST_FILES = 12
_DEPTH = 4


def may_hold_numpy_rates(model: Model) -> bool:
    """Whether a rate that the project sets by itself is, or may be, a number of NumPy."""
    setters = [source for source in model.files_beside() if model.once_of(source, _sets_rates)]
    if len(setters) > _MOST_FILES:
        return True
    homes = [model.model_of(source) for source in setters]
    return any(home is not None and home.once(_sets_numpy_rates) for home in (model, *homes))


def _sets_rates(source: Source) -> bool:
    return _SETTERS.search(source.text) is not None


def _sets_numpy_rates(model: Model) -> bool:
    factors = [call.argument("lr_lambda", 1) for call in model.calls_to(*_BY_FUNCTION)]
    if any(factor.node is None or not _is_known_factor(model, factor.node) for factor in factors):
        return True
    return any(not _is_without_numpy(model, value, _DEPTH) for value in _rates(model))


def _rates(model: Model) -> Iterator[cst.BaseExpression]:
    """The values of `group["lr"] = value`."""
    for node in model.nodes_of(cst.Assign, cst.AugAssign):
        assert isinstance(node, (cst.Assign, cst.AugAssign))
        targets = [node.target] if isinstance(node, cst.AugAssign) else [target.target for target in node.targets]
        if any(isinstance(target, cst.Subscript) and _is_rate(target) for target in targets):
            yield node.value


def _is_rate(target: cst.Subscript) -> bool:
    match target.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=key))]:
            return string_value(key) == "lr"
    return False


def _is_known_factor(model: Model, node: cst.BaseExpression) -> bool:
    """Whether the functions that give the factor are in sight and compute without NumPy."""
    if isinstance(node, (cst.List, cst.Tuple)):
        return all(_is_known_factor(model, element.value) for element in node.elements)
    functions = [model.function_of(origin) for origin in model.value(node).origins]
    known = [function for function in functions if function is not None]
    return bool(known) and len(known) == len(functions) and all(_is_plain(model, each, _DEPTH) for each in known)


def _is_plain(model: Model, function: Function, depth: int) -> bool:
    """Whether a function calls nothing that may be of NumPy."""
    return depth > 0 and all(_is_plain_call(model, call, depth) for call in function.calls)


def _is_plain_call(model: Model, call: Call, depth: int) -> bool:
    if (call.callee or "").startswith(_WITHOUT_NUMPY):
        return True
    if call.target is not None:
        return _is_plain(model, call.target, depth - 1)
    if (call.callee or "").startswith("numpy.") or call.value.kind is Kind.ARRAY:
        return False
    return _NUMPY.search(model.source.text) is None and call.receiver is not None


def _is_without_numpy(model: Model, node: cst.BaseExpression, depth: int) -> bool:
    """Whether nothing that a value is computed from, as far as it is in sight, is a call that may be of NumPy."""
    if depth == 0:
        return True
    for part in walk(node):
        if isinstance(part, cst.Call) and not _is_plain_call(model, model.call(part), depth):
            return False
        binding = model.binding(part) if isinstance(part, (cst.Name, cst.Attribute)) else None
        for write in binding.writes if binding is not None else ():
            value = write.value if write.kind in ("assign", "augmented") else None
            if value is not None and not _is_without_numpy(model, value, depth - 1):
                return False
    return True
