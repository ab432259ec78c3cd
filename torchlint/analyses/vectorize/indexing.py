"""Subscripts: `x[i]` for every i is x; `x[i, :, j]` for every i and j is x with its axes in the order of the loops."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize import counting, stored
from torchlint.analyses.vectorize.shapes import ATOM, Axis, Dimension, Lifted, RefusedError, Unmoved
from torchlint.edits import spelling
from torchlint.semantics.tree import is_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter


@dataclass(frozen=True, slots=True)
class Access:
    """One use of a tensor that the loop fills: (dimension, shift) of each loop's index, and the loops around the use.

    `summed`: elements are added up over the loops that have no index. `reads`: what was there before matters.
    """

    name: str
    dims: dict[Axis, tuple[int, int]]
    context: tuple[Axis, ...]
    summed: bool = False
    reads: bool = False


@dataclass(slots=True)
class Reading:
    """A subscript being read from left to right.

    `entries` are what it becomes, `places` where the loops' axes come to stand in the result (negative: counted from
    the end), `consumed` how many dimensions of one iteration are used up, `dropped` how many of them disappear.
    """

    entries: list[str] = field(default_factory=list)
    places: dict[Axis, int] = field(default_factory=dict)
    dims: dict[Axis, tuple[int, int]] = field(default_factory=dict)
    position: int = 0
    consumed: int = 0
    dropped: int = 0
    added: int = 0
    rest: int | None = None  # position of an ellipsis
    slots: dict[Axis, int] = field(default_factory=dict)  # the entry of each loop's index
    picked: set[Axis] = field(default_factory=set)  # loops that have an entry which is a tensor of places
    whole: set[Axis] = field(default_factory=set)  # loops that have an entry and run over all of a dimension
    chosen: str | None = None  # the mask of the only iterations that it is read in
    exact: bool = True  # what it picks is what one iteration picks, beyond doubt
    lists: dict[int, Lifted] = field(default_factory=dict)  # entries that are tensors of places

    @property
    def scattered(self) -> set[Axis]:
        """Loops without an index of their own here: several iterations may have the same place."""
        return self.picked - set(self.dims)

    def bring(self, device: str) -> None:
        """Moves the places to the device of what they are places of."""
        for entry, picked in self.lists.items():
            self.entries[entry] = f"{picked.atom}.to({device})"

    @property
    def count(self) -> int:
        return len(self.places)

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(sorted(self.places, key=lambda axis: axis.depth))

    def text(self, base: str, sign: str = "") -> str:
        """The subscript as a value, or as the target of an assignment."""
        entries = list(self.entries)
        while entries and entries[-1] in (":", "..."):
            del entries[-1]
        if not entries:
            is_named = sign == "" or (sign != "=" and base.isidentifier())
            return base if is_named else f"{base}[:]"
        return f"{base}[{', '.join(entries)}]"


def subscript(lifter: Lifter, node: cst.Subscript) -> Lifted:
    """A tensor read at the loops' indices."""
    whole, elements = stored.filled(node, lifter.indices)
    sink = lifter.sink(whole)
    if sink is not None:
        return _own_element(lifter, sink, elements)
    base = lifter.base(node.value)
    if base.pair:
        return _member(lifter, base, node)
    if not base.tensor and base.claim is None and base.key is not None and cuts(node):
        base = base.but(claim=base.key)
    if not base.tensor and base.claim is None:
        raise RefusedError(f"`{lifter.code(node.value)}` is not known to be a tensor")
    if len(node.slice) == 1 and (gathered := _gathered(lifter, base, node.slice[0].slice)) is not None:
        return gathered
    reading = read(lifter, base, node.slice, lifter.mask if looks_up(lifter, node) else None)
    if reading.count > base.count:
        lifter.bases[base.text] += 1
    return _result(lifter, base, reading)


def cuts(node: cst.Subscript) -> bool:
    """Whether a subscript is one that lists and dicts do not take: several indices, a slice among them."""
    return len(node.slice) > 1 and any(isinstance(element.slice, cst.Slice) for element in node.slice)


def _own_element(lifter: Lifter, base: Lifted, elements: Sequence[cst.SubscriptElement]) -> Lifted:
    """A tensor that the loop fills, read where this iteration writes it."""
    reading = read(lifter, base, elements)
    lifter.accesses.append(Access(base.text, reading.dims, lifter.context, reads=True))
    lifter.bases[base.text] += 1
    return _result(lifter, base, reading)


def read(lifter: Lifter, base: Lifted, elements: Sequence[cst.SubscriptElement], chosen: str | None = None) -> Reading:
    """What `base[elements]` is for all iterations, or for the chosen ones."""
    places = dict(zip(base.axes, range(base.count)))
    reading = Reading([":"] * base.count, places, position=base.count, slots=dict(places), chosen=chosen)
    for place, element in enumerate(elements):
        _read_element(lifter, base, reading, element.slice, len(elements) - place - 1)
    lifter.tensors.learn_least(base.rank, reading.consumed)
    if reading.rest is not None:
        behind = reading.position - reading.rest
        for axis, position in reading.places.items():
            if position >= reading.rest:
                reading.places[axis] = position - reading.rest - behind
    return reading


def _read_element(lifter: Lifter, base: Lifted, reading: Reading, index: cst.BaseSlice, left: int) -> None:
    if isinstance(index, cst.Slice):
        _read_slice(lifter, reading, index)
        return
    assert isinstance(index, cst.Index)
    value = index.value
    if isinstance(value, cst.Ellipsis):
        reading.entries.append("...")
        reading.rest = reading.position
        return
    if is_name(value, "None"):
        reading.entries.append("None")
        reading.position += 1
        reading.added += 1
        return
    stepped = loop_index(lifter, value)
    if stepped is not None:
        _read_axis(lifter, base, reading, *stepped, left)
        return
    if lifter.varies(value):
        _read_places(lifter, reading, value)
        return
    fixed = lifter.invariant(value)
    if not fixed.number:
        known = lifter.model.value(value).kind
        if known in (Kind.TENSOR, Kind.LIST, Kind.TUPLE, Kind.ARRAY, Kind.STRING):
            raise RefusedError(f"`{fixed.text}` selects several elements")
        lifter.doubt(f"`{fixed.text}` is not known to be an integer")
    reading.entries.append(fixed.text)
    reading.consumed += 1
    reading.dropped += 1


def _read_slice(lifter: Lifter, reading: Reading, index: cst.Slice) -> None:
    parts = [part for part in (index.lower, index.upper, index.step) if part is not None]
    if any(lifter.varies(part) for part in parts):
        raise RefusedError("a slice moves with the loop")
    for part in parts:
        lifter.invariant(part)
    reading.entries.append(lifter.code(index).strip() if parts else ":")
    reading.position += 1
    reading.consumed += 1


def _read_axis(lifter: Lifter, base: Lifted, reading: Reading, axis: Axis, shift: int, left: int) -> None:
    if reading.rest is None:
        dimension = base.dimension(reading.consumed)
    else:
        dimension = base.dimension(-1 - left) if base.skipped == 0 or base.rank.known is not None else None
    if (axis.start + shift, dimension) == (0, (axis.stop.key, axis.stop.offset + shift)):
        reading.whole.add(axis)
    if axis in reading.places:
        _read_again(lifter, reading, axis, _all_indices(lifter, reading, axis, shift))
        return
    reading.slots[axis] = len(reading.entries)
    reading.entries.append(covered(lifter, axis, shift, dimension))
    reading.places[axis] = reading.position
    reading.dims[axis] = (reading.consumed if reading.rest is None else -1 - left, shift)
    reading.position += 1
    reading.consumed += 1
    reading.dropped += 1


def _read_places(lifter: Lifter, reading: Reading, value: cst.BaseExpression) -> None:
    """An index that a tensor holds: `label[i]` for every i is all of `label`."""
    if lifter.mask != reading.chosen or lifter.for_all_rows:
        raise RefusedError(f"`{lifter.code(value)}` may be no place in the rows that the condition leaves out")
    picked = _indices(lifter, value)
    if picked.rank.known != 0 or picked.count != 1:
        raise RefusedError(f"`{lifter.code(value)}` is not known to be one index")
    (axis,) = picked.axes
    reading.exact = reading.exact and picked.exact
    reading.lists[len(reading.entries)] = picked
    if axis in reading.places:
        _read_again(lifter, reading, axis, picked.text)
    else:
        reading.entries.append(picked.text)
        reading.places[axis] = reading.position
        reading.slots[axis] = len(reading.entries) - 1
        reading.position += 1
        reading.consumed += 1
        reading.dropped += 1
    reading.picked.add(axis)
    lifter.operations.add("gather")


def _read_again(lifter: Lifter, reading: Reading, axis: Axis, entry: str) -> None:
    """A second dimension that the same loop runs over: of both, the places have to be listed."""
    slot = reading.slots[axis]
    between = reading.entries[slot + 1 :]
    if reading.rest is not None or reading.added or any(other in between for other in (":", "...")):
        if reading.places[axis] != 0 or len(reading.places) > 1 or reading.rest is not None or reading.added:
            raise RefusedError("one index is used for two dimensions")
    elif any(reading.slots[other] > slot for other in reading.slots):
        raise RefusedError("one index is used for two dimensions")
    if axis not in reading.picked:
        shift = reading.dims[axis][1] if axis in reading.dims else -axis.start
        reading.entries[slot] = _all_indices(lifter, reading, axis, shift)
        reading.picked.add(axis)
    reading.entries.append(entry)
    reading.consumed += 1
    reading.dropped += 1


def _all_indices(lifter: Lifter, reading: Reading, axis: Axis, shift: int) -> str:
    """A loop's index in all iterations that it is read in, as a tensor."""
    if reading.chosen is not None:
        return _chosen_indices(lifter, reading, reading.chosen, axis, shift)
    arange = spelling.spelled(lifter.model, "torch.arange", lifter.place)
    first = axis.start + shift
    if arange is None or first < 0 or not (axis.stop.natural or axis.counted):
        raise RefusedError("one index is used for two dimensions")
    stop = axis.stop.spelled(shift)
    return f"{arange}({stop})[{first}:]" if first else f"{arange}({stop})"


def _chosen_indices(lifter: Lifter, reading: Reading, chosen: str, axis: Axis, shift: int) -> str:
    """A loop's index in the iterations that a mask chooses; the mask itself where it is as long as the dimension."""
    if axis in reading.whole:
        return chosen
    where = spelling.spelled(lifter.model, "torch.where", lifter.place)
    if where is None or shift or axis.start:
        raise RefusedError("one index is used for two dimensions")
    return f"{where}({chosen})[0]"


def _indices(lifter: Lifter, value: cst.BaseExpression) -> Lifted:
    """A tensor of places. One byte or a truth value would choose among all places instead."""
    picked = lifter.lift(value)
    if picked.counts:
        return counting.places(picked)
    picked = lifter.certain(picked, value)
    if picked.dtype.category not in ("int", None):
        raise RefusedError(f"`{lifter.code(value)}` is not known to hold indices")
    if picked.dtype.token in ("int64", "torch.int32"):
        return picked
    lifter.cautions.add("bytes and truth values are taken for places")
    return picked.but(text=f"{picked.atom}.long()", level=ATOM, exact=False)


def covered(lifter: Lifter, axis: Axis, shift: int, dimension: Dimension | None) -> str:
    """The slice of a dimension that the loop runs over, where its index is used with `shift` added."""
    first, stop = axis.start + shift, axis.stop
    if first < 0:
        raise RefusedError("the first index is negative and wraps around")
    low = str(first) if first else ""
    if dimension is not None and dimension[0] == stop.key:
        axis.whole = True
        axis.counted = axis.counted or stop.offset >= dimension[1]
        behind = stop.offset + shift - dimension[1]
        if behind > 0:
            raise RefusedError("the last index is out of range")
        if behind == 0:
            return f"{low}:"
        return f"{low}:{behind}" if stop.key is not None else f"{low}:{stop.offset + shift}"
    axis.cut = True
    high = stop.spelled(shift)
    may_be_small = stop.offset + shift < 0 or (stop.key is not None and shift < 0)
    if lifter.guarded and (may_be_small or not (stop.natural or axis.counted)):
        high, axis.guarded = f"max({high}, {first})", True
    elif may_be_small:
        lifter.doubt(f"`{stop.text}` may be too small")
    return f"{low}: {high}" if not (high.isidentifier() or high.isdigit()) else f"{low}:{high}"


def loop_index(lifter: Lifter, node: cst.BaseExpression) -> tuple[Axis, int] | None:
    """(loop, c) of its index `i`, of `i + c` and of `i - c`."""
    if isinstance(node, cst.Name):
        axis = lifter.axes.get(node.value)
        if axis is not None and axis not in lifter.context:
            raise RefusedError(f"the index `{node.value}` is used after its loop")
        return (axis, 0) if axis is not None else None
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, (cst.Add, cst.Subtract)):
        return None
    left, right = node.left, node.right
    if isinstance(node.operator, cst.Add) and isinstance(left, cst.Integer):
        left, right = right, left
    if not isinstance(left, cst.Name) or not isinstance(right, cst.Integer):
        return None
    found = loop_index(lifter, left)
    if found is None:
        return None
    step = int(right.value, 0)
    return found[0], step if isinstance(node.operator, cst.Add) else -step


MOVED = re.compile(r"(?P<tensor>.+)\.movedim\((?P<dim>-?\d+), 0\)")
"""What `moved` makes of a tensor for one loop."""


def moved(places: dict[Axis, int], *, back: bool = False) -> str:
    """`.movedim(...)` that brings the loops' axes to the front in their order, or back; empty if not needed."""
    axes = sorted(places, key=lambda axis: axis.depth)
    pairs = [(places[axis], front) for front, axis in enumerate(axes) if places[axis] != front]
    if not pairs:
        return ""
    if pairs[0][1] != len(axes) - 1:
        pairs = [(places[axis], front) for front, axis in enumerate(axes)]
    sources, targets = [place for place, _ in pairs], [front for _, front in pairs]
    if back:
        sources, targets = targets, sources
    if len(pairs) == 1:
        return f".movedim({sources[0]}, {targets[0]})"
    return f".movedim(({', '.join(map(str, sources))}), ({', '.join(map(str, targets))}))"


def _result(lifter: Lifter, base: Lifted, reading: Reading) -> Lifted:
    text = reading.text(base.atom)
    level = base.level if text == base.text else ATOM
    move, unmoved = moved(reading.places), None
    if move and reading.count == 1 and reading.rest is None:
        whole = text if text != base.text else base.atom
        unmoved = Unmoved(whole + move, next(iter(reading.places.values())), whole)
    if move:
        text, level = (text if text != base.text else base.atom) + move, ATOM
    plain = reading.rest is None and not reading.added and reading.dropped == reading.consumed
    rank = base.rank.plus(reading.added - reading.dropped)
    return Lifted(
        text,
        level,
        reading.axes,
        lifter.tensors.settled(rank),
        base.dtype,
        tensor=base.tensor,
        claim=base.claim,
        shares=base.shares and not reading.picked,
        exact=base.exact and reading.exact,
        shape=base.shape if plain and not reading.picked else None,
        skipped=base.skipped + reading.consumed,
        unmoved=unmoved,
    )


def _member(lifter: Lifter, base: Lifted, node: cst.Subscript) -> Lifted:
    """`[0]` or `[1]` of (values, indices)."""
    index = node.slice[0].slice
    which = index.value.value if isinstance(index, cst.Index) and isinstance(index.value, cst.Integer) else None
    if len(node.slice) == 1 and which in ("0", "1"):
        return lifter.part(base, base.members[int(which)])
    raise RefusedError("a pair of values and indices is cut up")


def looks_up(lifter: Lifter, node: cst.Subscript) -> bool:
    """`table[places[i]]`, `table[i, places[i]]`: of the rows that a condition chooses, only the places of these are
    looked up."""
    return not lifter.varies(node.value) and any(_is_place(lifter, element.slice) for element in node.slice)


def _is_place(lifter: Lifter, index: cst.BaseSlice) -> bool:
    """Whether an index is another in each iteration, and not the loop's own."""
    return isinstance(index, cst.Index) and lifter.varies(index.value) and loop_index(lifter, index.value) is None


def _gathered(lifter: Lifter, base: Lifted, index: cst.BaseSlice) -> Lifted | None:
    """`x[order[i]]`: rows picked by a tensor of indices."""
    if base.axes or not isinstance(index, cst.Index) or not _is_place(lifter, index):
        return None
    if lifter.for_all_rows:
        raise RefusedError(f"`{lifter.code(index.value)}` may be no place in the rows that the condition leaves out")
    picked = _indices(lifter, index.value)
    lifter.tensors.learn_least(base.rank, 1)
    lifter.operations.add("gather")
    lifter.bases[base.text] += 1
    return Lifted(
        f"{base.atom}[{picked.text}]",
        ATOM,
        picked.axes,
        lifter.tensors.settled(base.rank.plus(-1)) if picked.rank.known == 0 else lifter.some_rank(),
        base.dtype,
        exact=base.exact and picked.exact,
    )
