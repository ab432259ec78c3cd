"""`DataLoader(images)` becomes `DataLoader(images, pin_memory=torch.cuda.is_available())`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.fixers._pinning import pinning

from torchlint.finding import Fix

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def fix(report: Report, model: Model) -> Fix:
    made = pinning(report.facts)
    why = made.doubt or "The batches hold the same numbers, and without CUDA nothing changes."
    return Fix(made.edits, made.applicability, why, needs_torch=report.facts.needs_torch)
