"""A stored call, made anew for every version and every precision it is replayed in."""

from __future__ import annotations

import contextlib
import io
import pickle
import random
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from ..boot.torchlint_probe.double import Double, longer
from .version import FunctionError, Version


@dataclass(frozen=True)
class Reading:
    """How to make the tensors: `double` turns floating point into float64, `disturb` then changes each number by up to
    one unit in its last place (0: not, otherwise a seed)."""

    double: bool = False
    disturb: int = 0


@dataclass
class Loaded:
    """`intermediates`: by its id, a tensor that was computed with gradients, and the leaf that gets its gradient."""

    positional: list[Any]
    keywords: dict[str, Any]
    state: dict[str, Any]
    intermediates: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """`data` is what the probe stored, `module` the name that the function's module had there."""

    data: bytes
    module: str
    label: str
    is_finite: bool = True

    def load(self, version: Version, fallback: Version, reading: Reading) -> Loaded:
        """Fresh arguments whose classes are those of `version`, or where it lacks them of `fallback`.

        Raises FunctionError where they cannot be made here.
        """
        reader = _Reader(self.module, version, fallback, reading)
        try:
            state = torch.load(io.BytesIO(self.data), pickle_module=reader.module(), weights_only=False)
        except Exception as error:
            hint = "; move it out of the script into a module" if "__main__" in str(error) else ""
            raise FunctionError(f"{self.label} cannot be read: {type(error).__name__}: {error}{hint}") from error
        positional, keywords = state.pop("arguments")
        return Loaded(list(positional), keywords, state, reader.intermediates)


class _Reader:
    def __init__(self, module: str, version: Version, fallback: Version, reading: Reading) -> None:
        self.home = module
        self.version = version
        self.fallback = fallback
        self.reading = reading
        self.intermediates: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.storages: dict[int, tuple[Any, Any]] = {}
        self.generator = torch.Generator().manual_seed(reading.disturb)

    def module(self) -> types.ModuleType:
        reader = self

        class Unpickler(pickle.Unpickler):
            def find_class(self, module: str, name: str) -> Any:
                return reader.find(module, name) or super().find_class(module, name)

        made = types.ModuleType("pickle")
        made.__dict__.update(vars(pickle), Unpickler=Unpickler)
        return made

    def find(self, module: str, name: str) -> Any:
        """None for what a plain pickle would find."""
        if name == "intermediate" and module.endswith("recording"):
            return self.intermediate
        if name == "_rebuild_tensor_v2" and self.reading.double:
            return self.rebuild
        if module == self.home:
            for version in (self.version, self.fallback):
                found: Any = version.module
                for part in name.split("."):
                    found = getattr(found, part, None)
                if found is not None:
                    return found
        return None

    def intermediate(self, tensor: torch.Tensor) -> torch.Tensor:
        """Not a leaf, so that it may be written to, on the same storage as whatever shared it."""
        leaf = torch.zeros_like(tensor, requires_grad=True)
        with torch.enable_grad():
            made: torch.Tensor = _Intermediate.apply(leaf, tensor)  # type: ignore[no-untyped-call]
        self.intermediates[id(made)] = made, leaf
        return made

    def rebuild(
        self, storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool, hooks: Any, metadata: Any = None
    ) -> torch.Tensor:
        """What torch's own function does, on a storage of float64."""
        dtype = longer(storage.dtype)
        if dtype not in (torch.float64, torch.complex128):
            plain: Any = torch._utils._rebuild_tensor_v2
            made: torch.Tensor = plain(storage, offset, size, stride, requires_grad, hooks, metadata)
            return made
        key = storage._untyped_storage._cdata
        if key not in self.storages:
            self.storages[key] = storage, self._double(storage, dtype)
        doubled = self.storages[key][1].untyped_storage()
        tensor = torch.empty(0, dtype=dtype, device=storage.device).set_(doubled, offset, size, stride)
        return tensor.requires_grad_(requires_grad)

    def _double(self, storage: Any, dtype: torch.dtype) -> torch.Tensor:
        flat = torch.empty(0, dtype=storage.dtype, device=storage.device).set_(storage._untyped_storage).to(dtype)
        if self.reading.disturb:
            noise = torch.rand(flat.shape, generator=self.generator, dtype=torch.float64).to(flat.device)
            flat.mul_(1 + torch.finfo(torch.float64).eps * (2 * noise - 1))
        return flat


class _Intermediate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, leaf: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
        made = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        return made.set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return gradients[0], None


INTERMEDIATE = f"{_Intermediate.__name__}Backward"


@contextlib.contextmanager
def modes(state: dict[str, Any], reading: Reading) -> Iterator[None]:
    """The call's random numbers, gradient mode, autocast and default dtype; put back in the end."""
    before, dtype = torch.get_rng_state(), torch.get_default_dtype()
    kept = random.getstate()
    with contextlib.ExitStack() as stack:
        stack.callback(torch.set_default_dtype, dtype)
        stack.callback(torch.set_rng_state, before)
        stack.callback(random.setstate, kept)
        _set_random(state["random"])
        torch.set_default_dtype(torch.float64 if reading.double else state["default_dtype"])
        stack.enter_context(torch.set_grad_enabled(state["grad"]))
        if state["inference"]:
            stack.enter_context(torch.inference_mode())
        if reading.double:
            stack.enter_context(Double())
        else:
            for device in (name for name, (enabled, _) in state["autocast"].items() if enabled):
                stack.enter_context(torch.autocast(device, state["autocast"][device][1]))
        yield


def _set_random(states: dict[str, Any]) -> None:
    torch.set_rng_state(states["torch"])
    random.setstate(states["python"])
    if "numpy" in states:
        import numpy

        numpy.random.set_state(states["numpy"])
    if "cuda" in states:
        torch.cuda.set_rng_state_all(states["cuda"])
