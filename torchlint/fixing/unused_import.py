"""Taking imports away of which fixes have taken the last use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Edit
from torchlint.semantics.outline import names_used
from torchlint.source import Source

if TYPE_CHECKING:
    from torchlint.semantics.model import Model
    from torchlint.semantics.project import Project


def without_unused(before: Source, after: Source, project: Project | None) -> Source:
    """`after` without the imports of names that `before` reads and `after` no longer does."""
    names = names_used(before.text) - names_used(after.text)
    while names and (model := _model(after, project)) is not None:
        edits: list[Edit] = []
        for name in sorted(names):
            removals = _removals(name, model)
            # Two names of one statement go one after the other.
            if not any(edit.start < other.end and other.start < edit.end for edit in removals for other in edits):
                edits += removals
                names.remove(name)
        if not edits or after.objection(edits) is not None:
            break
        after = after.apply(edits)
    return after


def _model(source: Source, project: Project | None) -> Model | None:
    from torchlint.parsing import UnparsableError, parse
    from torchlint.semantics.model import Model

    try:
        return Model.build(source, parse(source)) if project is None else project.model_to_lint(source)
    except (UnparsableError, RecursionError):
        return None


def _removals(name: str, model: Model) -> list[Edit]:
    """Takes a name out of its import, or of each where it is imported more than once, in functions too.

    A name that another file of the project takes from there stays, and so does one of a library of which no more is
    known.
    """
    scopes = [function.scope for function in model.functions if name in function.scope.bindings]
    bindings = [scope.bindings[name] for scope in scopes]
    if any(binding.reads for binding in bindings):
        return []
    is_public = name in model.functions[0].scope.bindings and not is_program(model)
    if is_public and model.is_taken_elsewhere(name) is not False:
        return []
    edits = [_removal(write.target, model) for binding in bindings for write in binding.writes]
    return [edit for edit in edits if edit is not None] if None not in edits else []


def _removal(alias: cst.CSTNode, model: Model) -> Edit | None:
    statement = model.parent(alias)
    line = model.parent(statement) if statement is not None else None
    if not isinstance(alias, cst.ImportAlias) or line is None or not _is_plain(line, model):
        return None
    names = getattr(statement, "names", ())
    if len(names) == 1:
        return Rewriter(model).remove_statement(alias)
    return _without(alias, [*names], model)


def _is_plain(line: cst.CSTNode, model: Model) -> bool:
    """Whether an import stands where it is always made: not one that is tried, nor all that there is in its block."""
    block = model.parent(line)
    if isinstance(block, cst.IndentedBlock):
        return len(block.body) > 1 and isinstance(model.parent(block), (cst.If, cst.Else, cst.FunctionDef))
    return isinstance(block, cst.Module)


def _without(alias: cst.ImportAlias, names: list[cst.ImportAlias], model: Model) -> Edit | None:
    places = [
        (model.span(name.name)[0], model.span(name.asname.name if name.asname else name.name)[1]) for name in names
    ]
    index = names.index(alias)
    start, end = (places[index][0], places[index + 1][0]) if index == 0 else (places[index - 1][1], places[index][1])
    return None if "#" in model.source.text[start:end] else Edit(start, end, "")


def is_program(model: Model) -> bool:
    """Whether a file is run rather than imported."""
    if model.source.is_notebook or "__main__" in model.source.text or len(model.functions) == 1:
        return True
    effects = model.effects(model.functions[0])
    return bool(effects.backward or effects.forwards)
