"""Calls of functions of other files that read what they are given from the device, and return it on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import libcst as cst

from torchlint.analyses.devices.host_calls import HOST_TENSORS
from torchlint.analyses.devices.host_use import KEPT, HostFlow
from torchlint.analyses.loops.steps import is_gated
from torchlint.analyses.rowwise.evidence import Evidence, evidence
from torchlint.semantics.dataflow import parameter_of_function, upstream
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function
    from torchlint.semantics.model import Model

Read: TypeAlias = tuple[cst.Call, cst.BaseExpression, str]


class Given(NamedTuple):
    node: cst.BaseExpression
    is_tensor: bool  # for the function does with it what can be done with a tensor only


class ForeignRead(NamedTuple):
    """A call, and the read that it makes in the function that it enters."""

    call: Call
    given: tuple[Given, ...]  # the arguments that the read tensor is computed from
    position: int | None  # of the number, where the function returns a tuple
    home: Model
    node: cst.Call
    tensor: cst.BaseExpression
    how: str


def foreign_reads(model: Model, reads: Callable[[Model], Iterable[Read]]) -> Iterator[ForeignRead]:
    """Calls of which nothing comes back but what was read for them. `reads`: all that a file reads from the device."""
    for call in model.calls:
        home = model.home(call)
        if call.foreign is not None and home is not None and call.arguments and not call.is_forward:
            found = next(_reads_of(call, call.foreign, home, reads), None)
            if found is not None:
                yield found


def _reads_of(
    call: Call, function: Function, home: Model, reads: Callable[[Model], Iterable[Read]]
) -> Iterator[ForeignRead]:
    if function.is_generator or function.name == "__init__":
        return
    for node, tensor, how in reads(home):
        if home.function(node) is not function or home.loops_around(node) or is_gated(home, node, None):
            continue
        if home.value(tensor).kind is Kind.NUMBER:
            continue
        given = tuple(_given(call, function, home, tensor))
        flow = HostFlow(home, None, entered=function)
        if given and not flow.of(node, True) & KEPT and len(flow.returned_at) == 1:
            yield ForeignRead(call, given, next(iter(flow.returned_at)), home, node, tensor, how)


def _given(call: Call, function: Function, home: Model, tensor: cst.BaseExpression) -> Iterator[Given]:
    made_of = upstream(home, tensor)
    for arg in call.arguments:
        parameter = parameter_of_function(call, function, arg)
        if parameter is not None and parameter in made_of and not _are_copied(home, parameter):
            yield Given(arg.value, Evidence.TORCH in evidence(home, parameter.reads))


def _are_copied(home: Model, parameter: Binding) -> bool:
    """Whether the function makes a new tensor of what it is given, which are numbers then."""
    made = [
        {home.call(above).callee for above in home.ancestors(read) if isinstance(above, cst.Call)}
        for read in parameter.reads
    ]
    return all(callees & {*HOST_TENSORS} for callees in made)
