"""Where the memory of a training step goes: parameters, gradients, optimizer state, buffers, activations, the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import nn

from .activations import measure as measure_activations
from .device import MIB
from .live import LiveStorages, storage_of
from .memory import GPUMemoryTracker
from .step import Trainer
from .subject import tensors_in

PARAMETERS, GRADIENTS, STATE, BUFFERS, BATCH, ACTIVATIONS, OTHER = CATEGORIES = (
    "parameters",
    "gradients",
    "optimizer state",
    "buffers",
    "batch",
    "activations",
    "other",
)
ADAM_MOMENTS = 2


@dataclass(frozen=True, slots=True)
class Budget:
    """What training with Adam needs, in bytes, computed from sizes: two moments like each trained parameter, gradients
    like the trained parameters, and the activations that one forward pass was seen to keep."""

    parameters: int
    gradients: int
    moments: int
    buffers: int
    activations: int

    @property
    def total(self) -> int:
        return self.parameters + self.gradients + self.moments + self.buffers + self.activations


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes by category: `at_rest` between two steps, with gradients dropped, and `at_peak` at the moment of the step
    when most was alive, which was in `phase`. Storages of tensors are counted; `allocator_peak` is what the device's
    own allocator says of such a step, None on the CPU."""

    optimizer: str
    at_rest: dict[str, int]
    at_peak: dict[str, int]
    phase: str
    budget: Budget
    allocator_peak: int | None

    @property
    def peak(self) -> int:
        return sum(self.at_peak.values())


def measure(trainer: Trainer, batch: Any) -> Footprint:
    """Train three steps: the first makes the optimizer's state, the second is observed, the third asks the device's
    allocator."""
    trainer.step(batch)
    live = LiveStorages(trainer.device)
    known = _Known(trainer, batch, live)
    at_rest = known.by_category(dict(live.events))
    marks = _observed_step(trainer, batch, live, known)
    at_peak, when = _at_peak(live.events, known)
    phase = next(name for name, end in marks.items() if when < end)
    peak = None
    if trainer.device.type == "cuda":
        with GPUMemoryTracker(trainer.device) as tracker:
            trainer.step(batch)
        peak = round(tracker.peak_memory_mb * MIB)
    budget = adam_budget(trainer.model, _activation_bytes(trainer, batch))
    return Footprint(type(trainer.optimizer).__name__, at_rest, at_peak, phase, budget, peak)


def adam_budget(model: nn.Module, activation_bytes: int = 0) -> Budget:
    """Shared parameters count once. Adam's step counters, four bytes for each parameter tensor, are left out."""
    parameters = list(model.parameters())
    trained = _bytes([parameter for parameter in parameters if parameter.requires_grad])
    return Budget(_bytes(parameters), trained, ADAM_MOMENTS * trained, _bytes(model.buffers()), activation_bytes)


def _bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum({id(tensor): tensor.numel() * tensor.element_size() for tensor in tensors}.values())


def _activation_bytes(trainer: Trainer, batch: Any) -> int:
    return measure_activations(trainer.model, lambda: trainer.forward(batch), batch).bytes


class _Known:
    """Which category each counted storage belongs to."""

    def __init__(self, trainer: Trainer, batch: Any, live: LiveStorages) -> None:
        self.trainer = trainer
        self.live = live
        self.category: dict[int, str] = {}
        self.name(PARAMETERS, trainer.model.parameters())
        self.name(BUFFERS, trainer.model.buffers())
        self.name(STATE, self._state())
        self.name(BATCH, tensors_in(batch))

    def _state(self) -> Iterator[torch.Tensor]:
        for state in self.trainer.optimizer.state.values():
            yield from tensors_in(state)

    def gradients(self) -> None:
        parameters = self.trainer.model.parameters()
        self.name(GRADIENTS, [parameter.grad for parameter in parameters if parameter.grad is not None])

    def name(self, category: str, tensors: Iterable[torch.Tensor]) -> None:
        """Count the storages where they are new, and put those without a category into this one."""
        for tensor in tensors:
            self.live.know([tensor])
            serial = self.live.serial(tensor)
            if serial is not None:
                self.category.setdefault(serial, category)

    def saved(self, tensor: torch.Tensor) -> torch.Tensor:
        if storage_of(tensor) is not None and tensor.device == self.live.device:
            self.name(ACTIVATIONS, [tensor])
        return tensor

    def by_category(self, alive: Mapping[int, int]) -> dict[str, int]:
        """`alive` maps serial numbers of storages to their bytes."""
        sizes = dict.fromkeys(CATEGORIES, 0)
        for serial, size in alive.items():
            sizes[self.category.get(serial, OTHER)] += size
        return sizes


def _observed_step(trainer: Trainer, batch: Any, live: LiveStorages, known: _Known) -> dict[str, int]:
    """The number of events after each phase. Gradients are named while they exist."""
    marks = {}
    with live:
        with torch.autograd.graph.saved_tensors_hooks(known.saved, lambda tensor: tensor):
            loss = trainer.forward(batch)
        marks["the forward pass"] = len(live.events)
        trainer.backward(loss)
        known.gradients()
        marks["the backward pass"] = len(live.events)
        trainer.update()
        marks["the optimizer step"] = len(live.events)
    return marks


def _at_peak(events: list[tuple[int, int]], known: _Known) -> tuple[dict[str, int], int]:
    """Bytes by category at the moment when most was alive, and the number of the event that led there."""
    totals = list(accumulate(change for _, change in events))
    when = max(range(len(totals)), key=totals.__getitem__)
    alive = Counter[int]()
    for serial, change in events[: when + 1]:
        alive[serial] += change
    return known.by_category(alive), when
