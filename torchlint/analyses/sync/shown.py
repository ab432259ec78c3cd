"""Tensors that are printed, formatted or handed to a logger: each of these reads them from the device."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.devices.host_calls import is_log
from torchlint.analyses.devices.host_use import KEPT, HostFlow, Use
from torchlint.analyses.loops.steps import Step, step_of
from torchlint.analyses.once import once
from torchlint.analyses.sync.branching import follows_answer
from torchlint.analyses.sync.readback import is_single_number
from torchlint.analyses.sync.residence import Residence
from torchlint.analyses.texts import is_string, is_text
from torchlint.semantics.dataflow import writes_reaching
from torchlint.semantics.tree import last_name
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

_READING_METHODS = frozenset(["add_scalar", "add_scalars", "add_histogram", "set_postfix", "log_metric", "log_metrics"])
_READING_CALLEES = frozenset(["builtins.print", "wandb.log", "mlflow.log_metric", "mlflow.log_metrics"])
_INTERVAL = re.compile(r"(?i)(^|_)(every|interval|freq|frequency|period)(_|$)")
_CURVES = frozenset(["add_scalar", "add_scalars", "add_histogram", "log_metric", "log_metrics"])
_WARNING = frozenset(["warn", "warning", "error", "critical", "exception"])
_NUMBER = re.compile(r":[^}{]*[.\d][efgEFG%]\s*\}|%[-+ #0]?[\d.]*[efgEFG]")
_TEXTS = frozenset(["builtins.str", "builtins.repr", "builtins.format", "builtins.dict"])


class Shown(NamedTuple):
    """A call that shows tensors in every step, or a text that is made of them for something else to show."""

    node: cst.BaseExpression
    tensors: list[cst.BaseExpression]
    step: Step

    def where_read(self, model: Model) -> cst.BaseExpression:
        """Where the host waits: in the call, or in the statement before it that makes the text."""
        first = self.tensors[0]
        if self.node in model.ancestors(first):
            return self.node
        return next((made for made in model.ancestors(first) if is_text(model, made)), self.node)  # type: ignore[return-value]


@once
def shown_tensors(model: Model) -> Iterator[Shown]:
    """Calls of each step that print or log tensors on the device, with these."""
    told: set[cst.BaseExpression] = set()
    for call in model.calls:
        shown = _shown(model, call.node, shown_in(model, call))
        if shown is not None:
            told.update(shown.tensors)
            yield shown
    for text in model.nodes_of(cst.FormattedString, cst.BinaryOperation, cst.Call):
        assert isinstance(text, cst.BaseExpression)
        if is_text(model, text) and not any(is_text(model, above) for above in model.ancestors(text)):
            tensors = [leaf for leaf in _tensors(model, [(text, False)]) if leaf not in told]
            shown = _shown(model, text, tensors)
            if shown is not None and _is_for_readers(model, shown):
                yield shown


def written_texts(model: Model) -> Iterator[tuple[cst.BaseExpression, list[cst.BaseExpression]]]:
    """Texts of values in loops that no log and no failure asks for, as the lines of a file, and the tensors in them."""
    for text in model.nodes_of(cst.FormattedString, cst.BinaryOperation, cst.Call):
        assert isinstance(text, cst.BaseExpression)
        if model.loop(text) is None or not is_text(model, text):
            continue
        above = list(model.ancestors(text))
        if any(isinstance(node, (cst.Assert, cst.Raise)) or is_text(model, node) for node in above):
            continue
        if not any(isinstance(node, cst.Call) and is_log(model.call(node)) for node in above):
            yield text, _tensors(model, [(text, False)])


def _shown(model: Model, node: cst.BaseExpression, leaves: list[cst.BaseExpression]) -> Shown | None:
    step = step_of(model, node) if leaves else None
    if step is None or warns_of_something(model, node, step):
        return None
    residence = model.once(Residence)
    inside = [leaf for leaf in leaves if step_of(model, leaf) == step and residence.may_be_device(leaf, step)]
    tensors = [leaf for leaf in inside if _is_seen_on_device(model, leaf)]
    return Shown(node, tensors, step) if tensors and not follows_answer(model, residence, node, step) else None


def warns_of_something(model: Model, node: cst.BaseExpression, step: Step) -> bool:
    """`if not found: logger.warning(...)`, of what should not happen in a step. `if rank == 0:` asks who tells."""
    above = (node, *model.ancestors(node))
    warns = any(isinstance(each, cst.Call) and last_name(each.func) in _WARNING for each in above)
    guards = model.guards(node, step.loop) if warns else ()
    return any(guard.kind != "rank" or isinstance(guard.test, cst.BooleanOperation) for guard in guards)


def _is_seen_on_device(model: Model, tensor: cst.BaseExpression) -> bool:
    """Whether it is known where a tensor is, or it is the number that a step ends in: what a network out of sight
    returns may be a text, and what code out of sight hands over may lie on the host."""
    value = model.value(tensor)
    if value.place is Place.ACCELERATOR or (value.carries and value.rank == 0):
        return True
    return any(wants_number(model, above) for above in model.ancestors(tensor))


def wants_number(model: Model, node: cst.CSTNode) -> bool:
    """`f"{loss:.4f}"`, `"%.4f" % loss`, `"{:.4f}".format(loss)`, and curves."""
    match node:
        case cst.FormattedStringExpression():
            return _NUMBER.search(model.code(node)) is not None
        case cst.BinaryOperation(left=cst.SimpleString() as shown, operator=cst.Modulo()):
            return _NUMBER.search(shown.value) is not None
        case cst.Call(func=cst.Attribute(value=shown, attr=cst.Name(value="format"))):
            return _NUMBER.search(model.code(shown)) is not None
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))):
            return name in _CURVES
    return False


def _is_for_readers(model: Model, shown: Shown) -> bool:
    """Whether a text is kept or shown, and names no file, and no key; nor is it one that only a failure asks for."""
    if any(isinstance(above, (cst.Assert, cst.Raise)) for above in model.ancestors(shown.node)):
        return False
    use = HostFlow(model, shown.step.loop).of(shown.node, True)
    return bool(use & (Use.ACCUMULATED | Use.LATER)) and not use & (KEPT | Use.WRITTEN | Use.HANDED | Use.SELDOM)


def shown_in(model: Model, call: Call) -> list[cst.BaseExpression]:
    """The tensors that a call to print or log something reads, wherever they are and however often it runs."""
    if not is_log(call) or _hands_on(model, call) or _is_told_how_often(call):
        return []
    reads = call.method in _READING_METHODS or call.callee in _READING_CALLEES
    return _tensors(model, [(arg.value, reads) for arg in call.node.args])


def _fails(model: Model, tensor: cst.BaseExpression) -> bool:
    """`loss.data[0]`, which torch refuses: a single number has no elements."""
    match tensor:
        case cst.Subscript(value=cst.Attribute(attr=cst.Name("data")) as whole):
            return is_single_number(model, whole)
    return isinstance(tensor, cst.Subscript) and model.value(tensor.value).rank == 0


def _hands_on(model: Model, call: Call) -> bool:
    """`self.log(...)` of Lightning, which reads nothing until it has to."""
    cls = model.function(call.node).cls
    return cls is not None and cls.is_lightning and isinstance(call.receiver, cst.Name)


def _is_told_how_often(call: Call) -> bool:
    """`logger.add_histogram("weights", weights, log_every)`: the logger counts, and reads at intervals only."""
    given = (arg.value for arg in call.arguments if isinstance(arg.value, (cst.Name, cst.Attribute)))
    return call.method is not None and any(_INTERVAL.search(last_name(value)) for value in given)


def _tensors(model: Model, shown: list[tuple[cst.CSTNode, bool]]) -> list[cst.BaseExpression]:
    tensors = [leaf for leaf in _leaves(model, shown) if model.value(leaf).kind is Kind.TENSOR]
    return [tensor for tensor in tensors if not _fails(model, tensor)]


def _leaves(model: Model, shown: list[tuple[cst.CSTNode, bool]]) -> Iterator[cst.BaseExpression]:
    """What is turned into text: what strings hold and, of what is marked as read at once, the values themselves."""
    work = [*shown]
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
        case cst.BinaryOperation(left=left, operator=cst.Modulo(), right=right) if is_string(model, left):
            return [right], True
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right) if is_string(model, node):
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
        case cst.Name() if is_string(model, node):
            return _written(model, node), False
    return None, False


def _written(model: Model, text: cst.Name) -> list[cst.CSTNode]:
    """What a text is made from where it is read: not what is written to its name for another message."""
    binding, function = model.binding(text), model.function(text)
    if binding is None:
        return []
    writes = (write for write in writes_reaching(model, binding, text) if write.function is function)
    return [write.value for write in writes if write.value is not None]
