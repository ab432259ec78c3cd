"""Walking a LibCST tree without recursion.

LibCST's own visitors recurse (a sum of 1,500 terms overflows the stack) and visit every whitespace node. Here a walk is
a stack over the fields that carry meaning.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import libcst as cst

_SKIPPED_FIELDS = frozenset(
    """
    whitespace whitespace_before whitespace_after whitespace_between whitespace_after_func
    whitespace_before_args whitespace_after_arrow whitespace_before_colon whitespace_after_colon
    leading_lines leading_whitespace lines_after_decorators lines_after_module_docstring trailing_whitespace
    header footer indent lpar rpar lbracket rbracket lbrace rbrace semicolon comma equal dot colon star_whitespace
    newline asynchronous encoding default_indent default_newline has_trailing_newline type_parameters
    start end prefix quotes
    """.split()
)
_RECURSION_LIMIT = 20_000

_fields: dict[type[cst.CSTNode], tuple[str, ...]] = {}  # what is known of LibCST's classes, filled on first sight


def fields(cls: type[cst.CSTNode]) -> tuple[str, ...]:
    """Names of the fields of a node class that can hold nodes of code (not whitespace, not punctuation)."""
    found = _fields.get(cls)
    if found is None:
        known = cls.__dataclass_fields__.items()
        names = (name for name, about in known if name not in _SKIPPED_FIELDS and about.type is not str)
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
    names = _fields.get(type(node))
    for name in fields(type(node)) if names is None else names:
        value = getattr(node, name)
        cls = type(value)
        if cls is list or cls is tuple:
            found += [item for item in value if known.get(type(item)) or _holds_nodes(type(item))]
        elif known.get(cls) or (cls not in known and _holds_nodes(cls)):
            found.append(value)
    return found


def walk(root: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and everything below it, parents before children, in field order."""
    stack, known = [root], _fields
    while stack:
        node = stack.pop()
        yield node
        if known.get(type(node)) != ():
            stack.extend(reversed(children(node)))


@contextmanager
def deep_recursion() -> Iterator[None]:
    """LibCST prints by recursion, several calls for each level of an expression."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def last_name(node: cst.CSTNode | None) -> str:
    """`c` of `a.b.c` and of `c`; nothing of what is neither an attribute nor a name."""
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def is_name(node: cst.CSTNode | None, name: str | None) -> bool:
    """Whether a node is this name, or this constant: `self`, `None`. No node is the name None."""
    return isinstance(node, cst.Name) and node.value == name


def without_subscripts(node: cst.BaseExpression) -> cst.BaseExpression:
    """`x` of `x[i][j, :]`."""
    while isinstance(node, cst.Subscript):
        node = node.value
    return node


def prefixes(node: cst.Subscript) -> Iterator[cst.Subscript]:
    """`x[i][j]` and `x[i]` of `x[i][j]`, the longest first."""
    current: cst.BaseExpression = node
    while isinstance(current, cst.Subscript):
        yield current
        current = current.value


def integer(node: cst.CSTNode | None) -> int | None:
    """The number that is written out: `2`, `-1`."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        positive = integer(node.expression)
        return -positive if positive is not None else None
    return int(node.value, 0) if isinstance(node, cst.Integer) else None


def bound_names(target: cst.CSTNode) -> Iterator[str]:
    """The variables that an assignment to `a, (b, c), d[0]` gives a value: `a`, `b` and `c`."""
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from bound_names(element.value)


def arms(value: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    """`a`, `b` and `c` of `a if x else b if y else c`; any other expression stands for itself."""
    return (*arms(value.body), *arms(value.orelse)) if isinstance(value, cst.IfExp) else (value,)


def dotted(node: cst.CSTNode | None) -> str | None:
    """`a.b.c` of a chain of attributes over a name, else None."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


def expressions_below(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """The expressions directly below a node: operands, arguments, elements."""
    found: list[cst.BaseExpression] = []
    for child in children(node):
        if isinstance(child, cst.BaseExpression):
            found.append(child)
        elif not isinstance(child, (cst.CompFor, cst.Param)):
            found += expressions_below(child)
    return found
