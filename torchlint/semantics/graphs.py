"""Which parts of an expression bring an autograd graph into it, and which backward passes free that graph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import vocabulary as words
from torchlint.semantics.dataflow import hold_the_same, sources, text, upstream
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Grad, Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Loop
    from torchlint.semantics.model import Model


def carries(value: Value) -> bool:
    """Whether there is a graph in a value, be it in a part of a container."""
    if value.is_container:
        parts = [*(value.items or ()), *(part for _, part in value.fields or ())]
        return any(map(carries, parts)) or (value.element is not None and carries(value.element))
    return value.carries and value.is_(Kind.TENSOR, Kind.UNKNOWN)


def carriers(model: Model, expression: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The smallest parts of an expression whose graphs it holds."""
    match expression:
        case cst.Tuple() | cst.List() | cst.Set():
            for element in expression.elements:
                yield from carriers(model, element.value)
        case cst.Dict():
            for entry in expression.elements:
                yield from carriers(model, entry.value)
        case cst.ListComp() | cst.SetComp() | cst.GeneratorExp():
            yield from carriers(model, expression.elt)
        case cst.DictComp():
            yield from carriers(model, expression.value)
        case cst.IfExp():
            yield from carriers(model, expression.body)
            yield from carriers(model, expression.orelse)
        case _:
            if carries(model.value(expression)):
                yield _smallest(model, expression)
            elif _is_term_of_loss(model, expression):
                yield expression


_SETTINGS = ("args", "opt", "opts", "cfg", "config", "hparams", "params")


def _is_term_of_loss(model: Model, expression: cst.BaseExpression) -> bool:
    """Whether a name of which nothing else is known is one of the terms that the same function sends backward."""
    binding = model.binding(expression) if isinstance(expression, (cst.Name, cst.Attribute)) else None
    value = model.value(expression)
    if binding is None or binding.is_parameter or not value.is_(Kind.UNKNOWN) or value.grad is not Grad.UNKNOWN:
        return False
    for call in model.function(expression).calls:
        source = backpropagated(call) if call.is_backward else None
        terms = _terms(model, source, call.loop) if source is not None else []
        if any(model.binding(term) is binding and hold_the_same(model, term, expression) for term in terms):
            return True
    return False


def _terms(model: Model, source: cst.BaseExpression, loop: Loop | None) -> list[cst.Name | cst.Attribute]:
    """Reads of the variables that are added up to what is sent backward, coefficients left out."""
    found: list[cst.Name | cst.Attribute] = []
    seen: set[Binding] = set()
    work: list[cst.BaseExpression] = [source]
    while work:
        match work.pop():
            case cst.BinaryOperation(operator=cst.Add() | cst.Subtract(), left=left, right=right):
                work += [left, right]
            case cst.BinaryOperation(operator=cst.Divide(), left=left):
                work.append(left)
            case cst.BinaryOperation(operator=cst.Multiply(), left=left, right=right):
                work += [a for a, b in ((left, right), (right, left)) if _is_coefficient(model, b)]
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="scale")), args=[cst.Arg(value=scaled)]):
                work.append(scaled)
            case cst.Name() | cst.Attribute() as name:
                found.append(name)
                binding = model.binding(name)
                if binding is not None and binding not in seen:
                    seen.add(binding)
                    around = [write for write in binding.writes if write.loop is loop and not write.unpacked]
                    work += [write.value for write in around if write.value is not None]
    return found


def _is_coefficient(model: Model, side: cst.BaseExpression) -> bool:
    if model.value(side).is_(Kind.NUMBER):
        return True
    name = text(side).rpartition(".")
    return (
        name[0].rpartition(".")[2] in ("args", "opt", "opts", "cfg", "config", "hparams", "params") or name[2].isupper()
    )


def _smallest(model: Model, expression: cst.BaseExpression) -> cst.BaseExpression:
    """Down to the operand that brings the graph in, where there is just one and it is a tensor."""
    while True:
        match expression:
            case cst.BinaryOperation(left=left, right=right):
                sides = [left, right]
            case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
                sides = [inner]
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=method), value=receiver)):
                if method not in words.TENSOR_METHODS or method.endswith("_"):
                    return expression
                sides = [receiver, *(arg.value for arg in expression.args)]
            case _:
                return expression
        bringing = [side for side in sides if not is_graphless(model.value(side))]
        if len(bringing) != 1 or not is_one_tensor(model, bringing[0]):
            return expression
        expression = bringing[0]


def is_graphless(value: Value) -> bool:
    """Whether there is certainly no graph in a value."""
    if value.is_(Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.DTYPE, Kind.DEVICE, Kind.ARRAY):
        return True
    if value.is_(Kind.TUPLE, Kind.LIST) and value.items is not None:
        return all(map(is_graphless, value.items))
    return value.is_tensor and value.grad is Grad.DETACHED


# -- one tensor, or something that only looks like it ----------------------------------------------------------------

_SEVERAL = re.compile(r"torch\.nn\.(\w*(RNN|LSTM|GRU)|LSTMCell|MultiheadAttention|AdaptiveLogSoftmaxWithLoss)$")
_KEPT_BY_OTHERS_TOO = frozenset(
    """
    to cuda cpu float half double bfloat16 type clone detach contiguous size dim add split index_select pin_memory
    record_stream copy_ item tolist numpy max min sort topk median mode kthvalue cummax cummin std_mean var_mean chunk
    unbind tensor_split hsplit vsplit dsplit svd qr share_memory_ requires_grad_ apply_ map_ where data_ptr backward
    """.split()
)
_PROVING_METHODS = frozenset(
    """
    backward view unsqueeze squeeze permute argmax softmax log_softmax masked_fill gather expand requires_grad_ abs mean
    numel transpose reshape flatten sigmoid
    """.split()
)


def is_one_tensor(model: Model, expression: cst.BaseExpression, depth: int = 4) -> bool:
    """Whether an expression is a single tensor for sure, so that `.detach()` on it works.

    What an unknown module or loss returns is taken for a tensor elsewhere; here its use has to prove it.
    """
    value = model.value(expression)
    if value.optional or is_graphless(value):
        return False
    if _is_backpropagated(model, expression):
        return True
    if not value.is_(Kind.TENSOR) or not value.carries:
        return False
    match expression:
        case cst.BinaryOperation(left=left, right=right):
            return depth > 0 and any(is_one_tensor(model, side, depth - 1) for side in (left, right))
        case cst.UnaryOperation(expression=inner) | cst.Subscript(value=inner):
            return depth > 0 and is_one_tensor(model, inner, depth - 1)
        case cst.Call():
            return _returns_one_tensor(model, model.call(expression), depth)
        case cst.Name() | cst.Attribute():
            binding = model.binding(expression)
            return binding is not None and _holds_one_tensor(model, binding, depth)
    return False


def _returns_one_tensor(model: Model, call: Call, depth: int) -> bool:
    callee = call.callee or ""
    if call.target is not None:
        returned = [node.value for node in call.target.returns if node.value is not None]
        return depth > 0 and bool(returned) and all(is_one_tensor(model, value, depth - 1) for value in returned)
    if callee.startswith("torch.Tensor."):
        if call.method in _KEPT_BY_OTHERS_TOO:
            receiver = call.receiver
            keeps = call.method in ("clone", "contiguous", "to", "cuda", "cpu", "float", "half", "double")
            return keeps and depth > 0 and receiver is not None and is_one_tensor(model, receiver, depth - 1)
        return True
    if callee.startswith("torch.nn.") and callee.rpartition(".")[2][:1].isupper():
        return _SEVERAL.match(callee) is None
    return words.returns_tensor(callee)


def _holds_one_tensor(model: Model, binding: Binding, depth: int) -> bool:
    if binding.methods & _PROVING_METHODS:
        return True
    writes = [write for write in binding.writes if write.kind != "augmented"]
    return bool(writes) and all(
        write.kind == "assign"
        and not write.unpacked
        and write.value is not None
        and depth > 0
        and is_one_tensor(model, write.value, depth - 1)
        for write in writes
    )


def _is_backpropagated(model: Model, expression: cst.BaseExpression) -> bool:
    """`x.backward()`, `(x / n).backward()`, `scaler.scale(x)` or `accelerator.backward(x)` in the same function."""
    if not isinstance(expression, (cst.Name, cst.Attribute, cst.Subscript)):
        return False
    binding = model.binding(expression)
    for call in model.function(expression).calls:
        if call.method not in ("backward", "scale", "manual_backward"):
            continue
        for given in [call.receiver, *(arg.value for arg in call.node.args)]:
            while isinstance(given, cst.BinaryOperation) and isinstance(given.operator, cst.Divide):
                given = given.left
            if type(given) is not type(expression):
                continue
            if binding is None and text(given) == text(expression):
                return True
            if binding is not None and model.binding(given) is binding and hold_the_same(model, given, expression):
                return True
    return False


# -- freed by a backward pass ----------------------------------------------------------------------------------------


def freeing_passes(model: Model, graph: cst.BaseExpression) -> Iterator[Call]:
    """The backward passes, in the function of an expression, that free what its graph was computed with."""
    tensors = _tensors(model, graph)
    for call in model.function(graph).calls:
        if call.is_backward and not _keeps_graph(call):
            source = backpropagated(call)
            if source is not None and tensors & upstream(model, source, inside=call.loop):
                yield call


def is_freed_inside(model: Model, graph: cst.BaseExpression, depth: int = 3) -> bool:
    """Whether an expression calls a function of this file that has sent what it returns backward already."""
    parts = returned_by(model, graph)
    if not depth or parts == [graph]:
        return False
    return bool(parts) and all(
        any(True for _ in freeing_passes(model, part)) or is_freed_inside(model, part, depth - 1) for part in parts
    )


def returned_by(model: Model, expression: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The parts with a graph of what the function of this file returns that an expression calls, or got a value from;
    of other expressions, the expression.
    """
    call = _only_value(model, expression)
    target = model.call(call).target if isinstance(call, cst.Call) else None
    if target is None:
        return [expression]
    values = [node.value for node in target.returns if node.value is not None]
    return [part for value in values for part in carriers(model, value)]


def _only_value(model: Model, expression: cst.BaseExpression) -> cst.BaseExpression:
    """What the only assignment to a variable gives it; other expressions stand for themselves."""
    binding = model.binding(expression)
    if binding is None or len(binding.writes) != 1:
        return expression
    write = binding.writes[0]
    return expression if write.kind != "assign" or write.unpacked or write.value is None else write.value


def depends_on_forward(model: Model, graph: cst.BaseExpression, loop: Loop | None) -> bool:
    """Whether the graph comes from a model that ran in the loop, or in the function where there is none."""
    sources: list[cst.CSTNode] = [graph]
    for binding in upstream(model, graph, inside=loop):
        for write in binding.writes:
            inside = loop is None or (write.loop is not None and loop in write.loop.around())
            if inside and write.value is not None:
                sources.append(write.value)
    return any(_runs_model(model, node) for source in sources for node in walk(source))


def _runs_model(model: Model, node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.Call):
        return False
    call = model.call(node)
    return call.is_forward or (call.target is not None and bool(model.effects(call.target).forwards))


def _tensors(model: Model, graph: cst.BaseExpression) -> set[Binding]:
    """The variables that hold a graph, or may, among those that an expression is computed from."""
    found = set()
    loop = next(iter(model.loops_around(graph)), None)
    for node in sources(model, graph, inside=loop):
        value = model.value(node)
        if carries(value) or (value.is_(Kind.UNKNOWN, Kind.TENSOR) and value.grad is Grad.UNKNOWN):
            binding = model.binding(node)
            if binding is not None:
                found.add(binding)
    return found


def backpropagated(call: Call) -> cst.BaseExpression | None:
    """The expression that a backward pass starts from."""
    positional = [arg.value for arg in call.node.args if arg.keyword is None and not arg.star]
    if call.receiver_value.is_tensor or not positional:
        return call.receiver
    return positional[0]


def _keeps_graph(call: Call) -> bool:
    for name in ("retain_graph", "create_graph"):
        argument = call.argument(name)
        if argument.hidden or (argument.given and argument.value.constant is not False):
            return True
    return False
