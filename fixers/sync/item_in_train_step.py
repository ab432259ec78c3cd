"""Keeps a sum on the device, in double precision, and reads it behind the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.analyses.sync.accumulators import check_empty_loop, host_sum
from torchlint.finding import Fix
from torchlint.rule import NoFixError
from torchlint.semantics.values import Kind

from ._sums import detaching, kept_in_double

if TYPE_CHECKING:
    from torchlint.analyses.sync.readback import Readback
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def fix(report: Report, model: Model) -> Fix:
    read: Readback = report.facts
    total = host_sum(model, read)
    check_empty_loop(model, total)
    if not _is_real(model, read):
        raise NoFixError(f"`{model.code(read.tensor)}` is not known to be a tensor of real numbers")
    return kept_in_double(model, read, total, detaching(model, read) + ".double()")


def _is_real(model: Model, read: Readback) -> bool:
    """A tensor of real floating point numbers, such as what a backward pass starts from."""
    value, binding = read.value, model.binding(read.tensor)
    if value.kind is not Kind.TENSOR or (value.optional and read.how != "item"):
        return False
    return value.dtype == "float" or (value.carries and binding is not None and "backward" in binding.methods)
