"""Taking an import away together with the last use of the name that it introduces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Edit
from torchlint.rewrite import Rewriter

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def removal(use: cst.CSTNode, model: Model) -> Edit | None:
    """Takes a name out of its import at the top of a program, where `use` is all that reads it.

    A library keeps the name: another file may import it from there.
    """
    binding = model.binding(use)
    if binding is None or binding.reads != [use] or len(binding.writes) != 1 or not is_program(model):
        return None
    alias = binding.writes[0].target
    statement = model.parent(alias)
    line = model.parent(statement) if statement is not None else None
    if not isinstance(alias, cst.ImportAlias) or line is None or not isinstance(model.parent(line), cst.Module):
        return None
    names = getattr(statement, "names", ())
    if len(names) == 1:
        return Rewriter(model).remove_statement(alias)
    return _without(alias, [*names], model)


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
