"""Loops that collect the rows of a tensor that a test picks, or their numbers: a mask does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.analyses.rowwise.state import Depends, Fault, Sink

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.state import Seen, Trace


def is_selection(trace: Trace) -> bool:
    """Whether every test is one of a row of a tensor, and nothing else is kept than rows and their numbers."""
    if not trace.tests or trace.changes_rows or not all(test.is_row and not test.size for test in trace.tests):
        return False
    if trace.chosen is not None:
        return not trace.faults and len(trace.kept) == 1 and _is_part(trace.chosen)
    if set(trace.faults) != {Fault.RAGGED} or not trace.kept:
        return False
    return all(kept.sink is Sink.APPEND and kept.guarded and _is_part(kept.seen) for kept in trace.kept)


def _is_part(seen: Seen) -> bool:
    """The number of an iteration, or a row."""
    return seen.depends in (Depends.INDEX, Depends.ROW)
