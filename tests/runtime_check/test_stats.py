from __future__ import annotations

import math
import random

import pytest
from torchlint.runtime_check.stats import Interval, Pace, compare, interval, student

STEADY = [1.000, 1.004, 0.997, 1.002, 0.999]
AGAIN = [1.001, 0.998, 1.000, 1.003, 0.998]


def scaled(times: list[float], factor: float) -> list[float]:
    return [factor * value for value in times]


@pytest.mark.parametrize(
    ("factor", "pace"),
    [
        pytest.param(0.70, Pace.FASTER, id="30 % less"),
        pytest.param(0.985, Pace.FASTER, id="1.5 % less, seen because the machine is quiet"),
        pytest.param(1.00, Pace.SAME, id="unchanged"),
        pytest.param(1.01, Pace.SAME, id="1 % more is within the tolerance"),
        pytest.param(1.05, Pace.SLOWER, id="5 % more"),
    ],
)
def test_pace_on_a_quiet_machine(factor: float, pace: Pace) -> None:
    assert compare(STEADY, AGAIN, scaled([1.000, 1.001, 0.999, 1.002, 0.998], factor)).pace is pace


def test_noise_makes_a_small_effect_inconclusive() -> None:
    noisy = [1.00, 1.30, 0.80, 1.10, 0.90]
    result = compare(noisy, noisy[::-1], scaled(noisy, 0.97))
    assert result.pace is Pace.INCONCLUSIVE
    assert result.detectable > 0.2


def test_less_time_than_can_be_told_apart_from_none_is_not_slower() -> None:
    result = compare([1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], [0.90, 1.00, 0.91, 1.01])
    assert result.effect.high > 1
    assert result.pace is Pace.INCONCLUSIVE
    result = compare([1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], [0.985, 1.00, 0.985, 1.00])
    assert 1 < result.effect.high < 1.02
    assert result.pace is Pace.NOT_SLOWER


def test_a_control_that_moved_hides_an_effect_of_its_size() -> None:
    drifting = scaled(STEADY, 1.10)
    result = compare(STEADY, drifting, scaled(AGAIN, 0.95))
    assert result.control.low > 1.02
    assert result.pace is Pace.INCONCLUSIVE
    assert "drifts" in result.reason


def test_a_control_that_moved_does_not_hide_a_larger_effect() -> None:
    result = compare(STEADY, scaled(AGAIN, 1.04), scaled(AGAIN, 0.60))
    assert result.pace is Pace.FASTER
    assert "less than this" in result.reason


@pytest.mark.parametrize("spread", [0.005, 0.05])
def test_a_program_is_called_faster_or_slower_than_itself_once_in_a_hundred_times(spread: float) -> None:
    noise = random.Random(0)

    def times() -> list[float]:
        return [math.exp(noise.gauss(0.0, spread)) for _ in range(5)]

    paces = [compare(times(), times(), times()).pace for _ in range(3000)]
    assert sum(pace in (Pace.FASTER, Pace.SLOWER) for pace in paces) <= 30


def test_one_block_has_no_interval() -> None:
    result = compare([1.0], [1.0], [0.2])
    assert result.effect == Interval(0.2, 0.0, math.inf)
    assert result.pace is Pace.INCONCLUSIVE
    assert result.detectable == math.inf


def test_interval_is_student_on_logarithms() -> None:
    logs = [math.log(0.5), math.log(0.6), math.log(0.55)]
    found = interval(logs)
    assert found.ratio == pytest.approx(0.5485, abs=1e-4)
    assert (found.low, found.high) == (pytest.approx(0.3253, abs=1e-4), pytest.approx(0.9249, abs=1e-4))


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 63.657), (4, 4.604), (30, 2.750), (40, 2.704), (120, 2.617)])
def test_student_quantiles(freedom: int, quantile: float) -> None:
    assert student(0.995, freedom) == pytest.approx(quantile, abs=2e-3)
