"""Adds up a count on the device and reads it behind the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Edit, Fix
from torchlint.rewrite import Rewriter
from torchlint.semantics.accumulators import HostSum, host_sum, is_wrapped
from torchlint.semantics.values import Kind
from torchlint.spelling import is_free

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model
    from torchlint.semantics.readback import Readback


def fix(report: Report, model: Model) -> Fix | None:
    read: Readback = report.facts
    total = host_sum(model, read)
    if total is None or not total.is_integer or not _is_count(read, model):
        return None
    edit = _on_device(read, total, model)
    if edit is None or not all(is_free(model, "int", name) for name in total.reads):
        return None
    edits = [edit]
    for name in total.reads:
        if not is_wrapped(model, name, "builtins.int", "builtins.float"):
            edits += Rewriter(model).wrap(name, "int(", ")")
    if total.is_timed:
        why = "The loop reads a clock: without the readback its intervals no longer include the work of the device."
        return Fix(tuple(edits), Applicability.UNSAFE, why)
    why = "Integers are added exactly on the device, and the sum is read once."
    return Fix(tuple(edits), Applicability.SAFE, why)


def _is_count(read: Readback, model: Model) -> bool:
    """A sum of integers or booleans: what `sum()` returns for these is a 64-bit integer."""
    node = read.tensor
    is_sum = isinstance(node, cst.Call) and model.call(node).callee in ("torch.sum", "torch.Tensor.sum")
    return is_sum and read.value.kind is Kind.TENSOR and not read.value.optional


def _on_device(read: Readback, total: HostSum, model: Model) -> Edit | None:
    start, end = model.span(read.node)
    first, last = model.span(read.tensor)
    text = model.source.text
    if total.update.value is not read.node or "#" in text[start:first] + text[last:end]:
        return None
    if read.node.lpar or read.how not in ("item", "int"):
        return None
    return Edit(start, end, text[first:last])
