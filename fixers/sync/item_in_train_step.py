"""Keeps a sum on the device, in double precision, and reads it behind the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.finding import Fix
from torchlint.semantics.accumulators import host_sum, survives_empty_loop
from torchlint.semantics.values import Kind

from ._sums import kept_in_double

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model
    from torchlint.semantics.readback import Readback


def fix(report: Report, model: Model) -> Fix | None:
    read: Readback = report.facts
    total = host_sum(model, read)
    if total is None or not survives_empty_loop(model, total) or not _is_real(model, read):
        return None
    return kept_in_double(model, read, total, ".detach().double()")


def _is_real(model: Model, read: Readback) -> bool:
    """A tensor of real floating point numbers, such as what a backward pass starts from."""
    value, binding = read.value, model.binding(read.tensor)
    if value.kind is not Kind.TENSOR or (value.optional and read.how != "item"):
        return False
    return value.dtype == "float" or (value.carries and binding is not None and "backward" in binding.methods)
