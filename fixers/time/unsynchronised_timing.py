"""Waits for the device before both readings of the clock, where there is a device to wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Edit, Fix
from torchlint.rewrite import Rewriter
from torchlint.semantics.device_queue import follows_wait
from torchlint.semantics.entities import Role

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model
    from torchlint.semantics.stopwatch import Interval

_WHY = "the program waits for the device before both readings, and reports other times"


def fix(report: Report, model: Model) -> Fix | None:
    interval: Interval = report.facts
    if any(loop.role is Role.STEPS for loop in model.loops_around(interval.end)):
        return None
    end = _statement(interval.end, model)
    if end is None or end is model.small_statement(interval.work.node):
        return None
    edits: dict[Edit, None] = {}
    for reading in (interval.start, interval.end):
        statement = _statement(reading, model)
        if statement is None:
            return None
        if not follows_wait(statement, model):
            rewriter = Rewriter(model)
            spelled = rewriter.name_for("torch.cuda", statement)
            if spelled is None:
                return None
            name, imports = spelled
            wait = rewriter.insert_before(statement, f"if {name}.is_available():", f"    {name}.synchronize()")
            edits |= dict.fromkeys([*imports, wait])
    return Fix(tuple(edits), Applicability.UNSAFE, _WHY) if edits else None


def _statement(reading: cst.Call, model: Model) -> cst.BaseSmallStatement | None:
    """The simple statement that reads the clock, once each time that it runs."""
    loop = model.loop(reading)
    if isinstance(model.function(reading).node, cst.Lambda) or (loop is not None and loop.is_comprehension):
        return None
    return model.small_statement(reading)
