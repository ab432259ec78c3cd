"""A data loader that each epoch builds of the same parts is built before the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Fix
from torchlint.rewrite import Rewriter

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model
    from torchlint.semantics.reiteration import Remade

_WHY = "The dataset is asked for its length once and not in every iteration."


def fix(report: Report, model: Model) -> Fix | None:
    found: Remade = report.facts
    assign, loop = model.small_statement(found.call.node), found.loop.node
    if found.loader is None or not isinstance(assign, cst.Assign) or assign.value is not found.call.node:
        return None
    line = model.parent(assign)
    plain = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    if not plain or model.parent(line) is not getattr(loop, "body", None) or not _is_written_once(assign, model):  # type: ignore[arg-type]
        return None
    rewriter = Rewriter(model)
    removed = rewriter.remove_statement(assign)
    moved = rewriter.insert_before(loop, *model.code(assign).splitlines())
    return Fix((moved, removed), Applicability.UNSAFE, _WHY) if removed is not None else None


def _is_written_once(assign: cst.Assign, model: Model) -> bool:
    target = assign.targets[0].target
    binding = model.binding(target) if len(assign.targets) == 1 and isinstance(target, cst.Name) else None
    return binding is not None and len(binding.writes) == 1
