"""Operations that move dimensions: the loops' axes stand in front, so what counts from the front is shifted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize.operation import Operation
from torchlint.analyses.vectorize.shapes import ATOM, SCALAR, DType, Lifted, Missing, Rank, RefusedError

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter

_VECTOR = Rank(1)


def integer(lifter: Lifter, node: cst.BaseExpression) -> int:
    """A dimension written as a number."""
    negative = isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus)
    inner = node.expression if isinstance(node, cst.UnaryOperation) and negative else node
    if not isinstance(inner, cst.Integer):
        raise RefusedError(f"the dimension `{lifter.code(node)}` is not a plain number")
    return -int(inner.value, 0) if negative else int(inner.value, 0)


def shifted(lifter: Lifter, operand: Lifted, dimension: int, *, new: bool = False) -> int:
    """Where a dimension of one iteration is in the batch. `new`: it is yet to be put in.

    A scalar lets dimension 0 and -1 pass, where the batch would be cut along its rows; so a scalar must be ruled out.
    """
    rank = operand.rank
    if new:
        return dimension if dimension < 0 else dimension + operand.count
    if rank.known is None:
        if dimension not in (0, -1):
            lifter.tensors.learn_least(rank, dimension + 1 if dimension >= 0 else -dimension)
        elif rank.least < 1:
            lifter.doubt_rank(operand)
        return dimension if dimension < 0 else dimension + operand.count
    if not -max(rank.known, 1) <= dimension < max(rank.known, 1) or rank.known == 0:
        raise RefusedError(f"`{operand.text}` has no dimension {dimension}")
    return dimension if dimension < 0 else dimension - rank.known


def size(lifter: Lifter, operand: Lifted, dimension: int) -> Lifted:
    """The length of one dimension, which is the same in all iterations."""
    lifter.tensors.learn_least(operand.rank, dimension + 1 if dimension >= 0 else -dimension)
    place = dimension if dimension < 0 else dimension + operand.count
    text = f"len({operand.text})" if place == 0 else f"{operand.atom}.shape[{place}]"
    return Lifted(text, ATOM, (), SCALAR, DType(None, "int"), tensor=False, number=True)


def flat(operand: Lifted) -> Lifted:
    """All dimensions of one iteration as one, whatever their number."""
    if operand.rank.known == 1:
        return operand
    steps = "" if operand.rank.least >= 1 else ".unsqueeze(-1)"
    if operand.rank.known != 0:
        steps += f".flatten({operand.count})"
    return operand.but(text=operand.atom + steps, level=ATOM, rank=_VECTOR, shape=None)


def attribute(lifter: Lifter, operand: Lifted, name: str) -> Lifted:
    """`.T`, `.mT` and the like, `.real`, `.data`."""
    if name in ("T", "H"):
        return _flipped(lifter, operand, "mT" if name == "T" else "mH", at_least=1 if name == "T" else 2)
    if name in ("mT", "mH"):
        lifter.tensors.learn_least(operand.rank, 2)
        return operand.but(text=f"{operand.atom}.{name}", level=ATOM, shape=None)
    if name in ("real", "imag", "data"):
        dtype = operand.dtype if name == "data" else operand.dtype.real()
        return operand.but(text=f"{operand.atom}.{name}", level=ATOM, dtype=dtype)
    raise RefusedError(f"`.{name}` has no batched form")


def _flipped(lifter: Lifter, operand: Lifted, batched: str, at_least: int) -> Lifted:
    """A transposition of what may be a vector (which it leaves alone) or a matrix."""
    if operand.rank.known == 1 and at_least == 1:
        return operand
    if operand.rank.known != 2:
        if at_least == 2:
            lifter.tensors.learn(operand.rank, 2)
        lifter.doubt_rank(operand)
    return operand.but(text=f"{operand.atom}.{batched}", level=ATOM, shape=None)


def _t(lifter: Lifter, operation: Operation) -> Lifted:
    return _flipped(lifter, _only_operand(lifter, operation), "mT", at_least=1)


def _only_operand(lifter: Lifter, operation: Operation) -> Lifted:
    if len(operation.operands) != 1 or operation.keywords:
        raise RefusedError(f"`{operation.code}` with arguments has no batched form")
    return lifter.tensor(operation.operands[0])


def _unsqueeze(lifter: Lifter, operation: Operation) -> Lifted:
    operand = lifter.tensor(operation.operands[0])
    dim = _dim(operation)
    place = shifted(lifter, operand, integer(lifter, dim), new=True)
    return operand.but(
        text=operation.called("unsqueeze", [operand], str(place)), level=ATOM, rank=operand.rank.plus(1), shape=None
    )


def _squeeze(lifter: Lifter, operation: Operation) -> Lifted:
    """Of a dimension that has size 1; of one that has not, squeeze does nothing, so its size must be in sight."""
    operand = lifter.tensor(operation.operands[0])
    dim = integer(lifter, _dim(operation))
    place = shifted(lifter, operand, dim)
    index = dim if dim >= 0 or operand.rank.known is None else dim + operand.rank.known
    if index < 0 or operand.dimension(index) != (None, 1):
        lifter.doubt(f"whether `{operation.code}` drops a dimension is not known", Missing.RANK)
    text = operation.called("squeeze", [operand], str(place))
    return operand.but(text=text, level=ATOM, rank=operand.rank.plus(-1), shape=None)


def _dim(operation: Operation) -> cst.BaseExpression:
    dim = operation.argument("dim", 1)
    if dim is None or not operation.only("dim") or len(operation.operands) > 2:
        raise RefusedError(f"`{operation.code}` without `dim` has no batched form")
    return dim


def _transpose(lifter: Lifter, operation: Operation) -> Lifted:
    operand = lifter.tensor(operation.operands[0])
    first, second = operation.argument("dim0", 1), operation.argument("dim1", 2)
    if first is None or second is None:
        raise RefusedError(f"`{operation.code}` without dimensions has no batched form")
    places = [str(shifted(lifter, operand, integer(lifter, dim))) for dim in (first, second)]
    return operand.but(text=operation.called(operation.name, [operand], *places), level=ATOM, shape=None)


def _permute(lifter: Lifter, operation: Operation) -> Lifted:
    operand = lifter.tensor(operation.operands[0])
    dims = list(operation.operands[1:])
    if len(dims) == 1 and isinstance(dims[0], (cst.Tuple, cst.List)):
        dims = [element.value for element in dims[0].elements]
    if not dims or operation.keywords:
        raise RefusedError(f"`{operation.code}` without dimensions has no batched form")
    lifter.tensors.learn(operand.rank, len(dims))
    front = [*range(operand.count)]
    rest = [integer(lifter, dim) for dim in dims]
    places = [*front, *(dim if dim < 0 else dim + operand.count for dim in rest)]
    order = ", ".join(map(str, places))
    text = f"{operand.atom}.permute({order})"
    return operand.but(text=text, level=ATOM, shape=None)


def _flatten(lifter: Lifter, operation: Operation) -> Lifted:
    """`flatten()`, `reshape(-1)`, `view(-1)`."""
    operand = lifter.tensor(operation.operands[0])
    sizes = [integer(lifter, size) for size in operation.operands[1:]]
    if operation.keywords or sizes != ([] if operation.name == "flatten" else [-1]):
        raise RefusedError(f"`{operation.code}` to another shape has no batched form")
    return flat(operand)


def _diagonal(lifter: Lifter, operation: Operation) -> Lifted:
    """`torch.diag` and `diagonal` of a matrix."""
    operand = _only_operand(lifter, operation)
    if operation.name == "trace":
        lifter.tensors.learn(operand.rank, 2)
    if operand.rank.known == 1 and operation.name == "diag":
        text = f"{operand.atom}.diag_embed()"
        return operand.but(text=text, level=ATOM, rank=operand.rank.plus(1), shares=False, shape=None)
    if operand.rank.known != 2:
        lifter.doubt_rank(operand)
    text = f"{operand.atom}.diagonal(dim1=-2, dim2=-1)"
    diagonal = operand.but(text=text, level=ATOM, rank=_VECTOR, shape=None)
    if operation.name != "trace":
        return diagonal
    lifter.operations.add("reduction")
    return diagonal.but(text=f"{text}.sum(-1)", rank=SCALAR, dtype=operand.dtype.sum(), shares=False, exact=False)


def _gather(lifter: Lifter, operation: Operation) -> Lifted:
    """Picked along a dimension: what has no row for each iteration is the same row for all."""
    dim, index = operation.argument("dim", 1), operation.argument("index", 2)
    if dim is None or index is None or not operation.only("dim", "index") or len(operation.operands) > 3:
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    place = integer(lifter, dim)
    operands = [lifter.tensor(operation.operands[0]), lifter.tensor(index)]
    axes = max((operand.axes for operand in operands), key=len)
    if len(axes) != 1 or lifter.mask is not None:
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    for operand in operands:
        if place not in (0, -1):  # which an element without dimensions has, too
            lifter.tensors.learn_least(operand.rank, place + 1 if place >= 0 else -place)
        elif operand.rank.least < 1:
            lifter.doubt_rank(operand)
    counted = next(operand for operand in operands if operand.axes)
    texts = [operand.text if operand.axes else _for_each(operand, counted) for operand in operands]
    if operation.function is None:
        texts[0] = texts[0] if operands[0].level == ATOM or not operands[0].axes else f"({texts[0]})"
    shifted_place = str(place + 1 if place >= 0 else place)
    parts = (texts[0], shifted_place, texts[1])
    called = (
        f"{operation.function}({', '.join(parts)})"
        if operation.function
        else f"{parts[0]}.gather({', '.join(parts[1:])})"
    )
    lifter.operations.add("gather")
    first = operands[0]
    return Lifted(
        called, ATOM, axes, lifter.tensors.settled(first.rank), first.dtype, exact=all(each.exact for each in operands)
    )


def _for_each(operand: Lifted, counted: Lifted) -> str:
    """An operand without rows, once for each of the rows of another."""
    if not operand.text.replace(".", "").isidentifier():
        raise RefusedError(f"`{operand.text}` would be spelled twice")
    (axis,) = counted.axes
    count = axis.stop.text if axis.start == 0 and axis.stop.natural else f"len({counted.text})"
    return f"{operand.text}.expand({count}, *{operand.text}.shape)"


RULES: dict[str, Callable[[Lifter, Operation], Lifted]] = {
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "transpose": _transpose,
    "swapaxes": _transpose,
    "t": _t,
    "permute": _permute,
    "flatten": _flatten,
    "reshape": _flatten,
    "view": _flatten,
    "diag": _diagonal,
    "diagonal": _diagonal,
    "trace": _diagonal,
    "gather": _gather,
}
