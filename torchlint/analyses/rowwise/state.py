"""What a value in the body of a loop depends on, and what the body does beside computing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

import libcst as cst


class Depends(IntEnum):
    """Each covers the ones before it: two values together depend on the greater of the two."""

    NOTHING = 0  # the same in every iteration
    INDEX = 1  # on the number of the iteration
    ROW = 2  # on a row of a tensor, and its shape is the same in every iteration
    FOREIGN = 3  # on something else that differs: an element of a list, a file
    RAGGED = 4  # on a row, and its shape may differ
    OPAQUE = 5  # on code that may do anything
    CARRIED = 6  # on an earlier iteration


@dataclass(frozen=True, slots=True)
class Seen:
    """`alone`: a batch that was made of one row. `axes`: the loops whose row or index it depends on. `maybe`: it is
    foreign because nothing says that what it is taken from is a tensor, and nothing says that it is none. `mask`: it
    says yes or no, so that what it picks has a length of its own. `array`: what it is taken from takes several indices,
    and so is no list. `masked`: it is ragged because a mask of the row picked its elements, and for no other reason.
    `gathered`: all of it is an element or a row of something that all iterations share. `drawn`: random numbers are
    part of it. `looked_up`: it is the entry of a table for a number that was read from a row. `places`: it is ragged
    because it says where in the row something is. `handed_on`: an inner loop hands it on from one of its iterations to
    the next. `size`: it is how much a mask has picked, which the host knows."""

    depends: Depends = Depends.NOTHING
    alone: bool = False
    axes: frozenset[cst.CSTNode] = frozenset()
    maybe: bool = False
    mask: bool = False
    array: bool = False
    masked: bool = False
    gathered: bool = False
    drawn: bool = False
    looked_up: bool = False
    places: bool = False
    handed_on: bool = False
    size: bool = False

    def at_least(self, depends: Depends) -> Seen:
        return replace(self, depends=max(self.depends, depends))

    @property
    def varies(self) -> bool:
        return self.depends is not Depends.NOTHING

    @property
    def is_row(self) -> bool:
        return self.depends is Depends.ROW


NOTHING = Seen()


def are_pairs(seen: list[Seen]) -> bool:
    """Whether operands are rows of two loops, each of its own."""
    rows = [one.axes for one in seen if one.is_row]
    return any(len(one) == len(other) == 1 and one != other for one in rows for other in rows)


def together(*seen: Seen) -> Seen:
    """What the result of an operation depends on, of what its operands do."""
    depends = max((one.depends for one in seen), default=Depends.NOTHING)
    return Seen(
        depends,
        any(one.alone for one in seen),
        frozenset().union(*(one.axes for one in seen)),
        depends is Depends.FOREIGN and all(one.maybe for one in seen if one.depends is depends),
        array=all(one.array for one in seen if one.depends is Depends.FOREIGN),
        masked=depends is Depends.RAGGED and all(one.masked or one.depends <= Depends.ROW for one in seen),
        drawn=any(one.drawn for one in seen),
        places=depends is Depends.RAGGED and all(one.places or one.depends <= Depends.ROW for one in seen),
        handed_on=any(one.handed_on for one in seen),
        size=any(one.size for one in seen),
    )


def matched(*seen: Seen, scaled: bool = False) -> Seen:
    """Of operands that have the same shape: beside a row, what may be one is one. `scaled`: a row of numbers may be
    what an operand is multiplied by, which then may be an element of a list."""
    found = together(*seen)
    if found.maybe and any(one.is_row for one in seen) and (found.array or not scaled):
        return replace(found, depends=Depends.ROW, maybe=False)
    return found


class Fault(Enum):
    """Why the iterations cannot be one call."""

    CARRIED = "an iteration needs what an earlier one computed"
    RANDOM = "every iteration draws random numbers of its own"
    STOPS = "the loop may end early"
    STATE = "an iteration changes more than what the loop collects"
    NETWORK = "a network is run in every iteration"
    OPAQUE = "what an iteration calls may do anything"
    RAGGED = "the rows have shapes of their own"
    CHUNKS = "the loop takes steps"
    GROWS = "a tensor grows in every iteration"


HARMLESS = frozenset((Fault.OPAQUE, Fault.RAGGED, Fault.RANDOM, Fault.NETWORK, Fault.GROWS))
"""With these, a costly operation that depends on nothing but the row can still leave the loop."""


Path = tuple[tuple[cst.If, bool], ...]


class Sink(Enum):
    """Where the result of an iteration goes."""

    FILL = "fill"  # an element of a tensor
    APPEND = "append"
    TOTAL = "total"
    COUNT = "count"  # an element of a list or dict


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on rows. `inputs` are what its operands depend on; `guarded`: not every iteration runs it;
    `pairs`: it takes rows of two loops."""

    node: cst.BaseExpression
    name: str  # qualified name of the function, `.name` of a method, or an operator
    inputs: Seen
    guarded: bool
    pairs: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """A result that outlives its iteration. `place`: of FILL and COUNT, what the index depends on. `path`: the branches
    it lies in of conditions that are the same in every iteration. `guarded`: not every iteration keeps one."""

    sink: Sink
    name: str
    node: cst.BaseExpression
    seen: Seen
    place: Seen = NOTHING
    value: cst.BaseExpression | None = None
    path: Path = ()
    guarded: bool = False

    def meets(self, path: Path) -> bool:
        """Whether it is kept where these branches are taken."""
        return all(side == other for condition, side in self.path for same, other in path if condition is same)


@dataclass(slots=True)
class Trace:
    """What the body of a loop does, in the order of the text."""

    subjects: dict[str, cst.BaseExpression] = field(default_factory=dict)  # tensors whose rows are taken
    steps: list[Step] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    faults: dict[Fault, str] = field(default_factory=dict)
    drawn: bool = False  # the loop runs over numbers drawn at random
    tests: list[Seen] = field(default_factory=list)  # of branches and filters that differ from iteration to iteration
    chosen: Seen | None = None  # what a comprehension takes where its filter says so
    changes_rows: bool = False  # of what other iterations may look at
    picks: bool = False  # elements of a tensor, at places that a row of a tensor says
    blocks: bool = False  # it takes `x[i * n : (i + 1) * n]`

    def fault(self, kind: Fault, text: str = "") -> None:
        self.faults.setdefault(kind, text)

    @property
    def is_final(self) -> bool:
        """Whether a fault was found with which nothing in the loop is worth a word."""
        return not HARMLESS.issuperset(self.faults)
