"""Evaluations in which dropout drops and batch norm learns, and training in which they no longer do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import conditions
from torchlint.analyses.evaluation_names import evaluates_by_name, is_given_held_out, is_over_data
from torchlint.analyses.gradients import modules_of_optimizer
from torchlint.analyses.loops.epochs import loops_around_calls
from torchlint.analyses.loops.phases import calls_setting, truths
from torchlint.analyses.loops.step_cycle import optimizer_of
from torchlint.analyses.mem.gradients_on_the_way import reached
from torchlint.analyses.mem.step_parts import is_to_be_switched_off
from torchlint.analyses.mem.trial_runs import is_unit_test
from torchlint.analyses.modules.flagged_layers import comes_to_none
from torchlint.analyses.modules.mode_layers import mode_layer
from torchlint.analyses.modules.module_mode import Mode, modes_at, switch_behind
from torchlint.analyses.modules.parameter_free import module_of
from torchlint.analyses.once import once
from torchlint.analyses.single_tensor import is_graphless
from torchlint.semantics.dataflow import text, writes_reaching
from torchlint.semantics.entities import Call, Function, Loop, Role, Write
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import is_loss_module

if TYPE_CHECKING:
    from torchlint.semantics.model import Model
    from torchlint.semantics.values import Value
    from torchlint.source import Source

# What may switch the mode of a module; where it stands anywhere around, nothing is said to be missing.
_TO_EVALUATION = re.compile(
    r"\.(eval\s*\(|train\(\s*[^)\s]|training\s*=[^=]|mode\()|eval_mode|train_mode(?<=\btrain_mode)|set_mode"
)
_WRAPPER = re.compile(r"torch\.nn\.(parallel\.)?(\w+\.)*(\w*DataParallel|convert_sync_batchnorm)|torch\.compile")
# Other ways than `train()` and `eval()` of one module: they may mean any network.
_INDIRECTLY = re.compile(r"\.training\s*=[^=]|eval_mode|train_mode|set_mode|\.mode\(|to_eval|set_eval|set_train\b")
_ON_PURPOSE = re.compile(
    r"(?i)monte|(^|_)mc(_|$)|uncertain|bayes|ensemble|drop_?out|stochastic|update_bn|calibrat|statistic|warm"
)
_NOISE = frozenset({"torch.randn", "torch.rand", "torch.normal"})
_RIGHT = frozenset({Mode.EVALUATION, Mode.UNKNOWN})  # on some way, or for all that is in sight
_WRONG = frozenset({Mode.TRAINING, Mode.FRESH})
_LOOPS = (cst.For, cst.While)


@dataclass(frozen=True, slots=True)
class Toggle:
    """`node` is the loop or call that evaluates, or the `eval()` that nothing undoes.

    `layer` is what differs between the modes. `trains`: the file trains something, too. `epochs` is the loop that
    trains in the wrong mode from its second iteration on.
    """

    node: cst.For | cst.Call
    module: cst.BaseExpression
    layer: str
    trains: bool
    epochs: Loop | None = None


@once
def missing_toggles(model: Model) -> Iterator[Toggle]:
    """Evaluations without `eval()`, and `eval()` without a way back, where nothing in the project does it."""
    if model.frameworks - {"accelerate"}:
        return
    found = list(_nowhere(model))
    yield from found
    known = {model.function(toggle.node) for toggle in found}
    yield from (toggle for toggle in _on_no_way(model) if model.function(toggle.node) not in known)
    if ".eval()" in model.source.text and not _INDIRECTLY.search(model.source.text):
        yield from _stays(model)


def _nowhere(model: Model) -> Iterator[Toggle]:
    """Evaluations where nothing in the project switches to evaluation mode."""
    if model.once_of(model.source, _switches_to_evaluation):
        return
    found = [*_evaluations(model), *_phases(model)]
    if found and not any(model.once_of(source, _switches_to_evaluation) for source in model.neighbours()):
        yield from found


def _switches_to_evaluation(source: Source) -> bool:
    return _TO_EVALUATION.search(source.text) is not None


# -- nobody calls eval()


def _evaluations(model: Model) -> Iterator[Toggle]:
    for loop in model.loops:
        if loop.role is not Role.EVALUATION or not isinstance(loop.node, cst.For) or _is_on_purpose(loop):
            continue
        passes = (call for call in loop.calls if call.is_forward and not _is_only_tried(model, call))
        forward = next((call for call in passes if _layer(model, call) is not None), None)
        if forward is None or not _is_evaluation(model, loop, forward) or is_unit_test(model, loop.function):
            continue
        network = forward.node.func
        if not modes_at(model, forward, network) & _RIGHT:
            yield Toggle(loop.node, network, _layer(model, forward) or "", _trains_later(model, forward))


def _is_evaluation(model: Model, loop: Loop, forward: Call) -> bool:
    """Whether a loop measures something on data that is not trained on."""
    effects = model.effects(loop)
    if effects.backward or effects.optimizer_steps or effects.gradients or not is_over_data(loop):
        return False
    return is_given_held_out(model, loop) or (evaluates_by_name(loop.function) and _needs_no_graph(model, forward))


def _needs_no_graph(model: Model, forward: Call) -> bool:
    return model.grad_enabled(forward.node) is False or is_to_be_switched_off(model, forward)


def _is_only_tried(model: Model, forward: Call) -> bool:
    """Whether nobody looks at what a network returns in a function: it is only to run, or to be timed."""
    if forward.function.is_module:
        return False  # another file may look, or who runs the program
    match model.parent(forward.node):
        case cst.Expr():
            return True
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
            binding = model.binding(name)
            reads = binding.reads if binding is not None and not binding.shared else ()
            return binding is not None and all(
                any(isinstance(above, cst.Del) for above in model.ancestors(read)) for read in reads
            )
    return False


def _trains(model: Model) -> bool:
    return any(call.is_backward for call in model.calls)


def _is_on_purpose(loop: Loop) -> bool:
    """Dropout that is to be random, batch norm that is to learn."""
    return _ON_PURPOSE.search(loop.function.qualname) is not None


def _layer(model: Model, forward: Call) -> str | None:
    layer = mode_layer(model, model.value(forward.node.func))
    return None if layer is not None and comes_to_none(model, forward) else layer


def _phases(model: Model) -> Iterator[Toggle]:
    """Calls that make a function evaluate which other calls let train."""
    seen: set[Call] = set()
    for switch in model.calls_to("torch.set_grad_enabled"):
        state = switch.arguments[0].value if switch.arguments else None
        if state is None or truths(state, model) != {True, False}:
            continue
        forwards = [call for call in switch.function.calls if call.is_forward and model.grad_enabled(call.node) is None]
        forward = next((call for call in forwards if _layer(model, call) is not None), None)
        for call in calls_setting(state, False, model) if forward is not None else ():
            if forward is not None and call not in seen:
                seen.add(call)
                yield Toggle(call.node, forward.node.func, _layer(model, forward) or "", True)


# -- eval() is called, but not on the way


def _on_no_way(model: Model) -> Iterator[Toggle]:
    """Evaluations that a network reaches in training mode, whatever is called on others."""
    if _INDIRECTLY.search(model.source.text):
        return
    seen: set[tuple[Function, str]] = set()
    for call in model.calls:
        network = call.node.func if call.is_forward else _answers(model, call)
        if network is None or (call.function, text(network)) in seen:
            continue
        if not (_is_evaluated(model, call) if call.is_forward else _has_trained(model, call)):
            continue
        if _is_no_network(model, call, network) or _is_only_tried(model, call):
            continue
        modes = modes_at(model, call, network)
        if modes & _RIGHT or not modes & _WRONG:
            continue
        layer = _layer(model, call) if call.is_forward else mode_layer(model, model.value(network))
        if (layer is None and Mode.TRAINING not in modes) or _is_switched_on_purpose(model, call):
            continue
        if layer is not None or not _is_seen(model, model.value(network)):
            seen.add((call.function, text(network)))
            trains = _trains_later(model, call) and not _is_switched_back(model, call)
            yield Toggle(_place(call), network, layer or "", trains)


def _is_no_network(model: Model, call: Call, network: cst.BaseExpression) -> bool:
    """In the other branch of `if isinstance(net, nn.Module):` it is a function, which has no mode."""
    asked = f"isinstance({text(network)}, "
    return any(not holds and test.startswith(asked) for test, holds in conditions(model, call.node).items())


def _answers(model: Model, call: Call) -> cst.BaseExpression | None:
    """The network of which a call runs a method that runs it, in the mode that it finds, and returns no loss, as
    `generate`."""
    method = call.target
    if method is None or method.cls is None or not method.cls.is_module or call.receiver is None:
        return None
    if call.receiver_value.kind is not Kind.MODULE or (call.function.cls is not None and call.function.cls.is_module):
        return None
    if isinstance(model.parent(call.node), cst.Expr) or _ON_PURPOSE.search(call.function.qualname):
        return None  # it is called for what it changes, `net.update_prototypes(x)`, or to be random
    if is_unit_test(model, call.function):
        return None
    answers = is_graphless(call.value) and model.effects(method).has("forwards") and not model.effects(method).backward
    if not answers or _ON_PURPOSE.search(method.name) or not _depends_on_mode(model, method):
        return None
    return call.receiver


def _depends_on_mode(model: Model, method: Function) -> bool:
    """Whether a method runs a layer that the mode makes a difference for, and switches none by itself: `features` may
    leave out the dropout, and `predict` may call `self.eval()`."""
    calls = list(reached(method))
    if any(call.method in ("eval", "train") for call in calls):
        return False
    return any(mode_layer(model, model.value(module_of(call))) is not None for call in calls)


def _trains_later(model: Model, call: Call) -> bool:
    """Whether something may train behind a call: anything in a function, in a script only what stands there, or around
    it."""
    if not call.function.is_module or any(model.effects(loop).has("backward") for loop in call.loops()):
        return _trains(model)
    here = model.span(call.node)
    later = (other for other in call.function.calls if model.span(other.node) > here)
    return any(o.is_backward or (o.target is not None and model.effects(o.target).has("backward")) for o in later)


def _is_switched_on_purpose(model: Model, call: Call) -> bool:
    """Whether a function that runs no backward pass puts a network into training mode before it runs it, and not into
    evaluation mode first: it may adapt the network to what it tests on, or measure what dropout does."""
    network, here = model.binding(call.node.func), model.span(call.node)
    if network is None or call.function.is_module or model.effects(call.function).has("backward"):
        return False
    before = (other for other in call.function.calls if other.receiver is not None and model.span(other.node) < here)
    switches = [other for other in before if model.binding(other.receiver) is network]  # type: ignore[arg-type]
    if any(other.method == "eval" for other in switches):
        return False
    return any(other.method == "train" and not (other.arguments or model.guards(other.node)) for other in switches)


def _place(call: Call) -> cst.For | cst.Call:
    """The outermost loop over data around a forward pass, which needs the mode but once."""
    loops = [loop for loop in call.loops() if loop.role is Role.EVALUATION and isinstance(loop.node, cst.For)]
    node = loops[-1].node if loops else None
    return node if isinstance(node, cst.For) else call.node


def _is_evaluated(model: Model, call: Call) -> bool:
    """Whether a forward pass measures or shows what a network has learned."""
    function = call.function
    if (function.cls is not None and function.cls.is_module) or _ON_PURPOSE.search(function.qualname):
        return False
    if is_unit_test(model, function):
        return False
    if is_loss_module(model.value(call.node.func).ref or "") or isinstance(model.parent(call.node), cst.Expr):
        return False
    if call.loop is not None and call.loop.role is Role.STEPS and not model.is_log_gated(call.node):
        return False
    if _gives_losses_in_training(model, call) or _is_fed_from_training(model, call):
        return False
    if any(_is_part_of_training(model, caller) for caller in function.callers) or function.is_step:
        return False
    if any(call.role is Role.STEPS for call in function.foreign_callers):
        return False
    data = [loop for loop in call.loops() if not loop.is_comprehension and loop.role is not Role.EPOCHS]
    if any(is_given_held_out(model, loop) for loop in data) and not model.effects(data[0]).has("backward"):
        return True
    if not _needs_no_graph(model, call) or any(map(_is_over_training_data, data)):
        return False
    if evaluates_by_name(function) or _is_switched_back(model, call) or _has_loaded(model, call):
        return True
    return not data and _has_trained(model, call) and not _is_fed_noise(model, call)


def _is_fed_noise(model: Model, call: Call) -> bool:
    """Whether a network makes something of noise alone, and normalises it by its batch as it does when it trains: those
    who train generators mean it."""
    given = [arg.value for arg in call.arguments]
    made = [write.value or node for node in given for write in _reaching(model, node)] or given
    is_noise = bool(given) and all(any(each.callee in _NOISE for each in model.calls_in(node)) for node in made)
    return is_noise and "Norm" in (_layer(model, call) or "")


def _gives_losses_in_training(model: Model, call: Call) -> bool:
    """Whether a network, a detector, answers images and targets with its losses, which it only does in training."""
    if len(call.arguments) < 2:
        return False
    if (model.value(call.node.func).ref or "").startswith("torchvision.models.detection."):
        return True
    assign = model.parent(call.node)
    target = assign.targets[0].target if isinstance(assign, cst.Assign) and len(assign.targets) == 1 else None
    result = model.binding(target) if target is not None else None
    return result is not None and "values" in result.methods


def _is_fed_from_training(model: Model, call: Call) -> bool:
    """Whether what a network is given is a batch that a loop which trains has left behind."""
    reads = [node for arg in call.node.args for node in walk(arg.value) if isinstance(node, cst.Name)]
    seen: set[cst.CSTNode] = set()
    for read in reads:  # it grows while the loop runs
        for write in _reaching(model, read):
            if write.target in seen:
                continue
            seen.add(write.target)
            if write.kind == "for" and write.loop is not None and write.loop.role is Role.STEPS:
                return True
            if write.value is not None and not any(made.is_forward for made in model.calls_in(write.value)):
                reads += [node for node in walk(write.value) if isinstance(node, cst.Name)]
    return False


def _reaching(model: Model, read: cst.CSTNode) -> list[Write]:
    """The writes whose values a variable can have where it is read."""
    binding = model.binding(read)
    return writes_reaching(model, binding, read) if binding is not None else []


def _is_part_of_training(model: Model, call: Call) -> bool:
    return call.loop is not None and call.loop.role is Role.STEPS and not model.guards(call.node, call.loop)


def _is_over_training_data(loop: Loop) -> bool:
    return loop.iterable is not None and "train" in text(loop.iterable).lower()


def _is_switched_back(model: Model, call: Call) -> bool:
    """Whether `train()` on the network comes behind the block of a forward pass, as it does behind an evaluation."""
    here: cst.CSTNode = model.statement(call.node)
    switch = f"{text(call.node.func)}.train()"
    if switch not in model.source.text:
        return False
    for outer in model.ancestors(here):
        body = getattr(outer, "body", ())
        if isinstance(body, (list, tuple)) and here in body:
            for later in body[body.index(here) + 1 :]:
                if isinstance(later, cst.SimpleStatementLine) and text(later).strip() == switch:
                    return True
        if outer is call.function.node or (isinstance(outer, _LOOPS) and model.effects(outer).backward):
            return False
        here = outer
    return False


def _has_loaded(model: Model, call: Call) -> bool:
    """Whether a function that does not train runs a network that it has filled from a file."""
    network = model.binding(call.node.func)
    if network is None or model.effects(call.function).has("backward"):
        return False
    for load in model.calls_to(".load_state_dict"):
        filled = load.receiver is not None and model.binding(load.receiver) is network
        if filled and load.function is call.function and not load.loops() and not _is_copied(model, load):
            return True
    return False


def _is_copied(model: Model, load: Call) -> bool:
    """`target.load_state_dict(net.state_dict())`."""
    return any(inner.method == "state_dict" for inner in model.calls_in(load.node))


def _has_trained(model: Model, call: Call) -> bool:
    """Whether a loop that trains has ended before, in the function where a forward pass stands."""
    here: cst.CSTNode = model.statement(call.node)
    for outer in model.ancestors(here):
        if isinstance(outer, _LOOPS) or (outer is call.function.node and not call.function.is_module):
            return False
        body = getattr(outer, "body", ())
        if isinstance(body, (list, tuple)) and here in body:
            before = body[: body.index(here)]
            if any(isinstance(loop, _LOOPS) and model.effects(loop).backward for loop in before):
                return True
        here = outer
    return False


def _is_seen(model: Model, value: Value) -> bool:
    """Whether the layers of a network are in sight: its class is one of the project, or it is made of torch.nn."""
    made = [model.call(origin) for origin in value.origins if isinstance(origin, cst.Call) and model.parent(origin)]
    wrapped = [call for call in made if _WRAPPER.fullmatch(call.callee or "")]
    names = {call.callee for call in made if call not in wrapped} or {value.ref}
    if any(name is not None and (name.startswith("torch.nn.") or model.class_behind(name)) for name in names):
        return _WRAPPER.fullmatch(value.ref or "") is None or bool(set(made) - set(wrapped))
    return any(_is_seen(model, model.value(call.arguments[0].value)) for call in wrapped if call.arguments)


# -- eval() is called, and nothing leads back


def _stays(model: Model) -> Iterator[Toggle]:
    """Networks that a loop evaluates, and trains again without a way back to training mode."""
    seen: set[tuple[Loop, str]] = set()
    for call in model.calls:
        if not call.is_forward or not _trains_network(model, call):
            continue
        found = switch_behind(model, call, _loops_around(model, call))
        if found is None or (found[0], text(call.node.func)) in seen:
            continue
        seen.add((found[0], text(call.node.func)))
        layer = _layer(model, call)
        if layer is not None or not _is_seen(model, model.value(call.node.func)):
            yield Toggle(found[1].node, call.node.func, layer or "", True, found[0])


def _loops_around(model: Model, call: Call) -> list[Loop]:
    return [*call.loops(), *loops_around_calls(call.function, model)]


def _trains_network(model: Model, call: Call) -> bool:
    """Whether a step runs a network and updates it."""
    step = next((loop for loop in _loops_around(model, call) if loop.role is Role.STEPS), None)
    if step is None or model.grad_enabled(call.node) is not True or model.is_log_gated(call.node):
        return False
    origins = model.value(call.node.func).origins
    for update in model.effects(step).optimizer_steps:
        optimizer = optimizer_of(update)
        trained = modules_of_optimizer(optimizer, model) if optimizer is not None else None
        if any(made.origin in origins for made in trained or ()):
            return True
    return False
