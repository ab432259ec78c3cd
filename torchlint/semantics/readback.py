"""Which expressions copy a tensor from the device to the host in every step, and could do it once, later."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.entities import Loop, Role
from torchlint.semantics.host_use import DEFERRABLE, HostFlow, Use
from torchlint.semantics.provenance import calls_behind, is_handed_in, runs_model
from torchlint.semantics.transfer import place_named
from torchlint.semantics.values import Kind, Place, Value

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_COPIES = frozenset(["cpu", "tolist"])  # torch refuses `.numpy()` of a tensor on a device: where it runs, nothing waits
_KEEPING = _COPIES | {"detach", "clone", "float", "double", "squeeze"}
_CONVERSIONS = {"builtins.float": "float", "builtins.int": "int"}
_LIGHTNING_STEPS = frozenset(["training_step", "validation_step", "test_step"])
_GATES = frozenset(["log", "handler"])
_ACCELERATORS = re.compile(r"(?i)cuda|gpu|\bmps\b|xpu|rank|accelerat")
_STEPPING = (Role.STEPS, Role.EVALUATION, Role.ELEMENTS, Role.PLAIN)


@dataclass(frozen=True, slots=True)
class Readback:
    """One place where the host waits for the device, in a loop over training steps or evaluation batches."""

    node: cst.Call
    tensor: cst.BaseExpression
    value: Value  # of the tensor
    how: str  # item, float, int, cpu or tolist
    is_number: bool  # a single number is read, not a whole tensor
    loop: Loop | None  # None: each call of the function is one step
    use: Use

    @property
    def rhythm(self) -> str:
        if self.loop is None:
            return "in every step"
        return "in every training step" if self.loop.role is Role.STEPS else "after every evaluation batch"

    @property
    def is_count(self) -> bool:
        """An integer that the loop adds up."""
        counts = self.how != "float" and self.value.dtype in ("int", "bool")
        return self.is_number and counts and Use.ACCUMULATED in self.use

    @property
    def is_answer(self) -> bool:
        """A class or a token: what the program is run for, and no measure of it."""
        return self.is_number and self.value.dtype == "int" and Use.ACCUMULATED not in self.use


def deferrable_readbacks(model: Model) -> Iterator[Readback]:
    """Readbacks that run in every step and whose result the step does not need."""
    has_accelerator = _has_accelerator(model)
    for node, tensor, how in _reads(model):
        step = _step_of(model, node)
        if step is None or not _is_on_device(model, tensor, how, step.loop, has_accelerator):
            continue
        is_number = how not in _COPIES or model.value(tensor).rank == 0 or _becomes_number(model, node)
        use = HostFlow(model, step.loop).of(node, is_number)
        read = Readback(node, tensor, model.value(tensor), how, is_number, step.loop, use)
        if use and use in DEFERRABLE and not read.is_answer:
            yield read


class _Step(NamedTuple):
    """What runs once per training step or evaluation batch; without a loop, a hook that a framework calls."""

    loop: Loop | None


def _reads(model: Model) -> Iterator[tuple[cst.Call, cst.BaseExpression, str]]:
    """Every expression that brings a tensor to the host, with the tensor and how it does so."""
    for call in model.calls:
        if call.receiver is not None and (call.method == "item" or call.method in _COPIES):
            if not call.arguments:
                yield call.node, call.receiver, call.method
        elif call.callee in _CONVERSIONS and len(call.arguments) == 1 and not call.arguments[0].star:
            yield call.node, call.arguments[0].value, _CONVERSIONS[call.callee]


def _becomes_number(model: Model, node: cst.CSTNode) -> bool:
    """`loss.cpu().item()`, `float(loss.detach().cpu())`."""
    parent = model.parent(node)
    while isinstance(parent, cst.Attribute):
        call = model.parent(parent)
        if not isinstance(call, cst.Call):
            node, parent = parent, call
        elif parent.attr.value in _KEEPING:
            node, parent = call, model.parent(call)
        else:
            return parent.attr.value == "item"
    site = model.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(site, cst.Call) and model.call(site).callee in _CONVERSIONS


def _step_of(model: Model, node: cst.CSTNode) -> _Step | None:
    """The step that runs the node once each time, on no condition that makes it rare."""
    loop = next((loop for loop in model.loops_around(node) if not _is_within_step(model, loop)), None)
    if any(guard.kind in _GATES for guard in model.guards(node, inside=loop)):
        return None
    if loop is not None:
        return _Step(loop) if loop.role in _STEPPING and not _drives_environment(model, loop) else None
    function = model.function(node)
    is_hook = function.cls is not None and function.cls.is_lightning and function.name in _LIGHTNING_STEPS
    return _Step(None) if is_hook else None


def _is_within_step(model: Model, loop: Loop) -> bool:
    """A comprehension, or a loop over the entries of a dict, as of named losses."""
    if loop.is_comprehension:
        return True
    if loop.parent is None or loop.role not in (Role.PLAIN, Role.ELEMENTS):
        return False
    return isinstance(loop.iterable, cst.Call) and model.call(loop.iterable).method in ("items", "values")


def _drives_environment(model: Model, loop: Loop) -> bool:
    """`observation, reward, ... = env.step(action)`: the loop waits for the device in each iteration anyway."""
    for call in loop.calls:
        if call.method == "step" and call.arguments and call.receiver_value.is_(Kind.UNKNOWN, Kind.INSTANCE):
            above = model.parent(call.node)
            if isinstance(above, cst.Assign) and isinstance(above.targets[0].target, cst.Tuple):
                return True
    return False


def _has_accelerator(model: Model) -> bool:
    """Whether the file can run on a GPU, and does not say of every device it names that it is the host."""
    if not model.uses_accelerator or _ACCELERATORS.search(model.source.text):
        return model.uses_accelerator
    named = (call.argument("device", 0 if call.method == "to" else None) for call in model.calls)
    return any(argument.given and _may_be_device(argument.value) for argument in named)


def _may_be_device(value: Value) -> bool:
    if value.is_(Kind.DTYPE, Kind.TENSOR) or value.place is Place.HOST:
        return False
    return value.constant is None or place_named(str(value.constant)) is not Place.HOST


def _is_on_device(model: Model, tensor: cst.BaseExpression, how: str, loop: Loop | None, has_accelerator: bool) -> bool:
    """Whether the tensor may be on a GPU, and is computed by the step at all."""
    value = model.value(tensor)
    known = value.is_(Kind.TENSOR, Kind.BATCH)
    if value.place is Place.HOST or not (known or (value.kind is Kind.UNKNOWN and how in ("item", "cpu"))):
        return False
    if loop is None or loop.role in (Role.STEPS, Role.EVALUATION):
        if known and value.place is Place.ACCELERATOR:
            return True
        return value.kind is not Kind.BATCH and _is_computed(model, tensor, loop, has_accelerator)
    function = loop.function
    if function.cls is not None and function.cls.is_module and not function.cls.is_lightning:
        return False
    forwards = [
        call for call in calls_behind(model, tensor) if loop in call.loops() and runs_model(model, call, whole=False)
    ]
    return bool(forwards) and (value.place is Place.ACCELERATOR or has_accelerator)


def _is_computed(model: Model, tensor: cst.BaseExpression, loop: Loop | None, has_accelerator: bool) -> bool:
    """Whether a model computed the tensor, on whatever device it is, and that device may be a GPU."""
    calls = calls_behind(model, tensor)
    if loop is None:  # a framework that calls the hook moves model and batch
        return bool(calls)
    forwards = [call for call in calls if runs_model(model, call)]
    binding = model.binding(tensor)
    is_step = loop.role is Role.STEPS
    is_trained = is_step and binding is not None and model.reaches_backward(binding) is True
    if has_accelerator:
        return is_trained or bool(forwards)
    if not is_step or not _brings_its_data(model, loop.iterable):
        return False
    if forwards:
        return all(is_handed_in(model, call.receiver or call.node.func) for call in forwards)
    return is_trained and any(call.receiver is not None and is_handed_in(model, call.receiver) for call in calls)


def _brings_its_data(model: Model, iterable: cst.BaseExpression | None) -> bool:
    """Whether the batches come from an object that may keep them on the device, and not from a loader as they are."""
    if isinstance(iterable, cst.Call):
        return model.call(iterable).receiver is not None
    binding = model.binding(iterable) if iterable is not None else None
    writes = binding.writes if binding is not None and not binding.is_parameter else []
    return bool(writes) and all(
        isinstance(write.value, cst.Call) and model.call(write.value).receiver is not None for write in writes
    )
