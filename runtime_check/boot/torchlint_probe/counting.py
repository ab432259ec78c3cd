"""What a program asks of torch per step: operations, reads of tensor values by the host, bytes alive.

Exact and reproducible, but slow: never active while a run is timed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from .settings import Settings

_aten = torch.ops.aten
_READS = {
    getattr(_aten, packet).default
    for packet in ("_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2", "unique_consecutive")
}
_TORCH = os.path.dirname(torch.__file__)
# The state of an optimizer and the shuffling of a sampler stay on the host on a GPU too.
_HOST_SIDE = (os.path.join(_TORCH, "optim", ""), os.path.join(_TORCH, "utils", "data", ""))


class Places:
    """Finds the line of the program that is running, below the frames of torch and of other libraries."""

    def __init__(self, settings: Settings) -> None:
        self.tree = settings.tree + os.sep
        self.known: dict[str, str] = {}

    def user_line(self, depth: int = 2) -> str | None:
        """None where no file of the program is on the stack, or torch itself asked on behalf of the host."""
        frame: Any = sys._getframe(depth)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(_HOST_SIDE):
                return None
            name = self.known.get(file)
            if name is None:
                name = self.known[file] = self._name(file)
            if name:
                return f"{name}:{frame.f_lineno}"
            frame = frame.f_back
        return None

    def _name(self, file: str) -> str:
        full = os.path.abspath(file)
        if not full.startswith(self.tree) or "site-packages" in full or file.startswith("<"):
            return ""
        return full[len(self.tree) :]


class LiveBytes:
    """Host storages made since torch was imported and not yet freed; views and in-place results add nothing."""

    def __init__(self) -> None:
        self.alive: dict[int, Any] = {}
        self.bytes = 0
        self.peak = 0

    def add(self, output: Any) -> None:
        if isinstance(output, (tuple, list)):
            for item in output:
                self.add(item)
        elif isinstance(output, torch.Tensor) and output.layout is torch.strided and self.counts(output):
            self._add_storage(output)

    def counts(self, tensor: torch.Tensor) -> bool:
        return tensor.device.type == "cpu"

    def _add_storage(self, tensor: torch.Tensor) -> None:
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):  # a wrapper subclass has none
            return
        key, size = storage._cdata, storage.nbytes()
        if key in self.alive or not size:
            return
        self.born(key, size)

        def freed(_: Any) -> None:
            if self.alive.pop(key, None) is not None:
                self.bytes -= size

        self.alive[key] = weakref.ref(storage, freed)
        self.bytes += size
        self.peak = max(self.peak, self.bytes)

    def born(self, key: int, size: int) -> None:
        """A storage is counted for the first time."""


class Counting(TorchDispatchMode):
    def __init__(self, settings: Settings, memory: LiveBytes) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.places = Places(settings)
        self.memory = memory
        self.warmup = settings.warmup
        self.loading = False
        self.operations = self.kernels = self.reads = 0
        self.read_lines: Counter[str] = Counter()
        self.lines_of_step: Counter[str] = Counter()

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Code under torch.compile stays compiled."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        if not func.is_view and not func._schema.is_mutable:
            self.memory.add(output)
        if not self.loading:  # the same work may lie in a worker process in the other version
            self.operations += 1
            self.kernels += not func.is_view
            if func in _READS or (func is _aten.index.Tensor and _has_mask(args[1])):
                self.read()
        return output

    def read(self) -> None:
        """The host reads a tensor's value: on a GPU it would wait for the device here."""
        line = None if self.loading else self.places.user_line(3)
        if line is not None:
            self.reads += 1
            self.lines_of_step[line] += 1

    def to_host(self, tensor: torch.Tensor) -> None:
        self.read()

    @contextlib.contextmanager
    def loader_at_work(self) -> Iterator[None]:
        self.loading = True
        try:
            yield
        finally:
            self.loading = False

    def step(self, number: int) -> dict[str, float]:
        figures: dict[str, float] = {"operations": self.operations, "kernels": self.kernels, "reads": self.reads}
        figures.update(live_bytes=self.memory.bytes, peak_bytes=self.memory.peak)
        self.operations = self.kernels = self.reads = 0
        self.memory.peak = self.memory.bytes
        self.read_lines += self.lines_of_step
        self.lines_of_step.clear()
        if number == self.warmup:
            self.read_lines.clear()
        return figures

    def result(self) -> dict[str, Any]:
        return {"read_lines": dict(self.read_lines)}


def _has_mask(indices: Any) -> bool:
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices)


def count_copies_to_host(counting: Counting) -> None:
    """`.cpu()` and `.tolist()` of a host tensor reach no operator, so they are counted at the method."""
    for name in ("cpu", "tolist"):
        setattr(torch.Tensor, name, _counted(getattr(torch.Tensor, name), counting))


def _counted(method: Any, counting: Counting) -> Any:
    def call(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if tensor.device.type == "cpu":
            counting.to_host(tensor)
        return method(tensor, *args, **kwargs)

    return call
