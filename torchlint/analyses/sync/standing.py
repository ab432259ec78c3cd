"""Tensors that are put on the device once, before the steps, and copied back to the host by every step unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.moves import moves_to_accelerator
from torchlint.analyses.loops.steps import step_of
from torchlint.analyses.sync.readback import reads
from torchlint.analyses.sync.residence import Residence
from torchlint.analyses.sync.round_trips import Trip
from torchlint.semantics.dataflow import is_changed
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Loop
    from torchlint.semantics.model import Model

_SAME = frozenset(
    "detach clone contiguous squeeze unsqueeze view reshape flatten float double long int bool to t".split()
)
_READING = ("torch", "builtins", "numpy")  # packages whose functions change nothing that they are given


def standing_tensors(model: Model) -> Iterator[Trip]:
    """Copies to the host in each step of what was put on the device before, and is the same in all steps."""
    for node, tensor, how in reads(model):
        step = step_of(model, node) if how in ("cpu", "tolist") else None
        if step is None or step.loop is None:
            continue
        whole = _whole(model, tensor)
        binding = model.binding(whole)
        put = _put_there(model, binding) if binding is not None else None
        if binding is None or put is None or not model.once(Residence).may_run_on_device(model.function(node)):
            continue
        is_tensor = model.value(whole).kind is Kind.TENSOR or isinstance(model.parent(whole), cst.Subscript)
        if is_tensor and not any(_may_change(model, read, step.loop) for read in binding.reads):
            yield Trip(node, put, step)


def _whole(model: Model, part: cst.BaseExpression) -> cst.BaseExpression:
    """`labels` of `labels[i].long()`."""
    while model.binding(part) is None:
        match part:
            case cst.Subscript(value=inner) | cst.Attribute(value=inner, attr=cst.Name(value="data")):
                part = inner
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name))) if name in _SAME:
                part = inner
            case _:
                break
    return part


def _put_there(model: Model, binding: Binding) -> Call | None:
    """The last call that makes a variable what it is, where none of them is in a loop and it copies to the device."""
    writes = binding.writes
    if binding.cls is not None or not writes or any(write.kind != "assign" or write.loop for write in writes):
        return None
    last = writes[-1].value
    call = model.call(last) if isinstance(last, cst.Call) else None
    if last is None or call is None or call.receiver is None or not moves_to_accelerator(call, model):
        return None
    value = model.value(last)
    is_tensor = value.place is Place.ACCELERATOR and value.is_(Kind.TENSOR, Kind.UNKNOWN) and not value.carries
    return call if is_tensor else None


def _may_change(model: Model, read: cst.CSTNode, loop: Loop) -> bool:
    """Whether a tensor is changed where it is read: in place, by an optimizer, by what an iteration hands it to."""
    if is_changed(model, read):
        return True
    argument = model.parent(read)
    for above in model.ancestors(read):
        if isinstance(above, cst.Call) and model.value(above).kind is Kind.OPTIMIZER:
            return True
        if isinstance(above, cst.BaseSmallStatement):
            break
    site = model.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(site, cst.Call) or loop not in model.loops_around(read):
        return False
    call = model.call(site)
    return not call.is_forward and (call.callee or "").partition(".")[0] not in _READING
