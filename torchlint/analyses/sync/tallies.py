"""Counts of true elements, as in `(a == b).sum()`: integers, whatever is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.vocabulary import is_boolean

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_ORDERS = (cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_JOINS = (cst.BitAnd, cst.BitOr, cst.BitXor, cst.Multiply)


def is_tally(model: Model, node: cst.BaseExpression) -> bool:
    """Whether the expression is the sum of all elements of something that holds truths only."""
    if not isinstance(node, cst.Call):
        return False
    call = model.call(node)
    if call.method == "sum" and call.receiver is not None and not node.args:
        return is_truth(model, call.receiver)
    return call.callee == "torch.sum" and len(node.args) == 1 and is_truth(model, node.args[0].value)


def is_truth(model: Model, node: cst.BaseExpression) -> bool:
    """Whether the expression, of tensors, is one of truths."""
    match node:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator)]):
            return isinstance(operator, _ORDERS)
        case cst.BinaryOperation(left=left, operator=operator, right=right) if isinstance(operator, _JOINS):
            return is_truth(model, left) and is_truth(model, right)
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
            return is_truth(model, inner)
        case cst.Call():
            method = model.call(node).method
            return method is not None and is_boolean(method)
    return model.value(node).dtype == "bool"
