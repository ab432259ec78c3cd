from __future__ import annotations

import math

import pytest
from torchlint.runtime_check.equivalence import Sameness, StepDifference, compare, is_open

from tests.runtime_check.runs import parameter, run

LOSSES = [2.0, 1.5, 1.2, 1.0]


def shifted(relative: float, start: int = 0) -> list[float]:
    return [loss * (1 + relative) if at >= start else loss for at, loss in enumerate(LOSSES)]


def test_the_same_numbers_are_identical() -> None:
    result = compare(run(LOSSES, [parameter()]), run(LOSSES, [parameter()]), run(LOSSES, [parameter()]))
    assert result.verdict is Sameness.IDENTICAL
    assert (result.losses, result.parameters) == (4, 1)
    assert result.first_difference is None
    assert result.deterministic_baseline


def test_nan_agrees_with_nan() -> None:
    stuck = [1.0, math.nan, math.inf]
    assert compare(run(stuck), run(stuck), run(stuck)).verdict is Sameness.IDENTICAL
    assert compare(run(stuck), run(stuck), run([1.0, 1.0, math.inf])).verdict is Sameness.DIFFERENT


def test_other_bits_of_a_parameter_are_not_identical() -> None:
    before, after = run(LOSSES, [parameter(bits="a")]), run(LOSSES, [parameter(bits="b")])
    assert compare(before, before, after).verdict is Sameness.EQUIVALENT


def test_rounding_within_the_envelope_is_equivalent() -> None:
    before, disturbed = run(LOSSES, [parameter()]), run(shifted(3e-6, 1), [parameter(1.000003)])
    after = run(shifted(2e-5, 2), [parameter(1.00002)])
    result = compare(before, before, after, [disturbed])
    assert result.verdict is Sameness.EQUIVALENT
    assert result.first_difference == StepDifference(3, 1.2, after.losses[2][1])
    assert result.loss_distance < result.loss_envelope


def test_the_same_difference_without_the_envelope_is_not() -> None:
    before = run(LOSSES, [parameter()])
    result = compare(before, before, run(shifted(2e-5, 2), [parameter()]))
    assert result.verdict is Sameness.DIFFERENT
    assert "step 3" in result.reason


def test_the_envelope_of_later_steps_does_not_cover_the_first() -> None:
    before, disturbed = run(LOSSES, [parameter()]), run(shifted(1e-3, 3), [parameter()])
    result = compare(before, before, run(shifted(1e-3), [parameter()]), [disturbed])
    assert result.verdict is Sameness.DIFFERENT
    assert "step 1" in result.reason


def test_a_parameter_is_measured_by_its_own_envelope() -> None:
    """A bias before a batch norm drifts by percents in the original too; a weight does not."""
    before = run(LOSSES, [parameter(1.0), parameter(0.1)])
    disturbed = run(LOSSES, [parameter(1.000001), parameter(0.106)])
    drifting_bias = run(LOSSES, [parameter(1.000002), parameter(0.103)])
    drifting_weight = run(LOSSES, [parameter(1.03), parameter(0.100001)])
    assert compare(before, before, drifting_bias, [disturbed]).verdict is Sameness.EQUIVALENT
    result = compare(before, before, drifting_weight, [disturbed])
    assert result.verdict is Sameness.DIFFERENT
    assert "parameters" in result.reason


def test_a_baseline_that_differs_from_itself_sets_the_band() -> None:
    before, again = run(LOSSES, [parameter()]), run(shifted(1e-4), [parameter()])
    result = compare(before, again, run(shifted(2e-4), [parameter()]))
    assert result.verdict is Sameness.EQUIVALENT
    assert not result.deterministic_baseline


def test_another_number_of_backward_passes_is_different() -> None:
    result = compare(run(LOSSES), run(LOSSES), run(LOSSES[:3]))
    assert result.verdict is Sameness.DIFFERENT
    assert result.reason == "3 backward passes instead of 4"


def test_the_same_gradients_from_one_pass_in_place_of_two_are_the_same() -> None:
    """Losses that are summed before the backward pass; only float64 can tell."""
    gradients = tuple((step, (1.0, 2.0)) for step in (1, 2))
    others = tuple((step, (1.0, 2.5)) for step in (1, 2))
    two, one = run(LOSSES, [parameter()], gradients=gradients), run([3.5, 2.2], [parameter()], gradients=gradients)
    wrong = run([3.5, 2.2], [parameter(1.1)], gradients=others)
    assert is_open(two, two, one)
    assert compare(two, two, one, double=(two, one)).verdict is Sameness.ROUNDING
    assert compare(two, two, wrong, double=(two, wrong)).verdict is Sameness.DIFFERENT
    result = compare(two, two, one)
    assert result.verdict is Sameness.DIFFERENT
    assert result.reason == "2 backward passes instead of 4"


def test_other_parameters_are_different() -> None:
    before, after = run(LOSSES, [parameter()]), run(LOSSES, [parameter(dtype="float16")])
    assert compare(before, before, after).verdict is Sameness.DIFFERENT


def test_a_shifted_random_stream_is_different_even_where_losses_agree() -> None:
    after = run(LOSSES, random={"torch": "elsewhere"})
    result = compare(run(LOSSES), run(LOSSES), after)
    assert result.verdict is Sameness.DIFFERENT
    assert "torch random numbers" in result.reason


def test_a_random_stream_that_the_original_leaves_anywhere_says_nothing() -> None:
    result = compare(run(LOSSES), run(LOSSES, random={"torch": "a"}), run(LOSSES, random={"torch": "b"}))
    assert result.verdict is not Sameness.DIFFERENT


def test_a_loss_that_passes_through_zero_is_measured_on_the_scale_of_the_others() -> None:
    before, after = run([1.0, 1e-9, -1.0]), run([1.0, 2e-9, -1.0])
    assert compare(before, before, after).verdict is Sameness.EQUIVALENT


def test_a_program_without_training_is_compared_by_what_it_prints() -> None:
    def printed(text: str, again: str, after: str) -> Sameness:
        return compare(run(printed=text), run(printed=again), run(printed=after)).verdict

    assert printed("rate 0.125\n", "rate 0.125\n", "rate 0.125\n") is Sameness.IDENTICAL
    assert printed("rate 0.125\n", "rate 0.125\n", "rate 0.126\n") is Sameness.EQUIVALENT
    assert printed("rate 0.125\n", "rate 0.125\n", "rate 0.225\n") is Sameness.DIFFERENT
    assert printed("", "", "") is Sameness.UNKNOWN


@pytest.mark.parametrize(("why", "reason"), [("exit", "nothing to compare"), ("stop", "raise --steps")])
def test_a_program_that_is_stopped_before_it_prints_needs_more_steps(why: str, reason: str) -> None:
    assert compare(run(why=why), run(why=why), run(why=why)).reason.endswith(reason)


def test_printed_lines_are_evidence_beside_the_numbers() -> None:
    before, after = run(LOSSES, printed="loss 1.0\n"), run(LOSSES, printed="loss tensor(1.0)\n")
    result = compare(before, before, after)
    assert result.verdict is Sameness.IDENTICAL
    assert result.printed is not None
    assert result.printed.after == "loss tensor(1.0)"


def test_what_is_equal_in_float64_may_have_lost_digits_on_the_way() -> None:
    """A cast to half precision vanishes in float64; where the original computes in it, its own rounding is as large."""
    before, after, double = run(LOSSES, [parameter()]), run(shifted(4e-4), [parameter(1.0004)]), run(LOSSES)
    precise, coarse = run(shifted(2e-7), [parameter()]), run(shifted(2e-4), [parameter()])
    result = compare(before, before, after, [precise], (double, double))
    assert result.verdict is Sameness.DIFFERENT
    assert "digits" in result.reason
    assert compare(before, before, after, [coarse], (double, double)).verdict is Sameness.ROUNDING
