"""`.detach()` on what brings a graph into something that is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.analyses.mem.keeping import Way
from torchlint.finding import Applicability, Fix
from torchlint.rewrite import Rewriter
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.analyses.mem.retention import Retention
    from torchlint.semantics.model import Model


def detached(kept: Retention, model: Model) -> Fix:
    """A value that is kept itself, not added up, is copied as well: it would share its memory with the original."""
    if kept.obstacle:
        raise NoFixError(kept.obstacle)
    suffix = ".detach().clone()" if kept.way is Way.BEST else ".detach()"
    rewriter = Rewriter(model)
    edits = [edit for graph in kept.graphs for edit in rewriter.method_call(graph, suffix)]
    return Fix(tuple(edits), Applicability.SAFE, "The values stay the same; only their autograd history is dropped.")
