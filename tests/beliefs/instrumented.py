"""Programs that note, while they run, what each of their expressions is."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import libcst as cst
import numpy as np
import torch

from torchlint.semantics.model import Model
from torchlint.semantics.tree import children

_FUNCTION = "__note__"
_NOTED = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)
_CONSTANTS = ("True", "False", "None")
_ENOUGH = 40  # different things that one expression was

Fact = tuple[Any, ...]
"""What an expression was once, and whether gradients were on."""


def expressions(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Those whose value is read, from the outermost to the innermost; none of what is called, assigned or declared."""
    match node:
        case cst.Annotation() | cst.Decorator() | cst.Del() | cst.FormattedString() | cst.Match():
            return
        case cst.Import() | cst.ImportFrom() | cst.Global() | cst.Nonlocal():
            return
        case cst.Assign() | cst.AnnAssign() | cst.AugAssign() | cst.NamedExpr() | cst.Arg():
            inner = [node.value] if node.value is not None else []
        case cst.For() | cst.CompFor():
            inner = [part for part in children(node) if part is not node.target]
        case cst.WithItem():
            inner = [node.item]
        case cst.ExceptHandler():
            inner = [node.body]
        case cst.Param():
            inner = [node.default] if node.default is not None else []
        case cst.ClassDef():
            inner = [node.body]
        case cst.FunctionDef():
            inner = [node.params, node.body]
        case cst.Call():
            yield node
            inner = [node.func.value] if isinstance(node.func, cst.Attribute) else []
            inner += node.args
        case cst.Attribute():
            yield node
            inner = [node.value]
        case cst.Name():
            if node.value not in _CONSTANTS:
                yield node
            return
        case _:
            if isinstance(node, _NOTED):
                yield node
            inner = children(node)
    for part in inner:
        yield from expressions(part)


def instrumented(model: Model, first: int) -> tuple[str, list[cst.BaseExpression]]:
    """The text of a file in which each expression is handed to a function that notes it, by its number, from `first`
    on, and the expressions."""
    noted = list(expressions(model.module))
    insertions: list[tuple[int, int, str]] = []
    for number, node in enumerate(noted):
        start, end = model.span(node)
        insertions.append((start, number, f"{_FUNCTION}({first + number}, "))
        insertions.append((end, -1 - number, ")"))
    text, position, parts = model.source.text, 0, []
    # At one place what ends there comes before what begins there, and an inner one ends before an outer one.
    for place, _, piece in sorted(insertions, key=lambda insertion: (insertion[0], insertion[1])):
        parts += [text[position:place], piece]
        position = place
    return "".join([*parts, text[position:]]), noted


class Notes:
    """What each expression was, by its number, for all files that were instrumented."""

    def __init__(self) -> None:
        self.facts: dict[int, set[Fact]] = {}

    def __enter__(self) -> Notes:
        setattr(builtins, _FUNCTION, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        delattr(builtins, _FUNCTION)

    def _note(self, number: int, value: Any) -> Any:
        known = self.facts.setdefault(number, set())
        if len(known) < _ENOUGH:
            known.add((described(value), torch.is_grad_enabled()))
        return value


def described(value: Any, depth: int = 0) -> Fact:
    """Kind, and what the model may know besides; of a list or a tuple what its parts are."""
    match value:
        case torch.Tensor():
            return ("tensor", value.dim(), _kind_of(value.dtype), value.requires_grad)
        case bool() | int() | float() | complex() | np.number() | np.bool_():
            return ("number", _number(value))
        case str():
            return ("string", value if len(value) < 40 else None)
        case None:
            return ("none",)
        case np.ndarray():
            return ("array", value.ndim)
        case list() | tuple():
            kind = "list" if isinstance(value, list) else "tuple"
            parts = tuple(described(part, depth + 1) for part in value[:8]) if depth < 2 else ()
            return (kind, len(value), parts)
        case dict():
            return ("dict", len(value))
        case torch.nn.Module():
            return ("module", type(value).__name__)
        case torch.optim.Optimizer():
            return ("optimizer", type(value).__name__)
        case torch.device():
            return ("device",)
        case torch.dtype():
            return ("dtype",)
        case type():
            return ("class", value.__name__)
    return ("other", type(value).__name__, callable(value))


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _kind_of(dtype: torch.dtype) -> str:
    if dtype is torch.bool:
        return "bool"
    return "float" if dtype.is_floating_point else "complex" if dtype.is_complex else "int"
