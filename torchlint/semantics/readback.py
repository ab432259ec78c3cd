"""Which expressions copy a tensor from the device to the host in every step, and could do it once, later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.entities import Call, Loop, Role
from torchlint.semantics.host_use import DEFERRABLE, HostFlow, Use
from torchlint.semantics.provenance import forwards_behind
from torchlint.semantics.values import Kind, Place, Value

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_COPIES = frozenset(["cpu", "numpy", "tolist"])
_CONVERSIONS = {"builtins.float": "float", "builtins.int": "int"}
_LIGHTNING_STEPS = frozenset(["training_step", "validation_step", "test_step"])
_GATES = frozenset(["log", "handler"])
_STEPPING = (Role.STEPS, Role.EVALUATION, Role.ELEMENTS, Role.PLAIN)


@dataclass(frozen=True, slots=True)
class Readback:
    """One place where the host waits for the device, in a loop over training steps or evaluation batches."""

    node: cst.Call
    tensor: cst.BaseExpression
    value: Value  # of the tensor
    how: str  # item, float, int, cpu, numpy or tolist
    loop: Loop | None  # None: each call of the function is one step
    use: Use

    @property
    def is_number(self) -> bool:
        return is_number(self.how, self.value)

    @property
    def rhythm(self) -> str:
        if self.loop is None:
            return "in every step"
        return "in every training step" if self.loop.role is Role.STEPS else "after every evaluation batch"

    @property
    def is_count(self) -> bool:
        """An integer that the loop adds up."""
        return self.how != "float" and self.value.dtype in ("int", "bool") and Use.ACCUMULATED in self.use


def is_number(how: str, value: Value) -> bool:
    return how not in _COPIES or value.rank == 0


def deferrable_readbacks(model: Model) -> Iterator[Readback]:
    """Readbacks that run in every step and whose result the step does not need."""
    for call in model.calls:
        read = _tensor_read(call)
        step = _step_of(model, call) if read is not None else None
        if read is None or step is None:
            continue
        tensor, how = read
        value = model.value(tensor)
        if not _is_on_device(model, tensor, how, step.loop):
            continue
        use = HostFlow(model, step.loop).of(call.node, is_number(how, value))
        if use and use in DEFERRABLE:
            yield Readback(call.node, tensor, value, how, step.loop, use)


class _Step(NamedTuple):
    """What runs once per training step or evaluation batch; without a loop, a hook that a framework calls."""

    loop: Loop | None


def _tensor_read(call: Call) -> tuple[cst.BaseExpression, str] | None:
    """The expression whose value the call brings to the host."""
    if call.receiver is not None and (call.method == "item" or call.method in _COPIES):
        return (call.receiver, call.method) if not call.arguments else None
    how = _CONVERSIONS.get(call.callee or "")
    if how is None or len(call.arguments) != 1 or call.arguments[0].star or call.arguments[0].keyword is not None:
        return None
    return call.arguments[0].value, how


def _step_of(model: Model, call: Call) -> _Step | None:
    """The step that runs the call once each time, on no condition that makes it rare."""
    loop = next((loop for loop in call.loops() if not loop.is_comprehension), None)
    if any(guard.kind in _GATES for guard in model.guards(call.node, inside=loop)):
        return None
    if loop is not None:
        return _Step(loop) if loop.role in _STEPPING and not _drives_environment(model, loop) else None
    function = call.function
    is_hook = function.cls is not None and function.cls.is_lightning and function.name in _LIGHTNING_STEPS
    return _Step(None) if is_hook else None


def _drives_environment(model: Model, loop: Loop) -> bool:
    """`observation, reward, ... = env.step(action)`: the loop waits for the device in each iteration anyway."""
    for call in loop.calls:
        if call.method == "step" and call.arguments and call.receiver_value.is_(Kind.UNKNOWN, Kind.INSTANCE):
            above = model.parent(call.node)
            if isinstance(above, cst.Assign) and isinstance(above.targets[0].target, cst.Tuple):
                return True
    return False


def _is_on_device(model: Model, tensor: cst.BaseExpression, how: str, loop: Loop | None) -> bool:
    """Whether the tensor may be on a GPU, and is computed by the step at all."""
    value = model.value(tensor)
    known = value.is_(Kind.TENSOR, Kind.BATCH)
    if value.place is Place.HOST or not (known or (value.kind is Kind.UNKNOWN and how in ("item", "cpu"))):
        return False
    if loop is not None and loop.role in (Role.ELEMENTS, Role.PLAIN):
        return _is_evaluated(model, tensor, loop) and (value.place is Place.ACCELERATOR or model.uses_accelerator)
    if known and value.place is Place.ACCELERATOR:
        return True
    return model.uses_accelerator and value.kind is not Kind.BATCH and bool(forwards_behind(model, tensor))


def _is_evaluated(model: Model, tensor: cst.BaseExpression, loop: Loop) -> bool:
    """A loop of another kind evaluates batches if the tensor is what a model makes of one, outside of that model."""
    function = loop.function
    if function.cls is not None and function.cls.is_module and not function.cls.is_lightning:
        return False
    return bool(forwards_behind(model, tensor, loop))
