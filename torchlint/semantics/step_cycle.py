"""What happens between two steps of an optimizer: backward passes, and what resets the gradients, wherever it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Confidence
from torchlint.semantics.entities import Call, Function, Loop, Role
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

# Engines that reset gradients inside their own `step`.
_RESETTING_FRAMEWORKS = frozenset({"deepspeed", "fastai", "mmengine", "composer", "catalyst"})
_RESETTING_NAME = re.compile(r"(?i)(zero|reset|clear|clean|empty|null)_?\w*grad|grad\w*_?(zero|reset|clear)|set_to_none")
_HARMLESS_PARENTS = (cst.Comparison, cst.ComparisonTarget)
_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Cycle:
    """An optimizer step that is repeated by `loop` with nothing between two steps that resets the gradients.

    `loop` is None where the repetition is the optimizer's own: a closure that LBFGS evaluates many times a step.
    """

    step: Call
    optimizer: cst.BaseExpression
    backward: Call
    loop: Loop | None
    closure: Function | None
    reset_outside: bool
    confidence: Confidence


@dataclass(frozen=True, slots=True)
class _Region:
    """Everything that runs in one iteration of a loop, or in one call of a function."""

    calls: frozenset[Call]
    functions: frozenset[Function]
    loop: Loop | None

    def holds(self, node: cst.CSTNode, model: Model) -> bool:
        return model.function(node) in self.functions or (
            self.loop is not None and self.loop in model.loops_around(node)
        )


def unreset_cycles(model: Model) -> Iterator[Cycle]:
    """Steps whose gradients nothing resets, one for each optimizer and loop, in source order."""
    if model.frameworks & _RESETTING_FRAMEWORKS:
        return
    resets = list(_resets(model))
    seen: set[tuple[str, Loop | None]] = set()
    for step in model.calls:
        if not step.is_optimizer_step:
            continue
        cycle = _cycle(step, resets, model)
        if cycle is not None and (key := (model.code(cycle.optimizer), cycle.loop)) not in seen:
            seen.add(key)
            yield cycle


def _cycle(step: Call, resets: list[cst.CSTNode], model: Model) -> Cycle | None:
    optimizer = _optimizer(step)
    if optimizer is None or _is_engine(step, optimizer, model):
        return None
    closure = next(iter(step.passes), None)
    if closure is not None and _evaluates_often(optimizer, model):
        regions = [_region(closure.calls, [closure], None)]
    else:
        regions = [_region(loop.calls, [], loop) for loop in _repeating(step, [optimizer], model)]
    if not regions or any(_resets_or_hides(region, optimizer, step, resets, model) for region in regions):
        return None
    backward = _backward(step, [call for call in model.calls if call in regions[0].calls])
    if backward is None:
        return None
    known = any(_is_torch_optimizer(origin, model) for origin in model.value(optimizer).origins)
    confidence = Confidence.CERTAIN if known and not resets else Confidence.LIKELY
    return Cycle(step, optimizer, backward, regions[0].loop, closure, bool(resets), confidence)


# -- the optimizer


def _optimizer(step: Call) -> cst.BaseExpression | None:
    """The optimizer of `optimizer.step()` and of `scaler.step(optimizer)`."""
    given = [arg.value for arg in step.arguments if not arg.star and arg.keyword is None]
    if step.receiver_value.kind is Kind.SCALER:
        return given[0] if given else None
    return step.receiver


def _is_engine(step: Call, optimizer: cst.BaseExpression, model: Model) -> bool:
    """An object that also runs backward, or that steps by the id of a context, keeps gradients in its own way."""
    code = model.code(optimizer)
    if any(call.method == "backward" and call.receiver is not None and model.code(call.receiver) == code
           for call in model.calls):  # fmt: skip
        return True
    by_context = step.receiver_value.kind is not Kind.SCALER and step.arguments and not step.passes
    return bool(by_context)


def _is_torch_optimizer(origin: cst.CSTNode, model: Model) -> bool:
    return isinstance(origin, cst.Call) and (model.call(origin).callee or "").startswith("torch.optim.")


def _evaluates_often(optimizer: cst.BaseExpression, model: Model) -> bool:
    origins = model.value(optimizer).origins
    return bool(origins) and all(
        isinstance(origin, cst.Call) and model.call(origin).callee == "torch.optim.LBFGS" for origin in origins
    )


def _made_inside(optimizer: cst.BaseExpression, region: _Region, model: Model) -> bool:
    """Whether each iteration has an optimizer of its own."""
    binding = model.binding(optimizer)
    written = [write.statement for write in binding.writes] if binding is not None else []
    return any(region.holds(node, model) for node in [*written, *model.value(optimizer).origins])


# -- what is repeated


def _repeating(call: Call, carriers: list[cst.BaseExpression], model: Model, depth: int = 0) -> list[Loop]:
    """The innermost loops that run a call once per iteration, here or around the calls of its function.

    `carriers` are the expressions at the call that the optimizer comes from: a loop in which they change is a loop over
    optimizers.
    """
    loops = (loop for loop in call.loops() if _repeats(loop) and not _changes(carriers, loop, model))
    loop = next(loops, None)
    if loop is not None:
        return [] if _leaves(call, loop, model) else [loop]
    function = call.function
    if depth == _DEPTH or function.passed_around or function.is_module:
        return []
    found: dict[Loop, None] = {}
    for caller in function.callers:
        handed = [arg.value for arg in caller.arguments if model.value(arg.value).kind is Kind.OPTIMIZER]
        receiver = [caller.receiver] if caller.receiver is not None else []
        found |= dict.fromkeys(_repeating(caller, handed + receiver, model, depth + 1))
    return list(found)


def _repeats(loop: Loop) -> bool:
    """Not a loop over several optimizers, nor one that runs once."""
    return not loop.is_comprehension and loop.role is not Role.MODULES and not _runs_once(loop)


def _changes(expressions: list[cst.BaseExpression], loop: Loop, model: Model) -> bool:
    """Whether an expression uses the target of a loop."""
    names = (node for root in expressions for node in walk(root) if isinstance(node, cst.Name))
    bindings = (binding for name in names if (binding := model.binding(name)) is not None)
    return any(write.kind == "for" and write.loop is loop for binding in bindings for write in binding.writes)


def _runs_once(loop: Loop) -> bool:
    match loop.iterable:
        case cst.Call(func=cst.Name(value="range"), args=[cst.Arg(value=cst.Integer(value="1"))]):
            return True
        case cst.List(elements=[_]) | cst.Tuple(elements=[_]):
            return True
    return False


def _leaves(step: Call, loop: Loop, model: Model) -> bool:
    """Whether the loop always ends behind the call."""
    node: cst.CSTNode = step.node
    for outer in model.ancestors(step.node):
        if isinstance(outer, cst.IndentedBlock):
            after = outer.body[[*outer.body].index(node) + 1 :]  # type: ignore[arg-type]
            leaving = (small for line in after if isinstance(line, cst.SimpleStatementLine) for small in line.body)
            if any(isinstance(small, (cst.Break, cst.Return, cst.Raise)) for small in leaving):
                return True
        if outer is loop.node:
            return False
        node = outer
    return False


def _region(calls: Iterable[Call], functions: Iterable[Function], loop: Loop | None) -> _Region:
    """The calls and all that they reach in this file."""
    seen = set(functions)
    reached: set[Call] = set()
    work = list(calls)
    while work:
        call = work.pop()
        if call in reached:
            continue
        reached.add(call)
        for function in [call.target, *call.passes]:
            if function is not None and function not in seen:
                seen.add(function)
                work.extend(function.calls)
    return _Region(frozenset(reached), frozenset(seen), loop)


# -- what resets gradients


def _resets_or_hides(
    region: _Region, optimizer: cst.BaseExpression, step: Call, resets: list[cst.CSTNode], model: Model
) -> bool:
    """Whether gradients are reset in the region, or may be in code out of sight."""
    if _made_inside(optimizer, region, model) or any(region.holds(node, model) for node in resets):
        return True
    return any(_may_reset(call, model) for call in region.calls)


def _may_reset(call: Call, model: Model) -> bool:
    """A call of code from elsewhere that holds the optimizer or the model."""
    if call.target is not None or call.is_backward or call.is_optimizer_step or call.is_forward:
        return False
    if call.receiver is not None and _is_own(call.receiver, call.function) and model.binding(call.node.func) is None:
        return True
    return call in model.effects(call.node).opaque


def _is_own(receiver: cst.BaseExpression, function: Function) -> bool:
    """`self` in a method."""
    while function.cls is None and function.parent is not None:
        function = function.parent
    return isinstance(receiver, cst.Name) and bool(function.params) and receiver.value == function.params[0]


def _resets(model: Model) -> Iterator[cst.CSTNode]:
    """Every place of the file that may reset gradients: `zero_grad` and its like by name, and writes to `.grad`."""
    for call in model.calls:
        name = call.method or getattr(call.node.func, "value", "")
        keywords = [arg.keyword.value for arg in call.arguments if arg.keyword is not None]
        if call.is_zero_grad or any(isinstance(x, str) and _RESETTING_NAME.search(x) for x in [name, *keywords]):
            yield call.node
    for node in walk(model.module):
        if isinstance(node, cst.Attribute) and node.attr.value == "grad" and not _only_read(node, model):
            yield node


def _only_read(gradient: cst.Attribute, model: Model) -> bool:
    """`p.grad is None`, `p.grad.norm()`, and `torch.autograd.grad`, which is a function."""
    node: cst.CSTNode = gradient
    parent = model.parent(node)
    if isinstance(parent, cst.Call) and parent.func is gradient:
        return True
    while isinstance(parent, cst.Attribute):
        node, parent = parent, model.parent(parent)
    if isinstance(parent, _HARMLESS_PARENTS):
        return True
    is_call = isinstance(parent, cst.Call) and parent.func is node and node is not gradient
    return is_call and not node.attr.value.endswith("_")  # type: ignore[attr-defined]


# -- the backward pass


def _backward(step: Call, calls: list[Call]) -> Call | None:
    """The backward pass of a step: the last one before it in its function, else any that its region runs."""
    passes = [call for call in calls if call.is_backward and not _is_distributed(call)]
    order = step.function.calls
    own = [call for call in passes if call.function is step.function]
    before = [call for call in own if order.index(call) < order.index(step)]
    return (before or own[::-1] or passes or [None])[-1]


def _is_distributed(call: Call) -> bool:
    """Distributed autograd keeps the gradients of every context apart."""
    return (call.callee or "").startswith("torch.distributed.autograd")
