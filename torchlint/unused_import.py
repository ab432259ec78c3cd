"""Taking an import away together with the last use of the name that it introduces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Edit
from torchlint.rewrite import Rewriter

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def removal(uses: Sequence[cst.CSTNode], model: Model) -> Edit | None:
    """Takes a name out of its import, where `uses`, which a fix removes, are all that reads it.

    A name that another file of the project takes from there stays, and so does one of a library of which no more is
    known.
    """
    binding = model.binding(uses[0])
    if binding is None or set(binding.reads) != set(uses) or len(binding.writes) != 1:
        return None
    if not is_program(model) and model.is_taken_elsewhere(binding.name) is not False:
        return None
    alias = binding.writes[0].target
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
        return len(block.body) > 1 and isinstance(model.parent(block), (cst.If, cst.FunctionDef))
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
