"""One call of one version, and all that came of it."""

from __future__ import annotations

import contextlib
import inspect
import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ..boot.torchlint_probe.state import random_states
from .call import INTERMEDIATE, Call, Loaded, Reading, modes
from .version import Version
from .walk import leaves

RESULT = "the result"


@dataclass(frozen=True)
class Outcome:
    """`values` are the result and, after the call, everything that the arguments lead to, by path; `gradients` of what
    was differentiable before the call, None where no gradient arrived; `shared` says whose memory the result uses."""

    error: str = ""
    message: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    gradients: Mapping[str, torch.Tensor | None] = field(default_factory=dict)
    random: Mapping[str, str] = field(default_factory=dict)
    shared: frozenset[tuple[str, str]] = frozenset()
    printed: str = ""


def replay(call: Call, version: Version, fallback: Version, reading: Reading) -> Outcome:
    """Call the function once with fresh arguments, and differentiate what it returns or wrote.

    Raises FunctionError where the arguments cannot be made.
    """
    printed = io.StringIO()
    with version.active(), warnings.catch_warnings(), contextlib.redirect_stdout(printed):
        warnings.simplefilter("ignore")
        loaded = call.load(version, fallback, reading)
        outcome = _called(version, loaded, reading)
    return replace(outcome, printed=printed.getvalue())


def _called(version: Version, loaded: Loaded, reading: Reading) -> Outcome:
    before = _arguments(loaded, version)
    sources = _differentiable(before, loaded)
    with modes(loaded.state, reading):
        try:
            result = version.function(*loaded.positional, **loaded.keywords)
        except Exception as error:
            return Outcome(type(error).__name__, str(error), random=random_states())
        random = random_states()
    values = {**leaves(result, RESULT), **_arguments(loaded, version)}
    try:
        gradients = _gradients(values, sources) if loaded.state["grad"] else {}
    except Exception as error:
        return Outcome(f"{type(error).__name__} in the backward pass", str(error), values, random=random)
    return Outcome("", "", values, gradients, random, _shared(values, before))


def _arguments(loaded: Loaded, version: Version) -> dict[str, Any]:
    """Everything reachable from the arguments, under the names of the parameters."""
    code = inspect.unwrap(version.function).__code__
    names = code.co_varnames[: code.co_argcount]
    found: dict[str, Any] = {}
    for number, value in enumerate(loaded.positional):
        found.update(leaves(value, names[number] if number < len(names) else f"argument {number}"))
    for name, value in loaded.keywords.items():
        found.update(leaves(value, name))
    return found


def _differentiable(values: Mapping[str, Any], loaded: Loaded) -> dict[str, torch.Tensor]:
    """Leaves that want a gradient, by path."""
    found = {}
    for path, value in values.items():
        if isinstance(value, torch.Tensor) and value.requires_grad:
            leaf = loaded.intermediates[id(value)][1] if id(value) in loaded.intermediates else value
            if leaf.is_leaf:
                found[path] = leaf
    return found


def _gradients(values: Mapping[str, Any], sources: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor | None]:
    """Of all that was returned or written to, under fixed random cotangents that depend on place and shape alone."""
    generator = torch.Generator().manual_seed(0)
    roots, cotangents = [], []
    for path, value in values.items():
        if isinstance(value, torch.Tensor) and value.grad_fn is not None and not _is_untouched(path, value):
            cotangent = torch.randn(value.shape, generator=generator, dtype=torch.float64)
            roots.append(value)
            cotangents.append(cotangent.to(value.device, value.dtype))
    if not roots or not sources:
        return {}
    made = torch.autograd.grad(roots, [*sources.values()], cotangents, allow_unused=True)
    return dict(zip(sources, made, strict=True))


def _is_untouched(path: str, value: torch.Tensor) -> bool:
    """An argument that came with gradients and was not written to."""
    return not path.startswith(RESULT) and value.grad_fn is not None and value.grad_fn.name() == INTERMEDIATE


def _shared(values: Mapping[str, Any], before: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Which tensors of the result lie in the memory of which argument."""
    places: dict[int, str] = {}
    for path, value in before.items():
        if isinstance(value, torch.Tensor) and value.numel():
            places.setdefault(value.untyped_storage().data_ptr(), path)
    results = ((p, v) for p, v in values.items() if p.startswith(RESULT) and isinstance(v, torch.Tensor))
    pairs = ((path, places.get(value.untyped_storage().data_ptr(), "")) for path, value in results if value.numel())
    return frozenset(pair for pair in pairs if pair[1])
