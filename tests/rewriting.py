"""How tests of the rewriter find a node and apply edits."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import libcst as cst

from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Edit
from torchlint.semantics.model import Model
from torchlint.semantics.tree import walk
from torchlint.source import Source

STATEMENT = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
EXPRESSION = cst.BaseExpression


def model_of(text: str) -> Model:
    return Model.build(Source.from_text(text), cst.parse_module(text))


def applied(text: str, edits: list[Edit]) -> str:
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    ast.parse(text)
    return text


def first(model: Model, code: str, kind: Any) -> Any:
    """The outermost first node of a kind whose text begins with `code`."""
    for node in walk(model.module):
        if isinstance(node, kind) and model.source.text.startswith(code, model.span(node)[0]):
            return node
    raise AssertionError(f"no {code!r}")


def rewritten(
    text: str, code: str, change: Callable[[Rewriter, Any], Edit | list[Edit] | None], kind: Any = STATEMENT
) -> str:
    model = model_of(text)
    edits = change(Rewriter(model), first(model, code, kind))
    assert edits is not None
    return applied(text, edits if isinstance(edits, list) else [edits])
