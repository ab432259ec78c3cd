"""Which expressions copy a tensor from the device to the host in every step, and could do it once, later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.entities import Call, Loop, Role
from torchlint.semantics.host_use import DEFERRABLE, HostFlow, Use
from torchlint.semantics.values import Grad, Kind, Place, Value

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_COPIES = frozenset(["cpu", "numpy", "tolist"])
_CONVERSIONS = {"builtins.float": "float", "builtins.int": "int"}
_LIGHTNING_STEPS = frozenset(["training_step", "validation_step", "test_step"])
_GATES = frozenset(["log", "handler"])


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
        if read is None:
            continue
        tensor, how = read
        found = _step_of(model, call)
        if found is None or not _may_be_on_device(model, tensor, how):
            continue
        value = model.value(tensor)
        use = HostFlow(model, found.loop).of(call.node, is_number(how, value))
        if use and use in DEFERRABLE:
            yield Readback(call.node, tensor, value, how, found.loop, use)


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
        return _Step(loop) if loop.role in (Role.STEPS, Role.EVALUATION) else None
    function = call.function
    is_hook = function.cls is not None and function.cls.is_lightning and function.name in _LIGHTNING_STEPS
    return _Step(None) if is_hook else None


def _may_be_on_device(model: Model, tensor: cst.BaseExpression, how: str) -> bool:
    value = model.value(tensor)
    if value.place is Place.HOST or not value.is_(Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN):
        return False
    if value.kind is Kind.UNKNOWN and how in ("float", "int"):
        return False
    if value.place is Place.ACCELERATOR:
        return True
    return value.kind is Kind.TENSOR and value.grad is Grad.CARRIES and model.uses_accelerator
