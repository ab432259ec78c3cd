"""Tensors that are printed, formatted or handed to a logger: each of these reads them from the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.host_use import is_log
from torchlint.analyses.steps import Step, step_of
from torchlint.analyses.sync.branching import follows_answer
from torchlint.analyses.sync.residence import Residence
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

_READING_METHODS = frozenset(["add_scalar", "add_scalars", "add_histogram", "set_postfix", "log_metric", "log_metrics"])
_READING_CALLEES = frozenset(["builtins.print", "wandb.log", "mlflow.log_metric", "mlflow.log_metrics"])
_TEXTS = frozenset(["builtins.str", "builtins.repr", "builtins.format", "builtins.dict"])


class Shown(NamedTuple):
    """A call that shows tensors in every step."""

    call: Call
    tensors: list[cst.BaseExpression]
    step: Step


def shown_tensors(model: Model) -> Iterator[Shown]:
    residence = model.once(Residence)
    for call in model.calls:
        leaves = shown_in(model, call)
        step = step_of(model, call.node) if leaves else None
        if step is None:
            continue
        tensors = [leaf for leaf in leaves if step_of(model, leaf) == step and residence.may_be_device(leaf, step)]
        if tensors and not follows_answer(model, residence, call.node, step):
            yield Shown(call, tensors, step)


def shown_in(model: Model, call: Call) -> list[cst.BaseExpression]:
    """The tensors that a call to print or log something reads, wherever they are and however often it runs."""
    if not is_log(call) or _hands_on(model, call):
        return []
    tensors = [leaf for leaf in _leaves(model, call) if model.value(leaf).kind is Kind.TENSOR]
    return [tensor for tensor in tensors if not _fails(model, tensor)]


def _fails(model: Model, tensor: cst.BaseExpression) -> bool:
    """`loss.data[0]`, which torch refuses: a single number has no elements."""
    return isinstance(tensor, cst.Subscript) and model.value(tensor.value).rank == 0


def _hands_on(model: Model, call: Call) -> bool:
    """`self.log(...)` of Lightning, which reads nothing until it has to."""
    cls = model.function(call.node).cls
    return cls is not None and cls.is_lightning and isinstance(call.receiver, cst.Name)


def _leaves(model: Model, call: Call) -> Iterator[cst.BaseExpression]:
    """What the call turns into text: what its strings hold and, where it reads its arguments at once, those."""
    reads = call.method in _READING_METHODS or call.callee in _READING_CALLEES
    work: list[tuple[cst.CSTNode, bool]] = [(arg.value, reads) for arg in call.node.args]
    seen: set[cst.CSTNode] = set()
    while work:
        node, is_read = work.pop()
        if node in seen:
            continue
        seen.add(node)
        parts, is_text = _parts(model, node)
        if parts is not None:
            work.extend((part, is_read or is_text) for part in parts)
        elif is_read and isinstance(node, cst.BaseExpression):
            yield node


def _parts(model: Model, node: cst.CSTNode) -> tuple[list[cst.CSTNode] | None, bool]:
    """What a string or a container is made of, and whether it is a string; None for a value of its own."""
    match node:
        case cst.FormattedString():
            inner = [part.expression for part in node.parts if isinstance(part, cst.FormattedStringExpression)]
            return list(inner), True
        case cst.ConcatenatedString(left=left, right=right):
            return [left, right], True
        case cst.BinaryOperation(left=left, operator=cst.Modulo(), right=right) if _is_string(model, left):
            return [right], True
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right) if _is_string(model, node):
            return [left, right], False
        case cst.Call():
            call = model.call(node)
            if call.method == "format" or call.callee in _TEXTS:
                return [arg.value for arg in node.args], call.callee != "builtins.dict"
            return None, False
        case cst.Tuple() | cst.List() | cst.Set() | cst.Dict():
            return [element.value for element in node.elements], False
        case cst.IfExp(body=body, orelse=orelse):
            return [body, orelse], False
        case cst.Name() if _is_string(model, node):
            return _written(model, node), False
    return None, False


def _written(model: Model, text: cst.Name) -> list[cst.CSTNode]:
    """What a text is made from where it is read: not what is written to its name for another message."""
    binding, function = model.binding(text), model.function(text)
    if binding is None:
        return []
    writes = (write for write in binding.writes if write.function is function)
    return [w.value for w in writes if w.value is not None and reaches(model, binding, w.target, text)]


def _is_string(model: Model, node: cst.CSTNode) -> bool:
    return model.value(node).kind is Kind.STRING
