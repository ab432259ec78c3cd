"""How often a node runs: once per training step or evaluation batch, or on a condition that makes it rare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.callers_by_name import bases_abroad
from torchlint.analyses.conditions import hangs_on_tensor
from torchlint.analyses.loops.exits import ends_program, leaves
from torchlint.analyses.loops.extent import is_of_a_few, is_over_display, saves_each_time
from torchlint.analyses.loops.first_iteration import ends_at_once
from torchlint.analyses.loops.lone_losses import lone_losses
from torchlint.analyses.loops.options import is_left_off, is_option
from torchlint.analyses.loops.passes import goes_over_loaders, is_pass_over_data
from torchlint.analyses.loops.single_runs import runs_once
from torchlint.analyses.loops.whole_steps import is_whole_step
from torchlint.analyses.loops.within_step import is_over_entries, is_over_receivers, is_within_step
from torchlint.analyses.once import once_for_each
from torchlint.semantics.dataflow import unfilled_default, upstream
from torchlint.semantics.entities import Function, Guard, Loop, Role, Write
from torchlint.semantics.guards import conjuncts
from torchlint.semantics.roles import yields_batches
from torchlint.semantics.tree import is_name, walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.foreign import ForeignCall
    from torchlint.semantics.model import Model

_COUNTING = ("builtins.enumerate", "builtins.range")
_GATES = frozenset(["log", "handler"])
_STEPPING = (Role.STEPS, Role.EVALUATION, Role.ELEMENTS, Role.PLAIN)
_DEPTH = 3
_FEW = 4


class Step(NamedTuple):
    """What runs once per training step or evaluation batch."""

    loop: Loop | None  # None: each call of the function is one step
    role: Role
    is_hook: bool = False  # a framework calls the function, with model and batch on the device

    @property
    def rhythm(self) -> str:
        if self.loop is None:
            return "in every step" if self.role is Role.STEPS else "for every batch"
        role = next((loop.role for loop in self.loop.around() if loop.role in (Role.STEPS, Role.EVALUATION)), None)
        if role is None:
            return "in every iteration"
        return "in every training step" if role is Role.STEPS else "after every evaluation batch"


@once_for_each
def step_of(model: Model, node: cst.CSTNode) -> Step | None:
    """The step that runs the node once each time, on no condition that makes it rare."""
    loop = _repeating(model, node, model.loops_around(node))
    if loop is not None and loop.parent is None and is_over_entries(model, loop) and not is_gated(model, node, None):
        whole = _step_of_function(model, node)
        if whole is not None:
            return whole
    if (loop is not None and loop.role not in _STEPPING) or is_gated(model, node, loop):
        return None
    if loop is not None:
        if _drives_environment(model, loop) or _runs_seldom(model, loop):
            return None
        return Step(loop, loop.role)
    return _step_of_function(model, node)


def _step_of_function(model: Model, node: cst.CSTNode) -> Step | None:
    """The step that runs the function of a node once each time."""
    function = model.function(node)
    if function.hook is not None:
        return Step(None, function.hook.role, is_hook=function.hook.on_device)
    role = called_per_step(model, function) or (Role.STEPS if _is_for_others(model, function) else None)
    return Step(None, role) if role is not None and not is_option(model, node, function) else None


def is_forward(function: Function) -> bool:
    """Whether it is the `forward` of a module."""
    return function.name == "forward" and function.cls is not None and function.cls.is_module


def _is_for_others(model: Model, function: Function, depth: int = _DEPTH) -> bool:
    """A model, or a loss, that nobody is seen to run is there for somebody's training; and what it calls, with it."""
    if function.is_module or not depth:
        return False
    if function in model.once(lone_losses):
        return True
    if is_forward(function) and not function.callers:
        return not any(True for _ in model.calls_elsewhere(function))
    calls = [call for call in function.callers if not call.loops() and not is_gated(model, call.node, None)]
    return any(_is_for_others(model, call.function, depth - 1) for call in calls)


def step_around(model: Model, node: cst.CSTNode) -> Step | None:
    """The training step or evaluation batch that runs the node at least once, in an inner loop perhaps."""
    inner: Loop | None = None
    for loop in model.loops_around(node):
        if loop.role in (Role.STEPS, Role.EVALUATION) and not ends_at_once(loop):
            if _drives_environment(model, loop):
                return None
            if is_gated(model, node, loop):
                return Step(inner, inner.role) if inner is not None else None
            return Step(loop, loop.role)
        if _runs_models(model, loop) and not is_gated(model, node, loop):
            inner = loop
    outermost = model.loops_around(node)[-1:]
    if outermost and outermost[0].role is Role.EPOCHS:
        return None
    if not outermost or is_gated(model, node, None):
        return None
    return _step_of_function(model, outermost[0].node) or (Step(inner, inner.role) if inner is not None else None)


def _runs_models(model: Model, loop: Loop) -> bool:
    """Whether a loop that counts its rounds, be it in an evaluation at intervals, runs a model in each of them."""
    return loop.role in (Role.PLAIN, Role.ELEMENTS) and any(call.loop is loop for call in model.effects(loop).forwards)


def is_gated(model: Model, node: cst.CSTNode, loop: Loop | None) -> bool:
    """Whether the node runs at some iterations only: to log something, to handle an error, to begin something."""
    guards = model.guards(node, inside=loop)
    if any(runs_once(model, guard) or ends_program(model, guard) or _picks(model, guard) for guard in guards):
        return True
    if any(_is_switched_off(model, guard) for guard in guards):
        return True
    gates = (guard for guard in guards if guard.kind in _GATES)
    return any(not _trains(model, guard) and not is_the_rest(guard) for guard in gates) or any(
        _is_of_skipped(model, guard) for guard in guards
    )


def _is_switched_off(model: Model, guard: Guard) -> bool:
    """`show = False` and `if show:`, which nothing ever makes true, and a parameter that no call in sight fills."""
    if guard.branch != "body" or guard.test is None:
        return False
    for part in conjuncts(guard.test):
        binding = model.binding(part) if isinstance(part, cst.Name) else None
        if binding is not None and binding.writes and not binding.is_global and all(map(_is_false, binding.writes)):
            return True
        match unfilled_default(model, part):
            case cst.Name(value="False"):
                return True
        if is_left_off(model, part):
            return True
    return False


def _is_false(write: Write) -> bool:
    match write.value:
        case cst.Name(value="False"):
            return write.kind == "assign" and not write.unpacked
    return False


def _picks(model: Model, guard: Guard) -> bool:
    """`if i in shown:` of the `i` that counts the batches: some of them are picked."""
    return (
        guard.branch == "body"
        and guard.test is not None
        and any(
            isinstance(part, cst.Comparison)
            and isinstance(part.comparisons[0].operator, cst.In)
            and _counts(model, part.left)
            for part in conjuncts(guard.test)
        )
    )


def _counts(model: Model, node: cst.BaseExpression) -> bool:
    """`i` of `for i, batch in enumerate(loader)` and of `for i in range(n)`."""
    binding = model.binding(node)
    loops = [w.loop for w in binding.writes if w.kind == "for" and w.loop is not None] if binding is not None else []
    for loop in loops:
        first = loop.target.elements[0].value if isinstance(loop.target, cst.Tuple) else loop.target
        iterable = loop.iterable
        while isinstance(iterable, cst.Call) and model.call(iterable).callee not in _COUNTING and iterable.args:
            iterable = iterable.args[0].value
        if isinstance(iterable, cst.Call) and first is not None and model.binding(first) is binding:
            return True
    return False


def called_per_step(model: Model, function: Function, depth: int = _DEPTH) -> Role | None:
    """The role of the loop that calls a function once per iteration, here or in another file."""
    if function.is_module or function.is_generator or not depth:
        return None
    if not function.callers and not function.foreign_callers:
        if is_whole_step(model, function):
            return Role.STEPS
        return _step_of_others(model, function, depth) or _step_of_base(model, function, depth)
    for foreign in function.foreign_callers:
        known = foreign.role in (Role.STEPS, Role.EVALUATION)
        found = foreign.role if known else _foreign_step(model, function, foreign, depth)
        if found is not None:
            return found
    for call in function.callers:
        step = _repeating(model, call.node, call.loops())
        if is_gated(model, call.node, step) or hangs_on_tensor(model, call, step):
            continue
        if step is None:
            if is_option(model, call.node, call.function):
                continue
            role = called_per_step(model, call.function, depth - 1)
            if role is not None:
                return role
        elif step.role in (Role.STEPS, Role.EVALUATION) and not (
            _is_of_other_things(model, step) or goes_over_loaders(model, step, function)
        ):
            return step.role
    return None


def _is_of_other_things(model: Model, loop: Loop) -> bool:
    """Whether an iteration is a step of an environment, or for one of the things that are listed."""
    return _drives_environment(model, loop) or (loop.parent is None and is_over_display(model, loop))


def _step_of_others(model: Model, function: Function, depth: int) -> Role | None:
    """The role of the loop of another file that calls a function of this one, or runs a model, or a loss, of it, or a
    method of that."""
    if function.name.startswith("__") and function.name != "__call__":
        return None
    if function.cls is not None and not function.cls.is_module:
        calls = model.calls_elsewhere(function)
        found = (_step_of_call(*each, depth) or _runs_batches(*each, function, model) for each in calls)
        return next(filter(None, found), None)
    for home, call in model.calls_elsewhere(function):
        step = _repeating(home, call.node, call.loops())
        if is_gated(home, call.node, step):
            continue
        if step is not None and (_is_of_other_things(home, step) or saves_each_time(step)):
            continue
        role = step.role if step is not None else called_per_step(home, call.function, depth - 1)
        if step is not None and role not in (Role.STEPS, Role.EVALUATION) and not function.is_step:
            role = _unseen_step(home, function, model, call, step)
        if role in (Role.STEPS, Role.EVALUATION):
            return role
    return None


def _step_of_base(model: Model, function: Function, depth: int) -> Role | None:
    """The role of what calls, in a base class of another file, a method which this class puts in its place: a loop, or
    a method that is a step itself, as the `forward` of a network or a loss."""
    for home, call in _calls_of_base(model, function):
        loop = _repeating(home, call.node, call.loops())
        if is_gated(home, call.node, loop) or (loop is not None and _drives_environment(home, loop)):
            continue
        if loop is not None:
            role = _unseen_step(home, function, model, call, loop)
        elif is_forward(call.function) and _is_for_others(home, call.function):
            role = Role.STEPS
        else:
            role = called_per_step(home, call.function, depth - 1)
        if role is not None:
            return role
    return None


def _calls_of_base(model: Model, function: Function) -> Iterator[tuple[Model, Call]]:
    """`self.process(batch)` in a base class of another file than the one that says what `process` does."""
    for home, base in bases_abroad(model, function):
        lineage = [*base.lineage()]
        for call in home.calls_to(f".{function.name}"):
            if is_name(call.receiver, call.function.own_name) and call.function.cls in lineage:
                yield home, call


def calls_abroad(model: Model, function: Function) -> Iterator[tuple[Model, Call]]:
    """Calls of a function in other files, those of a base of its class included."""
    yield from model.calls_elsewhere(function)
    yield from _calls_of_base(model, function)


def _foreign_step(model: Model, function: Function, foreign: ForeignCall, depth: int) -> Role | None:
    """The step of another file that makes a call: a loop, be it that the file does not see what the function does, or a
    function that is called in each step."""
    caller = model.caller(foreign)
    if caller is None or any(_drives_environment(caller[0], loop) for loop in caller[1].loops()):
        return None
    unseen = _unseen_step(caller[0], function, model, caller[1], caller[1].loops()[0]) if foreign.in_loop else None
    found = unseen or _step_of_call(*caller, depth)
    return Role.STEPS if found is None and _is_whole_step_of(*caller, function, model) else found


def _is_whole_step_of(home: Model, call: Call, function: Function, model: Model) -> bool:
    """Whether a call is all of a training step, in a function that loops of another file run, be it that the file does
    not see what the call does."""
    if call.loops() or is_gated(home, call.node, None) or not is_whole_step(model, function):
        return False
    outer = [(each, _repeating(home, each.node, each.loops())) for each in call.function.callers]
    return any(
        loop is not None and not is_gated(home, each.node, loop) and not _is_of_other_things(home, loop)
        for each, loop in outer
    )


def _step_of_call(home: Model, call: Call, depth: int) -> Role | None:
    """The role of what runs a call of another file once per iteration; several objects may be asked in each."""
    loop = _repeating(home, call.node, (loop for loop in call.loops() if not is_over_receivers(home, loop, call)))
    if is_gated(home, call.node, loop) or hangs_on_tensor(home, call, loop):
        return None
    if loop is not None:
        is_step = loop.role in (Role.STEPS, Role.EVALUATION) and not _is_of_other_things(home, loop)
        return loop.role if is_step else None
    if is_option(home, call.node, call.function):
        return None
    hook = call.function.hook
    return hook.role if hook is not None else called_per_step(home, call.function, depth - 1)


def _unseen_step(home: Model, function: Function, model: Model, call: Call, loop: Loop) -> Role | None:
    """What a loop is whose file does not see what the function does that it calls."""
    if function.is_step:
        return Role.STEPS
    runs_batch = not function.is_pass and bool(model.effects(function).forwards)
    is_batch = runs_batch and loop.role is Role.PLAIN and isinstance(loop.node, cst.For)
    return Role.EVALUATION if is_batch and _is_given(home, call, loop) else None


def _runs_batches(home: Model, call: Call, function: Function, model: Model) -> Role | None:
    """Whether a loop of another file, which does not see what a method does, gives it one batch each to run a model."""
    loop = _repeating(home, call.node, call.loops())
    if loop is None or function.is_step or is_gated(home, call.node, loop) or _is_of_other_things(home, loop):
        return None
    return _unseen_step(home, function, model, call, loop)


def _is_given(model: Model, call: Call, loop: Loop) -> bool:
    """Whether a call is given something that the iteration has got or made."""
    found = (binding for arg in call.arguments for binding in upstream(model, arg.value, loop))
    return any(write.loop is loop for binding in found for write in binding.writes)


@once_for_each
def _runs_seldom(model: Model, loop: Loop) -> bool:
    """Whether iterations of a loop are few or rare: it is over epochs, or two or three things, waits for somebody, or
    is entered at log intervals of the steps."""
    if _is_over_epochs(model, loop) or _waits_for_somebody(loop) or (loop.parent is None and _is_short(model, loop)):
        return True
    steps = [outer for outer in loop.around() if outer.role in (Role.STEPS, Role.EVALUATION)]
    return _is_rare_in_steps(model, loop, steps) if steps else _shows_samples_seldom(model, loop)


def _is_over_epochs(model: Model, loop: Loop) -> bool:
    """Whether a loop goes through all batches in each iteration, and over none itself."""
    passes = (each for each in loop.function.loops if each.parent is loop and is_pass_over_data(model, each))
    return not yields_batches(loop.iterates) and any(not is_gated(model, each.node, loop) for each in passes)


def _is_rare_in_steps(model: Model, loop: Loop, steps: list[Loop]) -> bool:
    """At log intervals of the steps around it. What runs a model there is an evaluation, which has steps of its own."""
    step = steps[0]
    if step is loop and loop.role is Role.STEPS and len(steps) > 1 and not model.effects(loop).optimizer_steps:
        return bool(model.effects(steps[1]).optimizer_steps) and is_gated(model, loop.node, steps[1])
    return step is not loop and not _runs_models(model, loop) and is_gated(model, loop.node, step)


def _shows_samples_seldom(model: Model, loop: Loop) -> bool:
    """Whether a loop is over the samples of one batch, in a function that is called at log intervals alone."""
    function = loop.function
    if not _picks_samples(model, loop) or (loop.parent is not None and _runs_models(model, loop)):
        return False
    if not function.callers or function.foreign_callers:
        return False
    return all(is_gated(model, call.node, next(iter(call.loops()), None)) for call in function.callers)


def _is_short(model: Model, loop: Loop) -> bool:
    is_rare = is_gated(model, loop.node, None)
    return is_of_a_few(model, loop, _FEW) and (is_rare or called_per_step(model, loop.function) is None)


def _waits_for_somebody(loop: Loop) -> bool:
    """Whether an iteration reads from the keyboard, itself or in a function that it calls."""
    entered = [call.target for call in loop.calls if call.target is not None]
    calls = [*loop.calls, *(inner for target in entered for inner in target.calls)]
    return any(call.callee == "builtins.input" for call in calls)


def _picks_samples(model: Model, loop: Loop) -> bool:
    """`x[i]` for the variable of the loop; `losses[i] = ...` picks nothing."""
    binding = model.binding(loop.target) if isinstance(loop.target, cst.Name) else None
    parts = (_part_at(model, read) for read in binding.reads) if binding is not None else ()
    return any(part is not None and not isinstance(model.parent(part), cst.AssignTarget) for part in parts)


def _part_at(model: Model, index: cst.CSTNode) -> cst.CSTNode | None:
    """`x[i]` of `i`."""
    above = model.parent(model.parent(index) or index)
    return model.parent(above) if isinstance(above, cst.SubscriptElement) else None


def _is_of_skipped(model: Model, guard: Guard) -> bool:
    """The branch for batches whose loss is found to be of no use, where the other one trains."""
    if not isinstance(guard.node, cst.If) or not isinstance(guard.node.orelse, cst.Else):
        return False
    branches = guard.node.body, guard.node.orelse
    own, other = branches if guard.branch == "body" else branches[::-1]
    asks = any(isinstance(node, cst.Call) and model.call(node).method == "item" for node in walk(guard.node.test))
    return asks and bool(model.effects(other).backward) and not model.effects(own).backward


def _trains(model: Model, guard: Guard) -> bool:
    """`if step % 5 == 0:` around a backward pass is no interval for logging, but a second kind of step; around the
    update of the weights it is the end of one step, for which gradients of several batches were added up. A pass whose
    gradients are only looked at, beside the one that trains, is neither, nor one that the other branch makes, too, in
    the function that both call: that branch runs at the interval to show what comes of it."""
    if not isinstance(guard.node, cst.If):
        return False
    branch = guard.node.body if guard.branch == "body" else guard.node.orelse
    if branch is None or guard.kind != "log":
        return False
    done = model.effects(branch)
    other = guard.node.orelse if guard.branch == "body" else guard.node.body
    if other is not None and set(done.backward) & set(model.effects(other).backward):
        return False
    if done.optimizer_steps or not done.backward:
        return bool(done.optimizer_steps)
    around = model.effects(model.loop(guard.node) or model.function(guard.node))
    return not (around.optimizer_steps and set(around.backward) - set(done.backward))


def is_the_rest(guard: Guard) -> bool:
    """What runs but in the first iteration, or but every n steps."""
    match guard.test:
        case cst.Comparison(left=cst.BinaryOperation(operator=cst.Modulo()), comparisons=[target]):
            rest = "body" if isinstance(target.operator, (cst.NotEqual, cst.IsNot, cst.GreaterThan)) else "else"
        case cst.Comparison(
            left=cst.Name() | cst.BinaryOperation(),
            comparisons=[cst.ComparisonTarget(cst.Equal(), cst.Integer() | cst.BinaryOperation() | cst.Call())],
        ):
            rest = "else"
        case cst.Comparison(comparisons=[cst.ComparisonTarget(cst.LessThan() | cst.LessThanEqual(), cst.Integer())]):
            rest = "else"
        case cst.BinaryOperation(operator=cst.Modulo()):
            rest = "body"
        case _:
            return False
    return guard.branch == rest


def _repeating(model: Model, node: cst.CSTNode, around: Iterable[Loop]) -> Loop | None:
    """The innermost loop around a node that is more than a part of a step, and does not end with the node."""
    return next((loop for loop in around if not is_within_step(model, loop) and not leaves(model, node, loop)), None)


def runs_few_times(loop: Loop) -> bool:
    """`for i in range(2)`."""
    match loop.iterable:
        case cst.Call(func=cst.Name(value="range"), args=[cst.Arg(value=cst.Integer() as count)]):
            return count.evaluated_value <= _FEW
    return False


def _drives_environment(model: Model, loop: Loop) -> bool:
    """`observation, reward, ... = env.step(action)`: the loop waits for the device in each iteration anyway."""
    for call in loop.calls:
        if call.method == "step" and call.arguments and call.receiver_value.is_(Kind.UNKNOWN, Kind.INSTANCE):
            above = model.parent(call.node)
            if isinstance(above, cst.Assign) and isinstance(above.targets[0].target, cst.Tuple):
                return True
    return False
