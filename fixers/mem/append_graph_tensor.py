from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.finding import Applicability, Fix
from torchlint.rewrite import Rewriter
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.analyses.mem.retention import Retention
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def _starts_with_a_graph(kept: Retention, model: Model) -> bool:
    """Whether the tensor that the others are joined to is itself one with a graph: `out = first; out = cat(out, x)`."""
    binding = model.binding(kept.holder)
    writes = [write for write in binding.writes if write.kind == "assign"] if binding is not None else []
    firsts = (write.value for write in writes if model.small_statement(write.target) is not kept.node)
    return any(first is not None and model.value(first).carries for first in firsts)


def fix(report: Report, model: Model) -> Fix:
    """`.detach()` on every tensor that brings a graph into the container."""
    kept: Retention = report.facts
    if kept.obstacle:
        raise NoFixError(kept.obstacle)
    if _starts_with_a_graph(kept, model):
        raise NoFixError(f"what `{model.code(kept.holder)}` starts with has a graph, too, and would keep it alone")
    rewriter = Rewriter(model)
    edits = [edit for graph in kept.graphs for edit in rewriter.method_call(graph, ".detach()")]
    return Fix(tuple(edits), Applicability.SAFE, "The values stay the same; only their autograd history is dropped.")
