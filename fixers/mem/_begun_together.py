"""Tensors that all begin in one branch of a condition and grow in the other: their lists need no condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers.mem._beginning import beginning

from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Fix
from torchlint.semantics.dataflow import text

if TYPE_CHECKING:
    from torchlint.analyses.mem.cat_growth import Growth
    from torchlint.finding import Edit
    from torchlint.semantics.model import Model


def begun_together(model: Model, growths: Sequence[Growth], fixes: Sequence[Fix]) -> Fix | None:
    """One fix in the place of those of several growths, where the condition around them is there for nothing but that
    none of them has begun yet: `boxes_parts.append(box)` in each round. None where it is there for more."""
    condition = _condition(model, growths)
    if condition is None or not _asks_for_none(condition, growths):
        return None
    begun = [beginning(model, growth, f"{growth.name}_parts") for growth in growths]
    if not all(each.otherwise and each.loop is begun[0].loop for each in begun):
        return None  # one of them begins anew while another goes on
    start, end = model.span(condition)
    if "#" in model.source.text[start:end]:
        return None
    rewriter = Rewriter(model)
    around = [edit for fix in fixes for edit in fix.edits if not start <= edit.start < end]
    in_each_round = f"{rewriter.newline}{rewriter.indentation(condition)}".join(
        f"{growth.name}_parts.append({model.code(growth.parts[0])})" for growth in growths
    )
    edits: list[Edit] = [*around, rewriter.replace(condition, in_each_round)]
    return Fix(tuple(edits), Applicability.UNSAFE, fixes[0].why)


def _condition(model: Model, growths: Sequence[Growth]) -> cst.If | None:
    """The condition of which one branch has the growths and nothing else, the other the same parts under the same
    names."""
    block = model.parent(model.statement(growths[0].call))
    condition = model.parent(block) if block is not None else None
    if isinstance(condition, cst.Else):
        condition = model.parent(condition)
    if not isinstance(condition, cst.If) or not isinstance(condition.orelse, cst.Else):
        return None
    if isinstance(outer := model.parent(condition), cst.If) and outer.orelse is condition:
        return None  # an `elif`
    branches = (condition.body, condition.orelse.body)
    begun = _begun(next(branch for branch in branches if branch is not block))
    grown = {growth.name: [text(part) for part in growth.parts] for growth in growths}
    lines = getattr(block, "body", ())
    return condition if begun == grown and len(lines) == len(growths) else None


def _begun(branch: cst.BaseSuite) -> dict[str, list[str]] | None:
    """What each variable begins with in a branch that does no more."""
    begun: dict[str, list[str]] = {}
    for line in branch.body:
        match line:
            case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=target)], value=value)]):
                begun[text(target)] = [text(value)]
            case _:
                return None
    return begun


def _asks_for_none(condition: cst.If, growths: Sequence[Growth]) -> bool:
    """`boxes is None` or `boxes is not None`, of one of them."""
    match condition.test:
        case cst.Comparison(
            left=cst.Name(value=asked),
            comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot(), comparator=cst.Name(value="None"))],
        ):
            return any(growth.name == asked for growth in growths)
    return False
