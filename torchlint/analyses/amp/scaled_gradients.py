"""Gradients of a scaled loss, and what clips them before they are divided by the scale again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import Conditions, conditions, exclude
from torchlint.finding import Confidence
from torchlint.semantics import vocabulary as words
from torchlint.semantics.dataflow import text
from torchlint.semantics.frameworks import SCALE_LOSS
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model

_CLIP_METHODS = frozenset({"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grad_value"})
_CLIP_NAME = re.compile(r"(^|_)clip_(grad|gradient|gradients|grads)(_|$)")
_CLAMPS = frozenset({"clamp_", "clip_", "clamp_max_", "clamp_min_"})
_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Event:
    """What happens to gradients at a call, in the order in which a function and those that it calls run."""

    kind: str  # backward clip unscale step
    call: Call
    site: Call  # in the function that the order belongs to: the call itself, or the one that leads to it
    scaler: str
    conditions: Conditions = field(hash=False, compare=False)
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class Clipping:
    """A call that clips gradients which are still multiplied by the scale."""

    clip: Event
    backward: Event
    steps: tuple[Event, ...]  # of the optimizers that follow, up to the next backward pass
    is_alone: bool  # nothing else in the same pass clips or unscales under other conditions
    confidence: Confidence


def clippings(model: Model) -> Iterator[Clipping]:
    """Clipping between a backward pass of a scaled loss and the step of the scaler, with nothing that unscales."""
    if not model.calls_to(".scale"):
        return
    found: dict[Call, Clipping] = {}
    cleared: set[Call] = set()
    for function in model.functions:
        for event, clipping in _in_order(list(_events(function, model)), model):
            if clipping is None:
                cleared.add(event.call)
            else:
                found.setdefault(event.call, clipping)
    yield from (clipping for call, clipping in found.items() if call not in cleared)


def _in_order(events: list[Event], model: Model) -> Iterator[tuple[Event, Clipping | None]]:
    """Each clipping of scaled gradients, with None where they were unscaled before."""
    reported: list[Event] = []
    for place, event in enumerate(events):
        if event.kind == "step":
            reported = [clip for clip in reported if exclude(clip.conditions, event.conditions)]
        if event.kind != "clip":
            continue
        before = _since_last_step(events[:place], event)
        backward = next((e for e in reversed(before) if e.kind == "backward"), None)
        if backward is None or exclude(event.conditions, _enabling(backward, model)):
            continue
        steps = _following_steps(events[place + 1 :], event, backward)
        if not steps:
            continue
        if any(e.kind == "unscale" for e in before):
            yield event, None
        elif not any(clip.conditions.items() <= event.conditions.items() for clip in reported):
            is_first = all(exclude(event.conditions, clip.conditions) for clip in reported)
            reported.append(event)
            yield event, _clipping(event, backward, steps, events[place + 1 :], is_first=is_first)


def _clipping(
    clip: Event, backward: Event, steps: tuple[Event, ...], after: list[Event], *, is_first: bool
) -> Clipping:
    pending = [event for event in after[: after.index(steps[0])] if not exclude(event.conditions, clip.conditions)]
    asked = clip.conditions.items()
    alone = is_first and all(event.kind == "clip" and asked <= event.conditions.items() for event in pending)
    sure = clip.is_sure and backward.is_sure
    return Clipping(clip, backward, steps, alone, Confidence.CERTAIN if sure else Confidence.LIKELY)


def _since_last_step(events: list[Event], clip: Event) -> list[Event]:
    """What ran after the last step that every pass through the clipping makes before it."""
    found: list[Event] = []
    for event in reversed(events):
        if exclude(event.conditions, clip.conditions):
            continue
        if event.kind == "step":
            break
        found.append(event)
    return found[::-1]


def _following_steps(events: list[Event], clip: Event, backward: Event) -> tuple[Event, ...]:
    found: list[Event] = []
    for event in events:
        if exclude(event.conditions, clip.conditions):
            continue
        if event.kind == "backward" and found:
            break
        if event.kind == "step" and event.scaler == backward.scaler:
            found.append(event)
    return tuple(found)


def _enabling(backward: Event, model: Model) -> Conditions:
    """What holds where a loss is scaled: the scaler is there, and is switched on."""
    found = {backward.scaler: True, **backward.conditions}
    source = backward.call.receiver
    for origin in _origins(source, model):
        enabled = model.call(origin).argument("enabled").node if isinstance(origin, cst.Call) else None
        if enabled is not None:
            found.setdefault(text(enabled).strip(), True)
    return found


# -- events


def _events(function: Function, model: Model, depth: int = 0, seen: tuple[Function, ...] = ()) -> Iterator[Event]:
    for call in function.calls:
        event = _event(call, model)
        if event is not None:
            yield event
        elif call.target is not None and depth < _DEPTH and call.target not in (*seen, function):
            around = conditions(model, call.node)
            for inner in _events(call.target, model, depth + 1, (*seen, function)):
                held = {**inner.conditions, **around}
                yield Event(inner.kind, inner.call, call, inner.scaler, held, inner.is_sure)


def _event(call: Call, model: Model) -> Event | None:
    kind, scaler, sure = "", "", True
    if call.is_backward:
        scale = _scaling(call, model)
        if scale is not None and scale.receiver is not None:
            kind, scaler = "backward", text(scale.receiver)
            sure = scale.receiver_value.kind is Kind.SCALER
    elif call.method == "step" and call.arguments and call.receiver is not None:
        if call.receiver_value.kind is Kind.SCALER or "scaler" in text(call.receiver).lower():
            kind, scaler = "step", text(call.receiver)
    elif _unscales(call, model):
        kind = "unscale"
    elif clips := _clips(call, model):
        kind, sure = "clip", clips is Confidence.CERTAIN
    return Event(kind, call, call, scaler, conditions(model, call.node), sure) if kind else None


def _scaling(backward: Call, model: Model) -> Call | None:
    """The call of `scale` that makes the loss of a backward pass."""
    source = backward.receiver
    if isinstance(source, cst.Name):
        binding = model.binding(source)
        values = [write.value for write in binding.writes if write.function is backward.function] if binding else []
        source = next((value for value in reversed(values) if _is_scale(value)), None)
    if not isinstance(source, cst.Call) or not _is_scale(source):
        return None
    scale = model.call(source)
    known = scale.receiver_value.kind
    if known is Kind.SCALER:
        return None if _is_off(scale, model) else scale
    if known not in (Kind.UNKNOWN, Kind.INSTANCE) or model.frameworks & SCALE_LOSS:
        return None
    return scale if scale.receiver is not None and "scaler" in text(scale.receiver).lower() else None


def _is_scale(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "scale"


def _is_off(scale: Call, model: Model) -> bool:
    calls = [model.call(origin) for origin in scale.receiver_value.origins if isinstance(origin, cst.Call)]
    return bool(calls) and all(call.argument("enabled").value.constant is False for call in calls)


def _origins(source: cst.BaseExpression | None, model: Model) -> frozenset[cst.CSTNode]:
    if isinstance(source, cst.Call) and isinstance(source.func, cst.Attribute):
        return model.value(source.func.value).origins
    return frozenset()


def _unscales(call: Call, model: Model) -> bool:
    """Whether a call unscales gradients, or may, since code out of sight is given the scaler."""
    name = call.method or (call.callee or "").rpartition(".")[2]
    if "unscale" in name or (call.foreign is not None and model.effects(call).has("unscales")):
        return True
    if call.target is not None or call.callee == "builtins.print":
        return False
    return any(arg.keyword is None and model.value(arg.value).kind is Kind.SCALER for arg in call.arguments)


def _clips(call: Call, model: Model) -> Confidence | None:
    """How sure it is that a call clips gradients in place."""
    name = (call.callee or "").rpartition(".")[2]
    if call.callee in words.CLIPPERS:
        return Confidence.CERTAIN
    if call.target is not None:
        named = "clip" in call.target.name and not model.effects(call).has("unscales")
        return Confidence.CERTAIN if named and _reads_grad(call.target, model) else None
    if call.method in _CLIP_METHODS and call.receiver is not None and call.receiver_value.kind is not Kind.NAMESPACE:
        return Confidence.CERTAIN if call.receiver_value.kind is Kind.MODULE else Confidence.LIKELY
    if call.method in _CLAMPS and call.receiver is not None and re.search(r"\.grad(\.data)?$", text(call.receiver)):
        return Confidence.CERTAIN
    if call.foreign is not None and model.effects(call).has("clips"):
        return Confidence.CERTAIN
    return Confidence.LIKELY if _CLIP_NAME.search(name or call.method or "") else None


def _reads_grad(function: Function, model: Model) -> bool:
    reads = (node for node in model.nodes_of(cst.Attribute) if isinstance(node, cst.Attribute))
    return any(node.attr.value == "grad" and model.function(node) is function for node in reads)
