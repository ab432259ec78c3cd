"""How an operation batches: found by calling it on a stack of inputs and comparing with the stack of its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tools.torch_api.observe import Observation, attempt
from tools.torch_api.samples import Sample

_COPIES = (1.0, 0.9, 0.75)


def _plain(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _close(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor) or a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.dtype.is_floating_point and not a.dtype.is_complex:
        return torch.equal(a, b)
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


def _elementwise(function: Callable[..., Any], sample: Sample, out: torch.Tensor) -> bool | None:
    """Whether every element of the result comes from the elements at its place, and from no others."""
    if any(isinstance(value, torch.Tensor) for value in sample.keywords.values()):
        return None
    given = [value for value in sample.arguments if isinstance(value, torch.Tensor)]
    try:
        wide = iter(torch.broadcast_tensors(*given))
    except RuntimeError:
        return False
    spread = [next(wide) if isinstance(value, torch.Tensor) else value for value in sample.arguments]
    shape = spread[0].shape
    if out.shape != shape:
        return False
    if out.numel() < 3:
        return None
    flat = [value.reshape(-1) if isinstance(value, torch.Tensor) else value for value in spread]
    for part in (slice(None), slice(0, 1), slice(1, 3)):
        cut = tuple(value[part].clone() if isinstance(value, torch.Tensor) else value for value in flat)
        alone = attempt(function, Sample(sample.dtype, cut, sample.keywords))
        if isinstance(alone, Exception):  # such as a layout that one dimension cannot have
            return None
        if not _close(alone, out.reshape(-1)[part]):
            return False
    return True


def _names_places(sample: Sample) -> bool:
    """Whether an argument counts dimensions from the front, or spells out sizes."""

    def counts(value: Any) -> bool:
        if isinstance(value, bool):
            return False
        return (isinstance(value, int) and value >= 0) or (isinstance(value, (tuple, list)) and any(map(counts, value)))

    return any(counts(value) for value in (*sample.arguments[1:], *sample.keywords.values()))


def _stacked(function: Callable[..., Any], sample: Sample) -> tuple[torch.Tensor, torch.Tensor] | None:
    """A stack of first inputs, and the stack of their results."""
    first, *rest = sample.arguments
    if first.dtype.is_floating_point or first.dtype.is_complex:
        copies = [first * factor for factor in _COPIES]
    else:
        copies = [first.clone(), first.flip(0) if first.dim() else first.clone()]
    results = [attempt(function, Sample(sample.dtype, (copy, *rest), sample.keywords)) for copy in copies]
    if not all(isinstance(result, torch.Tensor) for result in results):
        return None
    if len({(result.shape, result.dtype) for result in results}) > 1:
        return None
    return torch.stack(copies), torch.stack(results)


def _over_rows(function: Callable[..., Any], sample: Sample) -> str | None:
    made = _stacked(function, sample)
    if made is None:
        return None
    stack, expected = made
    rest = sample.arguments[1:]
    only_first = not any(isinstance(value, torch.Tensor) for value in (*rest, *sample.keywords.values()))
    if only_first and not _names_places(sample):
        whole = Sample(sample.dtype, (stack, *rest), sample.keywords)
        if _close(attempt(function, whole), expected):
            return "native"

    def mapped(row: torch.Tensor) -> Any:
        return function(row, *rest, **sample.keywords)

    lifted = attempt(torch.vmap(mapped, randomness="error"), Sample(sample.dtype, (stack,), {}))
    return "vmap" if _close(lifted, expected) else "no"


def batch(function: Callable[..., Any], every: Sequence[Observation], may_lift: bool) -> str:
    """`elementwise`, `native` (over leading dimensions), `vmap`, `no`; empty where it was not found out."""
    elementwise: list[bool] = []
    rows: list[str] = []
    for made in every:
        sample = Sample(made.sample.dtype, tuple(map(_plain, made.sample.arguments)), made.sample.keywords)
        if not isinstance(made.result, torch.Tensor) or not isinstance(sample.arguments[0], torch.Tensor):
            return ""
        if made.result.layout is not torch.strided or sample.arguments[0].layout is not torch.strided:
            return ""
        if not sample.arguments[0].numel():
            continue
        alone = _elementwise(function, sample, made.result.detach())
        if alone is not None:
            elementwise.append(alone)
        if may_lift and (lifted := _over_rows(function, sample)) is not None:
            rows.append(lifted)
    if elementwise and all(elementwise):
        return "elementwise"
    if not rows:
        return ""
    return "no" if "no" in rows else "vmap" if "vmap" in rows else "native"
