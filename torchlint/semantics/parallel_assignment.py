"""Assignments of several values to several variables at once."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.tree import walk


def assigned_pairs(statement: cst.CSTNode | None) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Targets and values of `x = y` or `x, y = y, x`."""
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return []
    target, value = statement.targets[0].target, statement.value
    if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple) and len(target.elements) == len(value.elements):
        return [(a.value, b.value) for a, b in zip(target.elements, value.elements)]
    return [(target, value)]


def target_of(statement: cst.CSTNode | None, value: cst.CSTNode) -> cst.BaseExpression | None:
    """What a value of an assignment is assigned to."""
    return next((target for target, given in assigned_pairs(statement) if given is value), None)


def independent_pairs(assign: cst.Assign) -> list[tuple[cst.Name, cst.BaseExpression]] | None:
    """The variables and values of `a, b = x, y`, if no value has to do with the variable of another pair."""
    match assign:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple() as left)], value=cst.Tuple() as right):
            targets, values = _plain_elements(left), _plain_elements(right)
        case _:
            return None
    pairs = [(target, value) for target, value in zip(targets, values) if isinstance(target, cst.Name)]
    written = [target.value for target, _ in pairs]
    if not len(pairs) == len(left.elements) == len(values) == len(right.elements) == len({*written}):
        return None
    for target, value in pairs:
        read = {node.value for node in walk(value) if isinstance(node, cst.Name)}
        if read & {*written} - {target.value}:
            return None
    return pairs


def _plain_elements(node: cst.Tuple) -> list[cst.BaseExpression]:
    return [element.value for element in node.elements if isinstance(element, cst.Element)]
