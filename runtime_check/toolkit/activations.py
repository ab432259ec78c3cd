"""What the forward pass keeps for the backward pass, module by module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .live import storage_of
from .subject import failing, tensors_in

OUTSIDE = "(outside of the model's modules)"


@dataclass(frozen=True, slots=True)
class ModuleActivations:
    """Bytes that the forward pass of one module, without those inside it, was the first to save."""

    name: str
    kind: str
    bytes: int
    tensors: int
    calls: int


@dataclass(frozen=True, slots=True)
class Activations:
    """`bytes` is the sum over `modules`. Parameters, buffers and the batch are alive anyway and not in it;
    `batch_bytes` is how much of the batch the backward pass needs."""

    bytes: int
    batch_bytes: int
    modules: tuple[ModuleActivations, ...]


def measure(model: nn.Module, run: Callable[[], Any], batch: Any = ()) -> Activations:
    """Call `run`, a forward pass of `model` on `batch`, and count what autograd saves. Each storage counts once,
    however many views and modules save it, for the module that saved it first. Exact, on every device."""
    recorder = _Recorder(model, batch)
    with recorder.recording(), failing("the forward pass fails"):
        result = run()
    del result
    return recorder.activations()


class _Recorder:
    def __init__(self, model: nn.Module, batch: Any) -> None:
        self.model = model
        self.existing = {_key(tensor) for tensor in (*model.parameters(), *model.buffers())}
        self.batch = {_key(tensor) for tensor in tensors_in(batch)}
        self.kinds = {name: type(module).__name__ for name, module in model.named_modules()}
        self.running: list[str] = []
        self.kept: list[Any] = []  # storages: as long as they are held, no two have the same key
        self.seen: set[int] = set()
        self.bytes: Counter[str] = Counter()
        self.tensors: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.batch_bytes = 0

    @contextmanager
    def recording(self) -> Iterator[None]:
        with ExitStack() as stack:
            for name, module in self.model.named_modules():
                stack.callback(module.register_forward_pre_hook(self._entering(name)).remove)
                stack.callback(module.register_forward_hook(self._left, always_call=True).remove)
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(self._save, lambda tensor: tensor))
            yield

    def _entering(self, name: str) -> Callable[..., None]:
        def enter(module: nn.Module, arguments: Any) -> None:
            self.running.append(name)
            self.calls[name] += 1

        return enter

    def _left(self, module: nn.Module, arguments: Any, output: Any) -> None:
        self.running.pop()

    def _save(self, tensor: torch.Tensor) -> torch.Tensor:
        key, storage = _key(tensor), storage_of(tensor)
        if storage is None or key in self.existing or key in self.seen:
            return tensor
        self.seen.add(key)
        self.kept.append(storage)
        if key in self.batch:
            self.batch_bytes += storage.nbytes()
        else:
            name = self.running[-1] if self.running else OUTSIDE
            self.bytes[name] += storage.nbytes()
            self.tensors[name] += 1
        return tensor

    def activations(self) -> Activations:
        modules = [
            ModuleActivations(
                name or "(the model itself)",
                self.kinds.get(name, ""),
                size,
                self.tensors[name],
                self.calls[name],
            )
            for name, size in self.bytes.items()
        ]
        modules.sort(key=lambda module: -module.bytes)
        return Activations(sum(self.bytes.values()), self.batch_bytes, tuple(modules))


def _key(tensor: torch.Tensor) -> int:
    storage = storage_of(tensor)
    return -id(tensor) if storage is None else storage._cdata
