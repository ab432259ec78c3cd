"""`DataLoader(images)` becomes `DataLoader(images, pin_memory=torch.cuda.is_available())`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.finding import Applicability, Fix
from torchlint.pinning import pinning

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def fix(report: Report, model: Model) -> Fix:
    made = pinning(report.facts)
    if made.doubt is not None:
        return Fix(made.edits, Applicability.UNSAFE, made.doubt)
    return Fix(made.edits, Applicability.SAFE, "The batches hold the same numbers, and without CUDA nothing changes.")
