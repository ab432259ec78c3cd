from __future__ import annotations

import pytest
from torchlint.runtime_check.printed import LineDifference, first_difference


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("epoch 1: loss 0.4123", "epoch 1: loss 0.4123", id="the same"),
        pytest.param("loss 0.4123", "loss 0.4124", id="one unit of the last place"),
        pytest.param("loss 1.234567890123", "loss 1.234567990123", id="relative rounding"),
        pytest.param("step 3 12.5s", "step 3 8.1s", id="seconds"),
        pytest.param("took 12.5", "took 8.1", id="a word for time before it"),
        pytest.param("345.2 img/s", "512.9 img/s", id="a rate"),
        pytest.param("| ms/batch 12.74 | loss  2.75", "| ms/batch  7.60 | loss  2.75", id="a unit before the time"),
        pytest.param("images/s: 345.2", "images/s: 512.9", id="a unit before the rate"),
    ],
)
def test_agrees(before: str, after: str) -> None:
    assert first_difference(before, before, after) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("loss 0.4123", "loss 0.4223", id="another number"),
        pytest.param("loss/step 0.41", "loss/step 0.52", id="per step is no time"),
        pytest.param("12 wrong bits", "13 wrong bits", id="whole numbers are exact"),
        pytest.param("loss 2.5", "loss tensor(2.5)", id="another type"),
        pytest.param("loss 2.5", "", id="a line less"),
        pytest.param("accuracy nan", "accuracy 0.5", id="nan became a number"),
    ],
)
def test_differs(before: str, after: str) -> None:
    assert first_difference(before, before, after) == LineDifference(1, before, after)


def test_a_line_more_differs() -> None:
    assert first_difference("a\n", "a\n", "a\nb\n") == LineDifference(2, "", "b")


def test_numbers_that_the_original_does_not_repeat_are_passed_over() -> None:
    assert first_difference("run 81723 loss 0.5", "run 99123 loss 0.5", "run 10111 loss 0.5") is None
    assert first_difference("run 81723 loss 0.5", "run 99123 loss 0.5", "run 10111 loss 0.7") is not None


def test_an_original_that_prints_more_or_less_each_time_says_nothing() -> None:
    assert first_difference("a\nb\n", "a\n", "c\n") is None
