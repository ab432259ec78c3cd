"""Parts of tensors for which the host waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.data_attribute.reads import Use, data_reads
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def waits_for_part(model: Model, node: cst.Subscript) -> bool:
    """`x[mask]`, which has as many elements as the mask has true ones, and `loss.data[0]`, the number in a loss as it
    was read before torch 0.4."""
    indices = (model.value(each.slice.value) for each in node.slice if isinstance(each.slice, cst.Index))
    return node in model.once(_numbers) or any(index.kind is Kind.TENSOR and index.dtype == "bool" for index in indices)


def _numbers(model: Model) -> frozenset[cst.CSTNode | None]:
    return frozenset(read.element for read in data_reads(model) if read.use is Use.ELEMENT)
