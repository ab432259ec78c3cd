"""The tools that read a clock: what they conclude from fixed numbers, and that they run. No time is asserted."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler, TensorDataset
from torchlint.runtime_check.toolkit import ToolError, environment, loading, plot, precision, transfer
from torchlint.runtime_check.toolkit.loading import Loading, Setting
from torchlint.runtime_check.toolkit.precision import Setup
from torchlint.runtime_check.toolkit.step import optimizer_maker, trainer
from torchlint.runtime_check.toolkit.subject import stand_in_loss
from torchlint.runtime_check.toolkit.transfer import TO_DEVICE, TO_HOST, WITHIN_HOST, Copy

CPU = torch.device("cpu")


def copies(latency: float, gb_per_s: float, direction: str = TO_DEVICE, pinned: bool = True) -> list[Copy]:
    sizes = [mb << 20 for mb in transfer.SIZES_MB]
    return [Copy(direction, pinned, size, (latency + size / gb_per_s / 1e9,) * 3) for size in sizes]


def test_latency_and_bandwidth_are_those_that_made_the_times() -> None:
    both = copies(20e-6, 25.0) + copies(5e-6, 6.0, TO_HOST, pinned=False)
    fast, slow = transfer.fit(both)
    assert (fast.direction, fast.pinned) == (TO_DEVICE, True)
    assert (fast.latency, fast.bytes_per_s) == (pytest.approx(20e-6), pytest.approx(25e9))
    assert (slow.latency, slow.bytes_per_s) == (pytest.approx(5e-6), pytest.approx(6e9))


def test_a_latency_is_not_below_zero_and_one_size_gives_no_line() -> None:
    (line,) = transfer.fit([Copy(TO_DEVICE, False, 1_000, (1.0,)), Copy(TO_DEVICE, False, 4_000, (8.0,))])
    assert line.latency == 0.0
    assert line.bytes_per_s > 0
    assert [*transfer.fit(copies(1e-6, 1.0)[:1])] == []


def test_without_a_gpu_data_move_within_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    found = transfer.measure(CPU, (1, 2), repeats=3)
    assert [(copy.direction, copy.pinned, copy.bytes, len(copy.seconds)) for copy in found.copies] == [
        (WITHIN_HOST, False, 1 << 20, 3),
        (WITHIN_HOST, False, 2 << 20, 3),
    ]
    assert all(copy.gb_per_s > 0 for copy in found.copies)
    monkeypatch.setattr(transfer, "available_memory", lambda: 8 << 20)
    found = transfer.measure(CPU, (1, 4), repeats=1)
    assert [copy.bytes >> 20 for copy in found.copies] == [1]
    assert found.skipped == ("4 MB: only 8 MB of host memory are free",)


def test_the_plot_is_svg_with_a_curve_for_each_series() -> None:
    picture = plot.curves("A & B", "MB", "GB/s", {"to <device>": [(1, 2), (10, 20), (1024, 25)], "back": [(1, 1)]})
    root = ElementTree.fromstring(picture)
    space = "{http://www.w3.org/2000/svg}"
    lines = [line.attrib["points"].split() for line in root.iter(f"{space}polyline")]
    assert [len(points) for points in lines] == [3, 1]
    xs = [float(point.partition(",")[0]) for point in lines[0]]
    ys = [float(point.partition(",")[2]) for point in lines[0]]
    assert xs == sorted(xs)
    assert ys == sorted(ys, reverse=True), "more is higher up"
    texts = [text.text for text in root.iter(f"{space}text")]
    assert {"A & B", "MB", "GB/s", "to <device>", "back", "1", "10", "100", "1000"} <= set(texts)
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.curves("", "", "", {})


def setup(model: nn.Module, x: torch.Tensor) -> Setup:
    return Setup(model, stand_in_loss, optimizer_maker("SGD", 1e-3), [x], CPU)


def test_precisions_start_alike_and_leave_the_model_as_it_was() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.Dropout(0.5), nn.Linear(64, 4))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = precision.compare(setup(model, torch.randn(8, 16)), ("tf32", "bf16"), steps=4, blocks=2, block_steps=1)
    fp32, bf16 = found.trainings
    assert (fp32.precision, bf16.precision) == ("fp32", "bf16")
    assert (fp32.loss_gap, fp32.pace, len(fp32.losses), len(fp32.seconds_per_step)) == (0.0, None, 4, 2)
    assert 0 < bf16.loss_gap < 0.05
    assert bf16.pace is not None
    assert (bf16.bad_losses, bf16.bad_gradients) == (0, 0)
    assert found.left_out == ("tf32: only CUDA devices have it",)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    again = precision.compare(setup(model, torch.randn(8, 16)), (), steps=2, blocks=0)
    assert [training.seconds_per_step for training in again.trainings] == [()]


def test_an_overflow_is_counted() -> None:
    """1e5 is no float16: the product is infinite, and so are the gradients of its step."""
    model = nn.Linear(4, 1, bias=False)
    nn.init.constant_(model.weight, 1e5)
    found = precision.compare(setup(model, torch.ones(2, 4)), ("fp16", "bf16"), steps=3, blocks=0)
    fp32, bf16, fp16 = found.trainings
    assert (fp32.bad_losses, bf16.bad_losses, fp16.bad_losses) == (0, 0, 3)
    assert (fp32.bad_gradients, bf16.bad_gradients, fp16.bad_gradients) == (0, 0, 3)
    assert fp16.loss_gap == float("inf")


def test_a_precision_that_the_model_fails_in_is_left_out() -> None:
    class Picky(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = super().forward(x)
            if y.dtype is torch.bfloat16:
                raise TypeError("no bfloat16 here")
            return y

    found = precision.compare(setup(Picky(4, 1), torch.ones(2, 4)), ("bf16",), steps=2, blocks=0)
    assert [training.precision for training in found.trainings] == ["fp32"]
    assert "bf16: the loss cannot be computed: TypeError: no bfloat16 here" in found.left_out[0]
    with pytest.raises(ToolError, match="there is no precision fp8: name fp32, tf32, bf16, fp16"):
        precision.compare(setup(Picky(4, 1), torch.ones(2, 4)), ("fp8",))


def test_the_loss_gap() -> None:
    assert precision.loss_gap([1.0, 2.0], [1.0, 2.0]) == 0.0
    assert precision.loss_gap([1.0, 2.0], [1.1, 2.1]) == pytest.approx(0.1)
    assert precision.loss_gap([1.0, 0.0], [1.0, 1e-4]) == pytest.approx(0.1), "near zero the others set the scale"
    assert precision.loss_gap([1.0], [float("nan")]) == precision.loss_gap([1.0], [float("inf")]) == float("inf")


class Numbers(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((3,), float(index))


class Stream(IterableDataset[torch.Tensor]):
    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(Numbers()[index] for index in range(10))


LOADERS = {
    "batches": lambda: DataLoader(Numbers(), batch_size=5),
    "all but a last part": lambda: DataLoader(Numbers(), batch_size=5, drop_last=True),
    "a batch sampler": lambda: DataLoader(
        Numbers(), batch_sampler=BatchSampler(SequentialSampler(Numbers()), 4, False)
    ),
    "single samples": lambda: DataLoader(Numbers(), batch_size=None),
    "a stream": lambda: DataLoader(Stream(), batch_size=4, drop_last=True),
    "a collate function": lambda: DataLoader(Numbers(), batch_size=6, collate_fn=lambda rows: torch.stack(rows).sum(0)),
}


@pytest.mark.parametrize("kind", LOADERS)
def test_a_loader_made_anew_gives_the_same_batches(kind: str) -> None:
    loader = LOADERS[kind]()
    for setting in (Setting(0, None, False), Setting(1, 3, False)):
        again = loading.rebuilt(loader, setting)
        assert (again.num_workers, again.prefetch_factor) == (setting.workers, setting.prefetch)
        assert [batch.tolist() for batch in again] == [batch.tolist() for batch in loader]


def test_a_loader_of_another_class_cannot_be_made_anew() -> None:
    class Mine(DataLoader[torch.Tensor]):
        pass

    with pytest.raises(ToolError, match="Mine is no plain DataLoader"):
        loading.rebuilt(Mine(Numbers()), Setting(0, None, False))


def test_the_sweep_of_settings() -> None:
    assert loading.settings((2, 0), (2, 4), CPU) == [
        Setting(0, None, False),
        Setting(2, 2, False),
        Setting(2, 4, False),
    ]
    assert all(setting.pinned for setting in loading.settings((0, 1), (2,), torch.device("cuda", 0)))
    assert loading.usual_workers()[:2] == (0, 1)


def row(workers: int, wait: float | None, share: float | None = None, alone: float = 1.0) -> Loading:
    return Loading(Setting(workers, 2 if workers else None, False), 9, 1.0, alone, None, wait, share)


def test_the_fewest_workers_that_are_enough_are_best() -> None:
    rows = [row(0, 9.0, 0.9), row(1, 1.0, 0.3), row(2, 0.05, 0.04), row(4, 0.01, 0.01)]
    assert loading.choose(rows) is rows[2]
    assert loading.choose(rows[:2]) is rows[1], "where none is enough, the shortest wait"
    alone = [row(0, None, alone=4.0), row(2, None, alone=1.04), row(4, None, alone=1.0)]
    assert loading.choose(alone) is alone[1]


def test_loading_is_measured_with_and_without_a_step() -> None:
    loader = DataLoader(TensorDataset(torch.ones(20, 4)), batch_size=2)
    training = trainer(nn.Linear(4, 1), stand_in_loss, optimizer_maker("SGD", 0.1), CPU)
    found = loading.measure(loader, training, CPU, loading.settings((0, 1), (2,), CPU), batches=6)
    assert [(row.setting.workers, row.batches) for row in found.rows] == [(0, 6), (1, 6)]
    assert all(row.wait_share is not None and 0 <= row.wait_share <= 1 for row in found.rows)
    assert found.step is not None
    assert found.best in found.rows
    alone = loading.measure(loader, None, CPU, loading.settings((0,), (2,), CPU), batches=100)
    assert (alone.step, alone.rows[0].batches, alone.rows[0].wait) == (None, 10, None)


def test_loaders_that_fail_or_have_too_little() -> None:
    class Broken(Numbers):
        def __getitem__(self, index: int) -> torch.Tensor:
            raise OSError(f"no file {index}")

    setting = loading.settings((0,), (2,), CPU)
    with pytest.raises(ToolError, match="the DataLoader fails: OSError: no file 0"):
        loading.measure(DataLoader(Broken()), None, CPU, setting)
    with pytest.raises(ToolError, match="the loader has 1 batches; two are the least"):
        loading.measure(DataLoader(Numbers(), batch_size=12), None, CPU, setting)


def test_the_environment_is_that_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    monkeypatch.setenv("SECRET_TOKEN", "hidden")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        found = environment.report()
    finally:
        torch.set_float32_matmul_precision(before)
    assert found.torch["version"] == torch.__version__
    assert found.precision["float32 matrix products"] == "high"
    assert found.host["threads in an operator"] == torch.get_num_threads()
    assert found.allocator["settings"] == {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    assert found.variables["OMP_NUM_THREADS"] == "3"
    assert "SECRET_TOKEN" not in found.variables
    assert bool(found.devices) == torch.cuda.is_available()


def test_what_looks_unintended_becomes_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    host = {"usable cores": 2, "cores": 8, "threads in an operator": 8}
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    first, second, third = environment._notes(False, host)
    assert "built for a GPU, but none is visible" in first
    assert "2 of 8 cores" in second
    assert "set OMP_NUM_THREADS" in third
    assert environment._notes(True, {**host, "cores": 2, "threads in an operator": 2}) == []
