"""What a training run computed: its losses, its parameters in the end, and where its random streams stand."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import pickle
import random
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import _disable_current_modes

from .graph import live_roots, walk

if TYPE_CHECKING:
    from .cuda import Synchronisations
    from .settings import Settings

_CHUNK = 1 << 20
_KEPT_OPTIMIZERS = 8
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Results:
    def __init__(self, settings: Settings, synchronisations: Synchronisations) -> None:
        self.perturb = settings.perturb
        self.synchronisations = synchronisations
        self.number = 0
        self.losses: list[tuple[int, float]] = []
        self.gradients: list[tuple[int, list[float | None]]] = []
        self.optimizers: list[torch.optim.Optimizer] = []
        self.perturbed: set[int] = set()

    @contextlib.contextmanager
    def unobserved(self) -> Iterator[None]:
        with _disable_current_modes(), self.synchronisations.deaf(), torch.no_grad():
            yield

    @contextlib.contextmanager
    def backward(self, tensors: Any) -> Iterator[None]:
        """Each root of a backward pass: its value, or its norm where it is more than one number."""
        with self.unobserved():
            for root in (tensors,) if isinstance(tensors, torch.Tensor) else tensors:
                value = root.detach().to(torch.float64) if not root.is_complex() else root.detach().abs()
                self.losses.append((self.number + 1, float(value.sum() if value.numel() == 1 else value.norm())))
        yield

    def steps(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to step: the norm of each of its gradients, null where a parameter has none."""
        if not any(known is optimizer for known in self.optimizers):
            self.optimizers = [*self.optimizers[1 - _KEPT_OPTIMIZERS :], optimizer]
        with self.unobserved():
            norms = [
                None if parameter.grad is None else _norm(parameter.grad) for parameter in _parameters([optimizer])
            ]
        self.gradients.append((self.number + 1, norms))

    def created(self, optimizer: torch.optim.Optimizer) -> None:
        """Disturb the initial parameters in their last place: how far rounding alone carries this program."""
        if not self.perturb:
            return
        generator = torch.Generator().manual_seed(1)
        with self.unobserved():
            for parameter in _parameters([optimizer]):
                if id(parameter) in self.perturbed or is_lazy(parameter) or not parameter.is_floating_point():
                    continue
                self.perturbed.add(id(parameter))
                noise = torch.rand(parameter.shape, generator=generator) * 2 - 1
                scale = torch.finfo(parameter.dtype).eps * self.perturb
                parameter.mul_(1 + scale * noise.to(parameter.device, torch.float64))

    def step(self, number: int) -> dict[str, float]:
        if number == 1:
            self.losses = [(1, value) for _, value in self.losses]
            self.gradients = [(1, norms) for _, norms in self.gradients]
        self.number = number
        return {}

    def result(self) -> dict[str, Any]:
        with self.unobserved():
            names = _names()
            parameters = [
                {"name": names.get(id(parameter), ""), **signature(parameter)}
                for parameter in _parameters(self.optimizers)
            ]
        return {
            "losses": self.losses,
            "gradients": self.gradients,
            "parameters": parameters,
            "random": random_states(),
        }


def _parameters(optimizers: list[torch.optim.Optimizer]) -> Iterator[torch.Tensor]:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            yield from group["params"]


def _names() -> dict[int, str]:
    """What the modules call their parameters, by identity; an optimizer knows no names."""
    modules = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.nn.Module)]
    inner = {id(child) for module in modules for child in module.__dict__.get("_modules", {}).values()}
    names: dict[int, str] = {}
    for module in modules:
        if id(module) not in inner and "_parameters" in module.__dict__:
            names.update((id(parameter), name) for name, parameter in module.named_parameters())
    return names


def _norm(tensor: torch.Tensor) -> float:
    values = tensor.detach()
    values = values.coalesce().values() if values.layout is torch.sparse_coo else values
    return float(torch.linalg.vector_norm(values, dtype=torch.complex128 if values.is_complex() else torch.float64))


def signature(tensor: torch.Tensor) -> dict[str, Any]:
    """A checksum of the bits, and two numbers that tell how far two versions are apart."""
    flat = tensor.detach().to("cpu").contiguous().view(-1)
    flat = torch.view_as_real(flat).view(-1) if flat.is_complex() else flat
    generator = torch.Generator().manual_seed(0)
    length = min(_CHUNK, flat.numel())
    direction = torch.randn(length, generator=generator, dtype=torch.float64)
    weights = torch.randint(-(2**62), 2**62, (length,), generator=generator) | 1
    bits, square, projection = 0, 0.0, 0.0
    for number, chunk in enumerate(flat.split(_CHUNK) if length else ()):
        raw = chunk.view(_BITS[chunk.element_size()]).to(torch.int64)
        bits = (bits * 31 + int((raw * weights[: len(chunk)]).sum()) + number) % 2**64
        values = chunk.to(torch.float64)
        square += float(values @ values)
        projection += float(values @ direction[: len(chunk)])
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).replace("torch.", ""),
        "bits": f"{bits:016x}",
        "norm": square**0.5,
        "projection": projection,
    }


def random_states() -> dict[str, str]:
    states: dict[str, Any] = {"torch": torch.get_rng_state().tolist(), "python": random.getstate()}
    if "numpy" in sys.modules:
        states["numpy"] = sys.modules["numpy"].random.get_state()
    if torch.cuda.is_initialized():
        states["cuda"] = [state.tolist() for state in torch.cuda.get_rng_state_all()]
    return {name: hashlib.sha256(pickle.dumps(state)).hexdigest()[:16] for name, state in states.items()}


class Census:
    """Autograd nodes reachable from live tensors, at steps whose distance doubles: a graph that is kept grows.

    It knows nothing of allocators and counts the same in every run, so it decides about leaks where bytes cannot.
    """

    def __init__(self, settings: Settings, results: Results) -> None:
        first = settings.warmup + 1
        self.due = {settings.steps, *(first + (1 << power) - 1 for power in range(16))}
        self.results = results

    def step(self, number: int) -> dict[str, float]:
        if number not in self.due:
            return {}
        with self.results.unobserved():
            return {"graph_nodes": sum(1 for _ in walk(live_roots(), set()))}

    def result(self) -> dict[str, Any]:
        return {}
