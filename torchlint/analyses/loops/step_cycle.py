"""What happens between two steps of an optimizer: backward passes, and resets of the gradients, wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.gradients import Reset, may_reset, modules_of_optimizer, resets
from torchlint.analyses.once import once_for_each
from torchlint.finding import Confidence
from torchlint.semantics.dataflow import text
from torchlint.semantics.entities import Call, Function, Loop, Role
from torchlint.semantics.frameworks import RESET_GRADIENTS
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_DEPTH = 5
_OPTIMIZERS = re.compile(
    r"(torch\.optim|torch_optimizer|transformers|apex\.optimizers|bitsandbytes\.optim|timm\.optim)\."
)
_AROUND_OPTIMIZER = re.compile(r"horovod\.\w+\.DistributedOptimizer")
_RESETTING = re.compile(r"zero_grad|grad\S*\.zero_\(|\.grad\s*=[^=]|\.backward\(")


class Reached(Enum):
    """How far the gradients of an optimizer are reset."""

    NOWHERE = "nowhere"  # in this file
    OUTSIDE = "outside"  # of the loop
    OTHERS = "others"  # of other modules only
    RARELY = "rarely"  # in every n-th iteration, though each one steps


@dataclass(frozen=True, slots=True)
class Cycle:
    """An optimizer step that is repeated by `loop` while gradients are not reset between two steps.

    `loop` is None where the repetition is the optimizer's own, a closure that LBFGS evaluates many times a step, and
    where it is that of a framework, which calls the function of the step for every batch.
    """

    step: Call
    optimizer: cst.BaseExpression
    backward: Call
    loop: Loop | None
    closure: Function | None
    reset: Reached
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
    steps = [call for call in model.calls if call.is_optimizer_step]
    if not steps or model.frameworks & RESET_GRADIENTS:
        return
    known = _Resets.of(model)
    seen: set[tuple[str, Loop | None]] = set()
    for step in steps:
        cycle = _cycle(step, known, model)
        if cycle is not None and (key := (model.code(cycle.optimizer), cycle.loop)) not in seen:
            seen.add(key)
            yield cycle


@dataclass(frozen=True, slots=True)
class _Resets:
    """The resets of the file by the function and by the loops that they run in."""

    by_place: dict[Function | Loop, list[Reset]]

    @classmethod
    def of(cls, model: Model) -> _Resets:
        by_place: dict[Function | Loop, list[Reset]] = {}
        for reset in resets(model):
            places: list[Function | Loop] = [model.function(reset.node), *model.loops_around(reset.node)]
            for place in places:
                by_place.setdefault(place, []).append(reset)
        return cls(by_place)

    def inside(self, region: _Region) -> list[Reset]:
        places: list[Function | Loop] = [*region.functions, *([region.loop] if region.loop is not None else [])]
        return list(dict.fromkeys(reset for place in places for reset in self.by_place.get(place, ())))


def _cycle(step: Call, known: _Resets, model: Model) -> Cycle | None:
    optimizer = optimizer_of(step)
    if optimizer is None or _is_engine(step, optimizer, model):
        return None
    origins = model.value(optimizer).origins
    if not all(_is_torch_optimizer(origin, model) for origin in origins):
        return None
    closure = next(iter(step.passes), None)
    if closure is not None and _evaluates_often(optimizer, model):
        regions = [_region(closure.calls, [closure], None)]
    else:
        regions = [_region_of_loop(model, loop) for loop in _repeating(step, [optimizer], model)]
        if not regions and _is_called_per_batch(step.function):
            regions = [_region(step.function.calls, [step.function], None)]
    reached = {_reached(region, step, optimizer, known, model) for region in regions}
    backward = _backward(step, model.in_order(regions[0].calls)) if regions else None
    if len(reached) != 1 or (found := reached.pop()) is None or backward is None:
        return None
    confidence = Confidence.CERTAIN if origins and found is Reached.NOWHERE else Confidence.LIKELY
    return Cycle(step, optimizer, backward, regions[0].loop, closure, found, confidence)


def _may_be_reset(model: Model, region: _Region) -> bool:
    if region.loop is not None:
        return _may_be_reset_in_loop(model, region.loop)
    return any(may_reset(call, model) for call in region.calls)


@once_for_each
def _may_be_reset_in_loop(model: Model, loop: Loop) -> bool:
    return any(may_reset(call, model) for call in _region_of_loop(model, loop).calls)


def _reached(
    region: _Region, step: Call, optimizer: cst.BaseExpression, known: _Resets, model: Model
) -> Reached | None:
    """What resets there are for a step that a region repeats; None where they suffice, or are not all in sight."""
    if _made_inside(optimizer, region, model) or _may_be_reset(model, region):
        return None
    inside = known.inside(region)
    if not inside:
        if any(_is_hook(place, model) for place in known.by_place):
            return None
        return Reached.OUTSIDE if known.by_place else Reached.NOWHERE
    modules = modules_of_optimizer(optimizer, model)
    if all(reset.spares(modules) or _is_of_sibling(reset, optimizer, model) for reset in inside):
        return Reached.OTHERS
    loop = region.loop
    always = loop is not None and step.function is loop.function and not model.guards(step.node, loop)
    if always and loop is not None and all(reset.is_periodic(loop, model) for reset in inside):
        return Reached.RARELY
    return None


def _is_hook(place: Function | Loop, model: Model) -> bool:
    """Whether a function that resets gradients, and takes none, is handed on: a module may run it in every pass, an
    optimizer behind every step."""
    if not isinstance(place, Function) or model.effects(place).backward:
        return False
    return place.passed_around or isinstance(place.node, cst.Lambda)


# -- the optimizer


def optimizer_of(step: Call) -> cst.BaseExpression | None:
    """The optimizer of `optimizer.step()` and of `scaler.step(optimizer)`."""
    given = [arg.value for arg in step.arguments if not arg.star and arg.keyword is None]
    if step.receiver_value.kind is Kind.SCALER:
        return given[0] if given else None
    return step.receiver


def _is_engine(step: Call, optimizer: cst.BaseExpression, model: Model) -> bool:
    """An object that also runs backward, or that steps by the id of a context, keeps gradients in its own way."""
    if text(optimizer) in model.once(_run_backward):
        return True
    by_context = step.receiver_value.kind is not Kind.SCALER and step.arguments and not step.passes
    return bool(by_context)


def _run_backward(model: Model) -> frozenset[str]:
    """The expressions on which `backward` is called."""
    return frozenset(text(call.receiver) for call in model.calls_to(".backward") if call.receiver is not None)


def _is_of_sibling(reset: Reset, optimizer: cst.BaseExpression, model: Model) -> bool:
    """Whether a reset is that of the other optimizer in `opt_g, opt_d = self.optimizers()`; in `net, opt = build()` it
    is that of its network."""
    match reset.node:
        case cst.Call(func=cst.Attribute(value=other)) if model.value(other).kind is not Kind.MODULE:
            mine, theirs = model.binding(optimizer), model.binding(other)
        case _:
            return False
    if mine is None or theirs is None or mine is theirs or len(mine.writes) != 1 or len(theirs.writes) != 1:
        return False
    (first,), (second,) = mine.writes, theirs.writes
    return first.unpacked and second.unpacked and first.statement is second.statement


def _is_torch_optimizer(origin: cst.CSTNode, model: Model) -> bool:
    """Whether a call makes an optimizer that leaves the gradients to the loop."""
    if not isinstance(origin, cst.Call):
        return False
    call = model.call(origin)
    callee = call.callee or ""
    if _AROUND_OPTIMIZER.fullmatch(callee):
        inner = call.argument("optimizer", 0).value.origins
        return bool(inner) and all(_is_torch_optimizer(made, model) for made in inner)
    return _OPTIMIZERS.match(callee) is not None or _only_steps(callee, model)


def _only_steps(callee: str, model: Model) -> bool:
    """Whether it is a class of the project that is derived from an optimizer, and that resets nothing itself."""
    behind = model.class_behind(callee) if callee else None
    if behind is None:
        return False
    family = [*behind[1].lineage()]
    is_derived = any((base or "").startswith("torch.optim.") for cls in family for base in cls.bases)
    return is_derived and not any(_RESETTING.search(text(cls.node)) for cls in family)


def _evaluates_often(optimizer: cst.BaseExpression, model: Model) -> bool:
    origins = model.value(optimizer).origins
    return bool(origins) and all(
        isinstance(origin, cst.Call) and model.call(origin).callee == "torch.optim.LBFGS" for origin in origins
    )


def _made_inside(optimizer: cst.BaseExpression, region: _Region, model: Model) -> bool:
    """Whether each iteration has an optimizer of its own."""
    binding = model.binding(optimizer)
    writes = binding.writes if binding is not None else []
    written = [write.statement for write in writes if write.kind != "for" and not _is_handed_out(write.value, model)]
    return any(region.holds(node, model) for node in [*written, *model.value(optimizer).origins])


def _is_handed_out(value: cst.BaseExpression | None, model: Model) -> bool:
    """`self.optimizers()`: Lightning's own, which `configure_optimizers` has made."""
    return isinstance(value, cst.Call) and model.call(value).method == "optimizers"


# -- what is repeated


def _is_called_per_batch(function: Function) -> bool:
    """Whether a framework calls a method for each batch, one that runs its own backward passes."""
    return function.cls is not None and function.cls.is_lightning and function.name == "training_step"


def _repeating(call: Call, carriers: list[cst.BaseExpression], model: Model, depth: int = 0) -> list[Loop]:
    """The innermost loops that run a call once per iteration, here or around the calls of its function.

    `carriers` are the expressions at the call that the optimizer comes from: a loop in which they change is a loop over
    optimizers.
    """
    loops = (loop for loop in call.loops() if _repeats(loop) and not changes(carriers, loop, model))
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


def changes(expressions: list[cst.BaseExpression], loop: Loop, model: Model) -> bool:
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


@once_for_each
def _region_of_loop(model: Model, loop: Loop) -> _Region:
    """Of a loop over what a generator yields, the generator runs in each iteration, too."""
    yielding = () if loop.iterable is None else (node for node in walk(loop.iterable) if isinstance(node, cst.Call))
    return _region([*loop.calls, *(model.call(node) for node in yielding)], [], loop)


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


# -- the backward pass


def _backward(step: Call, calls: list[Call]) -> Call | None:
    """The backward pass of a step: the last one before it in its function, else any that its region runs."""
    passes = [call for call in calls if call.is_backward and not _is_distributed(call)]
    order = step.function.calls
    own = [call for call in passes if call.function is step.function]
    before = [call for call in own if order.index(call) < order.index(step)]
    found = before or own[::-1] or passes
    return found[-1] if found else None


def _is_distributed(call: Call) -> bool:
    """Distributed autograd keeps the gradients of every context apart."""
    return (call.callee or "").startswith("torch.distributed.autograd")
