"""Tracking memory: exact on the CPU by live storages, and the allocator's branch on a pretended device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torchlint.runtime_check.toolkit import GPUMemoryTracker, ToolError
from torchlint.runtime_check.toolkit.device import MIB, choose
from torchlint.runtime_check.toolkit.live import LiveStorages, OverBudgetError


def floats(mib: int) -> torch.Tensor:
    return torch.zeros(mib * MIB // 4)


def test_what_a_block_allocates_keeps_and_frees() -> None:
    with GPUMemoryTracker("cpu") as tracker:
        kept = floats(4)
        passing = floats(16)
        view = passing[:1]
        del passing
        assert tracker.memory_delta_mb == 20.0
        del view
    assert (tracker.memory_delta_mb, tracker.peak_above_start_mb) == (4.0, 20.0)
    assert tracker.peak_memory_mb >= 20.0
    assert tracker.source == "the storages of live tensors"
    assert "+4.00 MB at the end, on cpu by the storages of live tensors" in str(tracker)
    assert len(kept) == MIB


def test_what_existed_before_counts_when_it_is_freed() -> None:
    before = floats(8)
    with GPUMemoryTracker("cpu") as tracker:
        del before
    assert (tracker.memory_delta_mb, tracker.peak_above_start_mb) == (-8.0, 0.0)
    assert tracker.peak_memory_mb >= 8.0


def test_an_inner_scope_does_not_hide_the_outer_peak() -> None:
    with GPUMemoryTracker("cpu") as outer:
        floats(16)
        with GPUMemoryTracker("cpu") as inner:
            floats(4)
        again = floats(1)
        with GPUMemoryTracker("cpu") as last:
            del again
    assert [scope.peak_above_start_mb for scope in (outer, inner, last)] == [16.0, 4.0, 0.0]
    assert [scope.memory_delta_mb for scope in (outer, inner, last)] == [0.0, 0.0, -1.0]


def test_gradients_and_optimizer_state_are_seen() -> None:
    model = torch.nn.Linear(1024, 1024, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.ones(1, 1024)
    with GPUMemoryTracker("cpu") as tracker:
        model(x).sum().backward()
        optimizer.step()
    assert tracker.memory_delta_mb == pytest.approx(8.0, abs=0.01)


def test_a_storage_that_grows_counts_anew() -> None:
    with GPUMemoryTracker("cpu") as tracker:
        tensor = torch.empty(0)
        torch.ones(MIB, out=tensor)
        assert tracker.memory_delta_mb == 4.0
        tensor.resize_(2 * MIB)
    assert tracker.memory_delta_mb == 8.0


def test_tensors_made_of_lists_count_once() -> None:
    with GPUMemoryTracker("cpu") as tracker:
        kept = torch.tensor([0.0] * MIB)
        assert kept.shape == (MIB,)
    assert (tracker.memory_delta_mb, tracker.peak_above_start_mb) == (4.0, 4.0)


def test_an_error_in_the_block_passes_and_leaves_the_figures() -> None:
    tracker = GPUMemoryTracker("cpu")

    def failing() -> None:
        with tracker:
            floats(2)
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert tracker.peak_above_start_mb == 2.0
    with tracker:
        pass
    assert tracker.peak_above_start_mb == 0.0


def test_figures_of_nothing_are_an_error() -> None:
    with pytest.raises(RuntimeError, match="use it in a `with` statement"):
        GPUMemoryTracker("cpu").peak_memory_mb  # noqa: B018


def test_a_limit_stops_the_code_that_goes_beyond_it() -> None:
    live = LiveStorages(torch.device("cpu"), limit=3 * MIB)
    with live:
        one = floats(2)
        with pytest.raises(OverBudgetError):
            floats(2)
        del one
        floats(3)
    assert live.bytes == 0


class PretendedAllocator:
    """As much of torch.cuda as the tracker uses, for two devices, with a peak that a reset lowers."""

    def __init__(self) -> None:
        self.now = [0, 0]
        self.most = [0, 0]

    def allocate(self, mib: int, device: int = 0) -> None:
        self.now[device] += mib * MIB
        self.most[device] = max(self.most[device], self.now[device])

    @contextmanager
    def briefly(self, mib: int, device: int = 0) -> Iterator[None]:
        self.allocate(mib, device)
        yield
        self.allocate(-mib, device)

    def reset(self, device: torch.device) -> None:
        self.most[device.index] = self.now[device.index]


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> PretendedAllocator:
    allocator = PretendedAllocator()
    cuda = torch.cuda
    monkeypatch.setattr(cuda, "is_available", lambda: True)
    monkeypatch.setattr(cuda, "device_count", lambda: 2)
    monkeypatch.setattr(cuda, "current_device", lambda: 0)
    monkeypatch.setattr(cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(cuda, "memory_allocated", lambda device: allocator.now[device.index])
    monkeypatch.setattr(cuda, "max_memory_allocated", lambda device: allocator.most[device.index])
    monkeypatch.setattr(cuda, "reset_peak_memory_stats", allocator.reset)
    return allocator


def test_the_allocators_single_peak_serves_nested_scopes(pretended: PretendedAllocator) -> None:
    pretended.allocate(10)
    with pretended.briefly(90):
        pass
    with GPUMemoryTracker() as outer:
        with pretended.briefly(16):
            pass
        with GPUMemoryTracker("cuda:0") as inner:
            pretended.allocate(4)
            assert (inner.peak_memory_mb, outer.peak_memory_mb) == (14.0, 26.0)
        with GPUMemoryTracker(1) as other, pretended.briefly(7, device=1):
            pass
    assert (outer.peak_memory_mb, outer.peak_above_start_mb, outer.memory_delta_mb) == (26.0, 16.0, 4.0)
    assert (inner.peak_memory_mb, inner.peak_above_start_mb, inner.memory_delta_mb) == (14.0, 4.0, 4.0)
    assert (other.peak_memory_mb, other.memory_delta_mb) == (7.0, 0.0)
    assert outer.source == "the caching allocator"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpu", "there is no device `gpu`"),
        ("meta", "only cpu and cuda devices are measured, not meta"),
        ("cuda", "there is no CUDA device here"),
    ],
)
def test_a_device_that_is_not_there(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ToolError, match=message):
        choose(name)


def test_a_device_number_too_high(pretended: PretendedAllocator) -> None:
    assert choose(None) == torch.device("cuda", 0)
    with pytest.raises(ToolError, match="there is no cuda:5: this machine has 2"):
        choose("cuda:5")
