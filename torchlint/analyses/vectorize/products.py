"""Products of vectors and matrices: one per iteration becomes `@` over all of them, or einsum."""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_letters
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize import alignment
from torchlint.analyses.vectorize.operation import Operation
from torchlint.analyses.vectorize.shapes import (
    ATOM,
    PRODUCT,
    SCALAR,
    UNARY,
    DType,
    Lifted,
    Missing,
    Rank,
    RefusedError,
)

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter

# Ranks that a product accepts.
_STRICT = {"mm": (2, 2), "mv": (2, 1), "dot": (1, 1), "vdot": (1, 1), "bmm": (3, 3), "outer": (1, 1), "ger": (1, 1)}


def matmul(lifter: Lifter, left: Lifted, right: Lifted) -> Lifted:
    """`a @ b` for all iterations. Next to a matrix that no loop varies, the rank of the other does not matter."""
    for operand in (left, right):
        if operand.number or operand.pair or (operand.axes and not operand.tensor):
            raise RefusedError(f"`{operand.text}` is not known to be a tensor")
        lifter.tensors.learn_least(operand.rank, 1)
    alignment.check_alike(lifter, [left, right], "@")
    lifter.operations.add("matmul")
    ranks = (left.rank.known, right.rank.known)
    dtype = left.dtype if left.dtype.token is not None else right.dtype
    if not right.axes and right.rank.known in (1, 2):
        rank = left.rank if right.rank.known == 2 else left.rank.plus(-1)
        return _at(left, right, rank, dtype)
    if ranks == (1, 1):
        return _dot(lifter, left, right, dtype)
    if ranks == (2, 1):
        return _matrix_vector(lifter, left, right, dtype)
    if ranks == (1, 2):
        return _vector_matrix(lifter, left, right, dtype)
    if ranks == (2, 2) or (left.rank == right.rank and left.axes == right.axes and (left.rank.known or 0) > 2):
        return _at(*_aligned(lifter, left, right), left.rank, dtype)
    unknown = [operand for operand in (left, right) if operand.rank.known is None]
    if unknown:
        lifter.doubt_rank(*unknown)
    else:
        lifter.doubt("the operands are batches already", Missing.RANK)
    return _at(left, right, lifter.some_rank(), dtype)


def _at(left: Lifted, right: Lifted, rank: Rank, dtype: DType) -> Lifted:
    text = f"{left.within(PRODUCT)} @ {right.within(UNARY)}"
    return Lifted(text, PRODUCT, alignment.union([left, right]), rank, dtype, exact=False)


def _aligned(lifter: Lifter, left: Lifted, right: Lifted) -> tuple[Lifted, Lifted]:
    axes = alignment.union([left, right])
    return (
        alignment.aligned(lifter, left, axes, left.rank),
        alignment.aligned(lifter, right, axes, right.rank),
    )


def _dot(lifter: Lifter, left: Lifted, right: Lifted, dtype: DType) -> Lifted:
    if not left.axes:
        return _at(right, left, SCALAR, dtype)
    axes = alignment.union([left, right])
    if len(left.axes) == len(right.axes) == 1 and len(axes) == 2:  # of each row with each: no table of all products
        rows, columns = (left, right) if left.axes[0] == axes[0] else (right, left)
        return _at(rows, columns.but(text=f"{columns.atom}.T", level=ATOM), SCALAR, dtype)
    first, second = _aligned(lifter, left, right)
    text = f"({first.within(PRODUCT)} * {second.within(UNARY)}).sum(-1)"
    return Lifted(text, ATOM, alignment.union([left, right]), SCALAR, dtype, exact=False)


def _matrix_vector(lifter: Lifter, matrix: Lifted, vector: Lifted, dtype: DType) -> Lifted:
    if not matrix.axes:
        turned = matrix.but(text=f"{matrix.atom}.mT", level=ATOM)
        return _at(vector, turned, vector.rank, dtype)
    first, second = _aligned(lifter, matrix, vector)
    text = f"({first.within(PRODUCT)} @ {second.atom}.unsqueeze(-1)).squeeze(-1)"
    return Lifted(text, ATOM, alignment.union([matrix, vector]), vector.rank, dtype, exact=False)


def _vector_matrix(lifter: Lifter, vector: Lifted, matrix: Lifted, dtype: DType) -> Lifted:
    if not vector.axes:
        return _at(vector, matrix, vector.rank, dtype)
    first, second = _aligned(lifter, vector, matrix)
    text = f"({first.atom}.unsqueeze(-2) @ {second.within(UNARY)}).squeeze(-2)"
    return Lifted(text, ATOM, alignment.union([vector, matrix]), vector.rank, dtype, exact=False)


def _product(lifter: Lifter, operation: Operation) -> Lifted:
    """matmul, mm, mv, dot and bmm, as function or method."""
    if len(operation.operands) != 2 or operation.keywords:
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    operands = [lifter.lift(operand) for operand in operation.operands]
    for place, rank in enumerate(_STRICT.get(operation.name, ())):
        operands[place] = operand = lifter.of_rank(operands[place], rank)
        if operand.rank.known is not None and operand.rank.known != rank:
            raise RefusedError(f"`{operation.code}` does not take `{operand.text}`")
    left, right = operands
    if operation.name == "vdot":
        left = left.but(text=f"{left.atom}.conj()", level=ATOM)
    return matmul(lifter, left, right)


def _outer(lifter: Lifter, operation: Operation) -> Lifted:
    if len(operation.operands) != 2 or operation.keywords:
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    left, right = (lifter.of_rank(lifter.tensor(operand), 1) for operand in operation.operands)
    lifter.operations.add("matmul")
    first, second = _aligned(lifter, left, right)
    dtype = alignment.promoted(lifter, [left, right])
    text = f"{first.atom}.unsqueeze(-1) * {second.atom}.unsqueeze(-2)"
    return Lifted(text, PRODUCT, alignment.union([left, right]), Rank(2), dtype, exact=left.exact and right.exact)


def _linear(lifter: Lifter, operation: Operation) -> Lifted:
    """`F.linear(x[i], weight, bias)` takes any number of leading dimensions."""
    rest = [*operation.operands[1:], *operation.keywords.values()]
    if not rest or len(rest) > 2 or any(lifter.varies(other) for other in rest):
        raise RefusedError(f"`{operation.code}` with a weight of its own has no batched form")
    operand = lifter.tensor(operation.operands[0])
    weight = lifter.invariant(rest[0])
    if weight.rank.known == 1:
        raise RefusedError(f"`{operation.code}` with a vector has no batched form")
    lifter.tensors.learn_least(operand.rank, 1)
    alignment.check_alike(lifter, [operand, *map(lifter.invariant, rest)], operation.code)
    lifter.operations.add("matmul")
    spelled = [*map(lifter.one_line, operation.operands[1:])]
    spelled += [f"{name}={lifter.one_line(value)}" for name, value in operation.keywords.items()]
    return operand.but(
        text=operation.called("linear", [operand], *spelled), level=ATOM, shares=False, exact=False, shape=None
    )


def _einsum(lifter: Lifter, operation: Operation) -> Lifted:
    """A letter for each loop, in front of the operands that depend on it and of the result."""
    equation = operation.operands[0]
    if not isinstance(equation, cst.SimpleString) or operation.keywords or operation.function is None:
        raise RefusedError(f"`{operation.code}` with this equation has no batched form")
    inputs, output = _equation(str(equation.evaluated_value))
    operands = [lifter.tensor(operand) for operand in operation.operands[1:]]
    if len(inputs) != len(operands):
        raise RefusedError(f"`{operation.code}` with this equation has no batched form")
    alignment.check_alike(lifter, operands, operation.code)
    axes = alignment.union(operands)
    free = [letter for letter in ascii_letters if letter not in "".join(inputs)]
    letters = dict(zip(axes, free))
    parts = []
    for letters_in, operand in zip(inputs, operands):
        lifter.tensors.learn(operand.rank, len(letters_in))
        parts.append("".join(letters[axis] for axis in operand.axes) + letters_in)
    result = "".join(letters[axis] for axis in axes) + output
    lifter.operations.add("matmul")
    spelled = f"{equation.quote[:1]}{', '.join(parts)} -> {result}{equation.quote[:1]}"
    text = f"{operation.function}({', '.join([spelled, *(operand.text for operand in operands)])})"
    dtype = operands[0].dtype if all(operand.dtype == operands[0].dtype for operand in operands) else DType()
    return Lifted(text, ATOM, axes, Rank(len(output)), dtype, exact=False)


def _equation(text: str) -> tuple[list[str], str]:
    text = text.replace(" ", "")
    left, arrow, right = text.partition("->")
    letters = left.replace(",", "") + right
    if not letters.isalpha() or not letters.isascii():
        raise RefusedError("the equation of an einsum has no batched form")
    if not arrow:
        flat = left.replace(",", "")
        right = "".join(sorted(letter for letter in set(flat) if flat.count(letter) == 1))
    return left.split(","), right


RULES: dict[str, Callable[[Lifter, Operation], Lifted]] = {
    **dict.fromkeys(("matmul", "mm", "mv", "dot", "bmm", "vdot"), _product),
    "outer": _outer,
    "ger": _outer,
    "linear": _linear,
    "einsum": _einsum,
}
