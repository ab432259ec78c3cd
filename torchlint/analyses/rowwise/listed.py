"""Lists that an earlier loop has made of the rows of a tensor, one element of each: they have the same shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise.state import Depends, Sink
from torchlint.semantics.numbering import Numbering
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.certainty import Certainty
    from torchlint.analyses.rowwise.state import Kept
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model


def is_made_of_rows(model: Model, certainty: Certainty, name: cst.Name) -> bool:
    """Whether a list that was empty has got a tensor for each row from a loop that has ended."""
    binding = model.binding(name)
    if binding is None or binding.shared or len(binding.writes) != 1 or binding.methods != {"append"}:
        return False
    start = binding.writes[0]
    if start.kind != "assign" or start.unpacked or not isinstance(start.value, cst.List) or start.value.elements:
        return False
    loop = _loop_that_fills(model, binding)
    numbering = model.once(Numbering)
    if loop is None or numbering.last[loop] >= numbering.first[name]:
        return False
    if model.parent(model.statement(start.target)) is not model.parent(loop):
        return False  # lists of several rounds
    return _gets_rows(model, certainty, loop, name.value)


def _loop_that_fills(model: Model, binding: Binding) -> cst.For | None:
    """The loop with the only call of append in its body."""
    found: list[cst.For] = []
    for read in binding.reads:
        match model.parent(read):
            case cst.Attribute(attr=cst.Name("append")) as method if method.value is read:
                around = (node for node in model.ancestors(read) if isinstance(node, (cst.For, cst.While)))
                loop = next(around, None)
                if not isinstance(loop, cst.For):
                    return None
                found.append(loop)
    return found[0] if len(found) == 1 else None


def _gets_rows(model: Model, certainty: Certainty, loop: cst.For, name: str) -> bool:
    from torchlint.analyses.rowwise.trace import trace_of  # which asks this module about the lists that it meets

    trace = trace_of(model, certainty, loop)
    given = [kept for kept in trace.kept if kept.sink is Sink.APPEND and kept.name == name]
    return not trace.faults and bool(trace.subjects) and all(_is_tensor_of_row(model, kept) for kept in given)


def _is_tensor_of_row(model: Model, kept: Kept) -> bool:
    if kept.guarded or kept.value is None or kept.seen.depends is not Depends.ROW:
        return False
    return model.value(kept.value).kind is Kind.TENSOR
