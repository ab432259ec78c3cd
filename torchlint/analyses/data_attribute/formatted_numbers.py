"""Tensors that a string shows as a number: `"{:.4f}".format(loss)`, `f"{loss:.4f}"`, `"%.4f" % loss`."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_AS_NUMBER = re.compile(r"[^{}]*[eEfFgG%]")
_PERCENT = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?([a-zA-Z]))")


def is_formatted_as_number(node: cst.CSTNode, model: Model) -> bool:
    """Whether a tensor, or what is computed of it and numbers, is shown as a number: only one value can be."""
    while isinstance(parent := model.parent(node), (cst.BinaryOperation, cst.UnaryOperation)):
        is_negated = isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Minus)
        if not is_negated and not (isinstance(parent, cst.BinaryOperation) and _is_number(parent, node, model)):
            break
        node = parent
    match parent:
        case cst.FormattedStringExpression(format_spec=[cst.FormattedStringText(value=spec)]):
            return _AS_NUMBER.fullmatch(spec) is not None
        case cst.BinaryOperation(left=shown, operator=cst.Modulo(), right=right) if right is node:
            return _is_shown_by_percent(shown, 0)
        case cst.Arg(keyword=None, star=""):
            return _is_shown_by_format(parent, model)
        case cst.Element():
            row = model.parent(parent)
            above = model.parent(row) if isinstance(row, cst.Tuple) else None
            if isinstance(row, cst.Tuple) and isinstance(above, cst.BinaryOperation) and above.right is row:
                return isinstance(above.operator, cst.Modulo) and _is_shown_by_percent(
                    above.left, row.elements.index(parent)
                )
    return False


def _is_number(operation: cst.BinaryOperation, node: cst.CSTNode, model: Model) -> bool:
    """Whether the other operand is a number."""
    other = operation.right if operation.left is node else operation.left
    return isinstance(other, cst.BaseNumber) or model.value(other).kind is Kind.NUMBER


def _is_shown_by_percent(shown: cst.BaseExpression, place: int) -> bool:
    text = _text(shown)
    kinds = [match[1] for match in _PERCENT.finditer(text or "") if match[1] is not None]
    return text is not None and "*" not in text and place < len(kinds) and kinds[place] in "eEfFgG"


def _is_shown_by_format(arg: cst.Arg, model: Model) -> bool:
    """By a field without a name, the place of which is counted."""
    call = model.parent(arg)
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value != "format":
        return False
    text, place = _text(call.func.value), _place(arg, call.args)
    if text is None or place is None:
        return False
    try:
        fields = [(name, spec or "") for _, name, spec, _ in string.Formatter().parse(text) if name is not None]
    except ValueError:
        return False
    is_counted = all(name == "" and "{" not in spec for name, spec in fields)
    return is_counted and place < len(fields) and _AS_NUMBER.fullmatch(fields[place][1]) is not None


def _place(arg: cst.Arg, args: Sequence[cst.Arg]) -> int | None:
    before = list(args)[: list(args).index(arg)]
    return len(before) if all(not each.star and each.keyword is None for each in before) else None


def _text(node: cst.BaseExpression) -> str | None:
    if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
        value = node.evaluated_value
        return value if isinstance(value, str) else None
    return None
