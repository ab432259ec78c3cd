"""torch.linalg, which batches over all dimensions but the last two."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torchlint.analyses.vectorize import alignment
from torchlint.analyses.vectorize.operation import Operation
from torchlint.analyses.vectorize.shapes import ATOM, UNKNOWN_DTYPE, Axis, DType, Lifted, RefusedError
from torchlint.analyses.vectorize.vocabulary import MATRIX_FUNCTIONS

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter


def matrix_function(lifter: Lifter, operation: Operation) -> Lifted:
    """A function of torch.linalg, which takes batches of matrices as it is."""
    operand = lifter.tensor(operation.operands[0])
    if any(lifter.varies(other) for other in (*operation.operands[1:], *operation.keywords.values())):
        raise RefusedError(f"`{operation.code}` depends on the iteration")
    lifter.tensors.learn_least(operand.rank, 2)
    if lifter.mask is not None and not operand.axes:
        lifter.fails_for_none(f"`{operation.code}` may fail")
    rest = [*map(lifter.one_line, operation.operands[1:])]
    rest += [f"{name}={lifter.one_line(value)}" for name, value in operation.keywords.items()]
    lifter.operations.add("linalg")
    return operand.but(
        text=operation.called(operation.name, [operand], *rest),
        level=ATOM,
        rank=operand.rank.plus(MATRIX_FUNCTIONS.get(operation.name, 2) - 2),
        shares=False,
        exact=False,
        shape=None,
    )


def _sign_and_logarithm(lifter: Lifter, operation: Operation) -> Lifted:
    """`slogdet`, of which only the members are tensors."""
    return matrix_function(lifter, operation).but(pair=True, members=("sign", "logabsdet"))


def _decomposition(lifter: Lifter, operation: Operation) -> Lifted:
    """What the matrices are made of, each by itself."""
    made = matrix_function(lifter, operation).but(pair=True, members=_DECOMPOSED[operation.name])
    name = operation.name.removeprefix("linalg.")
    lifter.cautions.add("the vectors of a decomposition may have other signs on a GPU")
    if name in ("eig", "eigh"):
        return made.but(dtype=DType(None, "complex") if name == "eig" else UNKNOWN_DTYPE)
    return made


def _solve(lifter: Lifter, operation: Operation) -> Lifted:
    """A right-hand side of vectors becomes one of matrices with one column: a batch of them would be read as one."""
    if len(operation.operands) != 2 or operation.keywords:
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    matrix, right = (lifter.tensor(operand) for operand in operation.operands)
    if matrix.rank.known != 2 or right.rank.known not in (1, 2) or not (matrix.axes and right.axes):
        lifter.doubt_rank(matrix, right)
    alignment.check_alike(lifter, [matrix, right], operation.code)
    axes = alignment.union([matrix, right])
    if lifter.mask is not None and not matrix.axes:
        lifter.fails_for_none(f"`{operation.code}` may fail")
    first = alignment.aligned(lifter, matrix, axes, matrix.rank)
    second = _with_all(alignment.aligned(lifter, right, axes, right.rank), axes)
    lifter.operations.add("linalg")
    if right.rank.known == 1:
        column = second.but(text=f"{second.atom}.unsqueeze(-1)", level=ATOM)
        text = f"{operation.called('solve', [first, column])}.squeeze(-1)"
    else:
        text = operation.called("solve", [first, second])
    return Lifted(text, ATOM, axes, right.rank, matrix.dtype, exact=False)


def _with_all(right: Lifted, axes: tuple[Axis, ...]) -> Lifted:
    """A right-hand side with as many batch dimensions as the matrices: with one less it is taken for vectors where the
    sizes allow it."""
    first = next((place for place, axis in enumerate(axes) if axis in right.axes), len(axes))
    if first == 0:
        return right
    return right.but(text=f"{right.atom}[{', '.join(['None'] * first)}]", level=ATOM, shape=None)


_DECOMPOSED = {
    "svd": ("U", "S", "V"),
    "linalg.svd": ("U", "S", "Vh"),
    "linalg.eig": ("eigenvalues", "eigenvectors"),
    "linalg.eigh": ("eigenvalues", "eigenvectors"),
    "qr": ("Q", "R"),
    "linalg.qr": ("Q", "R"),
}
RULES: dict[str, Callable[[Lifter, Operation], Lifted]] = {
    "linalg.solve": _solve,
    "linalg.slogdet": _sign_and_logarithm,
    "slogdet": _sign_and_logarithm,
    **dict.fromkeys(_DECOMPOSED, _decomposition),
}
