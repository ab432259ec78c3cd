"""What a row is taken for once a mask or a length has picked a part of it."""

from __future__ import annotations

from dataclasses import replace

from torchlint.analyses.rowwise.state import Depends, Seen
from torchlint.word_set import word_set

REDUCTIONS = word_set("sum mean any all count_nonzero max min amax amin")
"""Make one number of all that a mask has picked; beside it, what is to be passed over can be made the least."""


def placed(seen: Seen) -> Seen:
    """The places of a row at which something is."""
    return replace(seen.at_least(Depends.RAGGED), places=seen.is_row)


def picked(seen: Seen) -> Seen:
    """What a mask picks."""
    return replace(seen.at_least(Depends.RAGGED), masked=seen.masked or seen.is_row)


def reduced(seen: Seen) -> Seen:
    """All of what a mask picked, made one number: the mask of the whole batch does the same."""
    return replace(seen, depends=Depends.ROW, masked=False) if seen.masked else seen


def alone(seen: Seen) -> Seen:
    """A batch of one row."""
    return replace(seen, alone=True) if seen.varies else seen
