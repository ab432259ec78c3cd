"""Keeps a sum on the device, in double precision, and reads it behind the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.rule import NoFixError

from ._kept import kept_number

if TYPE_CHECKING:
    from torchlint.finding import Fix
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def fix(report: Report, model: Model) -> Fix:
    if report.facts is None:
        raise NoFixError("a division by a number may round another way than one by a tensor")
    return kept_number(model, report.facts)
