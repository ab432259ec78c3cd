"""Adds up the numbers of the parameters on the device and reads the sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.analyses.devices.host_use import Use
from torchlint.analyses.loops.steps import Step
from torchlint.analyses.sync.accumulators import host_sum
from torchlint.analyses.sync.readback import Readback
from torchlint.finding import Applicability, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.values import Kind

from ._sums import detaching, kept_in_double

if TYPE_CHECKING:
    from torchlint.analyses.sync.parameter_reads import ParameterRead
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_WHY = "The parameters have to be on one device, which has double precision; a power may differ in its last bit."


def fix(report: Report, model: Model) -> Fix:
    found: ParameterRead = report.facts
    value = model.value(found.tensor)
    if value.kind is not Kind.TENSOR or value.rank != 0 or value.dtype != "float":
        raise NoFixError(f"`{model.code(found.tensor)}` is not known to be a single real number")
    step = Step(found.loop, found.loop.role)
    read = Readback(found.node, found.tensor, value, found.how, True, step, Use.ACCUMULATED)
    total = host_sum(model, read, of_powers=True)
    kept = kept_in_double(model, read, total, detaching(model, read) + ".double()")
    return Fix(kept.edits, Applicability.UNSAFE, _WHY)
