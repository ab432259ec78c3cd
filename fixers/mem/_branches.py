"""Branches of an `if` that evaluate, each of them: one switch around them all says it once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.fate import Fate, Tracer
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

from ._going_on import written

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call
    from torchlint.semantics.model import Model

_LONGEST = 20  # lines: of longer branches, only what evaluates is indented


def branches_around(
    region: cst.SimpleStatementLine, lines: Collection[cst.SimpleStatementLine], model: Model
) -> cst.If | None:
    """The `if` around a line all branches of which evaluate and do nothing else that needs gradients."""
    first = _first_of_chain(region, model)
    if first is None:
        return None
    ends_with_else = False
    for branch in _chain(first):
        ends_with_else = isinstance(branch, cst.Else)
        body = branch.body.body
        made = {binding for line in body for binding in written(line, model)}
        evaluates = any(statement in lines for statement in body) or isinstance(_only(body), cst.Raise)
        if not evaluates or not all(statement in lines or _goes_along(statement, made, model) for statement in body):
            return None
    only_those = all(statement in lines for branch in _chain(first) for statement in branch.body.body)
    is_short = only_those or model.code(first).count("\n") < _LONGEST
    return first if ends_with_else and is_short else None


def _first_of_chain(line: cst.CSTNode, model: Model) -> cst.If | None:
    block = model.parent(line)
    above = model.parent(block) if block is not None else None
    if isinstance(above, cst.Else):
        above = model.parent(above)
    while isinstance(above, cst.If) and isinstance(outer := model.parent(above), cst.If):
        above = outer
    return above if isinstance(above, cst.If) else None


def _chain(first: cst.If) -> Iterator[cst.If | cst.Else]:
    branch: cst.If | cst.Else | None = first
    while branch is not None:
        yield branch
        branch = branch.orelse if isinstance(branch, cst.If) else None


def _only(body: object) -> cst.BaseSmallStatement | None:
    match body:
        case [cst.SimpleStatementLine(body=[small])]:
            return small
    return None


def _goes_along(line: cst.BaseStatement | cst.BaseSmallStatement, made: set[Binding], model: Model) -> bool:
    """Whether a line computes what no gradient is taken of, prints, or raises."""
    match line:
        case cst.SimpleStatementLine(body=[cst.Assign(value=value)]):
            calls = [model.call(node) for node in walk(value) if isinstance(node, cst.Call)]
            computes = all(_only_computes(call, made, model) for call in calls)
            return computes and not Tracer(model).of_expression(value) & (Fate.BACKWARD | Fate.ESCAPES)
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call() as shown)]):
            return model.call(shown).callee == "builtins.print"
        case cst.SimpleStatementLine(body=[cst.Raise() | cst.Pass()]):
            return True
    return False


def _only_computes(call: Call, made: set[Binding], model: Model) -> bool:
    """`torch.min(x, y)`, or a method of a tensor or of what the branch has made."""
    if call.is_forward or call.is_backward or call.is_optimizer_step:
        return False
    of = call.receiver
    while isinstance(of, (cst.Call, cst.Attribute, cst.Subscript)):
        of = of.func if isinstance(of, cst.Call) else of.value
    is_of_made = of is not None and model.binding(of) in made
    return is_of_made or (call.callee or "").startswith("torch.") or call.receiver_value.kind is Kind.TENSOR
