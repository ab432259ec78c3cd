"""Runs a function before and after a fix on the same inputs, and says where the two differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Shapes = Mapping[str, Sequence[str]]
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-9, torch.complex64: 2e-4, torch.complex128: 1e-9}


@dataclass(frozen=True)
class Case:
    """One way to call a function: the length of each named dimension, a dtype, a seed."""

    sizes: dict[str, int]
    dtype: torch.dtype

    def inputs(self, shapes: Shapes) -> list[torch.Tensor]:
        torch.manual_seed(7)
        found = []
        for dims in shapes.values():
            shape = [self.sizes[dim] for dim in dims]
            if self.dtype.is_floating_point or self.dtype.is_complex:
                found.append(torch.randn(shape, dtype=self.dtype, requires_grad=True))
            else:
                found.append(torch.randint(-5, 6, shape, dtype=self.dtype))
        return found

    @property
    def is_empty(self) -> bool:
        return 0 in self.sizes.values()


def difference(before: str, after: str, shapes: Shapes, case: Case, *, exact: bool = False) -> str | None:
    """What differs between `f` of the two texts: result, type, shape, gradients; None if nothing does.

    A call that raises before is no measure. Of an empty batch only the values count, and an error may become one.
    """
    old, old_inputs = _called(before, shapes, case)
    new, new_inputs = _called(after, shapes, case)
    if isinstance(old, Exception):
        return None
    if isinstance(new, Exception):
        return f"raises {new!r}"
    if case.is_empty and (not isinstance(old, torch.Tensor) or old.dtype != new.dtype):
        same = _close(torch.as_tensor(old).double(), torch.as_tensor(new).double())
        return None if same else f"{old} became {new} for an empty batch"
    if old.dtype != new.dtype or old.shape != new.shape:
        return f"{old.dtype} {tuple(old.shape)} became {new.dtype} {tuple(new.shape)}"
    if exact and not _equal(old, new):
        return f"{old} is not bit for bit {new}"
    if not _close(old, new):
        return f"{old} became {new}"
    if old.requires_grad and not new.requires_grad:
        return "the graph is lost"
    if old.requires_grad and not case.is_empty:
        return _gradients_differ(old, new, old_inputs, new_inputs, exact)
    return None


def _called(code: str, shapes: Shapes, case: Case) -> tuple[Any, list[torch.Tensor]]:
    space: dict[str, Any] = {"SIZES": case.sizes}
    exec(compile(code, "<generated>", "exec"), space)
    function: Callable[..., Any] = space["f"]
    inputs = case.inputs(shapes)
    try:
        return function(*inputs), inputs
    except Exception as error:
        return error, inputs


def _gradients_differ(
    old: torch.Tensor, new: torch.Tensor, old_inputs: list[torch.Tensor], new_inputs: list[torch.Tensor], exact: bool
) -> str | None:
    weights = torch.arange(1, old.numel() + 1, dtype=torch.float32).reshape(old.shape).to(old.dtype)
    try:
        first = torch.autograd.grad((old * weights).sum().abs(), old_inputs, allow_unused=True)
    except RuntimeError:
        return None
    second = torch.autograd.grad((new * weights).sum().abs(), new_inputs, allow_unused=True)
    for place, (one, other) in enumerate(zip(first, second)):
        one, other = _or_zero(one, old_inputs[place]), _or_zero(other, old_inputs[place])
        if not (_equal(one, other) if exact else _close(one, other)):
            return f"the gradient of input {place} {one} became {other}"
    return None


def _or_zero(gradient: torch.Tensor | None, of: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(of) if gradient is None else gradient


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.dtype not in TOLERANCE:
        return torch.equal(one, other)
    one, other = torch.broadcast_tensors(one, other)
    limit = TOLERANCE[one.dtype]
    return torch.allclose(one, other, rtol=limit, atol=limit, equal_nan=True)
