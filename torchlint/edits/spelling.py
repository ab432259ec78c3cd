"""How a qualified name is written at a place in a file: through which import, and whether that import is in force."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import text
from torchlint.semantics.names import canonical

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Scope, Write
    from torchlint.semantics.model import Model

_HEAD_ENDS = (cst.FunctionDef, cst.ClassDef, cst.For, cst.While, cst.With)


def spelled(model: Model, qualified: str, at: cst.CSTNode) -> str | None:
    """The shortest way to write `qualified` at a place with the imports that are in force there."""
    best: tuple[int, str] | None = None
    for name, imported, binding in _visible_imports(model, at):
        if not (qualified == imported or qualified.startswith(imported + ".")):
            continue
        if any(_in_force(model, write, at) for write in binding.writes):
            best = max(best or (0, ""), (len(imported), name + qualified[len(imported) :]))
    return best[1] if best is not None else None


def is_free(model: Model, name: str, at: cst.CSTNode) -> bool:
    """Whether a name means nothing at a place, so that an import at the top of the file may introduce it."""
    return not any(_has(scope, name) for scope in _scopes(model, at))


def last_import(module: cst.Module) -> cst.SimpleStatementLine | None:
    """The last import of the head of a module, which ends where its first function, class or loop begins."""
    return next((line for line, _ in reversed(_imports(module))), None)


def neighbours_of_import(
    module: cst.Module, package: str
) -> tuple[cst.SimpleStatementLine | None, cst.SimpleStatementLine | None]:
    """The lines of the standard library before and after which an import of one of its packages belongs in the head of
    a module, by the alphabet; of the others, the first. For another package, the line that first imports a part of it,
    or the last one in front of the imports of the project's own files."""
    if package not in sys.stdlib_module_names:
        return _neighbours_of_installed(module, package)
    lines = [(line, name) for line, name in _imports(module) if name != "__future__"]
    own = [(line, name) for line, name in lines if name.partition(".")[0] in sys.stdlib_module_names]
    before = [line for line, name in own if name < package and isinstance(line.body[0], cst.Import)]
    following = own or lines
    return (before[-1], None) if before else (None, following[0][0]) if following else (None, None)


def _neighbours_of_installed(
    module: cst.Module, package: str
) -> tuple[cst.SimpleStatementLine | None, cst.SimpleStatementLine | None]:
    lines = _imports(module)
    part = next((line for line, name in lines if is_part(line, package)), None)
    if part is not None:
        return None, part
    relative = next((index for index, (_, name) in enumerate(lines) if not name), 0)
    return (lines[relative - 1][0], None) if relative else (None, None)


def is_of_standard_library(line: cst.SimpleStatementLine) -> bool:
    """Whether a line imports from Python's own packages."""
    return _imported_first(line).partition(".")[0] in sys.stdlib_module_names


def is_part(line: cst.SimpleStatementLine, package: str) -> bool:
    """Whether a line imports from a package."""
    return _imported_first(line).partition(".")[0] == package


def _imports(module: cst.Module) -> list[tuple[cst.SimpleStatementLine, str]]:
    found = []
    for statement in module.body:
        if isinstance(statement, _HEAD_ENDS):
            break
        if isinstance(statement, cst.SimpleStatementLine) and isinstance(
            statement.body[0], (cst.Import, cst.ImportFrom)
        ):
            found.append((statement, _imported_first(statement)))
    return found


def _imported_first(line: cst.SimpleStatementLine) -> str:
    """`a.b` of `import a.b, c` and of `from a.b import c`; nothing of a relative import."""
    match line.body[0]:
        case cst.Import(names=[alias, *_]):
            return text(alias.name)
        case cst.ImportFrom(module=module, relative=()) if module is not None:
            return text(module)
    return ""


def _scopes(model: Model, at: cst.CSTNode) -> Iterator[Scope]:
    """The scopes whose names have a meaning at a place, the innermost first."""
    scope: Scope | None = model.scope(at)
    innermost = True
    while scope is not None:
        if innermost or scope.kind != "class":
            yield scope
        innermost = False
        scope = scope.parent


def _has(scope: Scope, name: str) -> bool:
    binding = scope.bindings.get(name)
    return binding is not None and bool(binding.writes)


def _visible_imports(model: Model, at: cst.CSTNode) -> Iterator[tuple[str, str, Binding]]:
    """Every name that stands for an import at a place, what it imports, and the binding."""
    inner: list[Scope] = []
    for scope in _scopes(model, at):
        for name, imported, binding in _imports_of(model, scope):
            if not any(_has(each, name) for each in inner):
                yield name, imported, binding
        inner.append(scope)


def _imports_of(model: Model, scope: Scope) -> list[tuple[str, str, Binding]]:
    known = model.once(_known_imports)
    if scope not in known:
        found = ((name, _imported(binding), binding) for name, binding in scope.bindings.items() if binding.writes)
        known[scope] = [(name, imported, binding) for name, imported, binding in found if imported is not None]
    return known[scope]


def _known_imports(_: Model) -> dict[Scope, list[tuple[str, str, Binding]]]:
    return {}


def _imported(binding: Binding) -> str | None:
    """What a name stands for, where every write of it is an import of the same thing."""
    names = {write.imported and canonical(write.imported) for write in binding.writes}
    return names.pop() if len(names) == 1 else None


def _in_force(model: Model, write: Write, at: cst.CSTNode) -> bool:
    """Whether an import has run when control is at a place."""
    around = list(model.ancestors(at))
    for outer in model.ancestors(write.statement):
        if isinstance(outer, cst.Try):
            continue
        if isinstance(outer, (cst.IndentedBlock, cst.Module)):
            if outer not in around and not isinstance(model.parent(outer), cst.Try):
                return False
            if outer in around:
                break
    if write.function.is_module and not model.function(at).is_module:
        return True
    return model.span(write.statement)[0] < model.span(at)[0]
