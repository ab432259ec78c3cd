"""`.detach()` on what the call hands over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._detaching import detached

if TYPE_CHECKING:
    from torchlint.finding import Fix
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def fix(report: Report, model: Model) -> Fix:
    return detached(report.facts, model)
