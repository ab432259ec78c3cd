"""Functions of Python on the elements of a tensor: every comparison of `sorted` is a kernel whose answer is read back,
of `max` and `min` as well, and every addition of `sum` is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise import headers
from torchlint.analyses.rowwise.expressions import Expressions
from torchlint.analyses.rowwise.names import Names
from torchlint.analyses.rowwise.state import Trace
from torchlint.analyses.texts import is_text
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.certainty import Certainty
    from torchlint.semantics.model import Model


def walks_rows(model: Model, certainty: Certainty, call: cst.Call) -> bool:
    """Whether a call of `sum`, `max` or `min` takes the rows of a tensor one by one."""
    if len(call.args) != 1 or call.args[0].star or model.value(call.args[0].value).rank == 0:
        return False
    if model.qualified(call.func) != "builtins.sum" and _is_only_shown(model, call):
        return False
    walked = model.value(call.args[0].value)
    if walked.kind is Kind.BATCH and walked.place is Place.ACCELERATOR:  # as no list can be
        return True
    return certainty.is_tensor(call.args[0].value, model.statement(call))


def _is_only_shown(model: Model, extreme: cst.Call) -> bool:
    """Whether an extreme is for a log, or for a text that is made once."""
    if model.is_log_gated(extreme):
        return True
    return not model.loops_around(extreme) and any(is_text(model, node) for node in model.ancestors(extreme))


def sorted_tensor(model: Model, certainty: Certainty, call: cst.Call) -> str | None:
    """The tensor whose elements a call of `sorted` compares."""
    if not call.args or call.args[0].keyword is not None or call.args[0].star:
        return None
    first = call.args[0].value
    expressions = Expressions(model, certainty, model.statement(call), Names.none(), Trace())
    first = headers.unwrapped(expressions, first)
    if expressions.is_tensor(first):
        return expressions.name_of(first)
    key = next((arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "key"), None)
    if not isinstance(key, cst.Lambda) or len(key.params.params) != 1:
        return None
    headers.enter(expressions, call, key.params.params[0].name, first)
    if not expressions.of(key.body).is_row:
        return None
    return next(iter(expressions.trace.subjects), None)
