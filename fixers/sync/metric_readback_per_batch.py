"""Adds up a count on the device and reads it behind the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Fix
from torchlint.semantics.accumulators import host_sum, survives_empty_loop
from torchlint.semantics.values import Kind

from ._sums import kept_in_double, kept_on_device

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model
    from torchlint.semantics.readback import Readback


def fix(report: Report, model: Model) -> Fix | None:
    read: Readback = report.facts
    total = host_sum(model, read)
    if total is None or not _is_count(model, read):
        return None
    if total.is_integer:
        return kept_on_device(model, read, total, "", "int") if total.term is read.node else None
    return kept_in_double(model, read, total, ".double()") if survives_empty_loop(model, total) else None


def _is_count(model: Model, read: Readback) -> bool:
    """A sum of integers or booleans: what `sum()` returns for these is a 64-bit integer."""
    if read.is_tally:
        return True
    call = model.call(read.tensor) if isinstance(read.tensor, cst.Call) else None
    is_sum = call is not None and call.callee in ("torch.sum", "torch.Tensor.sum") and call.argument("dtype").absent
    return is_sum and read.value.kind is Kind.TENSOR and not read.value.optional
