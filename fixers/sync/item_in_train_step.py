"""Keeps a sum on the device, in double precision, and reads it behind the loop."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Edit, Fix
from torchlint.rewrite import Rewriter
from torchlint.semantics.accumulators import host_sum, is_wrapped, survives_empty_loop
from torchlint.semantics.values import Kind
from torchlint.spelling import is_free

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model
    from torchlint.semantics.readback import Readback

_NO_DOUBLE = re.compile(r"\b(mps|xla\w*|torch_xla|xpu|hpu)\b", re.IGNORECASE)


def fix(report: Report, model: Model) -> Fix | None:
    read: Readback = report.facts
    total = host_sum(model, read)
    if total is None or not survives_empty_loop(model, total) or _NO_DOUBLE.search(model.source.text):
        return None
    if not _is_real_number(read) or not all(is_free(model, "float", name) for name in total.reads):
        return None
    edits = _on_device(read, model)
    if edits is None:
        return None
    for name in total.reads:
        if not is_wrapped(model, name, "builtins.float"):
            edits += Rewriter(model).wrap(name, "float(", ")")
    if total.is_timed:
        why = "The loop reads a clock: without the readback its intervals no longer include the work of the device."
        return Fix(tuple(edits), Applicability.UNSAFE, why)
    why = "The sum is kept on the device in double precision, the precision of a Python float, and read once."
    return Fix(tuple(edits), Applicability.SAFE, why)


def _is_real_number(read: Readback) -> bool:
    value = read.value
    return value.kind is Kind.TENSOR and value.dtype == "float" and not (value.optional and read.how != "item")


def _on_device(read: Readback, model: Model) -> list[Edit] | None:
    """`loss.detach().double()` for `loss.item()` and `float(loss)`."""
    start, end = model.span(read.node)
    first, last = model.span(read.tensor)
    text = model.source.text
    if read.node.lpar or "#" in text[start:first] + text[last:end] or read.how not in ("item", "float"):
        return None
    tensor = text[first:last]
    if read.how == "float" and not isinstance(read.tensor, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
        tensor = tensor if read.tensor.lpar else f"({tensor})"
    return [Edit(start, end, f"{tensor}.detach().double()")]
