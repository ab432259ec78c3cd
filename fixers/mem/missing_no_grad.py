from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Fix
from torchlint.rewrite import Rewriter
from torchlint.semantics.needless_graph import Extent

if TYPE_CHECKING:
    from torchlint.finding import Edit
    from torchlint.rule import Report
    from torchlint.semantics.model import Model
    from torchlint.semantics.needless_graph import Evaluation

_WHY = "Some modules take other kernels without a graph, and results may differ in the last bits."


def fix(report: Report, model: Model) -> Fix | None:
    """A decorator for a function that only evaluates, otherwise a `with` block around the loop or statement."""
    found: Evaluation = report.facts
    rewriter = Rewriter(model)
    switch = "torch.set_grad_enabled" if found.extent is Extent.PHASE else "torch.no_grad"
    spelled = rewriter.name_for(switch, found.region)
    if spelled is None:
        return None
    name, edits = spelled
    region = _region_edits(rewriter, model, found, name)
    return Fix((*edits, *region), Applicability.UNSAFE, _WHY) if region else None


def _region_edits(rewriter: Rewriter, model: Model, found: Evaluation, name: str) -> list[Edit]:
    region = found.region
    if found.extent is Extent.FUNCTION:
        return [rewriter.decorate(region, f"@{name}()")] if isinstance(region, cst.FunctionDef) else []
    if not isinstance(region, cst.BaseStatement):
        return []
    argument = model.code(found.phase) if found.phase is not None else ""
    return rewriter.indent_under([region], f"with {name}({argument}):") or []
