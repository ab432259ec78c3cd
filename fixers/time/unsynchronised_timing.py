"""Waits for the device before both readings of the clock, where there is a device to wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.time.device_queue import follows_wait
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rewrite import Rewriter
from torchlint.rule import NoFixError
from torchlint.semantics.entities import Role

if TYPE_CHECKING:
    from torchlint.analyses.time.stopwatch import Interval
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_WHY = "the program waits for the device before both readings, and reports other times"


def fix(report: Report, model: Model) -> Fix:
    interval: Interval = report.facts
    if any(loop.role is Role.STEPS for loop in model.loops_around(interval.end)):
        raise NoFixError("each training step is timed, and waiting in each would slow down all of them")
    if _statement(interval.end, model) is model.small_statement(interval.work.node):
        raise NoFixError("the work and the reading of the clock are one statement")
    edits: dict[Edit, None] = {}
    for reading in (interval.start, interval.end):
        statement = _statement(reading, model)
        if not follows_wait(statement, model):
            rewriter = Rewriter(model)
            name, imports = rewriter.name_for("torch.cuda", statement)
            wait = rewriter.insert_before(statement, f"if {name}.is_available():", f"    {name}.synchronize()")
            edits |= dict.fromkeys([*imports, wait])
    if not edits:
        raise NoFixError("the program waits for the device before both readings, but not on every way")
    return Fix(tuple(edits), Applicability.UNSAFE, _WHY)


def _statement(reading: cst.Call, model: Model) -> cst.BaseSmallStatement:
    """The simple statement that reads the clock, once each time that it runs."""
    loop = model.loop(reading)
    statement = model.small_statement(reading)
    inside = isinstance(model.function(reading).node, cst.Lambda) or (loop is not None and loop.is_comprehension)
    if inside or statement is None:
        raise NoFixError("no statement has room for a wait before the clock is read")
    return statement
