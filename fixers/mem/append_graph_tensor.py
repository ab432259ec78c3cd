from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.finding import Applicability, Fix
from torchlint.rewrite import Rewriter
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.analyses.mem.retention import Retention
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def fix(report: Report, model: Model) -> Fix:
    """`.detach()` on every tensor that brings a graph into the container."""
    kept: Retention = report.facts
    if kept.obstacle:
        raise NoFixError(kept.obstacle)
    rewriter = Rewriter(model)
    edits = [edit for graph in kept.graphs for edit in rewriter.method_call(graph, ".detach()")]
    return Fix(tuple(edits), Applicability.SAFE, "The values stay the same; only their autograd history is dropped.")
