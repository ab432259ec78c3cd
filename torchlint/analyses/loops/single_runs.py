"""Conditions that hold in one iteration only: what they guard runs once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import normal
from torchlint.analyses.first_values import asks_for_marker
from torchlint.semantics.dataflow import text
from torchlint.semantics.entities import Guard

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def runs_once(model: Model, guard: Guard) -> bool:
    """`if mean is None: mean = loss.item()`, `if mean == 0:`, `if mean < 0:` of what begins as -1, and
    `if first: first = False`."""
    if guard.test is None or not isinstance(guard.node, cst.If):
        return False
    if isinstance(guard.test, cst.Comparison) and asks_for_marker(model, guard.test, guard.test.left):
        return guard.branch == "body"
    name, is_there = normal(guard.test)
    if (start := _compared_with_zero(guard.test)) is not None:
        name, is_there = start, False
    branch = guard.node.body if guard.branch == "body" else guard.node.orelse
    targets = model.once(_targets).get(name, ()) if branch is not None else ()
    inside = [target for target in targets if any(branch is above for above in model.ancestors(target))]
    if is_there is (guard.branch == "body"):
        return any(_turns_off(model, target) for target in inside)
    return bool(inside)


def _turns_off(model: Model, target: cst.AssignTarget) -> bool:
    match model.parent(target):
        case cst.Assign(value=cst.Name(value="False" | "None")):
            return True
    return False


def _targets(model: Model) -> dict[str, list[cst.AssignTarget]]:
    """The targets of assignments by what is written there."""
    found: dict[str, list[cst.AssignTarget]] = {}
    for target in model.nodes_of(cst.AssignTarget):
        assert isinstance(target, cst.AssignTarget)
        if not isinstance(target.target, (cst.Tuple, cst.List)):
            found.setdefault(text(target.target), []).append(target)
    return found


def _compared_with_zero(test: cst.BaseExpression) -> str | None:
    match test:
        case cst.Comparison(
            left=start,
            comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.Integer() | cst.Float() as number)],
        ) if not float(number.evaluated_value):
            return text(start).strip()
    return None
