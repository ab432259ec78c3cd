"""What the vectoriser knows of a tensor: ranks, dtypes and sizes that may be symbols; expressions over whole axes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Rank:
    """Number of dimensions: `offset`, or `offset` more than the unknown rank that `base` stands for.

    `floor` is what the unknown part is at least.
    """

    offset: int
    base: str | None = None
    floor: int = field(default=0, compare=False)

    @property
    def known(self) -> int | None:
        return self.offset if self.base is None else None

    @property
    def least(self) -> int:
        return self.offset if self.base is None else max(self.offset + self.floor, 0)

    def plus(self, dimensions: int) -> Rank:
        return replace(self, offset=self.offset + dimensions)

    def at_most(self, other: Rank) -> bool:
        """Whether this rank is proven not to exceed the other."""
        if self.base == other.base:
            return self.offset <= other.offset
        return self.base is None and self.offset <= other.least


SCALAR = Rank(0)


@dataclass(frozen=True, slots=True)
class DType:
    """`token` names a dtype that need not be known: equal tokens are equal dtypes, as in `float(x)`: that of exp(x).

    `category` is one of bool, int, float, complex, or inexact (float or complex), or None.
    """

    token: str | None = None
    category: str | None = None

    @property
    def inexact(self) -> bool:
        return self.category in ("float", "complex", "inexact")

    @property
    def is_real(self) -> bool:
        """Whether it is known to hold no complex numbers, of whose products many may be rounded unlike one."""
        return self.category in ("bool", "int", "float")

    def absorbs(self, other: DType) -> bool:
        """Whether a tensor of this dtype keeps it next to a tensor of the other, whatever their ranks."""
        if self.token is not None and other.token in (self.token, f"real({self.token})"):
            return True
        if self.inexact:
            return other.category in ("bool", "int")
        return self.category == "int" and other.category == "bool"

    def real(self) -> DType:
        if self.category == "complex" or self.category == "inexact":
            return DType(self.token and f"real({self.token})", "float")
        return self

    def inexact_result(self) -> DType:
        """Of a function such as exp, which makes floats of integers."""
        if self.inexact:
            return self
        return DType(self.token and f"float({self.token})", "float" if self.category else "inexact")

    def sum(self) -> DType:
        if self.inexact:
            return self
        return DType("int64", "int") if self.category else DType(self.token and f"sum({self.token})")

    @property
    def lasts(self) -> bool:
        """Whether a sum has the dtype of its terms, added one by one to a number or all at once."""
        token = self.token or ""
        return self.inexact or self.category == "bool" or token == "int64" or token.startswith("sum(")


UNKNOWN_DTYPE = DType()
BOOL = DType("bool", "bool")
INT64 = DType("int64", "int")


@dataclass(frozen=True, slots=True)
class Size:
    """An integer: `offset`, or `offset` more than what `key` stands for at every place. `text` spells all of it.

    `natural`: never negative. `last`: the number that the text adds at its end. `assumed`: the same
    everywhere as long as no other file assigns the attribute that it is.
    """

    offset: int
    key: str | None = None
    text: str = ""
    natural: bool = True
    last: int = field(default=0, compare=False)
    assumed: bool = field(default=False, compare=False)

    @property
    def dimension(self) -> Dimension:
        return (self.key, self.offset)

    def spelled(self, shift: int) -> str:
        """The text of the size plus a number."""
        if shift == 0:
            return self.text
        if self.text.isdigit():
            return str(self.offset + shift)
        last = f" {'+' if self.last > 0 else '-'} {abs(self.last)}"
        is_last = self.last != 0 and self.text.endswith(last)
        text, shift = (self.text.removesuffix(last), self.last + shift) if is_last else (self.text, shift)
        return f"{text} {'+' if shift > 0 else '-'} {abs(shift)}" if shift else text


Dimension = tuple["str | None", int]
"""The length of a tensor along one axis, as the `key` and `offset` of a Size."""


@dataclass(eq=False, slots=True)
class Axis:
    """One loop: its index runs from `start` to before `stop`. Loops further in have a greater `depth`."""

    depth: int
    start: int
    stop: Size
    index: str | None = None
    whole: bool = False  # some tensor has this loop's size as a dimension, or that less a number
    counted: bool = False  # one has no more than that, so it is not negative
    cut: bool = False  # some tensor had to be cut to this loop's size
    guarded: bool = False  # where it was cut, a negative size counts as none
    reckoned: bool = False  # its index is a number of a range that cannot have a negative size

    @property
    def bounded(self) -> bool:
        if self.reckoned and not (self.stop.natural or self.counted):
            return False
        return self.stop.natural or self.whole or self.guarded


class Shape(Protocol):
    """What has a name in code and dimensions to ask for: a tensor, or what stands for one."""

    @property
    def key(self) -> str: ...

    def dimension(self, index: int) -> Dimension: ...


# Binding strength of an expression's outermost operator.
COMPARISON, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, UNARY, POWER, ATOM = range(10)


@dataclass(frozen=True, slots=True)
class Lifted:
    """An expression for all iterations at once: its dimensions are `axes`, in loop order, then those of one iteration.

    `rank` counts those of one iteration. `number`: a Python number. `tensor`: certainly a tensor. `shares`: may share
    memory with a tensor of the program. `exact`: made of operations that round the same way one by one and all at once.
    `pair`: values and indices, or what else `members` names; `ordered`: the indices are defined where elements are
    equal. `shape`, where known, gives
    the dimensions of one iteration, after the first `skipped`. `claim`: the shape of an array that this is a part of,
    which may be one of numpy. `counts`: a Python number in one iteration, made of the loops' indices.
    `unmoved`: its text, if that is this one, with the axis where a tensor has it.
    """

    text: str
    level: int
    axes: tuple[Axis, ...]
    rank: Rank
    dtype: DType = UNKNOWN_DTYPE
    tensor: bool = True
    number: bool = False
    shares: bool = False
    exact: bool = True
    pair: bool = False
    members: tuple[str, ...] = ("values", "indices")
    ordered: bool = True
    shape: Shape | None = None
    skipped: int = 0
    claim: str | None = None
    counts: bool = False
    unmoved: Unmoved | None = None

    @property
    def count(self) -> int:
        return len(self.axes)

    @property
    def key(self) -> str | None:
        return self.shape.key if self.shape is not None else None

    def dimension(self, index: int) -> Dimension | None:
        """The length of one iteration's dimension `index`, counted from the front."""
        return self.shape.dimension(self.skipped + index) if self.shape is not None else None

    def within(self, level: int) -> str:
        """The text, in parentheses where an operator of that strength would tear it apart."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def atom(self) -> str:
        return self.within(ATOM)

    def where_it_is(self, dimension: int) -> str | None:
        """The text of all iterations with the loop's axis at that dimension, if it was taken from there as it is."""
        known = self.unmoved
        return known.kept if known is not None and (known.text, known.dimension) == (self.text, dimension) else None

    def part(self, name: str) -> Lifted:
        """One member of a pair."""
        dtype = INT64 if name == "indices" else self.dtype.real() if name in ("logabsdet", "S") else self.dtype
        rank = self.rank.plus(-1) if name in ("S", "eigenvalues") else self.rank
        return self.but(text=f"{self.atom}.{name}", level=ATOM, pair=False, dtype=dtype, rank=rank)

    def but(self, **changes: object) -> Lifted:
        return replace(self, **changes)  # type: ignore[arg-type]


class Unmoved(NamedTuple):
    """What an expression is without its axis in front: of this `text`, and `kept` with the axis at a `dimension`."""

    text: str
    dimension: int
    kept: str


class Missing(Enum):
    """What a batched form needs and is not known. An expression under vmap needs neither ranks nor dtypes."""

    RANK = auto()
    DTYPE = auto()
    MORE = auto()


class RefusedError(Exception):
    """The loop is not known to be independent work on rows; the message says why."""
