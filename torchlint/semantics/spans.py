"""Where the nodes of a LibCST tree stand in the text.

LibCST's position providers print the whole tree, which costs more than parsing it. Here only statements that are asked
about are printed: the interpreter's own fast parser says on which line a statement begins, and what is printed is
compared with the text from there. Where the two parsers do not see the same statements the whole tree is printed.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from torchlint.semantics.outline import parsed
from torchlint.semantics.tree import deep_recursion

Span = tuple[int, int]
_WITH_BODY = frozenset({cst.FunctionDef, cst.ClassDef, cst.For, cst.While, cst.With, cst.If, cst.Try})

_KEYWORDS = ("def ", "async ", "class ", "for ", "while ", "with ", "if ", "try", "match ")


class SourceMismatchError(Exception):
    """The tree does not print as the text it was parsed from, so no position in it can be trusted."""


class Spans:
    """Character spans of the nodes of a module. Statements begin at their first token, expressions include their own
    parentheses.

    line_starts: offsets of the lines of the text. parents: of every node that is code.
    """

    def __init__(
        self, module: cst.Module, text: str, line_starts: Sequence[int], parents: Mapping[cst.CSTNode, cst.CSTNode]
    ) -> None:
        self._module, self._text, self._line_starts, self._parents = module, text, line_starts, parents
        self._found: dict[cst.CSTNode, Span] = {}
        self._counterparts: dict[cst.CSTNode, dict[cst.CSTNode, ast.stmt]] = {}  # by body

    def __getitem__(self, node: cst.CSTNode) -> Span:
        """Raises SourceMismatchError where the printed tree differs from the text."""
        if node not in self._found:
            with deep_recursion():
                if not self._measure(node) and (not self._print_around(node) or node not in self._found):
                    self._print_all()
        return self._found[node]

    def _measure(self, node: cst.CSTNode) -> bool:
        """A compound statement, or a block, may be most of the file: of it, only its ends are printed."""
        if node is self._module:
            self._found[node] = 0, len(self._text)
            return True
        if not isinstance(node, (cst.BaseCompoundStatement, cst.IndentedBlock)):
            return False
        last = _last_line(node)
        start = self._start(node) if last is not None else None
        if last is None or start is None:
            return False
        self._found[node] = start, self[last][1]
        return True

    def _start(self, node: cst.BaseCompoundStatement | cst.IndentedBlock) -> int | None:
        if isinstance(node, cst.IndentedBlock):
            return self[node.body[0]][0]
        found = self._statement(node)
        if found is None or found[0] is not node:
            return None
        start = self._line_starts[found[2].lineno - 1] + sum(map(len, found[1]))
        return start if self._text.startswith(_KEYWORDS, start) else None

    def _print_all(self) -> None:
        recorder = _SpanRecorder(self._module)
        self._module._codegen(recorder)
        # LibCST drops lines of white space at the end of a file, behind all that has a place in the text
        if "".join(recorder.tokens).rstrip() != self._text.rstrip():
            raise SourceMismatchError
        self._found = recorder.spans

    def _print_around(self, node: cst.CSTNode) -> bool:
        """Print the innermost statement around the node whose first line is known; whether it stands there."""
        found = self._statement(node)
        if found is None:
            return False
        statement, indents, counterpart = found
        start = self._line_starts[max(_first_line(counterpart) - 1 - len(statement.leading_lines), 0)]
        recorder = _SpanRecorder(self._module, start)
        recorder.indent_tokens = indents
        statement._codegen(recorder)
        printed = "".join(recorder.tokens)
        rest = len(self._text) - start  # the last line may lack the newline that LibCST prints
        if not self._text.startswith(printed[:rest], start) or printed[rest:].strip("\r\n"):
            return False
        self._found.update(recorder.spans)
        return True

    def _statement(self, node: cst.CSTNode) -> tuple[Any, list[str], ast.stmt] | None:
        """The innermost such statement, the indents before it and what the interpreter's parser makes of it."""
        way = self._way_down(node)
        body: Any = self._module
        parsed, indents, found = self._parsed, list[str](), None
        while way:
            statement: Any = way.pop()
            counterpart = self._paired(body, parsed).get(statement)
            if counterpart is None:
                break
            found = statement, list(indents), counterpart
            body = way.pop() if way else None
            if type(statement) not in _WITH_BODY or body is not statement.body or type(body) is not cst.IndentedBlock:
                break
            parsed = counterpart.body  # type: ignore[attr-defined]
            indents.append(self._module.default_indent if body.indent is None else body.indent)
        return found

    def _way_down(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """The node and what holds it, the outermost statement last; nothing for what is no code."""
        way = []
        while node is not self._module:
            way.append(node)
            if node not in self._parents:
                return []
            node = self._parents[node]
        return way

    def _paired(self, body: cst.Module | cst.IndentedBlock, parsed: Sequence[ast.stmt]) -> dict[cst.CSTNode, ast.stmt]:
        """The statements of a body by what the interpreter's parser makes of them: the first of those on a line."""
        if body not in self._counterparts:
            sizes = [len(line.body) if isinstance(line, cst.SimpleStatementLine) else 1 for line in body.body]
            places = accumulate([0, *sizes]) if sum(sizes) == len(parsed) else ()
            self._counterparts[body] = {line: parsed[place] for line, place in zip(body.body, places)}
        return self._counterparts[body]

    @cached_property
    def _parsed(self) -> Sequence[ast.stmt]:
        tree = parsed(self._text)
        return tree.body if tree is not None else ()


def _last_line(node: Any) -> cst.SimpleStatementLine | None:
    """The last line of a statement, or of a part of it; None where it shares a line with what holds it."""
    while not isinstance(node, cst.SimpleStatementLine):
        parts = (getattr(node, name, None) for name in ("finalbody", "orelse", "handlers", "cases", "body"))
        last = next(filter(None, parts), None)
        node = last[-1] if isinstance(last, (list, tuple)) else last
        if node is None or isinstance(node, cst.SimpleStatementSuite):
            return None
    return node


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


class _SpanRecorder(CodegenState):
    """Generates code and notes for every node where its text begins and ends, its own parentheses included."""

    def __init__(self, module: cst.Module, offset: int = 0) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.offset = offset
        self.spans: dict[cst.CSTNode, Span] = {}
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
