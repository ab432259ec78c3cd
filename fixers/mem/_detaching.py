"""`.detach()` on what brings a graph into something that is kept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.fate import Fate, Tracer
from torchlint.analyses.mem.graphs import carriers
from torchlint.analyses.mem.keeping import Way
from torchlint.analyses.mem.retention import retentions
from torchlint.analyses.single_tensor import is_graphless, is_one_tensor
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.dataflow import upstream
from torchlint.semantics.tree import arms
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.mem.retention import Retention
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_WHY = "The values stay the same; only their autograd history is dropped, and the `grad_fn` in what is printed of them."
_OF_GRAPHS = frozenset({"requires_grad", "grad_fn", "is_leaf", "output_nr"})


def detached(kept: Retention, model: Model) -> Fix:
    """A value that is kept itself, not added up, is copied as well: it would share its memory with the original."""
    if kept.obstacle:
        raise NoFixError(kept.obstacle)
    if (other := _half_done(kept, model)) is not None:
        raise NoFixError(f"`{model.code(other)}` beside it may keep the same graph, and is not known to")
    if (twin := _kept_of_the_same_pass(kept, model)) is not None:
        raise NoFixError(f"`{model.code(twin)}` beside it keeps the graph of the same pass for a later use")
    if (asked := _asked_for_its_graph(kept, model)) is not None:
        raise NoFixError(f"`{model.code(asked)}` asks for the graph")
    suffix = ".detach().clone()" if kept.way is Way.BEST else ".detach()"
    rewriter = Rewriter(model)
    graphs = [*kept.graphs, *(_first_terms(kept, model) if kept.way is Way.SUM else ())]
    edits = [edit for graph in graphs for edit in rewriter.method_call(graph, suffix)]
    return Fix(tuple(edits), Applicability.SAFE, _WHY)


def _asked_for_its_graph(kept: Retention, model: Model) -> cst.CSTNode | None:
    """`total.requires_grad`, `losses[-1].grad_fn`"""
    binding = model.binding(kept.holder)
    for read in binding.reads if binding is not None else ():
        above = model.parent(read)
        while isinstance(above, cst.Subscript):
            above = model.parent(above)
        if isinstance(above, cst.Attribute) and above.attr.value in _OF_GRAPHS:
            return above
    return None


def _first_terms(kept: Retention, model: Model) -> Iterator[cst.BaseExpression]:
    """What else the same loop assigns to what holds the sum: `total = loss if total is None else total + loss`.

    A sum that begins with a graph has one, whatever is added.
    """
    binding, loop = model.binding(kept.holder), model.loop(kept.node)
    if binding is None or kept.keeper is not None:
        return
    for write in binding.writes:
        if write.loop is not loop or write.kind != "assign" or write.unpacked or write.value is None:
            continue
        if write.statement is not kept.node and Fate.BACKWARD in Tracer(model).of_binding(binding, write.statement):
            raise NoFixError(f"a backward pass goes through what {model.place(write.target)} puts into the sum")
        for value in arms(write.value):
            if binding in upstream(model, value, inside=loop):
                continue
            for graph in carriers(model, value):
                if not is_one_tensor(model, graph):
                    raise NoFixError(f"`{model.code(graph)}`, with which the sum begins, may not be one tensor")
                yield graph


def _half_done(kept: Retention, model: Model) -> cst.AugAssign | None:
    """Another sum in the same row, of a part of what is added here, of which no more is known."""
    parts: set[Binding | None] = {binding for graph in kept.graphs for binding in upstream(model, graph)}
    known = {found.node for found in retentions(model, Way.SUM)}
    for other in _sums_in_a_row(kept.node, model):
        if other not in known and not parts.isdisjoint(_may_have_graphs(other.value, model)):
            return other
    return None


def _kept_of_the_same_pass(kept: Retention, model: Model) -> cst.CSTNode | None:
    """`values.append(value)` beside `log_probs.append(log_prob)`, both of `dist, value = model(state)`: where only one
    list may be detached, the graph of the pass stays."""
    parts = {binding for graph in kept.graphs for binding in upstream(model, graph)}
    passes = {write.statement for binding in parts for write in binding.writes if write.unpacked}
    known = {found.node for found in retentions(model, Way.APPEND) if found.detachable}
    for line in getattr(model.parent(model.statement(kept.node)), "body", ()):
        match line:
            case cst.SimpleStatementLine(
                body=[cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(value="append")), args=[arg]) as call)]
            ) if call not in known and not is_graphless(model.value(arg.value)):
                binding = model.binding(arg.value)
                if binding is not None and any(write.statement in passes for write in binding.writes):
                    return line
    return None


def _may_have_graphs(node: cst.BaseExpression, model: Model) -> Iterator[Binding | None]:
    """The variables that a sum of numbers or tensors is written with, apart from data and what is known."""
    if is_graphless(model.value(node)):
        return
    match node:
        case cst.BinaryOperation():
            yield from _may_have_graphs(node.left, model)
            yield from _may_have_graphs(node.right, model)
        case cst.Name() if model.value(node).is_(Kind.UNKNOWN, Kind.TENSOR):
            yield model.binding(node)


def _sums_in_a_row(node: cst.CSTNode, model: Model) -> list[cst.AugAssign]:
    line = model.statement(node)
    body = list(getattr(model.parent(line), "body", ()))
    if line not in body:
        return []
    at = body.index(line)
    rows = (takewhile(_is_sum, reversed(body[:at])), takewhile(_is_sum, body[at + 1 :]))
    return [other.body[0] for row in rows for other in row]


def _is_sum(line: cst.CSTNode) -> bool:
    match line:
        case cst.SimpleStatementLine(body=[cst.AugAssign(operator=cst.AddAssign())]):
            return True
    return False
