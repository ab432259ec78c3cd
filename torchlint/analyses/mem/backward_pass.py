"""Backward passes: where they start, what they free, and what is added up to what they start from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import conditions, exclude
from torchlint.analyses.single_tensor import carries, is_graphless
from torchlint.semantics import frameworks
from torchlint.semantics.dataflow import hold_the_same, reaches, sources, text, upstream, writes_reaching
from torchlint.semantics.tree import last_name
from torchlint.semantics.values import Grad, Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Loop, Write
    from torchlint.semantics.model import Model

_SETTINGS = ("args", "opt", "opts", "cfg", "config", "hparams", "params")
_GRADIENT = re.compile(r"(?i)(^|_)(grad(ient)?s?|d_?out(put)?)(_|$)")
_COEFFICIENT = re.compile(r"(?i)(^|_)(coeff?s?|weights?|lambda\w*|lam\w*|alpha|beta|gamma|eta|factor|scale|w)\d*(_|$)")


def freeing_passes(model: Model, graph: cst.BaseExpression) -> Iterator[Call]:
    """The backward passes, in the function of an expression, that free what its graph was computed with."""
    return (call for call in passes_through(model, graph) if not keeps_graph(call))


def passes_through(model: Model, graph: cst.BaseExpression) -> Iterator[Call]:
    """The backward passes, in the function of an expression, that go through its graph."""
    passes = [call for call in model.function(graph).calls if call.is_backward]
    tensors = _tensors(model, graph) if passes else {}
    here = conditions(model, graph) if passes else {}
    for call in passes:
        if not exclude(here, conditions(model, call.node)):
            source = backpropagated(call)
            goes_through = source is not None and _goes_through(model, source, call.loop, tensors)
            if goes_through and not _is_cut_behind(model, call, graph):
                yield call


def goes_back_from_framework(model: Model, graph: cst.BaseExpression) -> bool:
    """Whether the function of an expression returns its graph to a framework, which frees it right away."""
    function = model.function(graph)
    if not frameworks.goes_back_from(function):
        return False
    tensors = _tensors(model, graph)
    returned = (statement.value for statement in function.returns)
    return any(value is not None and _goes_through(model, value, None, tensors) for value in returned)


def _goes_through(
    model: Model, source: cst.BaseExpression, loop: Loop | None, tensors: dict[Binding, set[Write]]
) -> bool:
    """Whether what a backward pass starts from is computed from one of the tensors, and not only from others that had
    their names before or have them later: `loss` of training, and `loss` of the validation below it."""
    if not tensors.keys() & upstream(model, source, inside=loop):
        return False
    for node in sources(model, source, inside=loop):
        binding = model.binding(node)
        if binding in tensors and _is_any_of(tensors[binding], writes_reaching(model, binding, node)):
            return True
    return False


def _is_any_of(held: set[Write], seen: Sequence[Write]) -> bool:
    """Whether two reads of a variable can have seen the same write; of one that nothing writes, they have."""
    return not held or not seen or any(write in held for write in seen)


def _is_cut_behind(model: Model, call: Call, graph: cst.BaseExpression) -> bool:
    """`if train: loss.backward(); loss = loss.detach()`: a loss with a graph has not come that way."""
    binding = model.binding(graph) if isinstance(graph, cst.Name) else None
    cuts = [write for write in binding.writes if write.kind == "assign"] if binding is not None else []
    return any(
        is_graphless(model.value(write.value))
        and _block(model, write.statement) is _block(model, call.node)
        and model.span(write.statement)[0] >= model.span(call.node)[1]
        and reaches(model, binding, write.target, graph)
        for write in cuts
        if write.value is not None and binding is not None
    )


def _block(model: Model, node: cst.CSTNode) -> cst.CSTNode | None:
    return next((outer for outer in model.ancestors(node) if isinstance(outer, cst.BaseSuite)), None)


def _tensors(model: Model, graph: cst.BaseExpression) -> dict[Binding, set[Write]]:
    """The variables that hold a graph, or may, among those that an expression is computed from, each with the writes
    that it may have seen. What is called, as a criterion, holds none, whoever else it computes something for."""
    found: dict[Binding, set[Write]] = {}
    loop = next(iter(model.loops_around(graph)), None)
    read = sources(model, graph, inside=loop)
    for node in [*read, *_walked_through(model, read)]:
        value = model.value(node)
        if carries(value) or (value.is_(Kind.UNKNOWN, Kind.TENSOR) and value.grad is Grad.UNKNOWN):
            binding = model.binding(node)
            if binding is not None and not binding.called:
                found.setdefault(binding, set()).update(writes_reaching(model, binding, node))
    return found


def _walked_through(model: Model, read: Sequence[cst.BaseExpression]) -> Iterator[cst.Name | cst.Attribute]:
    """`losses` of a `loss` in `for name, loss in losses.items()`: the container holds its graph, too."""
    for node in read:
        binding = model.binding(node)
        for write in binding.writes if binding is not None else ():
            if write.kind == "for" and write.value is not None and write.loop in model.loops_around(node):
                yield from sources(model, write.value, inside=write.loop)


def backpropagated(call: Call) -> cst.BaseExpression | None:
    """The expression that a backward pass starts from: `loss` of `loss.backward()` and of `engine.backward(loss)`, and
    `out` of `out.backward(slope)`, where what is given has no graph, or is called a gradient."""
    positional = [arg.value for arg in call.node.args if arg.keyword is None and not arg.star]
    given = call.argument("gradient", 0).value
    if call.receiver_value.is_tensor or not positional or (given.is_tensor and given.grad is Grad.DETACHED):
        return call.receiver
    is_gradient = call.receiver_value.kind is Kind.UNKNOWN and given.grad is not Grad.CARRIES
    return call.receiver if is_gradient and _GRADIENT.search(last_name(positional[0])) else positional[0]


def keeps_graph(call: Call) -> bool:
    """Whether a backward pass may leave its graph as it is, for another one."""
    for name in ("retain_graph", "create_graph"):
        argument = call.argument(name)
        if argument.hidden or (argument.given and argument.value.constant is not False):
            return True
    return False


def is_term_of_loss(model: Model, expression: cst.BaseExpression) -> bool:
    """Whether a name of whose graph nothing else is known is one of the terms that the same function sends backward."""
    binding = model.binding(expression) if isinstance(expression, (cst.Name, cst.Attribute)) else None
    value = model.value(expression)
    if binding is None or binding.is_parameter or not value.is_(Kind.UNKNOWN, Kind.TENSOR):
        return False
    if value.grad is not Grad.UNKNOWN:
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
    owner, _, name = text(side).rpartition(".")
    return owner.rpartition(".")[2] in _SETTINGS or name.isupper() or _COEFFICIENT.search(name) is not None
