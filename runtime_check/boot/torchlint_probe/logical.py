"""Stands for a GPU where there is none: which tensors a program has asked to be on its device.

A script that takes the GPU if there is one says `.to(device)` all the same, and then the device is the CPU.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .costs import Costs


class LogicalDevice:
    def __init__(self) -> None:
        self.storages: dict[int, Any] = {}

    def holds(self, tensor: torch.Tensor) -> bool:
        return _storage(tensor) is not None and tensor.untyped_storage()._cdata in self.storages

    def take(self, tensor: torch.Tensor) -> bool:
        """Puts the tensor there; False where it was there before."""
        storage = _storage(tensor)
        if storage is None or storage._cdata in self.storages:
            return False
        key = storage._cdata
        self.storages[key] = weakref.ref(storage, lambda _: self.storages.pop(key, None))
        return True

    def follow(self, inputs: Any, output: Any) -> None:
        """What is computed from a tensor on the device is there too."""
        if not self.storages or not any(self.holds(tensor) for tensor in _tensors(inputs)):
            return
        for tensor in _tensors(output):
            self.take(tensor)


def watch_moves(costs: Costs) -> None:
    """Calls of `Tensor.to` with a device, by a program without a GPU; `"cpu"` written out is the host."""
    move = torch.Tensor.to

    def to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        target = kwargs.get("device", args[0] if args else None)
        moved: Any = move(tensor, *args, **kwargs)
        if isinstance(target, (torch.device, torch.Tensor, int)) and moved.device.type == tensor.device.type == "cpu":
            costs.to_device(moved)
        return moved

    torch.Tensor.to = to  # type: ignore[method-assign, assignment]


def _storage(tensor: torch.Tensor) -> Any:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse, or a wrapper subclass
        return None


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []
