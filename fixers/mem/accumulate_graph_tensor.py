"""`.detach()` on the terms that bring a graph into the sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._detaching import detached

if TYPE_CHECKING:
    from torchlint.finding import Fix
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def fix(report: Report, model: Model) -> Fix:
    return detached(report.facts, model)
