"""A fix is only shown where a like place would stay as it is, one that looks the same, or of which the fixer says that
it goes with it: two ways to say one thing side by side help nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from torchlint.finding import Applicability, Finding, Fix
from torchlint.fixing.alike import left_alike
from torchlint.fixing.edited import Edited

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.model import Model


def shown_where_others_stay(found: Sequence[tuple[cst.CSTNode, Finding]], model: Model) -> list[Finding]:
    """The findings of all rules in a file, with the nodes that they point at. What is only shown leaves its own place,
    so that others that go with it, or look like it, are only shown, too."""
    applied = {at: fix for at, (_, finding) in enumerate(found) if (fix := _applied(finding)) is not None}
    left: dict[int, tuple[int, int]] = {}
    unsettled = {found[at][1].code for at in applied}  # the rules whose places are to be looked at (again)
    while unsettled:
        fresh = _left_behind(applied)
        if not fresh:
            code = min(unsettled)
            unsettled.remove(code)
            fresh = _left_by_rule(code, found, applied, model)
        unsettled |= {found[at][1].code for at in fresh}
        applied = {at: fix for at, fix in applied.items() if at not in fresh}
        left |= fresh
    return [
        replace(finding, fix=_decided(finding.fix, left.get(at), model)) if finding.fix is not None else finding
        for at, (_, finding) in enumerate(found)
    ]


def _left_by_rule(
    code: str, found: Sequence[tuple[cst.CSTNode, Finding]], applied: dict[int, Fix], model: Model
) -> dict[int, tuple[int, int]]:
    of_rule = {at: each for at, each in enumerate(found) if each[1].code == code}
    return left_alike(of_rule, {at: applied[at] for at in of_rule if at in applied}, model)


def _left_behind(applied: dict[int, Fix]) -> dict[int, tuple[int, int]]:
    """The fixes that go with places of which one is changed by none, and that place."""
    edited = Edited(edit for fix in applied.values() for edit in fix.edits)
    groups = {id(places): places for fix in applied.values() for places in fix.goes_with}  # which many share
    staying = {key: next((span for span in places if span not in edited), None) for key, places in groups.items()}
    left = {at: [staying[id(places)] for places in fix.goes_with] for at, fix in applied.items()}
    return {at: span for at, spans in left.items() for span in reversed(spans) if span is not None}


def _applied(finding: Finding) -> Fix | None:
    return finding.fix if finding.fix and finding.fix.applicability is not Applicability.DISPLAY else None


def _decided(fix: Fix, left: tuple[int, int] | None, model: Model) -> Fix:
    """What it goes with is of no account any more."""
    if left is None:
        return replace(fix, goes_with=()) if fix.goes_with else fix
    cell, line, _ = model.source.locate(left[0])
    place = f"Line {line}" if cell is None else f"Line {line} of cell {cell}"
    why = f"{place} has another like it that would stay as it is"
    why = f"{fix.why.rstrip('.')}. {why}." if fix.why else why
    return replace(fix, applicability=Applicability.DISPLAY, why=why, goes_with=())
