"""`x_var = Variable(x)`, `x_data = x.data`: a second name for a tensor, which says nothing once `Variable` is gone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.order import is_before
from torchlint.analyses.sync.accumulators import is_seen_elsewhere, reads_namespace
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Edit, Fix
from torchlint.semantics.dataflow import reaches, writes_reaching
from torchlint.semantics.parallel_assignment import assigned_pairs
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.analyses.variable_wrapper import Wrapper
    from torchlint.semantics.entities import Binding, Write
    from torchlint.semantics.model import Model

_FEW = 4  # places; a name that is read at more says what the tensor is there for


def without_alias(made: Fix, whole: cst.BaseExpression, tensor: cst.BaseExpression | None, model: Model) -> Fix:
    """The fix that takes a name away, too, which says no more than that it was a Variable, or the data of one: the
    second one where it is like the first, or else that of which nothing would be left but a second one.

    whole: `Variable(tensor)` or `tensor.data`.
    """
    statement = model.small_statement(whole)
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as alias)], value=value) if value is whole:
            binding = model.binding(alias)
        case _:
            return made
    source = model.binding(tensor) if isinstance(tensor, cst.Name) else None
    if not isinstance(tensor, cst.Name) or source is None or binding is None or binding is source:
        return made
    if any(edit.text.strip() for edit in made.edits):
        return made
    rewriter = Rewriter(model)
    gone = rewriter.remove_statement(statement)
    if gone is None or gone.text or rewriter.comments(statement):
        return made
    if any(map(reads_namespace, model.function(statement).calls)):
        return made
    says_no_more = _says_variable(alias.value, tensor.value)
    write = _only_for(source, tensor, model) if isinstance(whole, cst.Call) and not says_no_more else None
    reads = _reads_of(binding, alias, model)
    is_short = isinstance(whole, cst.Call) and _is_seldom_read(reads, source, model)
    if write is not None and _may_be_made_as(binding, write, statement, model):
        edits = [gone, Edit(*model.span(write.target), alias.value)]
    elif (says_no_more or is_short) and _means_the_same(binding, reads, tensor, statement, model):
        edits = [gone, *(Edit(*model.span(read), tensor.value) for read in reads)]
    else:
        return made
    return Fix(tuple(edits), made.applicability, made.why)


def without_aliases(made: Fix, wrappers: Sequence[Wrapper], model: Model) -> Fix:
    """Likewise of `x, y = Variable(a), Variable(b)`, with the wrappers of the statement, all of which leave the tensor
    as it is, where all of these are names from the start."""
    tensors = {wrapper.call.node: wrapper.data.node for wrapper in wrappers}
    statement = model.small_statement(wrappers[0].call.node) if len(wrappers) > 1 else None
    pairs = assigned_pairs(statement)
    rewriter, edits = Rewriter(model), []
    if statement is None or len(pairs) != len(tensors) or any(map(reads_namespace, model.function(statement).calls)):
        return made
    for target, value in pairs:
        tensor = tensors.get(value) if isinstance(value, cst.Call) else None
        alias = model.binding(target) if isinstance(target, cst.Name) else None
        source = model.binding(tensor) if isinstance(tensor, cst.Name) else None
        if alias is None or source is None or not isinstance(tensor, cst.Name) or not isinstance(target, cst.Name):
            return made
        write = _only_for(source, tensor, model)
        if write is None or not _may_be_made_as(alias, write, statement, model):
            return made
        edits.append(Edit(*model.span(write.target), target.value))
    gone = rewriter.remove_statement(statement)
    if gone is None or gone.text or rewriter.comments(statement):
        return made
    return Fix((gone, *edits), made.applicability, made.why)


def _says_variable(alias: str, tensor: str) -> bool:
    """`x_var`, `var_x`, `x_variable` and `xv` of `x`, `x_data` of `x`."""
    word = "(v|var|variable|data)"
    name = f"({re.escape(tensor)}|{re.escape(tensor.removesuffix('s'))})"
    return re.fullmatch(rf"{name}_?{word}|{word}_?{name}", alias, re.IGNORECASE) is not None


def _is_seldom_read(reads: Sequence[cst.CSTNode], source: Binding, model: Model) -> bool:
    """Whether the second name is read at a few places, and nowhere beside the first."""
    lines = {model.statement(read) for read in source.reads if model.small_statement(read) is not None}
    return len(reads) <= _FEW and lines.isdisjoint(map(model.statement, reads))


def _only_for(source: Binding, tensor: cst.Name, model: Model) -> Write | None:
    """The only place that makes a tensor, if nothing else reads it: `for image, label in loader`, `noise = ...`."""
    write = source.writes[0] if len(source.writes) == 1 else None
    if write is None or source.reads != [tensor] or write.kind not in ("assign", "for"):
        return None
    if not isinstance(write.target, cst.Name) or is_seen_elsewhere(model, source):
        return None
    return write if model.function(write.target) is model.function(tensor) else None


def _may_be_made_as(binding: Binding, write: Write, statement: cst.CSTNode, model: Model) -> bool:
    """Whether a tensor can have its second name from the start: it gets that in the same block, or in that of the loop
    that brings it, and nothing in between mentions the name or goes on to another iteration."""
    line, made = model.statement(statement), model.statement(write.target)
    block = model.parent(line)
    body = list(getattr(block, "body", ()))
    if write.kind == "for":
        is_beside = isinstance(made, cst.For) and made.body is block and made.asynchronous is None
        between = body[: body.index(line)] if is_beside else []
    else:
        is_beside = made in body and isinstance(made, cst.SimpleStatementLine) and is_before(model, made, line)
        between = body[body.index(made) + 1 : body.index(line)] if is_beside else []
    if not is_beside or is_seen_elsewhere(model, binding) or (binding.is_global and model.source.is_notebook):
        return False
    if any(isinstance(above, (cst.Try, cst.TryStar)) for above in model.ancestors(line)):
        return False
    beside = [*getattr(made, "body", ())] if isinstance(made, cst.SimpleStatementLine) else [write.target]
    head = made.iter if isinstance(made, cst.For) else None
    nodes = {node for part in (*between, *beside, *([head] if head is not None else [])) for node in walk(part)}
    if any(isinstance(node, (cst.Break, cst.Continue)) for node in nodes):
        return False
    mentions = (*binding.reads, *(each.target for each in binding.writes))
    return nodes.isdisjoint(mentions)


def _reads_of(binding: Binding, alias: cst.Name, model: Model) -> list[cst.Name | cst.Attribute]:
    """The reads that see what a second name gets at one place."""
    return [read for read in binding.reads if reaches(model, binding, alias, read)]


def _means_the_same(
    binding: Binding, reads: Sequence[cst.CSTNode], tensor: cst.Name, statement: cst.CSTNode, model: Model
) -> bool:
    """Whether these reads of the alias stand behind the statement, in its block, and see nothing else, and nothing sets
    the tensor there."""
    source, function = model.binding(tensor), model.function(statement)
    if source is None or binding.shared or source.shared or function.is_module:
        return False
    behind = model.span(statement)[1]
    block = model.parent(model.statement(statement)) or function.node
    last = max((model.span(read)[1] for read in reads), default=behind)
    inner = {loop for read in reads for loop in model.loops_around(read)}.difference(model.loops_around(statement))
    for write in source.writes:
        is_later = model.span(write.target)[0] > behind and write.kind != "parameter"
        if is_later and (model.span(write.target)[0] < last or inner & {*model.loops_around(write.target)}):
            return False
    return all(
        model.span(read)[0] > behind
        and block in model.ancestors(read)
        and model.function(read) is function
        and len(writes_reaching(model, binding, read)) == 1
        for read in reads
    )
