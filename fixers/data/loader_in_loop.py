"""A data loader that each epoch builds of the same parts is built before the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Fix
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.analyses.data.reiteration import Remade
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_WHY = (
    "A loader that stays draws its seeds once: from the second iteration on, the order of the samples and random "
    "augmentations differ. The dataset is asked for its length once."
)


def fix(report: Report, model: Model) -> Fix:
    found: Remade = report.facts
    assign, loop = model.small_statement(found.call.node), found.loop.node
    if found.loader is None:
        raise NoFixError("the loop takes an iterator of the loader, and when to start it anew is for you to say")
    if not isinstance(assign, cst.Assign) or assign.value is not found.call.node:
        raise NoFixError("the loader has no variable of its own")
    line = model.parent(assign)
    plain = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    if not plain or model.parent(line) is not getattr(loop, "body", None):  # type: ignore[arg-type]
        raise NoFixError("the loader is made under a condition, or on a line with other statements")
    if not _is_written_once(assign, model):
        raise NoFixError(f"`{model.code(assign.targets[0].target)}` is written at other places too")
    rewriter = Rewriter(model)
    removed = rewriter.remove_statement(assign)
    assert removed is not None
    moved = rewriter.insert_before(loop, *model.code(assign).splitlines())
    return Fix((moved, removed), Applicability.UNSAFE, _WHY)


def _is_written_once(assign: cst.Assign, model: Model) -> bool:
    target = assign.targets[0].target
    binding = model.binding(target) if len(assign.targets) == 1 and isinstance(target, cst.Name) else None
    return binding is not None and len(binding.writes) == 1
