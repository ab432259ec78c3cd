"""Branches in a loop: elements that are filled, and sums that grow, in some of the iterations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize.shapes import ATOM, BIT_AND, BIT_OR, PRODUCT, SCALAR, UNARY, Lifted, RefusedError
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Place

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.body import Body
    from torchlint.analyses.vectorize.lifting import Lifter

_BRANCHES = "the body of the loop branches"
_COUNTS: dict[type[cst.BaseAugOp], str] = {cst.AddAssign: "+=", cst.SubtractAssign: "-="}


def take(body: Body, node: cst.If) -> None:
    """What a branch does becomes what is done with the rows that its condition holds for."""
    lifter = body.lifter
    if len(lifter.context) != 1 or lifter.mask is not None or isinstance(node.orelse, cst.If):
        raise RefusedError(_BRANCHES)
    chosen = _condition(lifter, node.test)
    taken = [(_only_simple(node.body), chosen)]
    if node.orelse is not None:
        taken.append((_only_simple(node.orelse.body), chosen.but(text=f"~{chosen.within(UNARY)}", level=UNARY)))
    if len(taken) == 1 and len(taken[0][0]) == 1 and _counts(body, taken[0][0][0], chosen, node):
        return
    if _may_be_elsewhere(node, lifter):
        lifter.doubt("what picks the elements may be on another device than they are")
    mask = lifter.unused("chosen")
    body.emit(node, f"{mask} = {chosen.text}", chosen)
    for statements, where in taken:
        first = len(body.lines)
        lifter.mask, lifter.some_chosen = (mask if where is chosen else f"~{mask}"), False
        for small in statements:
            _chosen(body, small, node)
        lifter.mask = None
        if lifter.some_chosen:
            body.lines[first:] = [replace(line, indented=True) for line in body.lines[first:]]
            held = f"{mask}.any()" if where is chosen else f"not {mask}.all()"
            body.emit(node, f"if {held}:", chosen)
            body.lines.insert(first, body.lines.pop())


def _condition(lifter: Lifter, test: cst.BaseExpression) -> Lifted:
    """In which iterations a test holds."""
    if isinstance(test, cst.BooleanOperation):
        spelled, level = ("&", BIT_AND) if isinstance(test.operator, cst.And) else ("|", BIT_OR)
        left, before = _condition(lifter, test.left), lifter.for_all_rows
        lifter.for_all_rows = True
        right = _condition(lifter, test.right)
        lifter.for_all_rows = before
        return left.but(text=f"{left.within(level)} {spelled} {right.within(level + 1)}", level=level)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = _condition(lifter, test.expression)
        return inner.but(text=f"~{inner.within(UNARY)}", level=UNARY)
    lifted = lifter.tensor(test)
    if lifted.dtype.category != "bool" or lifted.axes != lifter.context or (lifted.rank.known or 0) > 0:
        raise RefusedError(f"`{lifter.code(test)}` is not known to compare numbers")
    if lifted.rank.known == 0:
        return lifted
    return lifted.but(text=f"{lifted.atom}.flatten()", level=ATOM, rank=SCALAR)


def _counts(body: Body, small: cst.CSTNode, chosen: Lifted, statement: cst.CSTNode) -> bool:
    """`count += 1` where a condition holds."""
    lifter = body.lifter
    sign = _COUNTS.get(type(small.operator)) if isinstance(small, cst.AugAssign) else None
    if not isinstance(small, cst.AugAssign) or not isinstance(small.target, cst.Name) or sign is None:
        return False
    name = small.target.value
    if name in lifter.rows or lifter.varies(small.value):
        return False
    value = lifter.invariant(small.value)
    if not value.number:
        return False
    body.start(small.target, sign)
    lifter.operations.add("reduction")
    lifter.totals.add(name)
    lifter.adds = True
    count = f"int({chosen.atom.removesuffix('.flatten()')}.sum())"  # of however many dimensions
    text = count if value.text == "1" else f"{value.within(PRODUCT)} * {count}"
    body.emit(statement, f"{name} {sign} {text}", chosen.but(exact=False))
    return True


def _chosen(body: Body, small: cst.CSTNode, statement: cst.CSTNode) -> None:
    """A statement of a branch: it fills elements, or adds to a sum."""
    fills = isinstance(small, cst.Assign) and isinstance(small.targets[0].target, cst.Subscript)
    if not fills and not isinstance(small, cst.AugAssign):
        raise RefusedError(_BRANCHES)
    if (
        isinstance(small, cst.AugAssign)
        and isinstance(small.target, cst.Name)
        and small.target.value in body.lifter.rows
    ):
        raise RefusedError(_BRANCHES)
    body.small(small, statement)


def _only_simple(suite: cst.BaseSuite) -> list[cst.CSTNode]:
    """The statements of a block that holds no other block."""
    found: list[cst.CSTNode] = []
    for statement in suite.body:
        if isinstance(statement, cst.SimpleStatementLine):
            found += statement.body
        elif isinstance(statement, cst.BaseSmallStatement):
            found.append(statement)
        else:
            raise RefusedError(_BRANCHES)
    return found


def _may_be_elsewhere(branch: cst.If, lifter: Lifter) -> bool:
    """Whether elements of a tensor of the host are filled by a test of what may not be there, or with it: one by one,
    they may come from any device."""
    names = [node for node in walk(branch) if isinstance(node, cst.Name)]
    taken_apart = {node.value for node in walk(branch) if isinstance(node, cst.Subscript)}
    parts = [
        name for name in names if name in taken_apart or name.value in lifter.rows or lifter.model.value(name).is_tensor
    ]
    places = {part.value: lifter.model.value(part).place for part in parts}
    filled = {name for name in places if name in lifter.sinks}
    return any(places[name] is Place.HOST for name in filled) and any(
        place is not Place.HOST for name, place in places.items() if name not in filled
    )
