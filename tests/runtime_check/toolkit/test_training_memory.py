"""Activations, memory by category, Adam's budget and the batch-size search: all exact on the CPU."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torchlint.runtime_check.toolkit import ToolError, activations, batch_size, footprint
from torchlint.runtime_check.toolkit.batch_size import Trial
from torchlint.runtime_check.toolkit.step import optimizer_maker, trainer
from torchlint.runtime_check.toolkit.subject import Subject, stand_in_loss

CPU = torch.device("cpu")
ROWS, WIDE = 32, 64
LAYER = ROWS * WIDE * 4  # bytes of one float32 activation


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(WIDE, WIDE), nn.ReLU(), nn.Linear(WIDE, WIDE), nn.Sigmoid())


def by_module(model: nn.Module, batch: Any, **given: Any) -> dict[str, int]:
    found = activations.measure(model, lambda: model(batch), batch, **given)
    return {module.name: module.bytes for module in found.modules}


def test_each_storage_counts_once_for_the_module_that_saved_it_first() -> None:
    """The ReLU saves its result, which the second Linear saves again; the first Linear saves the batch."""
    x = torch.randn(ROWS, WIDE)
    model = mlp()
    found = activations.measure(model, lambda: model(x), x)
    assert {module.name: module.bytes for module in found.modules} == {"1": LAYER, "3": LAYER}
    assert (found.bytes, found.batch_bytes) == (2 * LAYER, LAYER)
    assert [(module.kind, module.tensors, module.calls) for module in found.modules] == [
        ("ReLU", 1, 1),
        ("Sigmoid", 1, 1),
    ]


def test_what_the_loss_saves_lies_outside_of_the_modules() -> None:
    x = torch.randn(ROWS, WIDE)
    model = nn.Linear(WIDE, WIDE)
    found = activations.measure(model, lambda: model(x).square().sum(), x)
    assert [(module.name, module.bytes) for module in found.modules] == [(activations.OUTSIDE, LAYER)]


def test_a_checkpointed_block_keeps_only_its_input() -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.inner = nn.Linear(WIDE, WIDE), mlp()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kept: torch.Tensor = checkpoint(self.inner, self.first(x).relu(), use_reentrant=False)
            return kept

    assert by_module(Checkpointed(), torch.randn(ROWS, WIDE)) == {"(the model itself)": LAYER}


def test_without_gradients_nothing_is_kept_and_hooks_are_gone() -> None:
    model = mlp()
    with torch.no_grad():
        assert by_module(model, torch.randn(ROWS, WIDE)) == {}
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_failing_forward_pass_is_named_with_its_line() -> None:
    with pytest.raises(ToolError, match=r"the forward pass fails: RuntimeError: .*\(.*test_training_memory.py:\d+\)"):
        by_module(mlp(), torch.randn(3, 5))


def test_every_category_of_a_training_step() -> None:
    model = nn.Sequential(nn.Linear(WIDE, WIDE, bias=False), nn.BatchNorm1d(WIDE, affine=False), nn.Sigmoid())
    x = torch.randn(ROWS, WIDE)
    training = trainer(model, stand_in_loss, optimizer_maker("Adam", 0.1), CPU)
    found = footprint.measure(training, (x,))
    weights, counter, running = WIDE * WIDE * 4, 4, 2 * WIDE * 4 + 8
    assert found.at_rest == {
        "parameters": weights,
        "gradients": 0,
        "optimizer state": 2 * weights + counter,
        "buffers": running,
        "batch": LAYER,
        "activations": 0,
        "other": 0,
    }
    assert found.budget == footprint.Budget(weights, weights, 2 * weights, running, found.budget.activations)
    batch_norm = LAYER + 2 * WIDE * 4
    assert found.budget.activations == batch_norm + LAYER  # the result of Sigmoid is also what the loss saves
    assert found.at_peak["activations"] <= found.budget.activations
    for lasting in ("parameters", "optimizer state", "buffers", "batch"):
        assert found.at_peak[lasting] == found.at_rest[lasting]
    assert found.optimizer == "Adam"
    assert found.allocator_peak is None


def test_gradients_of_a_large_model_make_the_peak() -> None:
    model = nn.Linear(512, 512, bias=False)
    training = trainer(model, stand_in_loss, optimizer_maker("SGD", 0.1), CPU)
    found = footprint.measure(training, torch.randn(1, 512))
    assert found.at_peak["gradients"] == found.at_peak["parameters"] == 512 * 512 * 4
    assert found.phase == "the backward pass"
    assert found.at_rest["optimizer state"] == 0


def test_the_budget_counts_frozen_and_shared_parameters_as_they_are() -> None:
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))
    model[0].weight.requires_grad_(False)
    budget = footprint.adam_budget(model, activation_bytes=10)
    assert (budget.parameters, budget.gradients, budget.moments, budget.total) == (512, 256, 512, 1290)
    model[1].weight = model[0].weight
    assert footprint.adam_budget(model).parameters == 256


def fits_up_to(most: int) -> Any:
    return lambda size: Trial(size, size <= most, 100 + 7 * size if size <= most else None)


@pytest.mark.parametrize("most", [1, 2, 3, 5, 64, 100, 1023])
def test_the_search_finds_the_largest_size(most: int) -> None:
    found = batch_size.search(fits_up_to(most))
    assert (found.largest, found.limited_by) == (most, "memory")
    sizes = [trial.batch_size for trial in found.trials]
    assert len(sizes) == len(set(sizes)) <= 2 * most.bit_length() + 1
    if most > 1:
        assert (round(found.bytes_per_sample or 0), round(found.fixed_bytes or 0)) == (7, 100)


def test_a_search_that_ends_otherwise() -> None:
    assert batch_size.search(fits_up_to(100), powers_of_two=True).largest == 64
    limited = batch_size.search(fits_up_to(100), largest=48)
    assert (limited.largest, limited.limited_by) == (48, "limit")
    nothing = batch_size.search(fits_up_to(3), start=4)
    assert (nothing.largest, len(nothing.trials), nothing.bytes_per_sample) == (0, 1, None)


def test_two_real_steps_within_a_limit_leave_nothing_behind() -> None:
    alive: weakref.WeakSet[nn.Module] = weakref.WeakSet()

    def make(size: int) -> Subject:
        gc.collect()
        assert not alive, "the model of the trial before is still there"
        model = mlp()
        alive.add(model)
        return Subject("test", model, torch.ones(size, WIDE), stand_in_loss, False)

    def search(limit_mb: float) -> batch_size.Search:
        return batch_size.measure(make, optimizer_maker("Adam", 0.1), CPU, limit_mb=limit_mb)

    found = search(1.0)
    assert found.limited_by == "memory"
    peaks = {trial.batch_size: trial.peak_bytes for trial in found.trials}
    assert peaks[found.largest] is not None
    assert peaks[found.largest] <= 2**20  # type: ignore[operator]
    assert peaks[found.largest + 1] is None
    assert (found.bytes_per_sample or 0) >= 4 * WIDE * 4
    assert search(2.0).largest > found.largest


def test_running_out_of_memory_is_no_failure_but_other_errors_are() -> None:
    def broken(size: int) -> Subject:
        if size > 2:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return Subject("test", mlp(), torch.ones(size, WIDE), stand_in_loss, False)

    make = optimizer_maker("SGD", 0.1)
    assert batch_size.measure(broken, make, CPU, limit_mb=100).largest == 2
    with pytest.raises(ToolError, match="batch size 1: the loss cannot be computed: RuntimeError"):
        batch_size.measure(lambda size: Subject("t", mlp(), torch.ones(size, 3), stand_in_loss, False), make, CPU)
