from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from rich.console import Console
from torchlint.runtime_check.equivalence import Equivalence, Sameness
from torchlint.runtime_check.printed import LineDifference
from torchlint.runtime_check.report import lines
from torchlint.runtime_check.stats import Comparison, Interval, Pace
from torchlint.runtime_check.verdict import (
    Counters,
    Environment,
    Memory,
    Overall,
    Target,
    Timing,
    Verdict,
    Weight,
    judge,
    weigh,
)

SAME = Equivalence(Sameness.IDENTICAL, "agree", losses=30, parameters=4)
DIFFERENT = Equivalence(Sameness.DIFFERENT, "the loss of step 3 is farther off than rounding carries the original")
UNKNOWN = Equivalence(Sameness.UNKNOWN, "nothing to compare")
CHATTY = replace(SAME, printed=LineDifference(2, "loss 1.0", "loss tensor(1.0)"))
COUNTERS = Counters(100.0, 80.0, 2.0, 64e6, 60e6, 0.0, 0.0, {"train.py:12": 2.0})


def timing(pace: Pace, low: float = 0.7, high: float = 0.8) -> Timing:
    ratio = math.sqrt(low * high)
    comparison = Comparison(pace, Interval(ratio, low, high), Interval(1.0, 0.98, 1.02), 0.01, 0.03)
    return Timing("wall", comparison, (1.0, 1.0), (1.0, 1.0), (ratio, ratio), 0.2, 25)


@pytest.mark.parametrize(
    ("equivalence", "pace", "on_gpu", "overall"),
    [
        pytest.param(SAME, Pace.FASTER, True, Overall.ACCEPT, id="same and faster"),
        pytest.param(SAME, Pace.SAME, True, Overall.REVIEW, id="nothing gained"),
        pytest.param(SAME, Pace.SLOWER, True, Overall.REJECT, id="slower"),
        pytest.param(DIFFERENT, Pace.FASTER, True, Overall.REJECT, id="faster but different"),
        pytest.param(UNKNOWN, Pace.FASTER, True, Overall.REVIEW, id="faster, nothing to compare"),
        pytest.param(CHATTY, Pace.FASTER, True, Overall.REVIEW, id="prints something else"),
    ],
)
def test_overall(equivalence: Equivalence, pace: Pace, on_gpu: bool, overall: Overall) -> None:
    memory = weigh(COUNTERS, COUNTERS)
    assert judge(equivalence, timing(pace), memory, COUNTERS, COUNTERS, on_gpu)[0] is overall


@pytest.mark.parametrize(("on_gpu", "overall"), [(False, Overall.ACCEPT), (True, Overall.REVIEW)])
def test_fewer_syncs_count_without_a_clock_only_where_there_is_no_gpu(on_gpu: bool, overall: Overall) -> None:
    fewer = replace(COUNTERS, syncs=0.0)
    memory = weigh(COUNTERS, fewer)
    found, reasons = judge(SAME, timing(Pace.INCONCLUSIVE), memory, COUNTERS, fewer, on_gpu)
    assert found is overall
    assert "fewer synchronisations" in reasons


def test_more_memory_is_for_review() -> None:
    heavier = replace(COUNTERS, peak_bytes=90e6)
    memory = weigh(COUNTERS, heavier)
    assert memory.verdict is Weight.HEAVIER
    assert judge(SAME, timing(Pace.FASTER), memory, COUNTERS, heavier, True)[0] is Overall.REVIEW


@pytest.mark.parametrize(
    ("change", "weight"),
    [
        ({"graph_nodes_kept_per_step": -20.0}, Weight.LIGHTER),
        ({"graph_nodes_kept_per_step": 0.5}, Weight.SAME),
        ({"peak_bytes": 63.9e6}, Weight.SAME),
        ({"peak_bytes": 30e6}, Weight.LIGHTER),
        ({"peak_bytes": 30e6, "graph_nodes_kept_per_step": 5.0}, Weight.MIXED),
        ({"graph_nodes_kept_per_step": None}, Weight.SAME),
    ],
)
def test_weight(change: dict[str, float | None], weight: Weight) -> None:
    assert weigh(COUNTERS, replace(COUNTERS, **change)).verdict is weight  # type: ignore[arg-type]


def test_exit_codes_are_all_different() -> None:
    assert {overall: overall.exit_code for overall in Overall} == {
        Overall.ACCEPT: 0,
        Overall.REJECT: 1,
        Overall.ERROR: 2,
        Overall.REVIEW: 3,
    }


def verdict(device: str, pace: Pace = Pace.FASTER) -> Verdict:
    environment = Environment("2026-01-01", device, f"{device} X", None, "2.13.0", None, 1, 0.5, "optimizer", 30, 5)
    return Verdict(
        Overall.ACCEPT,
        ("faster",),
        Target(("python", "train.py"), ("train.py",), fixes={"train.py": {"MEM01": 2}}),
        12.5,
        environment,
        SAME,
        COUNTERS,
        COUNTERS,
        Memory(Weight.SAME, ()),
        timing(pace, 0.0, math.inf) if pace is Pace.INCONCLUSIVE else timing(pace),
    )


def test_json_is_versioned_and_strict() -> None:
    found = json.loads(verdict("cpu", Pace.INCONCLUSIVE).to_json(), parse_constant=pytest.fail)
    assert found["schema"] == "torchlint.runtime_check/1"
    assert found["timing"]["comparison"]["effect"]["high"] is None
    assert found["target"] == {
        "command": ["python", "train.py"],
        "changed": ["train.py"],
        "unused": [],
        "fixes": {"train.py": {"MEM01": 2}},
    }


def text_of(verdict: Verdict) -> list[str]:
    console = Console(width=200, no_color=True)
    with console.capture() as captured:
        for line in lines(verdict):
            console.print(line, soft_wrap=True, highlight=False)
    return captured.get().splitlines()


def test_every_figure_of_the_cpu_says_so() -> None:
    figures = [line for line in text_of(verdict("cpu")) if any(character.isdigit() for character in line)][4:]
    assert len(figures) > 6
    assert all("CPU" in line for line in figures), figures


def test_figures_of_a_gpu_do_not() -> None:
    text = "\n".join(text_of(replace(verdict("cuda"), timing=None)))
    assert "cuda X" in text
    assert "CPU" not in text
