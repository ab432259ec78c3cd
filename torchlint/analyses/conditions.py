"""What has to hold for a node to run, as texts that are true or false there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.once import once_for_each
from torchlint.semantics.dataflow import bare_text, text
from torchlint.semantics.guards import conjuncts, disjuncts
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Loop
    from torchlint.semantics.model import Model

Conditions = Mapping[str, bool]
_RANK = re.compile(r"(?i)rank|main_process|master")


@once_for_each
def conditions(model: Model, node: cst.CSTNode) -> Conditions:
    """Tests of the branches around a node, by their text: whether each is true there."""
    found: dict[str, bool] = {}
    for guard in model.guards(node):
        if guard.test is None:
            continue
        holds = guard.branch == "body"
        parts = conjuncts(guard.test) if holds else disjuncts(guard.test)
        for part in (guard.test, *parts):
            key, positive = normal(part)
            found.setdefault(key, holds is positive)
    return found


def exclude(a: Conditions, b: Conditions) -> bool:
    """Whether two nodes never run in one pass, since a test that one needs is false for the other."""
    return any(b.get(key, holds) is not holds for key, holds in a.items())


def are_alternatives(model: Model, one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Whether two nodes stand in different branches of one and the same condition."""
    branches = {guard.node: guard.branch for guard in model.guards(one)}
    return any(branches.get(guard.node, guard.branch) != guard.branch for guard in model.guards(other))


def normal(test: cst.BaseExpression) -> tuple[str, bool]:
    """The text of what a test asks for, and whether it is true where that is there.

    `scaler` and True for `scaler is not None`; `scaler` and False for `not scaler`.
    """
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            key, positive = normal(inner)
            return key, not positive
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=other)]):
            if isinstance(other, cst.Name) and other.value in ("None", "False", "True"):
                same = isinstance(operator, (cst.Is, cst.Equal))
                if same or isinstance(operator, (cst.IsNot, cst.NotEqual)):
                    return text(left).strip(), same is (other.value == "True")
            if isinstance(operator, cst.NotEqual):
                return f"{text(left).strip()} == {text(other).strip()}", False
    return bare_text(test).strip(), True


def holds_once(test: cst.BaseExpression) -> bool:
    """`epoch == last`, but neither `epoch % 5 == 0` nor `rank == 0`."""
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Equal())]):
            return not any(isinstance(node, cst.Modulo) for node in walk(test)) and not _RANK.search(text(test))
    return False


def hangs_on_tensor(model: Model, call: Call, loop: Loop | None) -> bool:
    """`if variance.max() >= limit: self.adjust(variance)`: not in every step, as far as anybody knows. Most batches
    have rows that a mask picks."""
    guards = model.guards(call.node, inside=loop)
    branches = (guard.node for guard in guards if guard.branch == "body" and isinstance(guard.node, cst.If))
    return any(model.value(node.test).kind is Kind.TENSOR and not _asks_for_rows(model, node) for node in branches)


def _asks_for_rows(model: Model, branch: cst.If) -> bool:
    """`if mask.any(): measure(x[mask])`, `if mask.sum() > 0:`"""
    match branch.test:
        case cst.Comparison(left=count, comparisons=[cst.ComparisonTarget(comparator=cst.Integer(value="0" | "1"))]):
            if model.value(count).dtype == "int":
                return True
    asked = {model.binding(node) for node in walk(branch.test) if isinstance(node, cst.Name)} - {None}
    indices = (part for node in walk(branch.body) if isinstance(node, cst.Subscript) for part in node.slice)
    return any(isinstance(node, cst.Name) and model.binding(node) in asked for part in indices for node in walk(part))
