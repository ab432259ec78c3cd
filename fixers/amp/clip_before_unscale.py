"""Unscales the gradients before they are clipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import conditions
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.tree import dotted

if TYPE_CHECKING:
    from torchlint.analyses.amp.scaled_gradients import Clipping, Event
    from torchlint.rule import Report
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

_WHY = "steps then have the length that the limit asks for, so training takes another course"


def fix(report: Report, model: Model) -> Fix:
    clipping: Clipping = report.facts
    if not clipping.is_alone:
        raise NoFixError("the gradients are clipped or unscaled at another place too, under other conditions")
    anchor = _anchor(clipping)
    lines = _lines(clipping, anchor, model)
    place = _place(clipping, anchor)
    condition = _condition(clipping, place, model)
    if condition:
        lines = [f"if {condition}:", *("    " + line for line in lines)]
    edit: Edit = Rewriter(model).insert_before(place, *lines)
    return Fix((edit,), Applicability.UNSAFE, _WHY)


def _anchor(clipping: Clipping) -> Call:
    """The call before which to unscale: the clipping, or what leads to it in the function that steps."""
    clip, functions = clipping.clip, {step.call.function for step in clipping.steps}
    anchor = next((call for call in (clip.call, clip.site) if functions == {call.function}), None)
    if anchor is None:
        raise NoFixError("the scaler steps in another function than the one that clips")
    return anchor


def _lines(clipping: Clipping, anchor: Call, model: Model) -> list[str]:
    """One call for each optimizer that steps, all of which have to be known by name where the clipping stands."""
    found: dict[str, None] = {}
    for step in clipping.steps:
        optimizer = step.call.arguments[0]
        if set(step.call.loops()) - set(anchor.loops()) or optimizer.star or dotted(optimizer.value) is None:
            raise NoFixError("an optimizer that steps has no name of its own where the gradients are clipped")
        found[f"{step.scaler}.unscale_({model.code(optimizer.value)})"] = None
    return list(found)


def _place(clipping: Clipping, anchor: Call) -> cst.CSTNode:
    """The clipping, or the outermost loop around it that the step is not in: `unscale_` runs once for a step."""
    shared = set(clipping.steps[0].call.loops())
    own = [loop for loop in anchor.loops() if loop not in shared]
    if any(loop.is_comprehension for loop in own):
        raise NoFixError("the gradients are clipped inside a comprehension")
    return own[-1].node if own else anchor.node


def _condition(clipping: Clipping, place: cst.CSTNode, model: Model) -> str:
    """What has to be asked so that gradients are only unscaled where the scaler steps: nothing, or the test around the
    step."""
    here = {**clipping.clip.conditions, **conditions(model, place)}
    missing: set[str] = set()
    for step in clipping.steps:
        missing |= {key for key, holds in step.conditions.items() if here.get(key) is not holds}
    if not missing:
        return ""
    known = {clipping.backward.scaler, *clipping.backward.conditions}
    alone = len(missing) == 1 and missing <= known and len(clipping.steps) == 1
    test = _test(clipping.steps[0], model) if alone else None
    if test is None:
        raise NoFixError("the scaler steps under conditions that cannot be asked before the clipping")
    return test


def _test(step: Event, model: Model) -> str | None:
    guard = next(iter(model.guards(step.call.node)), None)
    if guard is None or guard.branch != "body" or not isinstance(guard.node, cst.If) or guard.test is None:
        return None
    test = guard.test
    asked = test.left if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 else test
    return model.code(test) if dotted(asked) is not None else None
