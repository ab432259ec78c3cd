"""Texts: strings, and what is made of other values to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def is_text(model: Model, node: cst.CSTNode) -> bool:
    """Whether an expression makes a text of other values."""
    match node:
        case cst.FormattedString():
            return True
        case cst.BinaryOperation(left=left, operator=cst.Modulo()):
            return is_string(model, left)
        case cst.Call(func=cst.Attribute(value=text, attr=cst.Name(value="format"))):
            return is_string(model, text)
    return False


def is_string(model: Model, node: cst.CSTNode) -> bool:
    return model.value(node).kind is Kind.STRING
