"""Loops that end in their first iteration, to look at one batch of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import children
from torchlint.semantics.vocabulary import EXITS

if TYPE_CHECKING:
    from torchlint.semantics.entities import Loop


def ends_at_once(loop: Loop) -> bool:
    """`for x, y in loader: ...; break` looks at the first batch only, as does one that ends the program, and one that
    begins with `if shown == 1: break`."""
    first, last = (loop.body[0], loop.body[-1]) if loop.body else (None, None)
    if isinstance(first, cst.If) and _leaves(first.body) and _counts_one(first.test):
        ends = first.orelse is None
    else:
        ends = _leaves(last) or _exits(loop, last)
    return ends and not any(isinstance(node, cst.Continue) for node in _own_statements(loop.body))


def _exits(loop: Loop, line: cst.CSTNode | None) -> bool:
    match line:
        case cst.SimpleStatementLine(body=[*_, cst.Expr(value=cst.Call() as ending)]):
            found = next((call for call in reversed(loop.calls) if call.node is ending), None)
            return found is not None and found.callee in EXITS
    return False


def _leaves(part: cst.CSTNode | None) -> bool:
    """Whether a statement, or the last of a block, ends the loop around it."""
    if isinstance(part, cst.IndentedBlock):
        part = part.body[-1] if part.body else None
    ends = (cst.Break, cst.Return, cst.Raise)
    return isinstance(part, (cst.SimpleStatementLine, cst.SimpleStatementSuite)) and isinstance(part.body[-1], ends)


def _counts_one(test: cst.BaseExpression) -> bool:
    """`shown == 1`, `i > 0`"""
    match test:
        case cst.Comparison(left=cst.Name(), comparisons=[cst.ComparisonTarget(operator=how, comparator=limit)]):
            is_reached = isinstance(how, (cst.Equal, cst.GreaterThanEqual))
            rest = {1: is_reached, 0: isinstance(how, cst.GreaterThan)}
            return isinstance(limit, cst.Integer) and rest.get(limit.evaluated_value, False)
    return False


def _own_statements(nodes: Sequence[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """The statements of a loop and of what it branches into, without those of loops and functions in it."""
    for node in nodes:
        if not isinstance(node, (cst.For, cst.While, cst.FunctionDef, cst.ClassDef)):
            yield node
            yield from _own_statements(children(node))
