"""Takes the call that empties the cache out of the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.finding import Applicability, Fix

from .._chores import taken_out

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_WHY = "the process keeps the cached memory between steps, and where steps differ in size it may fragment"


def fix(report: Report, model: Model) -> Fix:
    return Fix((taken_out(report.facts, model),), Applicability.UNSAFE, _WHY)
