"""Drops gradients instead of filling them with zeros."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.kern.zeroed_gradients import holds_nothing_else, read_before_pass
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.analyses.kern.zeroed_gradients import Zeroed
    from torchlint.rule import Report
    from torchlint.semantics.entities import Binding, Loop
    from torchlint.semantics.model import Model

_WHY = (
    "a parameter that gets no gradient keeps None: the optimizer leaves it as it is, and code that reads it must cope"
)
_SOURCE = re.compile(r"(?i)#[^\n]*(https?:|\b(taken|copied|borrowed|adapted) from\b)")


def fix(report: Report, model: Model) -> Fix:
    zeroed: Zeroed = report.facts
    if zeroed.loop is not None and _SOURCE.search(model.code(zeroed.loop.node)):
        raise NoFixError("a comment says where the code is taken from, which the new one is not")
    if zeroed.drops:
        if not (edits := _one_call(zeroed, model)):
            raise NoFixError("a comment speaks of a statement of the loop, or its variable is read later")
        return Fix(edits, Applicability.SAFE, needs_torch="2.0")
    if (read := read_before_pass(model, zeroed)) is not None:
        raise NoFixError(f"`{model.code(read)}` is read before a pass has filled it again, and would be None")
    edits = _without_argument(zeroed, model) or _one_call(zeroed, model) or _short_loop(zeroed, model)
    if not edits:
        raise NoFixError("the gradients are filled by something other than an argument or a statement of its own")
    return Fix(edits, Applicability.UNSAFE, _WHY)


def _without_argument(zeroed: Zeroed, model: Model) -> tuple[Edit, ...]:
    if zeroed.call is None or zeroed.argument is None or zeroed.argument not in zeroed.call.node.args:
        return ()
    return (Rewriter(model).remove_argument(zeroed.call.node, zeroed.argument),)


def _one_call(zeroed: Zeroed, model: Model) -> tuple[Edit, ...]:
    """`net.zero_grad()` in the place of the loop, with its comments above; nothing where the loop's variable is read
    elsewhere, or a comment speaks of one of its statements."""
    if zeroed.network is None or zeroed.loop is None or not isinstance(zeroed.loop.target, cst.Name):
        return ()
    start, end = model.span(zeroed.loop.node)
    header, *body = model.source.text[start:end].splitlines()
    network = model.code(zeroed.network)
    if "#" in network or any("#" in line and not line.lstrip().startswith("#") for line in body):
        return ()
    if any(_is_left_over(model, use, zeroed.loop) for use in _uses(model.binding(zeroed.loop.target))):
        return ()
    comments = [line[line.index("#") :] for line in (header, *body) if "#" in line]
    above = [Rewriter(model).insert_before(zeroed.loop.node, *comments)] if comments else []
    return (*above, Edit(start, end, f"{network}.zero_grad()"))


def _uses(variable: Binding | None) -> Iterator[cst.CSTNode]:
    """Where a variable has to be there: what reads it, changes it or deletes it."""
    if variable is not None:
        yield from variable.reads
        yield from (write.target for write in variable.writes if write.kind in ("augmented", "delete"))


def _is_left_over(model: Model, read: cst.CSTNode, loop: Loop) -> bool:
    """Whether the read of a loop's variable may find what the loop has left in it."""
    binding = model.binding(loop.target) if loop.target is not None else None
    around = model.loops_around(read)
    return loop not in around and not any(
        other.target is not None and model.binding(other.target) is binding for other in around
    )


def _short_loop(zeroed: Zeroed, model: Model) -> tuple[Edit, ...]:
    """The whole body becomes one assignment; where there is anything else in it, only the statement that fills."""
    loop = zeroed.loop.node if zeroed.loop is not None else None
    if not isinstance(loop, cst.For) or zeroed.loop is None or zeroed.fill is None:
        return ()
    start, end = model.span(loop.body.body[0])[0], model.span(loop.body.body[-1])[1]
    whole = isinstance(loop.body, cst.IndentedBlock) and "#" not in model.source.text[start:end]
    if whole and holds_nothing_else(model, zeroed.loop):
        return (Edit(start, end, f"{zeroed.gradient} = None"),)
    if any(call.method == "detach_" for call in zeroed.loop.calls):
        raise NoFixError("the gradients are also cut off from their graph, which would be left without a purpose")
    statement = model.small_statement(zeroed.fill)
    if isinstance(statement, cst.Assign):
        return (Rewriter(model).replace(statement.value, "None"),)
    if isinstance(statement, cst.Expr):
        return (Rewriter(model).replace(statement, f"{zeroed.gradient} = None"),)
    return ()
