"""Bringing operands of one iteration together: loops they do not depend on, and dimensions they lack, become size 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchlint.analyses.vectorize.shapes import ATOM, SCALAR, UNKNOWN_DTYPE, Axis, DType, Lifted, Missing, Rank
from torchlint.edits import spelling

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter


@dataclass(frozen=True, slots=True)
class Together:
    """Operands that broadcast against each other in one iteration, so written that they do for all of them.

    `behind`: the loops' axes have been moved behind the others, and the result must have them in front again.
    """

    operands: tuple[Lifted, ...]
    axes: tuple[Axis, ...]
    rank: Rank
    behind: bool = False

    def texts(self, *levels: int) -> list[str]:
        return [operand.within(level) for operand, level in zip(self.operands, levels)]

    def result(self, text: str, level: int) -> tuple[str, int]:
        """The result of an operation on the operands, and how strongly its text binds."""
        if not self.behind:
            return text, level
        return f"{text if level == ATOM else f'({text})'}{to_back(len(self.axes), back=True)}", ATOM


def to_back(count: int, *, back: bool = False) -> str:
    """`.movedim(...)` that puts the first `count` dimensions behind the others, or back in front of them."""
    front, behind = list(range(count)), list(range(-count, 0))
    first, second = (behind, front) if back else (front, behind)
    if count == 1:
        return f".movedim({first[0]}, {second[0]})"
    return f".movedim(({', '.join(map(str, first))}), ({', '.join(map(str, second))}))"


def union(operands: Sequence[Lifted]) -> tuple[Axis, ...]:
    """The loops that any of the operands depends on, outermost first."""
    return tuple(sorted({axis for operand in operands for axis in operand.axes}, key=lambda axis: axis.depth))


def broadcast(lifter: Lifter, operands: Sequence[Lifted], *, in_front: bool = False) -> Together:
    """`in_front`: what is done with the operands counts their dimensions, so that the loops' axes stay in front."""
    axes = union(operands)
    lifter.scalars |= any(operand.axes and operand.rank.least == 0 for operand in operands)
    tensors = [operand for operand in operands if not operand.number]
    widest = _widest(tensors) if tensors else SCALAR
    if (
        lifter.guarded
        and not in_front
        and axes
        and all(one.tensor or one.axes for one in tensors)  # a number has no dimensions to put behind
        and (widest is None or any(difference(widest, one.rank) is None for one in tensors))
    ):
        return Together(tuple(_from_behind(operand, axes) for operand in operands), axes, lifter.some_rank(), True)
    if widest is None:
        lifter.doubt_rank(*(operand for operand in tensors if operand.rank.known is None))
    rank = widest or lifter.some_rank()
    return Together(tuple(aligned(lifter, operand, axes, rank) for operand in operands), axes, rank)


def aligned(lifter: Lifter, operand: Lifted, axes: tuple[Axis, ...], rank: Rank) -> Lifted:
    """The operand with dimensions of size 1 put in, so that it broadcasts over `axes` and `rank` dimensions."""
    if operand.number or not operand.axes:
        return operand
    missing = difference(rank, operand.rank)
    if missing is None:
        lifter.doubt_rank(operand)
        missing = 0
    entries = [":" if axis in operand.axes else "None" for axis in axes] + ["None"] * missing
    while entries[0] == "None":
        del entries[0]
    while entries and entries[-1] == ":":
        del entries[-1]
    lifter.spread = lifter.spread or len(operand.axes) < len(axes) or missing > 0
    if "None" not in entries:
        return operand
    return operand.but(text=f"{operand.atom}[{', '.join(entries)}]", level=ATOM, shape=None)


def spread(value: Lifted, places: Mapping[Axis, int], dimensions: int) -> Lifted:
    """A value of one element for each iteration, so written that it broadcasts over so many dimensions, of which the
    loops' axes are at these places."""
    at = {place % dimensions: axis for axis, place in places.items() if axis in value.axes}
    in_order = sorted(at)
    entries = [":" if place in at else "None" for place in range(in_order[0], dimensions)]
    axes = [at[place] for place in in_order]
    order = [value.axes.index(axis) for axis in axes]
    text = value.atom if order == sorted(order) else f"{value.atom}.permute({', '.join(map(str, order))})"
    if "None" not in entries:
        return value if text == value.atom else value.but(text=text, level=ATOM)
    while entries[-1] == ":":
        del entries[-1]
    return value.but(text=f"{text}[{', '.join(entries)}]", level=ATOM, shape=None)


def in_line(operands: Sequence[Lifted]) -> list[Lifted]:
    """Two operands of which only all elements count, whatever their dimensions: those of one that meets a number."""
    if not any(operand.rank == SCALAR and operand.axes for operand in operands):
        return list(operands)
    return [
        operand.but(text=f"{operand.atom}.flatten()", level=ATOM, rank=Rank(1), shape=None)
        if operand.rank.known is None and not operand.axes
        else operand
        for operand in operands
    ]


def promoted(lifter: Lifter, operands: Sequence[Lifted], *, quotient: bool = False, all_count: bool = False) -> DType:
    """The dtype of the operands together. A doubt where batching could change it.

    Torch promotes within a category only among tensors that have dimensions, and an element that was a scalar in one
    iteration is a vector in the batch. A quotient is a float of whatever integers.
    """
    tensors = [operand for operand in operands if not operand.number]
    dtypes = [_terms(operand.dtype) if quotient else operand.dtype for operand in tensors]
    strongest = next((one for one in dtypes if all(one.absorbs(other) for other in dtypes)), None)
    if strongest is None:
        if len(tensors) > 1 and not all_count and _changes_kind(tensors):
            reason = "the operands may differ in dtype, which counts for whole tensors and not for their elements"
            lifter.doubt(reason, Missing.DTYPE)
        return result_of(tensors) if len(tensors) == len(operands) and not quotient else UNKNOWN_DTYPE
    numbers = [operand.dtype.category for operand in operands if operand.number]
    if strongest.inexact or all(category in ("int", "bool") and strongest.category == "int" for category in numbers):
        return strongest if "complex" not in numbers or strongest.category == "complex" else UNKNOWN_DTYPE
    if not numbers:
        return strongest
    if strongest.category in ("int", "bool") and "float" in numbers:
        return DType("default", "float")
    return UNKNOWN_DTYPE


def check_alike(lifter: Lifter, operands: Sequence[Lifted], code: str) -> None:
    """Of operands that must have one dtype: where a condition holds for no row, no loop finds that they have not."""
    tokens = {operand.dtype.token for operand in operands}
    if lifter.mask is not None and (len(tokens) > 1 or None in tokens):
        lifter.fails_for_none(f"`{code}` takes operands of one dtype")


def cast_back(lifter: Lifter, operands: Sequence[Lifted]) -> tuple[list[Lifted], str | None]:
    """The dtype that a result has in one iteration, in code, where it may have another for whole tensors: elements that
    have no dimensions do not count beside tensors that have some. Operands may have to get a name for that."""
    tensors = [operand for operand in operands if not operand.number]
    same = list(operands), None
    if not lifter.guarded or len(tensors) != 2 or not _changes_kind(tensors):
        return same
    if any(one.dtype.absorbs(other.dtype) for one, other in (tensors, tensors[::-1])):
        return same
    result_type = spelling.spelled(lifter.model, "torch.result_type", lifter.place)
    if result_type is None or not all(_can_stand_for(lifter, operand) for operand in tensors):
        return same
    lifter.recast = True
    named, like = [], []
    for operand in operands:
        if not operand.number:
            operand, stand_in = _stand_in(lifter, operand)
            like.append(stand_in)
        named.append(operand)
    return named, f"{result_type}({', '.join(like)})"


def _can_stand_for(lifter: Lifter, operand: Lifted) -> bool:
    known = operand.dtype.token in lifter.dtypes and _is_scalar(operand.rank) is not None
    return operand.tensor and (known or lifter.may_name)


def _stand_in(lifter: Lifter, operand: Lifted) -> tuple[Lifted, str]:
    """The operand, which may get a name here, and a tensor of the dtype that it has in one iteration, with dimensions
    if it has some there."""
    scalar, name = _is_scalar(operand.rank), lifter.dtypes.get(operand.dtype.token or "")
    if name is not None and scalar is not None:
        return operand, f"{name}.new_empty({'()' if scalar else 0})"
    if not operand.text.isidentifier():
        name = lifter.unused("operand")
        operand = operand.but(text=f"({name} := {operand.text})", level=ATOM)
    else:
        name = operand.text
    if not operand.axes or scalar is False:
        return operand, name
    return operand, f"{name}.new_empty({'()' if scalar else f'{name}.shape[{operand.count}:]'})"


def result_of(operands: Sequence[Lifted]) -> DType:
    """The dtype of tensors together, of which nobody knows the strongest."""
    tokens = [operand.dtype.token for operand in operands]
    if None in tokens:
        return UNKNOWN_DTYPE
    scalars = [_is_scalar(operand.rank) for operand in operands]
    kinds = [
        f"{one.rank.base} + {one.rank.offset}" if scalar is None else scalar for one, scalar in zip(operands, scalars)
    ]
    categories = {operand.dtype.category for operand in operands}
    category = categories.pop() if len(categories) == 1 else None
    if category is None and all(operand.dtype.inexact for operand in operands):
        category = "inexact"
    return DType(f"result({', '.join(f'{token} {kind}' for token, kind in zip(tokens, kinds))})", category)


def _terms(dtype: DType) -> DType:
    """The dtype of the terms of a sum, which it keeps unless they are integers."""
    if dtype.token is not None and dtype.token.startswith("sum(") and dtype.category is None:
        return DType(dtype.token[len("sum(") : -1])
    return dtype


def _changes_kind(tensors: Sequence[Lifted]) -> bool:
    """Whether scalars and others meet in one iteration or in the batch, and not the same way in both."""
    before = [_is_scalar(operand.rank) for operand in tensors]
    after = [False if operand.axes else scalar for operand, scalar in zip(tensors, before)]
    if before == after and None not in before:
        return False
    alike = len(set(before)) == 1 and (None not in before or all(one.rank == tensors[0].rank for one in tensors))
    return not (alike and len(set(after)) == 1)


def _is_scalar(rank: Rank) -> bool | None:
    return False if rank.least > 0 else (rank.known == 0 if rank.known is not None else None)


def _from_behind(operand: Lifted, axes: tuple[Axis, ...]) -> Lifted:
    """An operand whose dimensions broadcast from the last on, whatever their number: the loops' axes follow."""
    if operand.number:
        return operand
    moved = operand.atom + (to_back(operand.count) if operand.axes else "")
    if operand.axes != axes:
        moved += f"[..., {', '.join(':' if axis in operand.axes else 'None' for axis in axes)}]"
    return operand.but(text=moved, level=ATOM, shape=None)


def _widest(operands: Sequence[Lifted]) -> Rank | None:
    return next((one.rank for one in operands if all(other.rank.at_most(one.rank) for other in operands)), None)


def difference(rank: Rank, other: Rank) -> int | None:
    """How many dimensions one has more than the other; None where nobody knows."""
    return rank.offset - other.offset if rank.base == other.base else None
