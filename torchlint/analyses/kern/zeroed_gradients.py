"""Gradients that are filled with zeros between two steps, where dropping them would do, and those that a loop drops."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import text
from torchlint.semantics.hints import looks_like_optimizer
from torchlint.semantics.tree import is_name, last_name, walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Loop
    from torchlint.semantics.model import Model

_FIXED_MEMORY = re.compile(
    r"CUDAGraph|cuda\.graph\b|make_graphed_callables|capturable|gradient_as_bucket_view|graph_capture"
)
# `shared._grad = parameter.grad`: a model in shared memory sees the gradients of another while the tensors stay.
_HANDED_ON = re.compile(r"\._?grad(\.data)?[ \t]*=[ \t]*[\w.\[\]'\"]+\._?grad(\.data)?[ \t]*(#.*)?$", re.MULTILINE)
_MEMORY = frozenset(["torch.empty", "torch.empty_like"])
_OWN = re.compile(r"\bdef[ \t]+zero_grad\b|\bzero_grad[ \t]*=[^=]")
_FILLING = frozenset(["zero_", "fill_"])
_PREPARING = frozenset(["detach_", "requires_grad_"])
_WRITING = frozenset(["add_", "sub_", "copy_", "addcmul_", "addcdiv_", "lerp_", "index_add_", "scatter_add_"])


@dataclass(frozen=True, slots=True)
class Zeroed:
    """`zero_grad(set_to_none=False)`, or a loop over parameters that fills their gradients with zeros or drops them."""

    node: cst.CSTNode
    gradient: str  # as the code calls it
    call: Call | None = None
    argument: cst.Arg | None = None
    loop: Loop | None = None
    fill: cst.Attribute | None = None  # the gradient, where the loop fills or drops it
    network: cst.BaseExpression | None = None  # whose `zero_grad()` does all that the loop does
    drops: bool = False


def zeroed_gradients(model: Model) -> Iterator[Zeroed]:
    """Where gradients are filled with zeros that the next step of an optimizer need not find, or dropped one by one."""
    gradients = [node for node in model.nodes_of(cst.Attribute) if isinstance(node, cst.Attribute) and _is_grad(node)]
    yield from _dropped(model, gradients)
    if _FIXED_MEMORY.search(model.source.text):
        return
    if any(_is_written_by_hand(model, node) or _is_laid_out(model, node) for node in gradients):
        return
    found = list(_zeroed(model, gradients))
    if found and not any(_HANDED_ON.search(source.text) for source in (model.source, *model.neighbours())):
        yield from found


def _zeroed(model: Model, gradients: list[cst.Attribute]) -> Iterator[Zeroed]:
    for call in model.calls_to(".zero_grad"):
        argument = call.argument("set_to_none", 0)
        known = call.receiver_value.is_(Kind.OPTIMIZER, Kind.MODULE) or looks_like_optimizer(last_name(call.receiver))
        if known and call.target is None and argument.arg is not None and argument.value.constant is False:
            yield Zeroed(call.node, text(call.node), call=call, argument=argument.arg)
    for loop in model.loops:
        fills = [node for node in gradients if _fills(model, node, loop)]
        if not fills or not isinstance(loop.node, cst.For) or _is_stepped_on(model, loop):
            continue
        if _is_made_anew(model, loop) or _is_before_training(loop):
            continue
        if _is_over_parameters(loop, fills) and _takes_part_in_training(model, loop):
            fill = fills[0] if len(fills) == 1 else None
            node = loop.node if holds_nothing_else(model, loop) else model.small_statement(fills[0]) or loop.node
            yield Zeroed(node, text(fills[0]), loop=loop, fill=fill, network=_network(model, loop))


def _is_before_training(loop: Loop) -> bool:
    """Whether no pass has left any gradients yet, since there is no optimizer so far: the tensors get some to begin
    with."""
    if loop.function.name == "__init__":
        return True
    calls = loop.function.calls
    behind = max((calls.index(call) for call in calls if loop in call.loops()), default=-1) + 1
    return loop.parent is None and any(call.value.kind is Kind.OPTIMIZER for call in calls[behind:])


def _dropped(model: Model, gradients: list[cst.Attribute]) -> Iterator[Zeroed]:
    """Loops that do no more, and no less, than `zero_grad()` of the network whose parameters they go through."""
    for loop in model.loops:
        drops = [node for node in gradients if _drops(model, node, loop)]
        alone = isinstance(loop.node, cst.For) and len(drops) == len(loop.node.body.body) == 1
        network = _network(model, loop) if alone else None
        if network is not None and _is_over_parameters(loop, drops) and loop.function.name != "__init__":
            yield Zeroed(loop.node, text(drops[0]), loop=loop, fill=drops[0], network=network, drops=True)


def _drops(model: Model, gradient: cst.Attribute, loop: Loop) -> bool:
    """`p.grad = None` for each parameter that has a gradient, and on no other condition."""
    guards = model.guards(gradient, inside=loop)
    if not _is_for_each(model, gradient, loop) or not all(isinstance(guard.test, cst.Comparison) for guard in guards):
        return False
    assign = model.small_statement(gradient)
    is_target = isinstance(model.parent(gradient), cst.AssignTarget)
    return isinstance(assign, cst.Assign) and is_target and is_name(assign.value, "None")


def _is_for_each(model: Model, gradient: cst.Attribute, loop: Loop) -> bool:
    """Whether each iteration of a loop comes to a gradient, on no condition but that there is one."""
    guards = model.guards(gradient, inside=loop)
    return model.loop(gradient) is loop and all(
        guard.branch == "body" and _asks_for_gradient(guard.test, gradient.value) for guard in guards
    )


def _network(model: Model, loop: Loop) -> cst.BaseExpression | None:
    """`net` of `for p in net.parameters():`, where the loop does what the `zero_grad()` of torch does, and no more."""
    match loop.node, loop.iterable:
        case (
            cst.For(orelse=None, asynchronous=None),
            cst.Call(func=cst.Attribute(value=network, attr=cst.Name(value="parameters")), args=[]) as call,
        ):
            is_own = model.call(call).target is not None or model.once(_has_own_zero_grad)
            if model.value(network).is_(Kind.MODULE) and not is_own and holds_nothing_else(model, loop):
                return network
    return None


def _has_own_zero_grad(model: Model) -> bool:
    """Whether a class says itself what `zero_grad` does: the network may be one of it, or of a class under it."""
    return any(_OWN.search(source.text) for source in (model.source, *model.neighbours()))


def _is_grad(node: cst.Attribute) -> bool:
    return node.attr.value == "grad"


def _fills(model: Model, gradient: cst.Attribute, loop: Loop) -> bool:
    """Whether a loop fills a gradient with zeros in each iteration, on no condition but that there is one."""
    if not _is_for_each(model, gradient, loop):
        return False
    above = model.parent(gradient)
    if isinstance(above, cst.Attribute) and above.attr.value == "data":
        gradient, above = above, model.parent(above)
    if isinstance(above, cst.Attribute) and above.attr.value in _FILLING:
        call = model.parent(above)
        return isinstance(call, cst.Call) and all(_is_zero(arg.value) for arg in call.args)
    if isinstance(above, cst.AssignTarget):
        assign = model.parent(above)
        return isinstance(assign, cst.Assign) and _makes_zeros(model, assign.value)
    return False


def _asks_for_gradient(test: cst.BaseExpression | None, parameter: cst.BaseExpression) -> bool:
    """`p.grad is not None`, `p.requires_grad`, of the parameter whose gradient it is."""
    match test:
        case cst.Comparison(
            left=cst.Attribute(value=asked, attr=cst.Name(value="grad")),
            comparisons=[cst.ComparisonTarget(operator=cst.IsNot(), comparator=cst.Name(value="None"))],
        ):
            return asked.deep_equals(parameter)
        case cst.Attribute(value=asked, attr=cst.Name(value="grad" | "requires_grad")):
            return asked.deep_equals(parameter)
        case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
            return _asks_for_gradient(left, parameter) and _asks_for_gradient(right, parameter)
    return False


def _is_zero(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.Integer, cst.Float)) and float(node.value) == 0


def _makes_zeros(model: Model, value: cst.BaseExpression) -> bool:
    if not isinstance(value, cst.Call):
        return False
    call = model.call(value)
    if call.callee in ("torch.zeros_like", "torch.zeros") or call.method in ("new_zeros", "zero_"):
        return True
    return call.callee == "torch.autograd.Variable" and len(value.args) > 0 and _makes_zeros(model, value.args[0].value)


def _is_over_parameters(loop: Loop, fills: list[cst.Attribute]) -> bool:
    """Whether it is the loop's own variable whose gradient is filled."""
    names = (
        {node.value for node in walk(loop.target) if isinstance(node, cst.Name)} if loop.target is not None else set()
    )
    return all(isinstance(node.value, cst.Name) and node.value.value in names for node in fills)


def _is_made_anew(model: Model, loop: Loop) -> bool:
    """Whether each iteration of the loop around makes the tensors whose gradients are filled: no pass adds to them."""
    binding = model.binding(loop.iterable) if loop.iterable is not None else None
    around = next(iter(list(loop.around())[1:]), None)
    if binding is None or around is None:
        return False
    return all(
        write.kind == "assign" and write.loop is not None and around in write.loop.around() and _makes_each(write.value)
        for write in binding.writes
    )


def _makes_each(value: cst.BaseExpression | None) -> bool:
    """`[make(x) for x in xs]`, `[make(x), make(y)]`"""
    if isinstance(value, cst.ListComp):
        return isinstance(value.elt, cst.Call)
    parts = value.elements if isinstance(value, (cst.List, cst.Tuple)) else ()
    return bool(parts) and all(isinstance(part.value, cst.Call) for part in parts)


def _takes_part_in_training(model: Model, loop: Loop) -> bool:
    """Whether autograd fills the gradients in again: it does those of parameters. Code of the user's own, as in a
    lesson, may add to what must be a tensor then."""
    over = text(loop.iterable) if loop.iterable is not None else ""
    return bool(model.calls_to(".backward", "torch.autograd.backward")) or "param" in over


def _is_stepped_on(model: Model, loop: Loop) -> bool:
    """Whether the next to look at the gradients is an optimizer, which passes over those that are None, or what clips
    them, as where it is tried out on zeros."""
    calls = loop.function.calls
    behind = max((calls.index(call) for call in model.calls_in(loop.node)), default=-1) + 1
    for call in calls[behind:]:
        effects = model.effects(call)
        if effects.backward or effects.optimizer_steps:
            return not effects.backward
        if last_name(call.node.func).startswith("clip_grad"):
            return True
    return False


def _is_written_by_hand(model: Model, gradient: cst.Attribute) -> bool:
    """Whether something is added to, or copied into, a gradient, which must be a tensor then."""
    above = model.parent(gradient)
    node: cst.CSTNode = gradient
    while isinstance(above, (cst.Subscript, cst.Attribute)) and above.value is node:
        if isinstance(above, cst.Attribute) and above.attr.value in _WRITING:
            return True
        node, above = above, model.parent(above)
    if isinstance(above, cst.AssignTarget) and isinstance(node, cst.Subscript):
        return True
    in_place = isinstance(above, cst.AugAssign) and above.target is node
    return in_place and isinstance(above.operator, (cst.AddAssign, cst.SubtractAssign))  # type: ignore[union-attr]


def _is_laid_out(model: Model, gradient: cst.Attribute) -> bool:
    """Whether a gradient gets memory ahead of the pass that fills it: `p.grad = torch.empty_like(p)` within a pool, or
    `p.grad = buffer[start:end].view_as(p)`. Dropped, the next one lies somewhere else."""
    target = model.parent(gradient)
    assign = model.parent(target) if isinstance(target, cst.AssignTarget) else None
    if not isinstance(assign, cst.Assign) or not isinstance(assign.value, cst.Call):
        return False
    call = model.call(assign.value)
    return call.callee in _MEMORY or (call.method in ("view", "view_as") and _is_part(call.receiver))


def _is_part(node: cst.BaseExpression | None) -> bool:
    """`buffer[start:end]`"""
    return isinstance(node, cst.Subscript) and any(isinstance(each.slice, cst.Slice) for each in node.slice)


def read_before_pass(model: Model, zeroed: Zeroed) -> cst.Attribute | None:
    """A gradient that the function takes for a tensor after it was filled with zeros, and before a pass has filled it
    again."""
    function, end = model.function(zeroed.node), model.span(zeroed.node)[1]
    later = (call.node for call in function.calls if model.span(call.node)[0] > end and model.effects(call).backward)
    first_pass = min((model.span(node)[0] for node in later), default=None)
    for node in model.nodes_of(cst.Attribute):
        if not isinstance(node, cst.Attribute) or not _is_grad(node) or model.function(node) is not function:
            continue
        place = model.span(node)[0]
        if place > end and (first_pass is None or place < first_pass) and _is_taken_for_tensor(model, node):
            return node
    return None


def _is_taken_for_tensor(model: Model, gradient: cst.Attribute) -> bool:
    if isinstance(model.parent(gradient), (cst.AssignTarget, cst.Comparison, cst.If)):
        return False
    return not any("grad" in text(test) for above in model.ancestors(gradient) for test in _tests(above))


def _tests(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """On what condition a statement, or a comprehension, comes to what is in it."""
    match node:
        case cst.If(test=test):
            yield test
        case cst.ListComp() | cst.GeneratorExp() | cst.SetComp() | cst.DictComp():
            yield from (condition.test for condition in node.for_in.ifs)


def holds_nothing_else(model: Model, loop: Loop) -> bool:
    """Whether all that a loop does is to fill gradients with zeros, so that its body can be one assignment."""
    assert isinstance(loop.node, cst.For)
    gradients = [node for node in walk(loop.node.body) if isinstance(node, cst.Attribute) and _is_grad(node)]
    if not _is_over_parameters(loop, gradients) or len({text(node) for node in gradients}) != 1:
        return False
    work: list[cst.CSTNode] = [*loop.node.body.body]
    while work:
        node = work.pop()
        match node:
            case cst.SimpleStatementLine():
                work.extend(node.body)
            case cst.If(orelse=None) if _asks_for_gradient(node.test, gradients[0].value):
                work.extend(node.body.body)
            case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(value=method)))) if _mentions_grad(node):
                if method not in _FILLING | _PREPARING:
                    return False
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value="grad")))], value=value):
                if not (isinstance(value, cst.Name) and value.value == "None") and not _makes_zeros(model, value):
                    return False
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]) if _mentions_grad(node.value):
                binding = model.binding(name)
                if binding is None or any(loop not in model.loops_around(read) for read in binding.reads):
                    return False
            case _:
                return False
    return True


def _mentions_grad(root: cst.CSTNode) -> bool:
    return any(isinstance(node, cst.Attribute) and _is_grad(node) for node in walk(root))
