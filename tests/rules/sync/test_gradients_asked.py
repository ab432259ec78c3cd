"""What a step asks of its parameters, one by one, and what a loop does before it is left for good."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import training
from tests.support import findings


def codes_of(body: str, before: str = "") -> list[tuple[str, str]]:
    code = training(body, before)
    found = findings(code, "SYNC03", "SYNC04", "SYNC05", "SYNC07", "SYNC09")
    return [(finding.code, code.splitlines()[finding.line - 1].strip()) for finding in found]


def test_a_question_that_only_reports_a_large_gradient_waits_once_per_parameter() -> None:
    body = "for n, p in model.named_parameters():\n    large = p.grad.abs().max()\n"
    body += "    if large > 100:\n        print(n, large)"
    assert codes_of(body) == [("SYNC05", "if large > 100:")]


def test_what_is_not_of_the_parameters_of_the_loop_is_not_asked_of_the_device() -> None:
    body = "for n, p in model.named_parameters():\n    size = limit[n]\n    if size > 100:\n        print(n, size)"
    assert codes_of(body, "limit = read()") == []


def test_parameters_that_numpy_masks_could_be_masked_on_the_device() -> None:
    body = (
        "for p in model.parameters():\n    host = p.data.cpu().numpy()\n    grad = p.grad.data.cpu().numpy()\n"
        "    grad = np.where(host == 0, 0, grad)\n    p.grad.data = torch.from_numpy(grad).to(device)"
    )
    assert codes_of(body) == [
        ("SYNC03", "host = p.data.cpu().numpy()"),
        ("SYNC03", "grad = p.grad.data.cpu().numpy()"),
    ]


def test_what_is_shown_before_the_function_is_left_is_shown_once() -> None:
    assert codes_of("if broken(out):\n    print('broken', loss)\n    return out") == []
    assert codes_of("if known(out):\n    print('known', loss)\n    x = out") == [("SYNC04", "print('known', loss)")]


@pytest.mark.parametrize("rows", ["hidden.unbind(dim=0), out.unbind(0)", "hidden.unbind(), torch.relu(out).unbind()"])
def test_rows_that_are_unbound_are_elements(rows: str) -> None:
    body = f"for h, o in zip({rows}):\n    kept.append(h if o else h * 2)"
    expected = [("SYNC07", "kept.append(h if o else h * 2)")]
    assert codes_of(body, "kept, hidden = [], torch.ones(4, 3)") == expected


def test_columns_that_are_unbound_are_no_elements() -> None:
    body = "for h, o in zip(hidden.unbind(1), out.unbind(dim=1)):\n    kept.append(h if o else h * 2)"
    assert codes_of(body, "kept, hidden = [], torch.ones(4, 3)") == []


def test_a_place_in_a_batch_that_was_moved_is_an_element() -> None:
    body = "for i in range(len(y)):\n    kept.append(out[i] if y[i] else 2 * out[i])"
    loader = "kept = []\nloader = torch.utils.data.DataLoader(data)"
    assert codes_of(body, loader) == [("SYNC07", "kept.append(out[i] if y[i] else 2 * out[i])")]
