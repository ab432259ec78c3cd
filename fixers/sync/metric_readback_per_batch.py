"""Adds up a count on the device and reads it behind the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.sync.accumulators import check_empty_loop, host_sum
from torchlint.finding import Fix
from torchlint.rule import NoFixError
from torchlint.semantics.values import Kind

from ._sums import kept_in_double, kept_on_device

if TYPE_CHECKING:
    from torchlint.analyses.sync.readback import Readback
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def fix(report: Report, model: Model) -> Fix:
    read: Readback = report.facts
    total = host_sum(model, read)
    if not _is_count(model, read):
        raise NoFixError(f"`{model.code(read.tensor)}` is not known to be a sum of integers")
    if total.is_integer:
        if total.term is not read.node:
            raise NoFixError("the count is multiplied or divided before it is added")
        return kept_on_device(model, read, total, "", "int")
    check_empty_loop(model, total)
    return kept_in_double(model, read, total, ".double()")


def _is_count(model: Model, read: Readback) -> bool:
    """A sum of integers or booleans: what `sum()` returns for these is a 64-bit integer."""
    if read.is_tally:
        return True
    call = model.call(read.tensor) if isinstance(read.tensor, cst.Call) else None
    is_sum = call is not None and call.callee in ("torch.sum", "torch.Tensor.sum") and call.argument("dtype").absent
    return is_sum and read.value.kind is Kind.TENSOR and not read.value.optional
