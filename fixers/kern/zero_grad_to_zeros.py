"""Drops gradients instead of filling them with zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.kern.zeroed_gradients import holds_nothing_else, read_before_pass
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rewrite import Rewriter
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.analyses.kern.zeroed_gradients import Zeroed
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_WHY = (
    "a parameter that gets no gradient keeps None: the optimizer leaves it as it is, and code that reads it must cope"
)


def fix(report: Report, model: Model) -> Fix:
    zeroed: Zeroed = report.facts
    if (read := read_before_pass(model, zeroed)) is not None:
        raise NoFixError(f"`{model.code(read)}` is read before a pass has filled it again, and would be None")
    edit = _without_argument(zeroed, model) if zeroed.call is not None else _short_loop(zeroed, model)
    if edit is None:
        raise NoFixError("the gradients are filled by something other than an argument or a statement of its own")
    return Fix((edit,), Applicability.UNSAFE, _WHY)


def _without_argument(zeroed: Zeroed, model: Model) -> Edit | None:
    if zeroed.call is None or zeroed.argument is None or zeroed.argument not in zeroed.call.node.args:
        return None
    return Rewriter(model).remove_argument(zeroed.call.node, zeroed.argument)


def _short_loop(zeroed: Zeroed, model: Model) -> Edit | None:
    """The whole body becomes one assignment; where there is anything else in it, only the statement that fills."""
    loop = zeroed.loop.node if zeroed.loop is not None else None
    if not isinstance(loop, cst.For) or zeroed.loop is None or zeroed.fill is None:
        return None
    start, end = model.span(loop.body.body[0])[0], model.span(loop.body.body[-1])[1]
    whole = isinstance(loop.body, cst.IndentedBlock) and "#" not in model.source.text[start:end]
    if whole and holds_nothing_else(model, zeroed.loop):
        return Edit(start, end, f"{zeroed.gradient} = None")
    if any(call.method == "detach_" for call in zeroed.loop.calls):
        raise NoFixError("the gradients are also cut off from their graph, which would be left without a purpose")
    statement = model.small_statement(zeroed.fill)
    if isinstance(statement, cst.Assign):
        return Rewriter(model).replace(statement.value, "None")
    return Rewriter(model).replace(statement, f"{zeroed.gradient} = None") if isinstance(statement, cst.Expr) else None
