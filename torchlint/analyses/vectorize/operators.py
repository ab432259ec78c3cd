"""Operators of Python, as they are spelled, and how strongly they bind."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.vectorize.shapes import (
    ATOM,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    COMPARISON,
    POWER,
    PRODUCT,
    SHIFT,
    SUM,
    UNARY,
)

BINARY: dict[type[cst.BaseBinaryOp], tuple[str, int]] = {
    cst.Add: ("+", SUM),
    cst.Subtract: ("-", SUM),
    cst.Multiply: ("*", PRODUCT),
    cst.Divide: ("/", PRODUCT),
    cst.FloorDivide: ("//", PRODUCT),
    cst.Modulo: ("%", PRODUCT),
    cst.MatrixMultiply: ("@", PRODUCT),
    cst.Power: ("**", POWER),
    cst.BitAnd: ("&", BIT_AND),
    cst.BitXor: ("^", BIT_XOR),
    cst.BitOr: ("|", BIT_OR),
    cst.LeftShift: ("<<", SHIFT),
    cst.RightShift: (">>", SHIFT),
}
COMPARISONS: dict[type[cst.BaseCompOp], str] = {
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
    cst.Equal: "==",
    cst.NotEqual: "!=",
}
EXACT_OPERATORS = frozenset("+-*/&|^")
UNARIES: dict[type[cst.BaseUnaryOp], str] = {cst.Minus: "-", cst.Plus: "+", cst.BitInvert: "~"}


def level_of(node: cst.BaseExpression) -> int:
    """How strongly the outermost operator of an expression binds."""
    if node.lpar:
        return ATOM
    if isinstance(node, cst.BinaryOperation):
        return BINARY[type(node.operator)][1]
    if isinstance(node, cst.UnaryOperation):
        return UNARY if not isinstance(node.operator, cst.Not) else -1
    if isinstance(node, cst.Comparison):
        return COMPARISON
    loose = (cst.BooleanOperation, cst.IfExp, cst.Lambda, cst.NamedExpr, cst.Tuple, cst.Await, cst.Yield)
    return -1 if isinstance(node, loose) else ATOM
