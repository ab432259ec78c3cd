from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Fix
from torchlint.rewrite import Rewriter
from torchlint.semantics.needless_graph import Extent
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.finding import Edit
    from torchlint.rule import Report
    from torchlint.semantics.model import Model
    from torchlint.semantics.needless_graph import Evaluation

_LONG = 30  # lines: a longer loop is not indented as a whole, only the statements in it that run the model
_TRAINING = {"backward", "gradients", "optimizer_steps"}
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
    if found.extent is Extent.PART or _leaves_in_between(region, found.extent) or _trains_elsewhere(found, model):
        return []
    if found.extent is Extent.FUNCTION:
        return [rewriter.decorate(region, f"@{name}()")] if isinstance(region, cst.FunctionDef) else []
    header = f"with {name}({found.phase or ''}):"
    return [edit for node in _statements(model, found) for edit in rewriter.indent_under([node], header) or []]


def _leaves_in_between(region: cst.CSTNode, extent: Extent) -> bool:
    """Whether other code runs before the region ends, which would lose its gradients too: the mode is the thread's.

    A decorated generator is no danger: torch switches the mode back at every `yield`.
    """
    if extent is Extent.FUNCTION and isinstance(region, cst.FunctionDef):
        return region.asynchronous is not None
    return any(
        isinstance(node, (cst.Yield, cst.Await)) or getattr(node, "asynchronous", None) is not None
        for node in walk(region)
    )


def _trains_elsewhere(found: Evaluation, model: Model) -> bool:
    """Whether a function of another file that is called in the region takes gradients."""
    loops = [loop for loop in found.forward.loops() if loop.node is found.region]
    return any(_TRAINING & model.effects(loop).elsewhere for loop in loops)


def _statements(model: Model, found: Evaluation) -> list[cst.BaseStatement]:
    """What goes into a `with` block: the region, or the statements in it that run the model."""
    forwards = [model.statement(call.node) for call in (found.forward, *found.others)]
    short = model.code(found.region).count("\n") < _LONG
    if short or not all(isinstance(node, cst.SimpleStatementLine) for node in forwards):
        return [found.region] if isinstance(found.region, cst.BaseStatement) else []
    return [node for node in dict.fromkeys(forwards) if isinstance(node, cst.SimpleStatementLine)]
