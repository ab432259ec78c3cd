"""`x_var = Variable(x)`, `x_data = x.data`: a second name for a tensor, which says nothing once `Variable` is gone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Edit, Fix

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model


def without_alias(made: Fix, whole: cst.BaseExpression, tensor: cst.BaseExpression | None, model: Model) -> Fix:
    """The fix that takes a name away, too, which says no more than that it was a Variable, or the data of one.

    whole: `Variable(tensor)` or `tensor.data`.
    """
    statement = model.small_statement(whole)
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as alias)], value=value) if value is whole:
            binding = model.binding(alias)
        case _:
            return made
    if not isinstance(tensor, cst.Name) or binding is None:
        return made
    if not _says_variable(alias.value, tensor.value) or any(edit.text.strip() for edit in made.edits):
        return made
    rewriter = Rewriter(model)
    gone = rewriter.remove_statement(statement)
    if (
        gone is None
        or gone.text
        or rewriter.comments(statement)
        or not _means_the_same(binding, tensor, statement, model)
    ):
        return made
    edits = [gone, *(Edit(*model.span(read), tensor.value) for read in binding.reads)]
    return Fix(tuple(edits), made.applicability, made.why)


def _says_variable(alias: str, tensor: str) -> bool:
    """`x_var`, `var_x`, `x_variable` and `xv` of `x`, `x_data` of `x`."""
    word = "(v|var|variable|data)"
    name = f"({re.escape(tensor)}|{re.escape(tensor.removesuffix('s'))})"
    return re.fullmatch(rf"{name}_?{word}|{word}_?{name}", alias, re.IGNORECASE) is not None


def _means_the_same(binding: Binding, tensor: cst.Name, statement: cst.CSTNode, model: Model) -> bool:
    """Whether all reads of the alias stand behind its only write, in its block, and nothing sets the tensor there."""
    source, function = model.binding(tensor), model.function(statement)
    if source is None or len(binding.writes) != 1 or binding.shared or source.shared or function.is_module:
        return False
    behind = model.span(statement)[1]
    block = model.parent(model.statement(statement)) or function.node
    if any(model.span(write.target)[0] > behind for write in source.writes if write.kind != "parameter"):
        return False
    return all(
        model.span(read)[0] > behind and block in model.ancestors(read) and model.function(read) is function
        for read in binding.reads
    )
