"""Takes the wait for the device out of the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.housekeeping import reads_clock
from torchlint.finding import Applicability, Fix
from torchlint.rule import NoFixError

from .._chores import taken_out

if TYPE_CHECKING:
    from torchlint.analyses.loops.housekeeping import Chore
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def fix(report: Report, model: Model) -> Fix:
    chore: Chore = report.facts
    edit = taken_out(chore, model)
    block = model.parent(model.statement(chore.site.node))
    if isinstance(model.parent(block) if block is not None else None, cst.Try):
        raise NoFixError("the errors of the device that come out there are caught")
    if reads_clock(model):
        return Fix((edit,), Applicability.UNSAFE, "the times that this file measures may end before the device is done")
    return Fix((edit,), Applicability.SAFE, "the same kernels run in the same order; only the host no longer waits")
