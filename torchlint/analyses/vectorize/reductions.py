"""Reductions: of a whole row, or along a dimension of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize import alignment, layout
from torchlint.analyses.vectorize.operation import Operation
from torchlint.analyses.vectorize.shapes import ATOM, BOOL, INT64, SCALAR, SUM, DType, Lifted, Missing, RefusedError
from torchlint.analyses.vectorize.vocabulary import PAIRS, REDUCTIONS, ROW_LOSSES

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter

_OPTIONS = ("unbiased", "correction")


def reduction(lifter: Lifter, operation: Operation) -> Lifted:
    """`x[i].sum()`, `torch.mean(x[i], dim=0)`: the row's own dimensions go, those of the loops stay."""
    dim = operation.argument("dim", 1)
    if operation.name in PAIRS and dim is not None:
        return pair(lifter, operation)
    if len(operation.operands) > 2 or not operation.only("dim", "keepdim", *_OPTIONS):
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    if dim is None:
        lifter.reduced = operation.operands[0]
    operand = lifter.tensor(operation.operands[0])
    lifter.operations.add("reduction")
    options = [f"{name}={lifter.one_line(operation.keywords[name])}" for name in _OPTIONS if name in operation.keywords]
    dtype = _dtype(operation.name, operand.dtype)
    if dim is None or lifter.code(dim) == "None":
        if "keepdim" in operation.keywords:
            raise RefusedError(f"`{operation.code}` with keepdim and no dim has no batched form")
        return _whole(operand, REDUCTIONS[operation.name], options, dtype)
    return _some(lifter, operation, operand, dim, options, dtype)


def _whole(operand: Lifted, name: str, options: list[str], dtype: DType) -> Lifted:
    dims = "-1"
    if operand.rank.known == 2 and name in ("sum", "mean", "amax", "amin", "std", "var"):
        dims = "(-2, -1)"
    else:
        operand = layout.flat(operand)
    text = f"{operand.atom}.{name}({', '.join([dims, *options])})"
    return Lifted(text, ATOM, operand.axes, SCALAR, dtype, exact=False)


def _some(
    lifter: Lifter, operation: Operation, operand: Lifted, dim: cst.BaseExpression, options: list[str], dtype: DType
) -> Lifted:
    dims = [dim]
    if isinstance(dim, (cst.Tuple, cst.List)):
        dims = [element.value for element in dim.elements]
    places = [layout.shifted(lifter, operand, layout.integer(lifter, part)) for part in dims]
    keep = operation.keywords.get("keepdim")
    kept = keep is not None and _flag(lifter, keep)
    spelled = f"({', '.join(map(str, places))})" if len(places) > 1 else str(places[0])
    rest = [spelled, *options, *(["keepdim=True"] if kept else [])]
    rank = operand.rank if kept else operand.rank.plus(-len(places))
    text = operation.called(operation.name, [operand], *rest)
    return Lifted(text, ATOM, operand.axes, rank, dtype, exact=False)


def _flag(lifter: Lifter, node: cst.BaseExpression) -> bool:
    text = lifter.code(node)
    if text not in ("True", "False"):
        raise RefusedError("whether a dimension is kept is not in sight")
    return text == "True"


def _dtype(name: str, dtype: DType) -> DType:
    if name in ("sum", "prod", "nansum"):
        return dtype.sum()
    if name in ("argmax", "argmin", "count_nonzero"):
        return INT64
    if name in ("std", "var"):
        return dtype.real()
    if name in ("all", "any"):
        return BOOL
    return dtype if dtype.inexact or name != "mean" else DType(dtype.token, "inexact")


def pair(lifter: Lifter, operation: Operation) -> Lifted:
    """Values and indices along a dimension."""
    operand = lifter.tensor(operation.operands[0])
    counted = operation.name in ("topk", "kthvalue")
    dim = operation.argument("dim", 2 if counted else 1)
    if (dim is None and operation.name not in ("sort", "topk", "median", "mode", "kthvalue")) or (
        dim is None and operation.name == "median"
    ):
        raise RefusedError(f"`{operation.code}` without `dim` has no batched form")
    allowed = ("dim", "descending", "largest", "sorted") + (("k",) if counted else ("keepdim",))
    if not operation.only(*allowed) or len(operation.operands) > (3 if counted else 2):
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    place = layout.shifted(lifter, operand, -1 if dim is None else layout.integer(lifter, dim))
    rest = [lifter.one_line(operation.operands[1])] if counted and len(operation.operands) > 1 else []
    rest.append(f"dim={place}")
    rest += [f"{name}={lifter.one_line(value)}" for name, value in operation.keywords.items() if name != "dim"]
    if any(lifter.varies(value) for value in (*operation.operands[1:], *operation.keywords.values())):
        raise RefusedError(f"`{operation.code}` depends on the iteration")
    lifter.operations.add("reduction")
    keep = operation.keywords.get("keepdim")
    stays = operation.name in ("sort", "topk", "cummax", "cummin") or (keep is not None and _flag(lifter, keep))
    return operand.but(
        text=operation.called(operation.name, [operand], *rest),
        level=ATOM,
        rank=operand.rank if stays else operand.rank.plus(-1),
        shares=False,
        pair=True,
        ordered=operation.name in ("max", "min"),
        shape=None,
        exact=False,
    )


def _norm(lifter: Lifter, operation: Operation) -> Lifted:
    """`x.norm()`, `x.norm(p)`, `x.norm(dim=k)`; of torch.linalg too, as long as it is a vector norm."""
    operand = lifter.tensor(operation.operands[0])
    order = operation.argument("ord" if operation.name.startswith("linalg.") else "p", 1)
    dim = operation.argument("dim", 2)
    if not operation.only("p", "ord", "dim", "keepdim"):
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    p = None if order is None else lifter.code(order)
    if p is not None and not (isinstance(order, cst.BaseNumber) or p in ("None", "'fro'", '"fro"')):
        raise RefusedError(f"`{operation.code}` of order `{p}` has no batched form")
    lifter.operations.add("reduction")
    shown = [f"p={p}"] if isinstance(order, cst.BaseNumber) else []
    dtype = operand.dtype.real() if operand.dtype.category else DType(operand.dtype.token, "inexact").real()
    if dim is None:
        if operation.name == "linalg.norm" and shown and operand.rank.known != 1:
            raise RefusedError(f"`{operation.code}` of this order may be a matrix norm")
        if "keepdim" in operation.keywords:
            raise RefusedError(f"`{operation.code}` with keepdim and no dim has no batched form")
        text = f"{layout.flat(operand).atom}.norm({', '.join([*shown, 'dim=-1'])})"
        return Lifted(text, ATOM, operand.axes, SCALAR, dtype, exact=False)
    place = layout.shifted(lifter, operand, layout.integer(lifter, dim))
    kept = "keepdim" in operation.keywords and _flag(lifter, operation.keywords["keepdim"])
    rest = [*shown, f"dim={place}", *(["keepdim=True"] if kept else [])]
    text = f"{operand.atom}.norm({', '.join(rest)})"
    return Lifted(text, ATOM, operand.axes, operand.rank if kept else operand.rank.plus(-1), dtype, exact=False)


def _loss(lifter: Lifter, operation: Operation) -> Lifted:
    """`F.mse_loss(x[i], y[i])` and `F.l1_loss`: one number for each row."""
    if len(operation.operands) != 2 or not operation.only("reduction"):
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    how = operation.keywords.get("reduction")
    mode = "mean" if how is None else lifter.code(how).strip("\"'")
    if mode not in ("mean", "sum"):
        raise RefusedError(f"`{operation.code}` with reduction {mode} has no batched form")
    operands = [lifter.tensor(operand) for operand in operation.operands]
    together = alignment.broadcast(lifter, operands)
    first, second = together.texts(SUM, SUM + 1)
    # torch expands both before it subtracts, so that each of them counts, with dimensions or without
    all_count = all(operand.axes or operand.rank.least > 0 for operand in operands)
    dtype = alignment.promoted(lifter, operands, all_count=all_count)
    if dtype.category is None:
        dtype = DType(dtype.token, "inexact")
    power = "square" if operation.name == "mse_loss" else "abs"
    difference, _ = together.result(f"({first} - {second})", ATOM)
    errors = Lifted(f"{difference}.{power}()", ATOM, together.axes, together.rank, dtype)
    lifter.operations.add("reduction")
    return _whole(errors, mode, [], dtype)


def _row_loss(lifter: Lifter, operation: Operation) -> Lifted:
    """A loss that is a mean over the targets of a row, as many as count. Of all rows it is another mean."""
    rest = [*operation.operands[2:], *operation.keywords.values()]
    mode = lifter.code(operation.keywords["reduction"]).strip("\"'") if "reduction" in operation.keywords else "mean"
    if len(operation.operands) < 2 or mode not in ("mean", "sum") or any(lifter.varies(other) for other in rest):
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    before = dict(lifter.doubts)
    operands = [lifter.tensor(operand) for operand in operation.operands[:2]]
    alignment.check_alike(lifter, operands, operation.code)
    lifter.operations.add("reduction")
    lifter.doubt("a mean over each row is not one over all of them", Missing.RANK)
    dtype = DType(operands[0].dtype.token, "float")
    losses = Lifted("losses", ATOM, alignment.union(operands), SCALAR, dtype, exact=False)
    return lifter.mapped(operation.node, losses, before)


def _normalize(lifter: Lifter, operation: Operation) -> Lifted:
    operand = lifter.tensor(operation.operands[0])
    dim = operation.argument("dim", 2)
    order = operation.argument("p", 1)
    if not operation.only("p", "dim", "eps") or len(operation.operands) > 3:
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    place = layout.shifted(lifter, operand, 1 if dim is None else layout.integer(lifter, dim))
    rest = [f"p={lifter.one_line(order)}"] if order is not None else []
    rest.append(f"dim={place}")
    if "eps" in operation.keywords:
        rest.append(f"eps={lifter.one_line(operation.keywords['eps'])}")
    lifter.operations.add("reduction")
    text = operation.called(operation.name, [operand], *rest)
    return operand.but(text=text, level=ATOM, shares=False, exact=False)


def _cosine(lifter: Lifter, operation: Operation) -> Lifted:
    if len(operation.operands) != 2 or not operation.only("dim", "eps"):
        raise RefusedError(f"`{operation.code}` with these arguments has no batched form")
    operands = [lifter.tensor(operand) for operand in operation.operands]
    together = alignment.broadcast(lifter, operands, in_front=True)
    dim = operation.keywords.get("dim")
    whole = Lifted("the rows", ATOM, together.axes, together.rank)
    place = layout.shifted(lifter, whole, 1 if dim is None else layout.integer(lifter, dim))
    rest = [f"dim={place}"]
    if "eps" in operation.keywords:
        rest.append(f"eps={lifter.one_line(operation.keywords['eps'])}")
    lifter.operations.add("reduction")
    text = operation.called(operation.name, list(together.operands), *rest)
    dtype = alignment.promoted(lifter, operands)
    return Lifted(text, ATOM, together.axes, together.rank.plus(-1), dtype, exact=False)


RULES: dict[str, Callable[[Lifter, Operation], Lifted]] = {
    "norm": _norm,
    "linalg.norm": _norm,
    "linalg.vector_norm": _norm,
    "mse_loss": _loss,
    "l1_loss": _loss,
    **dict.fromkeys(ROW_LOSSES, _row_loss),
    "normalize": _normalize,
    "cosine_similarity": _cosine,
}
