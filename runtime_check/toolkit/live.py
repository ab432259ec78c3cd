"""Which storages on a device are alive, told from what torch's operators return. Exact and reproducible, but slow."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_CUDA_BLOCK = 512  # bytes: its allocator gives out multiples of this
_FRESH = torch.ops.aten.lift_fresh.default  # what torch.tensor(list) ends with


class OverBudgetError(MemoryError):
    """More bytes are alive than `limit` allows."""


class _Storage(NamedTuple):
    reference: weakref.ref[Any]
    serial: int
    size: int


class LiveStorages(TorchDispatchMode):
    """Counts the storages of one device, each once however many views it has, while the mode is entered.

    `events` lists (serial number of the storage, change in bytes) in the order in which it happened; a storage keeps
    its number for life and no number is used twice. Seen are the storages given to `know` and those that operators
    make; not seen are those that only C++ holds from before, and what kernels use as workspace.
    """

    def __init__(self, device: torch.device, limit: int | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.device = device
        self.limit = limit
        self.bytes = self.peak = 0
        self.events: list[tuple[int, int]] = []
        self._alive: dict[int, _Storage] = {}
        self._made = 0

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Code under torch.compile stays compiled."""
        return True

    def know(self, tensors: Iterable[torch.Tensor]) -> None:
        """Count storages that exist already."""
        for tensor in tensors:
            self._add(tensor, is_new=True)

    def serial(self, tensor: torch.Tensor) -> int | None:
        """The number of the tensor's storage; None where it is not counted."""
        storage = storage_of(tensor)
        known = self._alive.get(storage._cdata) if storage is not None else None
        return known.serial if known is not None else None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        if func is _FRESH or not func.is_view:
            self._add_all(output, is_new=not func._schema.is_mutable)
        if self.limit is not None and self.bytes > self.limit:
            raise OverBudgetError
        return output

    def _add_all(self, output: Any, is_new: bool) -> None:
        if isinstance(output, torch.Tensor):
            self._add(output, is_new)
        elif isinstance(output, (tuple, list)):
            for item in output:
                self._add_all(item, is_new)

    def _add(self, tensor: torch.Tensor, is_new: bool) -> None:
        """A result written in place is no new storage, but a known one may have been resized."""
        if tensor.device != self.device or (storage := storage_of(tensor)) is None:
            return
        key, size = storage._cdata, self._occupied(storage.nbytes())
        known = self._alive.get(key)
        if known is not None and known.size != size:
            self._alive[key] = known._replace(size=size)
            self._count(known.serial, size - known.size)
        elif known is None and is_new:
            self._made += 1
            self._alive[key] = _Storage(weakref.ref(storage, lambda _: self._freed(key)), self._made, size)
            self._count(self._made, size)

    def _freed(self, key: int) -> None:
        known = self._alive.pop(key, None)
        if known is not None:
            self._count(known.serial, -known.size)

    def _count(self, serial: int, change: int) -> None:
        self.events.append((serial, change))
        self.bytes += change
        self.peak = max(self.peak, self.bytes)

    def _occupied(self, size: int) -> int:
        return -(-size // _CUDA_BLOCK) * _CUDA_BLOCK if self.device.type == "cuda" else size


def storage_of(tensor: torch.Tensor) -> Any:
    """None for a tensor that has none of its own: sparse, or a subclass that wraps others."""
    if tensor.layout is not torch.strided:
        return None
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


def existing_tensors() -> list[torch.Tensor]:
    """All that Python knows, and their gradients; not what only an autograd graph holds."""
    tensors = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor)]
    gradients = [tensor.grad for tensor in tensors if tensor.is_leaf and tensor.requires_grad]
    return [*tensors, *(gradient for gradient in gradients if gradient is not None)]
