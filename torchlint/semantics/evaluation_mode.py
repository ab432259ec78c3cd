"""Evaluations in which dropout drops and batch norm learns, and training in which they no longer do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.entities import Call, Loop, Role
from torchlint.semantics.gradients import modules_of_optimizer
from torchlint.semantics.mode_layers import mode_layer
from torchlint.semantics.needless_graph import evaluates_by_name, is_held_out, is_over_data
from torchlint.semantics.phases import calls_setting, truths
from torchlint.semantics.step_cycle import optimizer_of
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

# What may switch the mode of a module; where it stands anywhere around, nothing is said to be missing.
_TO_EVALUATION = re.compile(
    r"\.eval\s*\(|\.train\(\s*[^)\s]|\.training\s*=[^=]|eval_mode|\btrain_mode|set_mode|\.mode\("
)
_TO_TRAINING = re.compile(r"\.train\s*\(|\.training\s*=[^=]|train_mode|set_mode|\.mode\(")
_ON_PURPOSE = re.compile(r"(?i)monte|(^|_)mc(_|$)|uncertain|bayes|ensemble|update_bn|calibrat|statistic|warm")


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


def missing_toggles(model: Model) -> Iterator[Toggle]:
    """Evaluations without `eval()`, and `eval()` without a way back, where nothing in the project does it."""
    if model.frameworks:
        return
    evaluates = _TO_EVALUATION.search(model.source.text) is not None
    switch = _TO_TRAINING if evaluates else _TO_EVALUATION
    if evaluates and switch.search(model.source.text):
        return
    found = [*_stays(model)] if evaluates else [*_evaluations(model), *_phases(model)]
    if found and not any(switch.search(source.text) for source in model.neighbours()):
        yield from found


# -- nobody calls eval()


def _evaluations(model: Model) -> Iterator[Toggle]:
    for loop in model.loops:
        if loop.role is not Role.EVALUATION or not isinstance(loop.node, cst.For) or _is_on_purpose(loop):
            continue
        forward = next((call for call in loop.calls if call.is_forward and _layer(model, call) is not None), None)
        if forward is not None and _is_evaluation(model, loop, forward):
            yield Toggle(loop.node, forward.node.func, _layer(model, forward) or "", _trains(model))


def _is_evaluation(model: Model, loop: Loop, forward: Call) -> bool:
    """Whether a loop measures something on data that is not trained on."""
    effects = model.effects(loop)
    if effects.backward or effects.optimizer_steps or effects.gradients or not is_over_data(loop):
        return False
    return is_held_out(loop) or (evaluates_by_name(loop.function) and model.grad_enabled(forward.node) is False)


def _trains(model: Model) -> bool:
    return any(call.is_backward for call in model.calls)


def _is_on_purpose(loop: Loop) -> bool:
    """Dropout that is to be random, batch norm that is to learn."""
    return _ON_PURPOSE.search(loop.function.qualname) is not None


def _layer(model: Model, forward: Call) -> str | None:
    return mode_layer(model, model.value(forward.node.func))


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


# -- nobody calls train()


def _stays(model: Model) -> Iterator[Toggle]:
    for call in model.calls_to(".eval"):
        if call.receiver is None or call.arguments or _is_conditional(model, call):
            continue
        layer = mode_layer(model, model.value(call.receiver))
        epochs = _training_around(model, call) if layer is not None else None
        if layer is not None and epochs is not None:
            yield Toggle(call.node, call.receiver, layer, True, epochs)


def _is_conditional(model: Model, call: Call) -> bool:
    """Under a condition other than every n-th epoch: it may run once, at the end."""
    return any(
        guard.test is None or not any(isinstance(node, cst.Modulo) for node in walk(guard.test))
        for guard in model.guards(call.node, call.loop)
    )


def _training_around(model: Model, call: Call) -> Loop | None:
    """The loop that, after an `eval()` in it, trains the same module again."""
    origins = model.value(call.receiver).origins if call.receiver is not None else frozenset()
    for loop in (*call.loops(), *(loop for caller in call.function.callers for loop in caller.loops())):
        for step in model.effects(loop).optimizer_steps:
            optimizer = optimizer_of(step)
            trained = modules_of_optimizer(optimizer, model) if optimizer is not None else None
            if loop.role is Role.EPOCHS and any(made.origin in origins for made in trained or ()):
                return loop
    return None
