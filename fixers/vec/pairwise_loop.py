"""The loop becomes the same expressions on whole tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.analyses.vectorize.edits import fix_for

if TYPE_CHECKING:
    from torchlint.finding import Fix
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def fix(report: Report, model: Model) -> Fix:
    return fix_for(report.facts, model)
