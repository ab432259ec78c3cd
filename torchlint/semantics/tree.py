"""Walking a LibCST tree without recursion, and the spans of its nodes in the source text.

LibCST's own visitors recurse (a sum of 1,500 terms overflows the stack) and visit every whitespace node; its position
providers cost more than parsing. Here a walk is a stack over the fields that carry meaning, and spans are recorded in
one code generation pass that runs only for files with findings.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

_SKIPPED_FIELDS = frozenset(
    """
    whitespace whitespace_before whitespace_after whitespace_between whitespace_after_func
    whitespace_before_args whitespace_after_arrow whitespace_before_colon whitespace_after_colon
    leading_lines lines_after_decorators lines_after_module_docstring trailing_whitespace header footer
    indent lpar rpar lbracket rbracket lbrace rbrace semicolon comma equal dot colon star_whitespace
    newline asynchronous encoding default_indent default_newline has_trailing_newline type_parameters
    start end prefix quotes
    """.split()
)
_RECURSION_LIMIT = 20_000

_fields: dict[type[cst.CSTNode], tuple[str, ...]] = {}  # what is known of LibCST's classes, filled on first sight


def fields(cls: type[cst.CSTNode]) -> tuple[str, ...]:
    """Names of the fields of a node class that can hold code (not whitespace, not punctuation)."""
    found = _fields.get(cls)
    if found is None:
        names = (name for name in cls.__dataclass_fields__ if name not in _SKIPPED_FIELDS)
        found = tuple(name for name in names if not name.startswith(("whitespace", "_")))
        _fields[cls] = found
    return found


_is_node: dict[type, bool] = {}


def _holds_nodes(cls: type) -> bool:
    """Whether objects of a class are nodes. LibCST's classes are abstract ones, for which isinstance is slow."""
    found = _is_node[cls] = issubclass(cls, cst.CSTNode)
    return found


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Direct children that are code, in field order."""
    found: list[cst.CSTNode] = []
    known = _is_node
    for name in fields(type(node)):
        value = getattr(node, name)
        cls = type(value)
        if cls is list or cls is tuple:
            found += [item for item in value if known.get(type(item)) or _holds_nodes(type(item))]
        elif known.get(cls) or (cls not in known and _holds_nodes(cls)):
            found.append(value)
    return found


def walk(root: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and everything below it, parents before children, in field order."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


class _SpanRecorder(CodegenState):
    """Generates code and notes for every node where its text begins and ends, its own parentheses included."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.offset = 0
        self.spans: dict[cst.CSTNode, tuple[int, int]] = {}
        self._starts: list[int] = []

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        self.offset += len(value)

    def add_indent_tokens(self) -> None:
        self.tokens.extend(self.indent_tokens)
        self.offset += sum(map(len, self.indent_tokens))

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._starts.append(self.offset)

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self._starts.pop()
        if node not in self.spans:
            self.spans[node] = (start, self.offset)

    def record_syntactic_position(  # type: ignore[override]
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _Recording:
        return _Recording(self, node, start_node, end_node)


class _Recording:
    """Notes the span of a node when it has been printed. A class, since generators that manage a context are slow."""

    __slots__ = ("_end_node", "_node", "_recorder", "_start", "_start_node")

    def __init__(
        self, recorder: _SpanRecorder, node: cst.CSTNode, start_node: cst.CSTNode | None, end_node: cst.CSTNode | None
    ) -> None:
        self._recorder, self._node, self._start_node, self._end_node = recorder, node, start_node, end_node
        self._start = recorder.offset

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if not _has_parentheses(self._node):
            known = self._recorder.spans
            first = known[self._start_node][0] if self._start_node in known else self._start
            last = known[self._end_node][1] if self._end_node in known else self._recorder.offset
            known[self._node] = (first, last)


def _has_parentheses(node: Any) -> bool:
    own = getattr(node, "lpar", ())  # of `class A(B)`, `with (...)` and `from a import (b)` it is no sequence
    return isinstance(own, (list, tuple)) and bool(own)


@contextmanager
def deep_recursion() -> Iterator[None]:
    """LibCST prints by recursion, several calls for each level of an expression."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


class SourceMismatchError(Exception):
    """The tree does not print as the text it was parsed from, so no position in it can be trusted."""


def spans(module: cst.Module, text: str) -> dict[cst.CSTNode, tuple[int, int]]:
    """Character span of every node of the module. Statements begin at their first token, expressions include their
    own parentheses.

    Raises SourceMismatchError where the printed tree differs from `text`.
    """
    recorder = _SpanRecorder(module)
    with deep_recursion():
        module._codegen(recorder)
    if "".join(recorder.tokens) != text:
        raise SourceMismatchError
    return recorder.spans
