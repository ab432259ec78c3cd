"""Mixed precision on the user's own model: time, memory, and what it does to the loss."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..stats import Comparison
from ..stats import compare as compare_times
from .device import MIB, synchronize
from .errors import ToolError
from .memory import GPUMemoryTracker
from .step import MakeOptimizer, Trainer, trainer
from .subject import Loss, failing, is_out_of_memory

FP32, TF32, BF16, FP16 = PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
_CONTROL = "fp32 again"
_AUTOCAST = {BF16: torch.bfloat16, FP16: torch.float16}
_WARMUP = 2


@dataclass(frozen=True, slots=True)
class Training:
    """One precision. `losses` has one value per step; `bad_gradients` counts the steps whose gradients held an infinity
    or NaN, which a gradient scaler leaves out. `peak_bytes` comes on top of model and batches. `loss_gap` is the
    largest relative distance from the losses of fp32. `pace` compares its time with that of fp32, and is None for fp32
    itself and without timing."""

    precision: str
    losses: tuple[float, ...]
    bad_gradients: int
    peak_bytes: int
    loss_gap: float
    seconds_per_step: tuple[float, ...]
    pace: Comparison | None

    @property
    def bad_losses(self) -> int:
        return sum(not abs(loss) < float("inf") for loss in self.losses)


@dataclass(frozen=True, slots=True)
class Precisions:
    """`left_out` says which precisions were not tried, and why."""

    trainings: tuple[Training, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class Setup:
    """Everything is trained from the same parameters, random numbers and batches (which are on the device)."""

    model: nn.Module
    loss: Loss
    optimizer: MakeOptimizer
    batches: Sequence[Any]
    device: torch.device
    seed: int = 0


def compare(
    setup: Setup,
    precisions: Sequence[str] = PRECISIONS,
    steps: int = 100,
    blocks: int = 5,
    block_steps: int = 10,
    progress: Callable[[str], None] = lambda message: None,
) -> Precisions:
    """Train `steps` steps in each precision and watch losses, gradients and memory; then time `blocks` rounds of
    `block_steps` steps of each, in turn, with fp32 twice in every round to see how far it differs from itself.

    No blocks: no timing. Raises ToolError for an unknown precision or a model that fails in fp32.
    """
    if unknown := sorted(set(precisions) - set(PRECISIONS)):
        raise ToolError(f"there is no precision {unknown[0]}: name {', '.join(PRECISIONS)}")
    start = copy.deepcopy(setup.model.state_dict())
    tried, left_out = [FP32], []
    observed = {FP32: _observe(setup, start, FP32, steps, progress)}
    for precision in PRECISIONS[1:]:
        if precision not in precisions:
            continue
        reason = _unsupported(precision, setup.device)
        if not reason:
            try:
                observed[precision] = _observe(setup, start, precision, steps, progress)
                tried.append(precision)
            except ToolError as error:
                reason = str(error)
        if reason:
            left_out.append(f"{precision}: {reason}")
    seconds = _time(setup, start, tried, blocks, block_steps, progress)
    setup.model.load_state_dict(start)
    return Precisions(tuple(_training(name, observed, seconds) for name in tried), tuple(left_out))


@dataclass(frozen=True, slots=True)
class _Observation:
    losses: tuple[float, ...]
    bad_gradients: int
    peak_bytes: int


def _training(name: str, observed: dict[str, _Observation], seconds: dict[str, list[float]]) -> Training:
    seen, reference = observed[name], observed[FP32]
    pace = None
    if name != FP32 and seconds[name]:
        pace = compare_times(seconds[FP32], seconds[_CONTROL], seconds[name])
    gap = loss_gap(reference.losses, seen.losses)
    return Training(name, seen.losses, seen.bad_gradients, seen.peak_bytes, gap, tuple(seconds[name]), pace)


def loss_gap(reference: Sequence[float], losses: Sequence[float]) -> float:
    """Infinite where one of two losses is no number and the other is."""
    scale = 1e-3 * max((abs(value) for value in reference if abs(value) < float("inf")), default=0.0)
    gaps = [abs(a - b) / max(abs(a), scale) if a != b else 0.0 for a, b in zip(reference, losses, strict=True)]
    return max((gap if gap == gap else float("inf") for gap in gaps), default=0.0)


def _unsupported(precision: str, device: torch.device) -> str:
    if precision == TF32:
        if device.type != "cuda":
            return "only CUDA devices have it"
        if torch.version.hip is None and torch.cuda.get_device_capability(device) < (8, 0):
            return "this device is older than Ampere"
    if precision == BF16 and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        return "this device does not compute in it"
    return ""


@contextmanager
def _computing_in(precision: str) -> Iterator[None]:
    """TF32 is a switch of the process; it is put back. Plain fp32 means without it."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == TF32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _fresh(setup: Setup, start: dict[str, Any], precision: str) -> Trainer:
    setup.model.load_state_dict(start)
    setup.model.zero_grad()
    torch.manual_seed(setup.seed)
    return trainer(setup.model, setup.loss, setup.optimizer, setup.device, _AUTOCAST.get(precision))


def _observe(
    setup: Setup, start: dict[str, Any], precision: str, steps: int, progress: Callable[[str], None]
) -> _Observation:
    progress(f"{precision}: {steps} steps")
    losses, bad = [], 0
    try:
        with _computing_in(precision), GPUMemoryTracker(setup.device) as tracker:
            training = _fresh(setup, start, precision)
            for number in range(steps):
                loss = training.forward(setup.batches[number % len(setup.batches)])
                training.backward(loss)
                bad += not _finite_gradients(setup.model)
                training.update()
                losses.append(loss.detach())
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise ToolError(f"{precision} runs out of memory on {setup.device}: use a smaller batch") from error
    values = torch.stack([loss.reshape(()).double() for loss in losses]).tolist()
    return _Observation(tuple(values), bad, round(tracker.peak_above_start_mb * MIB))


def _finite_gradients(model: nn.Module) -> bool:
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return all(bool(gradient.isfinite().all()) for gradient in gradients)


def _time(
    setup: Setup,
    start: dict[str, Any],
    precisions: Sequence[str],
    blocks: int,
    steps: int,
    progress: Callable[[str], None],
) -> dict[str, list[float]]:
    """Seconds per step, round by round. The order turns by one place in every round."""
    sides = [*precisions, _CONTROL]
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for block in range(blocks):
        progress(f"timing, round {block + 1} of {blocks}")
        turn = block % len(sides)
        for side in (*sides[turn:], *sides[:turn]):
            precision = FP32 if side == _CONTROL else side
            with _computing_in(precision), failing(f"{precision} fails"):
                seconds[side].append(_block(_fresh(setup, start, precision), setup, steps))
    return seconds


def _block(training: Trainer, setup: Setup, steps: int) -> float:
    for number in range(_WARMUP):
        training.step(setup.batches[number % len(setup.batches)])
    synchronize(setup.device)
    begin = time.perf_counter()
    for number in range(steps):
        training.step(setup.batches[number % len(setup.batches)])
    synchronize(setup.device)
    return (time.perf_counter() - begin) / steps
