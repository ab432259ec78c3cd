"""What mutations need to know of a file's syntax, and the edits that they are made of."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from itertools import accumulate

from torchlint.finding import Edit

Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = ast.expr | ast.stmt


class Code:
    """The syntax tree of a text in ASCII, with parents, positions and text of its nodes."""

    def __init__(self, text: str) -> None:
        assert text.isascii()
        self.text = text
        self.lines = text.splitlines(keepends=True)
        self.tree = ast.parse(text)
        self._parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def of(self, node: Node) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def span(self, node: Node) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def offset(self, line: int, column: int = 0) -> int:
        return self._line_starts[line - 1] + column

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *accumulate(map(len, self.lines))]

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the nearest first."""
        while node in self._parents:
            node = self._parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.stmt:
        return next(outer for outer in [node, *self.above(node)] if isinstance(outer, ast.stmt))

    def function(self, node: ast.AST) -> Function | None:
        return next((outer for outer in self.above(node) if isinstance(outer, Function)), None)

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, or the file, that a node is in."""
        return self.function(node) or self.tree

    def outermost(self, node: ast.AST) -> ast.AST:
        """The class or function at the top level that a node is in, or the file."""
        around = [outer for outer in [node, *self.above(node)] if isinstance(outer, Function | ast.ClassDef)]
        return around[-1] if around else self.tree

    def definitions(self) -> list[ast.AST]:
        """The file, and its classes and functions at the top level."""
        return [self.tree, *(node for node in self.tree.body if isinstance(node, Function | ast.ClassDef))]

    def at(self, offset: int) -> ast.AST:
        """The statement or expression that begins nearest before an offset, or there."""
        nodes = [node for node in self.nodes if isinstance(node, ast.expr | ast.stmt) and self.span(node)[0] <= offset]
        return max(nodes, key=lambda node: self.span(node)[0], default=self.tree)

    def calls(self, *methods: str) -> Iterator[ast.Call]:
        """Calls of functions and methods with one of these last names."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and last_name(node.func) in methods:
                yield node

    # -- edits -------------------------------------------------------------------------------------------------------

    def delete(self, statement: ast.stmt) -> Edit:
        """A statement goes with its lines; `pass` stands in for the only one of a block."""
        block = next(
            value
            for _, value in ast.iter_fields(self._parents[statement])
            if isinstance(value, list) and statement in value
        )
        if len(block) == 1:
            return Edit(*self.span(statement), "pass")
        assert statement.end_lineno is not None
        return Edit(self.offset(statement.lineno), self.offset(statement.end_lineno + 1), "")

    def replace(self, node: Node, text: str) -> Edit:
        return Edit(*self.span(node), text)

    def unwrap(self, call: ast.Call) -> Edit:
        """`x.method()` becomes `x`."""
        assert isinstance(call.func, ast.Attribute)
        return Edit(self.span(call.func.value)[1], self.span(call)[1], "")

    def drop_keyword(self, call: ast.Call, name: str) -> Edit | None:
        """Without a keyword argument, and without the comma that goes with it."""
        arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        for index, argument in enumerate(arguments):
            if isinstance(argument, ast.keyword) and argument.arg == name:
                if index:
                    return Edit(self._end(arguments[index - 1]), self._end(argument), "")
                following = arguments[1:2]
                end = self._start(following[0]) if following else self.span(call)[1] - 1
                return Edit(self._start(argument), end, "")
        return None

    def _start(self, argument: ast.expr | ast.keyword) -> int:
        return self.offset(argument.lineno, argument.col_offset)

    def _end(self, argument: ast.expr | ast.keyword) -> int:
        assert argument.end_lineno is not None
        assert argument.end_col_offset is not None
        return self.offset(argument.end_lineno, argument.end_col_offset)

    def add_argument(self, call: ast.Call, text: str) -> Edit:
        end = self.span(call)[1] - 1
        return Edit(end, end, f", {text}" if call.args or call.keywords else text)

    def append_to_body(self, loop: ast.For | ast.While, text: str) -> Edit:
        last = loop.body[-1]
        assert last.end_lineno is not None
        end = self.offset(last.end_lineno + 1)
        return Edit(end, end, " " * last.col_offset + text + "\n")

    def unwrap_with(self, block: ast.With, item: ast.withitem) -> list[Edit]:
        """Without one context manager; the body moves out where it was the only one."""
        if len(block.items) > 1:
            index = block.items.index(item)
            neighbour = block.items[index - 1] if index else block.items[1]
            ends = sorted([item, neighbour], key=block.items.index)
            first, second = (self.span(each.context_expr) for each in ends)
            return [Edit(first[1], second[1], "") if index else Edit(first[0], second[0], "")]
        body = block.body[0]
        assert block.end_lineno is not None
        indent = body.col_offset - block.col_offset
        header = Edit(self.offset(block.lineno), self.offset(body.lineno), "")
        lines = range(body.lineno, block.end_lineno + 1)
        starts = [self.offset(line) for line in lines if self.lines[line - 1].startswith(" " * indent)]
        return [header, *(Edit(start, start + indent, "") for start in starts)]

    def is_under(self, node: ast.AST, holds: Callable[[ast.AST], bool]) -> bool:
        return any(holds(outer) for outer in self.above(node))


@cache
def code_of(text: str) -> Code:
    """Of a program that every kind of defect is put into."""
    return Code(text)


def last_name(node: ast.expr) -> str:
    """`step` of `self.optimizer.step`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def root_name(node: ast.AST) -> str:
    """`losses` of `torch.stack(losses).mean()` and of `losses[-1]`, `loss` of `loss / n`."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call):
            node = node.args[0] if node.args and root_name(node.func) == "torch" else node.func
        elif isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.BinOp):
            node = node.left
        else:
            return ""
    return node.id
