"""What a file defines and imports, read by the interpreter's own fast parser: enough to follow a name through files.

Nothing is evaluated; a file that does not parse defines nothing.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")  # what holds statements, in any statement


@dataclass(frozen=True, slots=True)
class Definition:
    """`imported` is the dotted name of an import (with leading dots where it is relative), `bases` those of a class,
    `methods` what a class defines itself."""

    kind: str  # function class variable import
    imported: str = ""
    bases: tuple[str, ...] = ()  # "" for one that is computed
    methods: frozenset[str] = frozenset()


_ADDS_TO_PATH = frozenset(["sys.path.append", "sys.path.insert"])


@dataclass(slots=True)
class Outline:
    """Names of the top level of a file. A name that is bound in two ways is ambiguous, and left out; a function
    or class that takes the name of something else for good, as `class Dataset(Dataset)` does, is not."""

    names: dict[str, Definition] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    search_path: list[str] = field(default_factory=list)  # folders that the file adds to sys.path
    imported: frozenset[str] | None = None
    """Dotted names that the file imports, also within functions; of a star import, and of `import a.b`, the module.
    None where the interpreter cannot parse the file."""


def outline(text: str, path: str) -> Outline:
    """Outline of the file at the absolute `path`."""
    tree = parsed(text)
    if tree is None:
        return Outline()
    found = _Reader(path)
    found.read(tree.body)
    found.outline.imported = _imports_anywhere(tree)
    return found.outline


def names_used(text: str) -> set[str]:
    """Names that a file reads, or holds as a string, as `__all__` does; none where the interpreter cannot parse it."""
    tree = parsed(text)
    nodes = list(ast.walk(tree)) if tree is not None else []
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def values_taken(text: str) -> frozenset[str]:
    """The last names of what a file imports, or takes of a module that it imports, and hands around as a value instead
    of calling it: `{"kl": divergence}`, `losses.divergence`, and a module that `getattr` is given."""
    tree = parsed(text)
    nodes = list(ast.walk(tree)) if tree is not None else []
    imported = {
        alias.asname or alias.name.partition(".")[0]: alias.name.rpartition(".")[2]
        for node in nodes
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    used = {node.func for node in nodes if isinstance(node, ast.Call)}
    used |= {node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr != "__dict__"}
    found = {imported.get(node.id, "") for node in nodes if isinstance(node, ast.Name) and node not in used}
    attributes = (node for node in nodes if isinstance(node, ast.Attribute) and node not in used)
    found.update(node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id in imported)
    return frozenset(found)


def _imports_anywhere(tree: ast.Module) -> frozenset[str]:
    found: set[str] = set()
    for node in _statements(tree.body):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(_dotted_import(node, alias) for alias in node.names)
    return frozenset(found)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements, those in others included. To walk the expressions, too, takes five times as long."""
    waiting: list[Any] = [*body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        for name in _BODIES:
            waiting.extend(getattr(node, name, ()))


def _dotted_import(node: ast.ImportFrom, alias: ast.alias) -> str:
    module = "." * node.level + (node.module or "")
    if alias.name == "*":
        return module
    return module + ("" if module.endswith(".") else ".") + alias.name


@lru_cache(maxsize=64)
def parsed(text: str) -> ast.Module | None:
    """None where the interpreter cannot parse it. The positions in a file are asked for soon after its outline."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Reader:
    def __init__(self, path: str) -> None:
        self.outline = Outline()
        self._paths = {"__file__": path}
        self._ambiguous: set[str] = set()
        self._adding: set[str] = set(_ADDS_TO_PATH)  # what puts its last argument on sys.path

    def read(self, body: list[ast.stmt], *, is_conditional: bool = False) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not is_conditional:
                self.outline.names.pop(node.name, None)
                self._ambiguous.discard(node.name)
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._define(node.name, Definition("function"))
                    if _adds_to_path(node):
                        self._adding.add(node.name)
                case ast.ClassDef():
                    bases = tuple(_dotted(base) or "" for base in node.bases)
                    functions = (
                        part for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))
                    )
                    methods = frozenset(function.name for function in functions)
                    self._define(node.name, Definition("class", bases=bases, methods=methods))
                case ast.Import():
                    self._import(node)
                case ast.ImportFrom():
                    self._import_from(node)
                case ast.Assign() | ast.AnnAssign():
                    self._assign(node)
                case ast.Expr(value=ast.Call() as call):
                    self._search_path(call)
                case ast.If() | ast.Try() | ast.With():
                    for name in ("body", "handlers", "orelse", "finalbody"):
                        for part in getattr(node, name, ()):
                            inner = part.body if isinstance(part, ast.ExceptHandler) else [part]
                            self.read(inner, is_conditional=True)

    def _define(self, name: str, definition: Definition) -> None:
        known = self.outline.names.get(name)
        if name in self._ambiguous or (known is not None and known != definition):
            self._ambiguous.add(name)
            self.outline.names.pop(name, None)
        else:
            self.outline.names[name] = definition

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            full = alias.name if alias.asname else alias.name.partition(".")[0]
            self._define(alias.asname or full, Definition("import", full))

    def _import_from(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            dotted = _dotted_import(node, alias)
            if alias.name == "*":
                self.outline.stars.append(dotted)
            else:
                self._define(alias.asname or alias.name, Definition("import", dotted))

    def _assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                self._define(target.id, Definition("variable"))
                path = self._path(node.value)
                if path is not None:
                    self._paths[target.id] = path

    def _search_path(self, call: ast.Call) -> None:
        """`sys.path.append(...)`, `sys.path.insert(0, ...)`, or a function of the file for that."""
        if _dotted(call.func) not in self._adding or not call.args:
            return
        path = self._path(call.args[-1])
        if path is not None:
            self.outline.search_path.append(path)

    def _path(self, node: ast.expr | None) -> str | None:
        """The path that an expression names, where it is put together from literals and `__file__`."""
        match node:
            case ast.Constant(value=str(text)):
                return os.path.normpath(os.path.join(os.path.dirname(self._paths["__file__"]), text))
            case ast.Name(id=name):
                return self._paths.get(name)
            case ast.Attribute(value=inner, attr="parent"):
                path = self._path(inner)
                return os.path.dirname(path) if path is not None else None
            case ast.Subscript(value=ast.Attribute(value=inner, attr="parents"), slice=ast.Constant(value=int(count))):
                path = self._path(inner)
                for _ in range(count + 1):
                    path = os.path.dirname(path) if path is not None else None
                return path
            case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=str(text))):
                return self._joined(left, [text])
            case ast.Call(func=func, args=args):
                return self._path_call(func, args)
        return None

    def _path_call(self, func: ast.expr, args: list[ast.expr]) -> str | None:
        name = (_dotted(func) or (func.attr if isinstance(func, ast.Attribute) else "")).rpartition(".")[2]
        if name in ("resolve", "absolute", "as_posix") and isinstance(func, ast.Attribute) and not args:
            return self._path(func.value)
        if not args:
            return None
        if name == "dirname":
            path = self._path(args[0])
            return os.path.dirname(path) if path is not None else None
        if name in ("abspath", "realpath", "normpath", "str", "Path", "fspath"):
            return self._path(args[0])
        if name == "join":
            texts = [arg.value for arg in args[1:] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            return self._joined(args[0], texts) if len(texts) == len(args) - 1 else None
        return None

    def _joined(self, first: ast.expr, rest: list[str]) -> str | None:
        path = self._path(first)
        return os.path.normpath(os.path.join(path, *rest)) if path is not None else None


def _adds_to_path(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """`def add_path(path)`, which puts what it is given on sys.path."""
    given = [arg.arg for arg in function.args.args]
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call) and _dotted(node.func) in _ADDS_TO_PATH)
    return len(given) == 1 and any(
        isinstance(call.args[-1], ast.Name) and call.args[-1].id == given[0] for call in calls if call.args
    )


def _dotted(node: ast.expr) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))
