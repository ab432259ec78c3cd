"""The table of batching rules: from an operation of one iteration to the one of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torchlint.analyses.vectorize import alignment, counting, layout, matrices, products, reductions, stacking
from torchlint.analyses.vectorize.dtypes import cast
from torchlint.analyses.vectorize.operation import Operation
from torchlint.analyses.vectorize.shapes import ATOM, BOOL, INT64, UNKNOWN_DTYPE, DType, Lifted, RefusedError
from torchlint.analyses.vectorize.vocabulary import (
    ALONG,
    BROADCASTING,
    CASTS,
    COMPARES,
    DIVIDES,
    EXACT,
    KEEPS_DTYPE,
    MAKES_BOOL,
    MAKES_INEXACT,
    MATRIX_FUNCTIONS,
    MOVES,
    PAIRS,
    POINTWISE,
    PRODUCTS,
    REDUCTIONS,
    ROUNDED_ALIKE_IF_REAL,
    ROW_LOSSES,
    TRAILING,
)

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter

Rule = Callable[["Lifter", Operation], Lifted]


def apply(lifter: Lifter, operation: Operation) -> Lifted:
    """The operation on whole tensors, by the table of batching rules."""
    rule = _RULES.get(operation.name)
    if rule is None or not operation.operands:
        raise RefusedError(f"`{operation.code}` may do anything")
    if operation.proves_tensor:
        for operand in operation.operands[: 2 if operation.name in PRODUCTS | ROW_LOSSES else 1]:
            claim = lifter.claim(operand)
            if claim is not None:
                lifter.tensors.learn_tensor(claim)
    return rule(lifter, operation)


def _pointwise(lifter: Lifter, operation: Operation) -> Lifted:
    """One tensor, element by element; the other arguments are numbers."""
    first = lifter.tensor(operation.operands[0])
    for other in (*operation.operands[1:], *operation.keywords.values()):
        if not lifter.lift(other).number and lifter.code(other) not in ("None", "True", "False"):
            raise RefusedError(f"`{operation.code}` with `{lifter.code(other)}` has no batched form")
    if operation.name not in ("clone", "detach", "contiguous"):
        lifter.operations.add("pointwise")
    return first.but(
        text=operation.called(operation.name, [first], *_rest(lifter, operation)),
        level=ATOM,
        dtype=_pointwise_dtype(operation.name, first.dtype),
        shares=first.shares and operation.name in ("detach", "contiguous", "conj", "resolve_conj"),
        exact=first.exact and _is_exact(operation.name, first.dtype),
    )


def _is_exact(name: str, dtype: DType) -> bool:
    return name in EXACT and (name not in ROUNDED_ALIKE_IF_REAL or dtype.is_real)


def _pointwise_dtype(name: str, dtype: DType) -> DType:
    if name in KEEPS_DTYPE:
        return dtype
    if name in MAKES_INEXACT:
        return dtype.inexact_result()
    return BOOL if name in MAKES_BOOL else dtype.real()


def _conversion(lifter: Lifter, operation: Operation) -> Lifted:
    """Another dtype or device. The arguments do not depend on the iteration."""
    first = lifter.tensor(operation.operands[0])
    if any(lifter.varies(other) for other in (*operation.operands[1:], *operation.keywords.values())):
        raise RefusedError(f"`{operation.code}` depends on the iteration")
    dtype = cast(operation.name) if operation.name in CASTS else first.dtype
    if operation.name in ("to", "type_as"):
        dtype = UNKNOWN_DTYPE
    text = operation.called(operation.name, [first], *_rest(lifter, operation))
    return first.but(text=text, level=ATOM, dtype=dtype or UNKNOWN_DTYPE)


def _broadcasting(lifter: Lifter, operation: Operation) -> Lifted:
    """Two or three operands, element by element."""
    if any(not lifter.invariant(value).number for value in operation.keywords.values()):
        raise RefusedError(f"`{operation.code}` with keywords has no batched form")
    operands = [lifter.lift(operand) for operand in operation.operands]
    operands = counting.beside(lifter, operands, compares=operation.name in COMPARES)
    if len(operands) != (3 if operation.name in ("where", "lerp") else 2):
        raise RefusedError(f"`{operation.code}` with these operands has no batched form")
    if any(operand.pair or not (operand.tensor or operand.number or not operand.axes) for operand in operands):
        raise RefusedError(f"`{operation.code}` takes more than tensors")
    if operation.name == "lerp":
        alignment.check_alike(lifter, operands, operation.code)
    operands, dtype, cast = _result_dtype(lifter, operation, operands)
    together = alignment.broadcast(lifter, operands)
    lifter.operations.add("pointwise")
    text, level = together.result(
        operation.called(operation.name, list(together.operands), *_keywords(lifter, operation)), ATOM
    )
    return Lifted(
        f"{text}.to({cast})" if cast is not None else text,
        level,
        together.axes,
        together.rank,
        dtype,
        exact=_is_exact(operation.name, dtype) and all(operand.exact for operand in operands),
    )


def _result_dtype(
    lifter: Lifter, operation: Operation, operands: list[Lifted]
) -> tuple[list[Lifted], DType, str | None]:
    """The operands, the dtype of the result, and how it is spelled where the result has to be cast to it."""
    if operation.name in COMPARES:
        return operands, BOOL, None
    places = list(range(len(operands)))
    if operation.name == "where":
        del places[0 if operation.function is not None else 1]
    values = [operands[place] for place in places]
    if operation.name != "copysign" and (operation.name not in DIVIDES or all(value.dtype.inexact for value in values)):
        named, cast = alignment.cast_back(lifter, values)
        if cast is not None:
            renamed = dict(zip(places, named))
            operands = [renamed.get(place, operand) for place, operand in enumerate(operands)]
            return operands, alignment.result_of(values), cast
    dtype = alignment.promoted(lifter, values)
    return operands, dtype.inexact_result() if operation.name in DIVIDES else dtype, None


def _along(lifter: Lifter, operation: Operation) -> Lifted:
    """Along one dimension, which stays."""
    first = lifter.tensor(operation.operands[0])
    dim = operation.argument("dim", ALONG[operation.name])
    if dim is None or not operation.only("dim", "descending") or len(operation.operands) > 2:
        raise RefusedError(f"`{operation.code}` without `dim` has no batched form")
    shifted = layout.shifted(lifter, first, layout.integer(lifter, dim))
    rest = [f"dim={shifted}", *_keywords(lifter, operation, without="dim")]
    if operation.name == "flip":
        rest = [f"({shifted},)"]
    if operation.name == "argsort":
        lifter.doubt("which of equal elements comes first is not defined")
    lifter.operations.add("reduction")
    return first.but(
        text=operation.called(operation.name, [first], *rest),
        level=ATOM,
        dtype=INT64
        if operation.name == "argsort"
        else first.dtype.sum()
        if operation.name in ("cumsum", "cumprod")
        else first.dtype,
        shares=False,
        exact=False,
    )


def _trailing(lifter: Lifter, operation: Operation) -> Lifted:
    """Along the last dimensions. The other arguments are the same in every iteration."""
    first = lifter.tensor(operation.operands[0])
    others = [*operation.operands[1:], *operation.keywords.values()]
    if any(lifter.varies(other) for other in others) or len(operation.operands) > 2:
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    if not operation.only("dim", "n", "norm", "normalized_shape", "pad", "value", "weight", "bias", "eps", "p", "ord"):
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    second = lifter.invariant(operation.operands[1]) if len(operation.operands) == 2 else None
    if second is not None and second.tensor and operation.name not in ("layer_norm", "pad"):
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    weights = [lifter.invariant(operation.keywords[name]) for name in ("weight", "bias") if name in operation.keywords]
    alignment.check_alike(lifter, [first, *weights], operation.code)
    dims, change = TRAILING[operation.name]
    lifter.tensors.learn_least(first.rank, dims)
    rest = [lifter.one_line(other) for other in operation.operands[1:]]
    dim = operation.keywords.get("dim")
    if dim is not None:
        rest.append(f"dim={layout.shifted(lifter, first, layout.integer(lifter, dim))}")
    lifter.operations.add("reduction")
    if operation.name.startswith("fft."):
        lifter.fails_for_none(f"`{operation.code}` takes no empty batch")
    return first.but(
        text=operation.called(operation.name, [first], *rest, *_keywords(lifter, operation, without="dim")),
        level=ATOM,
        rank=first.rank.plus(change),
        dtype=_trailing_dtype(operation.name, first.dtype),
        shares=False,
        exact=False,
        shape=None,
    )


def _trailing_dtype(name: str, dtype: DType) -> DType:
    if name in ("fft.irfft", "fft.hfft", "fft.irfft2", "linalg.cond", "linalg.matrix_norm"):
        return dtype.real() if dtype.inexact and dtype.category != "inexact" else UNKNOWN_DTYPE
    if name.startswith("fft.") or name == "linalg.eigvals":
        return DType(None, "complex")
    return dtype if dtype.inexact else UNKNOWN_DTYPE


def _keywords(lifter: Lifter, operation: Operation, without: str = "") -> list[str]:
    return [f"{name}={lifter.one_line(value)}" for name, value in operation.keywords.items() if name != without]


def _rest(lifter: Lifter, operation: Operation) -> list[str]:
    return [*map(lifter.one_line, operation.operands[1:]), *_keywords(lifter, operation)]


_RULES: dict[str, Rule] = {
    **dict.fromkeys(POINTWISE, _pointwise),
    **dict.fromkeys(CASTS | MOVES, _conversion),
    **dict.fromkeys(BROADCASTING, _broadcasting),
    **dict.fromkeys(ALONG, _along),
    **dict.fromkeys(REDUCTIONS, reductions.reduction),
    **dict.fromkeys(PAIRS - set(REDUCTIONS), reductions.pair),
    **dict.fromkeys(MATRIX_FUNCTIONS, matrices.matrix_function),
    **dict.fromkeys(TRAILING, _trailing),
    **layout.RULES,
    **reductions.RULES,
    **matrices.RULES,
    **products.RULES,
    **stacking.RULES,
}
