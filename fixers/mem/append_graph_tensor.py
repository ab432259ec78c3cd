"""`.detach()` on every tensor that brings a graph into the container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.rule import NoFixError

from ._detaching import detached

if TYPE_CHECKING:
    from torchlint.analyses.mem.retention import Retention
    from torchlint.finding import Fix
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def fix(report: Report, model: Model) -> Fix:
    kept: Retention = report.facts
    if not kept.obstacle and _starts_with_a_graph(kept, model):
        raise NoFixError(f"what `{model.code(kept.holder)}` starts with has a graph, too, and would keep it alone")
    return detached(kept, model)


def _starts_with_a_graph(kept: Retention, model: Model) -> bool:
    """Whether the tensor that the others are joined to is itself one with a graph: `out = first; out = cat(out, x)`."""
    binding = model.binding(kept.holder)
    writes = [write for write in binding.writes if write.kind == "assign"] if binding is not None else []
    firsts = (write.value for write in writes if model.small_statement(write.target) is not kept.node)
    return any(first is not None and model.value(first).carries for first in firsts)
