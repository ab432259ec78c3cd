"""Runs a function before and after a fix on the same inputs, and says where the two differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

Shapes = Mapping[str, Sequence[str]]
NO_INDICES: Mapping[str, str] = {}
PROGRESS = SimpleNamespace(tqdm=lambda rows: rows, trange=range)
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-9, torch.complex64: 2e-4, torch.complex128: 1e-9}


@dataclass(frozen=True)
class Case:
    """One way to call a function: the length of each named dimension, a dtype, that of every second tensor if it has
    another, whether gradients are asked for, and which places are among those along a dimension: from the end, counted
    back, too, or also one that marks a row without any, as -100 does."""

    sizes: dict[str, int]
    dtype: torch.dtype
    other: torch.dtype | None = None
    graph: bool = True
    places: str = "in order"  # from the end, marked

    def inputs(self, shapes: Shapes, indices: Mapping[str, str]) -> list[torch.Tensor]:
        """Of the tensors named in `indices`, places along a dimension."""
        torch.default_generator.manual_seed(7)  # that of all devices takes longer than most loops
        found = []
        for place, (name, dims) in enumerate(shapes.items()):
            shape = [self.sizes[dim] for dim in dims]
            dtype = self.other if self.other is not None and place % 2 else self.dtype
            if name in indices:
                found.append(self._places(max(self.sizes[indices[name]], 1), shape))
            elif dtype.is_floating_point or dtype.is_complex:
                found.append(torch.randn(shape, dtype=dtype, requires_grad=self.graph))
            else:
                found.append(torch.randint(-5, 6, shape, dtype=dtype))
        return found

    def _places(self, length: int, shape: list[int]) -> torch.Tensor:
        found = torch.randint(0 if self.places == "in order" else -length, length, shape)
        if self.places == "marked":
            found.view(-1)[1::3] = -100
        return found

    @property
    def is_empty(self) -> bool:
        return 0 in self.sizes.values()


def difference(
    before: str, after: str, shapes: Shapes, case: Case, *, indices: Mapping[str, str] = NO_INDICES, exact: bool = False
) -> str | None:
    """What differs between `f` of the two texts: result, type, shape, gradients, error; None if nothing does.

    Of an empty batch only the values count, and an error may become one; so may that of operands that differ in dtype.
    """
    old, old_inputs = called(before, shapes, case, indices)
    new, new_inputs = called(after, shapes, case, indices)
    if isinstance(old, Exception):
        lenient = case.is_empty or case.other is not None or (isinstance(new, torch.Tensor) and new.numel() == 0)
        return None if lenient or isinstance(new, Exception) else f"raises {old!r} no more"
    if isinstance(new, Exception):
        return f"raises {new!r}"
    if case.is_empty and (not isinstance(old, torch.Tensor) or old.dtype != new.dtype):
        same = _close(torch.as_tensor(old).double(), torch.as_tensor(new).double(), case)
        return None if same else f"{old} became {new} for an empty batch"
    if old.dtype != new.dtype or old.shape != new.shape:
        return f"{old.dtype} {tuple(old.shape)} became {new.dtype} {tuple(new.shape)}"
    if exact and not _equal(old, new):
        return f"{old} is not bit for bit {new}"
    if not _close(old, new, case):
        return f"{old} became {new}"
    if old.requires_grad and not new.requires_grad:
        return "the graph is lost"
    if old.requires_grad and not case.is_empty:
        return _gradients_differ(old, new, old_inputs, new_inputs, case, exact)
    return None


def called(code: str, shapes: Shapes, case: Case, indices: Mapping[str, str]) -> tuple[Any, list[torch.Tensor]]:
    """What `f` returns, or the error that it raises; and its arguments."""
    space: dict[str, Any] = {"SIZES": case.sizes, "tqdm": PROGRESS}
    exec(compile(code.replace("import tqdm\n", ""), "<generated>", "exec"), space)
    function: Callable[..., Any] = space["f"]
    inputs = case.inputs(shapes, indices)
    try:
        return function(*inputs), inputs
    except Exception as error:
        return error, inputs


def _gradients_differ(
    old: torch.Tensor,
    new: torch.Tensor,
    old_inputs: list[torch.Tensor],
    new_inputs: list[torch.Tensor],
    case: Case,
    exact: bool,
) -> str | None:
    weights = torch.arange(1, old.numel() + 1, dtype=torch.float32).reshape(old.shape).to(old.dtype)
    old_leaves, new_leaves = ([one for one in inputs if one.requires_grad] for inputs in (old_inputs, new_inputs))
    try:
        first = torch.autograd.grad((old * weights).sum().abs(), old_leaves, allow_unused=True)
    except RuntimeError:
        return None
    second = torch.autograd.grad((new * weights).sum().abs(), new_leaves, allow_unused=True)
    for place, (one, other) in enumerate(zip(first, second)):
        one, other = _or_zero(one, old_leaves[place]), _or_zero(other, old_leaves[place])
        if not (_equal(one, other) if exact else _close(one, other, case)):
            return f"the gradient of input {place} {one} became {other}"
    return None


def _or_zero(gradient: torch.Tensor | None, of: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(of) if gradient is None else gradient


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def _close(one: torch.Tensor, other: torch.Tensor, case: Case) -> bool:
    if one.dtype not in TOLERANCE:
        return torch.equal(one, other)
    one, other = torch.broadcast_tensors(one, other)
    limit = max(TOLERANCE.get(dtype, 0.0) for dtype in (one.dtype, case.dtype, case.other) if dtype is not None)
    return torch.allclose(one, other, rtol=limit, atol=limit, equal_nan=True)
