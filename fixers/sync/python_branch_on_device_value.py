"""Asks a flag before the device, and leaves out a question whose answer changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.new_tensors import shares_no_graph
from torchlint.analyses.sync.branching import Purpose
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.values import Grad, Kind

from ._expressions import only_computes

if TYPE_CHECKING:
    from torchlint.analyses.sync.branching import Decision
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def fix(report: Report, model: Model) -> Fix:
    decision: Decision = report.facts
    statement = decision.statement
    if isinstance(statement, cst.If):
        if decision.purpose is Purpose.FLAG and isinstance(statement.test, cst.BooleanOperation):
            return _flag_first(model, statement.test)
        if decision.purpose is Purpose.MASK:
            return _without_test(model, statement)
    raise NoFixError("what to do in place of the question depends on what the branch is for")


def _flag_first(model: Model, test: cst.BooleanOperation) -> Fix:
    start, end = model.span(test)
    if "#" in model.source.text[start:end]:
        raise NoFixError("a comment stands inside of the condition")
    if not only_computes(model, test):
        raise NoFixError("the condition may do more than compute")
    left, right = _operand(model, test.left), _operand(model, test.right)
    rewriter = Rewriter(model)
    swapped = (rewriter.replace(test.left, right), rewriter.replace(test.right, left))
    return Fix(swapped, Applicability.SAFE, "Both have to hold, and neither changes anything.")


def _operand(model: Model, node: cst.BaseExpression) -> str:
    needs_parentheses = isinstance(node, (cst.IfExp, cst.Lambda, cst.NamedExpr)) or (
        isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or)
    )
    text = model.code(node)
    return f"({text})" if needs_parentheses and not text.startswith("(") else text


def _without_test(model: Model, statement: cst.If) -> Fix:
    """The store alone, behind the condition that stands before the question, if there is one."""
    start, end = model.span(statement)
    line = statement.body.body[0]
    store = line.body[0] if isinstance(line, cst.SimpleStatementLine) else line
    if "#" in model.source.text[start:end] or not isinstance(store, cst.Assign):
        raise NoFixError("the branch holds more than one plain store")
    if model.value(store.value).kind is not Kind.NUMBER:
        raise NoFixError("to pick what is stored by the mask waits for the device as the question does")
    target = store.targets[0].target
    if isinstance(target, cst.Subscript) and _goes_backward(model, target.value):
        raise NoFixError("the backward pass below fails where the graph needs what the store marks as changed")
    edit = Edit(start, end, model.code(store))
    if isinstance(statement.test, cst.BooleanOperation):
        condition = model.code(statement.test.left)
        edit = Rewriter(model).replace(statement.test, f"({condition})" if statement.test.lpar else condition)
    binding = model.binding(target.value) if isinstance(target, cst.Subscript) else None
    is_free = isinstance(target, cst.Subscript) and model.value(target.value).grad is Grad.DETACHED
    if is_free and binding is not None and shares_no_graph(model, binding):
        return Fix((edit,), Applicability.SAFE, "A store under a mask that is empty everywhere does nothing.")
    doubt = "A store under an empty mask does nothing, but marks a tensor that a graph may share as changed."
    return Fix((edit,), Applicability.UNSAFE, doubt)


def _goes_backward(model: Model, tensor: cst.BaseExpression) -> bool:
    """Whether a tensor has a graph, and a backward pass stands below."""
    start = model.span(tensor)[0]
    passes = (call for call in model.function(tensor).calls if call.is_backward)
    return model.value(tensor).grad is Grad.CARRIES and any(model.span(call.node)[0] > start for call in passes)
