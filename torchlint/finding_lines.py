"""The lines of a file that a finding speaks of: those whose run shows what it costs, or what its fix does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchlint.finding import Finding
from torchlint.source import Source

_Loop = (ast.For, ast.AsyncFor, ast.While)


class FindingLines:
    """Of one file, in lines of its text, 1-based."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._nodes = list(ast.walk(ast.parse(source.text)))

    def of(self, finding: Finding) -> frozenset[int]:
        """What the finding and the edits of its fix touch; for the head of a loop or function its body as well, and no
        imports, which run at any rate."""
        spans = [(finding.start, finding.end)]
        spans += [(edit.start, edit.end) for edit in (finding.fix.edits if finding.fix is not None else ())]
        touched = {line for start, end in spans for line in self._between(start, end)}
        for node in self._nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                touched -= set(_extent(node))
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and touched & (head := set(_head(node))):
                touched = touched - head | set(range(node.body[0].lineno, _extent(node).stop))
            elif isinstance(node, _Loop) and touched & set(_head(node)):
                touched |= set(_extent(node))
        return frozenset(touched)

    def loops(self) -> frozenset[int]:
        """The first lines of `for` statements."""
        return frozenset(node.lineno for node in self._nodes if isinstance(node, (ast.For, ast.AsyncFor)))

    def _between(self, start: int, end: int) -> Iterator[int]:
        yield from range(self._source.line_number(start), self._source.line_number(end) + 1)


def _extent(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _head(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.For | ast.AsyncFor | ast.While) -> range:
    decorators = getattr(node, "decorator_list", [])
    return range(min(part.lineno for part in [node, *decorators]), node.body[0].lineno)
