"""Where the autograd graph of an expression would come from: what it is made of, as far as the file shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.train.owned_tensors import is_made_anew, is_tensor_class
from torchlint.semantics import torch_api
from torchlint.semantics.dataflow import reaches, text
from torchlint.semantics.tree import is_name
from torchlint.semantics.values import Grad, Kind
from torchlint.semantics.vocabulary import ends_graph, is_boolean, returns_tensor

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call
    from torchlint.semantics.model import Model


class Origin(IntEnum):
    """In the order in which one part of an expression decides for the whole."""

    NOWHERE = 0  # it has none
    OUTSIDE = 1  # it is handed in, and nothing in the file gives it one
    HIDDEN = 2  # code out of sight returns it
    GRAPH = 3  # it has one


_WITHOUT_GRADIENTS = frozenset({"int", "bool"})  # of these dtypes nothing can ask for gradients
_PLAIN = frozenset(
    {Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.ARRAY, Kind.LOADER, Kind.DATASET, Kind.DEVICE, Kind.DTYPE}
)
_MOST_VARIABLES = 12  # that are followed one into the other
_PARAMETERS = ("weight", "bias")
_PASSING_ON = re.compile(r"builtins\.(enumerate|zip|iter|next|reversed|sorted|list|tuple|map|filter)")
_READING = re.compile(
    r"(?i)(^|_)(load\w*|read\w*|transforms?|preprocess\w*|collate\w*|to_?tensors?|next\w*|get_batch\w*|sample_batch\w*"
    r"|\w*loader|dataset|tensor|labels?|targets?|masks?|noise|one_?hot\w*|pad_\w+)(_|$)"
)


def origin(model: Model, node: cst.CSTNode | None, seen: frozenset[Binding] = frozenset()) -> Origin:
    """Of the graph of a value; `seen` are variables that are looked at already."""
    if node is None:
        return Origin.HIDDEN
    value = model.value(node) if isinstance(node, cst.BaseExpression) else None
    if value is not None:
        if value.carries:
            return Origin.GRAPH
        if value.kind in _PLAIN or value.dtype in _WITHOUT_GRADIENTS:
            return Origin.NOWHERE
        if value.is_(Kind.TENSOR, Kind.BATCH) and value.grad is Grad.DETACHED:
            return Origin.NOWHERE
    match node:
        case cst.Comparison() | cst.BaseNumber() | cst.BaseString() | cst.Slice():
            return Origin.NOWHERE
        case cst.Name():
            return _of_variable(model, model.binding(node), node, seen)
        case cst.Attribute(attr=cst.Name(value="data" | "shape" | "dtype" | "device")):
            return Origin.NOWHERE
        case cst.Attribute():
            return _of_attribute(model, node, seen)
        case cst.Subscript(value=whole):
            return origin(model, whole, seen)
        case cst.Call():
            return _of_call(model, model.call(node), seen)
        case cst.UnaryOperation(expression=part) | cst.Await(expression=part) | cst.StarredElement(value=part):
            return origin(model, part, seen)
        case cst.ListComp(elt=part) | cst.GeneratorExp(elt=part):
            return origin(model, part, seen)
    return _worst(model, _parts(node), seen)


def receives_graph(model: Model, binding: Binding) -> bool:
    """Whether something with a graph may be written into a tensor under the name of a variable."""
    seen = frozenset({binding})
    return any(origin(model, given, seen) is not Origin.NOWHERE for given in _written_into(model, binding))


def _parts(node: cst.CSTNode) -> Iterator[cst.BaseExpression | None]:
    match node:
        case cst.BinaryOperation(left=left, right=right) | cst.BooleanOperation(left=left, right=right):
            yield from (left, right)
        case cst.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            yield from (element.value for element in elements)
        case _:
            yield None


def _worst(model: Model, nodes: Iterable[cst.BaseExpression | None], seen: frozenset[Binding]) -> Origin:
    return max((origin(model, node, seen) for node in nodes), default=Origin.NOWHERE)


def _of_variable(model: Model, binding: Binding | None, read: cst.CSTNode, seen: frozenset[Binding]) -> Origin:
    if binding is None:
        return Origin.OUTSIDE
    if binding in seen:
        return Origin.NOWHERE
    seen |= {binding}
    writes = [
        write
        for write in binding.writes
        if write.kind != "assign" or binding.cls is not None or reaches(model, binding, write.target, read)
    ]
    found = [
        Origin.OUTSIDE if write.kind == "parameter" or write.value is None else origin(model, write.value, seen)
        for write in writes
    ]
    return max(found, default=Origin.OUTSIDE)


def _of_attribute(model: Model, node: cst.Attribute, seen: frozenset[Binding]) -> Origin:
    binding = model.binding(node)
    if binding is not None and binding.writes:
        return _of_variable(model, binding, node, seen)
    if _is_module(model, node.value):
        return Origin.GRAPH if node.attr.value in _PARAMETERS else Origin.HIDDEN
    return Origin.OUTSIDE if binding is not None else origin(model, node.value, seen)


def _is_module(model: Model, node: cst.BaseExpression) -> bool:
    """Whether a value is a network, or the first argument of a method of one."""
    if model.value(node).kind is Kind.MODULE:
        return True
    function = model.function(node)
    return is_name(node, function.own_name) and function.cls is not None and function.cls.is_module


def _of_call(model: Model, call: Call, seen: frozenset[Binding]) -> Origin:
    name, method = call.callee or "", call.method or ""
    if is_made_anew(call.node, model) and not method.endswith("_"):
        return Origin.NOWHERE
    arguments = [argument.value for argument in call.node.args]
    if call.is_forward:
        return Origin.GRAPH if model.grad_enabled(call.node) is not False else Origin.NOWHERE
    if _PASSING_ON.fullmatch(name) or is_tensor_class(call.node.func, model):
        return _worst(model, arguments, seen)
    if name.startswith("torch.") and returns_tensor(name):
        return Origin.NOWHERE if is_boolean(name.rpartition(".")[2]) else _worst(model, arguments, seen)
    if call.target is not None and call.target.returns:
        return _of_function(model, call, seen)
    known = call.target is not None or call.foreign is not None
    is_method = call.receiver is not None and torch_api.method(method) is not None and not known
    if is_method and call.receiver_value.is_(Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN):
        if is_boolean(method) or ends_graph(method):
            return Origin.NOWHERE
        return _worst(model, [call.receiver, *arguments], seen)
    said = text(call.node.func).rpartition(".")[2]
    return Origin.OUTSIDE if _READING.search(said) and not call.receiver_value.carries else Origin.HIDDEN


def _of_function(model: Model, call: Call, seen: frozenset[Binding]) -> Origin:
    """What a function of the file returns is made of its arguments, and of what it gets by itself."""
    assert call.target is not None
    if len(seen) > _MOST_VARIABLES:
        return Origin.HIDDEN
    made = _worst(model, [returned.value for returned in call.target.returns], seen)
    given = [argument.value for argument in call.node.args]
    return max(made, _worst(model, given, seen))


def _written_into(model: Model, binding: Binding) -> Iterator[cst.BaseExpression]:
    """What is stored in elements of a tensor, added to it in place, or handed to its methods that change it."""
    for write in binding.writes:
        statement = model.small_statement(write.target)
        if isinstance(statement, cst.AugAssign):
            yield statement.value
    for read in binding.reads:
        above = model.parent(read)
        outer = model.parent(above) if above is not None else None
        match above, outer:
            case cst.Attribute(attr=cst.Name(value=name)), cst.Call(args=args) if name.endswith("_"):
                places = torch_api.position(f"torch.Tensor.{name}", "index")  # which have no graph
                yield from (arg.value for at, arg in enumerate(args) if at != places or arg.keyword is not None)
            case cst.Subscript(), cst.AssignTarget() | cst.AugAssign():
                statement = model.small_statement(read)
                if isinstance(statement, (cst.Assign, cst.AugAssign)):
                    yield statement.value
