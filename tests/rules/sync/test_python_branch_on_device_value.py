"""SYNC05: decisions by a value on the device that the step does not hang on."""

from __future__ import annotations

import pytest
import torch

from tests.rules.sync.programs import TORCH_ONLY, evaluation, line_of, result_of, training
from tests.support import findings, fixed
from torchlint.finding import Applicability

ALL = ("SYNC01", "SYNC02", "SYNC03", "SYNC04", "SYNC05", "SYNC06", "SYNC07", "SYNC09")

NEEDLESS = {
    "an assertion": training("assert torch.all(out < 3)"),
    "an assertion about what an interval reads": training(
        "assert torch.all(out > 0)\nif step % 100 == 0:\n    print(out.cpu())"
    ),
    "an assertion about what is read after the loop": training("assert torch.all(out > 0)", after="return out.cpu()"),
    "an assertion on a number": training("assert loss.item() < 100"),
    "an assertion on all": evaluation("assert (out > 0).all(), 'not positive'"),
    "an assertion on a range": evaluation("assert out.min() >= 0 and out.max() <= 1, 'out of range'"),
    "a report": training("if torch.isnan(loss):\n    print('the loss is NaN')"),
    "a report with the number": training("if loss > 100:\n    print('the loss is', loss)"),
    "a warning": training("if loss.item() > 100:\n    warnings.warn('large')").replace(
        "import math", "import math\nimport warnings"
    ),
    "the flag comes last": evaluation("if loss > 3 and debug:\n    raise ValueError(step)", "debug = False"),
    "an empty mask does nothing": evaluation(
        "mask = out > 3\nif mask.any():\n    out[mask] = 0\nkept.append(out)", "kept = []"
    ),
    "a bound that is written out": training("weight = loss if loss > 0 else 0\nkept.append(weight)", "kept = []"),
    "a bound": training("weight = max(0.0, 1 - loss)\nkept.append(weight)", "kept = []"),
    "a bound of two tensors": training("kept.append(min(loss.detach(), out.mean()))", "kept = []"),
    "an empty mask by its sum": evaluation(
        "mask = out > 3\nif mask.sum() > 0:\n    out[mask] = 0\nkept.append(out)", "kept = []"
    ),
    "an empty mask behind another condition": evaluation(
        "mask = out > 3\nif step > 0 and torch.sum(mask) > 0:\n    out[mask] = 0\nkept.append(out)", "kept = []"
    ),
    "an empty mask in every time step": evaluation(
        "for t in range(5):\n    mask = out[:, t] > 3\n    if mask.any():\n        out[mask, t] = x[mask]\nmodel(out)",
        "kept = []",
    ),
    "a count of hits": evaluation(
        "if (out.argmax(1) == y).all():\n    hits += 1", "hits = 0", "return hits / len(loader)"
    ),
    "a count by the number": evaluation("if loss.item() > 3:\n    bad += 1", "bad = 0", "print(bad)"),
    "a count of rows": evaluation(
        "for guess, truth in zip(out.argmax(1), y):\n    if guess.eq(truth).sum().item() == 4:\n        hits += 1",
        "hits = 0",
        "return hits",
    ),
}

FORWARD = """
import torch
from torch import nn
from torch.nn import functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Margin(nn.Module):
    def {name}(self, out, labels):
        assert torch.min(labels) >= 0
        return F.nll_loss(out, labels) / max(labels.float().sum(), 1.0)
"""


def test_the_forward_of_a_loss_runs_in_every_step_whoever_calls_it() -> None:
    code = FORWARD.lstrip().format(name="forward")
    assert [finding.line for finding in findings(code, "SYNC05")] == [line_of(code, "assert"), line_of(code, "max(")]


@pytest.mark.parametrize("name", ["check", "__init__"])
def test_another_method_that_nobody_calls_is_no_step(name: str) -> None:
    assert findings(FORWARD.format(name=name), "SYNC05") == []


def test_what_a_forward_makes_of_a_list_of_inputs_may_be_anywhere() -> None:
    code = FORWARD.format(name="forward").replace(
        "        assert torch.min(labels) >= 0\n",
        "        parts = [torch.cat([one, one]) for one in labels]\n        assert torch.min(parts[0]) >= 0\n",
    )
    assert len(findings(code, "SYNC05")) == 1


def test_the_sizes_of_inputs_are_no_tensors() -> None:
    code = FORWARD.format(name="forward").replace("torch.min(labels) >= 0", "torch.all(out.shape == labels.shape)")
    assert len(findings(code, "SYNC05")) == 1


def test_the_forward_of_a_model_that_runs_once_is_no_step() -> None:
    code = FORWARD.format(name="forward") + "\n\nprint(Margin().to(device)(torch.ones(2, 3), torch.ones(2)))\n"
    assert findings(code, "SYNC05") == []


SILENT = {
    "a report behind a flag": training(
        "if debug and torch.isnan(loss):\n    print('the loss is NaN')", "debug = False"
    ),
    "a report every so often": training("if step % 10 == 0 and loss > 3:\n    print('the loss is large')"),
    "a count that the loop looks at": evaluation(
        "if loss > 3:\n    bad += 1\nif bad > 9:\n    break", "bad = 0", "return bad"
    ),
    "a count and its opposite": evaluation("if loss > 3:\n    bad += 1\nelse:\n    bad = 0", "bad = 0", "return bad"),
    "a count of what the host knows": evaluation("if step > 3:\n    late += 1", "late = 0", "return late"),
    "a mask beside indices": evaluation(
        "mask = out[0] > 3\nif mask.any():\n    out[y, mask] = 0\nkept.append(out)", "kept = []"
    ),
    "an early stop": training("if loss < 1e-3:\n    break"),
    "a skipped step": training("if torch.isnan(loss):\n    continue\nprint(step)"),
    "a guard": training("if not torch.isfinite(loss):\n    raise ValueError(step)"),
    "a guard that is an assertion": training("assert torch.isfinite(loss).all() and not out.isnan().any()"),
    "an assertion about what is read besides": training(
        "assert torch.all(out[:, 0] > 0), 'no sizes'\nsizes = out[:, 0].tolist()\nkept.append(sizes)", "kept = []"
    ),
    "a guard that reports first": training("if torch.isnan(loss):\n    print('NaN')\n    sys.exit(1)"),
    "the best so far": training("if loss < best:\n    best = loss.detach()", "best = 1e9", "return best"),
    "None": training("assert loss is not None"),
    "a shape": training("assert out.shape == y.shape and out.dim() == 2"),
    "a flag of the tensor": training("assert loss.requires_grad"),
    "a kind": training("assert isinstance(loss, torch.Tensor)"),
    "numbers of Python": training("assert step < 100"),
    "one of two, by a third": training("kept.append(loss if step > 5 else 0)", "kept = []"),
    "one of two, by whether they are equal": training("kept.append(step if step == epoch else epoch)", "kept = []"),
    "a bound of numbers, written out": training("weight = step if step > 100 else 100\nprint(weight)"),
    "a bound of numbers": training("weight = max(0, step - 100)\nprint(weight)"),
    "a bound on the host": evaluation("kept.append(max(0, out.mean().cpu()))", "kept = []"),
    "the larger by a key of its own": training("print(max(loss, 2, key=weights.get))"),
    "a bound at log intervals": training("if step % 100 == 0:\n    kept.append(max(0, loss))", "kept = []"),
    "at log intervals": training("if step % 100 == 0:\n    assert not torch.isnan(loss)"),
    "the flag comes first": evaluation("if debug and loss > 3:\n    raise ValueError(step)", "debug = False"),
    "one way or the other": training(
        "if loss > 3:\n    print('large')\nelse:\n    scheduler.step()", "scheduler = make()"
    ),
    "on the host": evaluation("low = out.cpu()\nassert low.min() >= 0"),
    "a mask that more hangs on": evaluation(
        "mask = out > 3\nif mask.any():\n    out[mask] = 0\n    count += 1", "count = 0"
    ),
    "a store of more than a number": evaluation("mask = out > 3\nif mask.any():\n    out[mask] = model(out[mask])"),
    "indices that are no mask": evaluation("rows = out.argmax(1)\nif rows.any():\n    out[rows] = 0"),
    "another mask": evaluation("mask = out > 3\nif mask.any():\n    out[out > 5] = 0"),
    "outside of a loop": """
        import torch

        def check(model, x):
            out = model(x.cuda())
            assert not torch.isnan(out).any()
            return out
    """,
}


@pytest.mark.parametrize("code", NEEDLESS.values(), ids=NEEDLESS)
def test_a_decision_that_the_step_does_not_hang_on_is_found_once_and_by_this_rule_alone(code: str) -> None:
    assert [finding.code for finding in findings(code, *ALL)] == ["SYNC05"]


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_decisions_that_the_algorithm_needs_are_silent(code: str) -> None:
    assert findings(code, "SYNC05") == []


def test_the_message_says_what_to_do() -> None:
    code = NEEDLESS["the flag comes last"]
    [finding] = findings(code, "SYNC05")
    assert finding.line == line_of(code, "and debug")
    assert finding.message.startswith("To know the truth of `loss > 3`, the host waits")
    assert "Ask the flag first" in finding.message


# -- the fix ---------------------------------------------------------------------------------------------------------

REWRITES = {
    "a mask behind a condition, in parentheses": (
        "mask = out > 0.1\nif(step > 1 and mask.any()):\n    out[mask] = 7\nseen += out.sum()",
        "if(step > 1):\n            out[mask] = 7",
    ),
    "a mask behind a condition": (
        "mask = out > 0.1\nif step > 1 and torch.sum(mask) > 0:\n    out[mask] = 7\nseen += out.sum()",
        "if step > 1:\n            out[mask] = 7",
    ),
    "a flag": ("if loss.item() > 0 and {flag}:\n    seen += 1", "if {flag} and loss.item() > 0:"),
    "a test in parentheses": ("if (loss > 0 and {flag}):\n    seen += 1", "if ({flag} and loss > 0):"),
    "one of two": ("if (loss > 9 or out.max() > 0) and {flag}:\n    seen += 1", "if {flag} and (loss > 9 or"),
    "with another way": (
        "if torch.isnan(loss) and {flag}:\n    seen += 1\nelse:\n    seen += 2",
        "if {flag} and torch.isnan",
    ),
    "a mask": ("mask = out > 0.1\nif mask.any():\n    out[mask] = 7\nseen += out.sum()", "\n        out[mask] = 7"),
    "a mask on one line": (
        "mask = out > 9\nif torch.any(mask): out[mask] = 7\nseen += out.sum()",
        "\n        out[mask] = 7",
    ),
    "a mask that is written out": (
        "if (out > 0.1).sum() > 0:\n    out[out > 0.1] = 7\nseen += out.sum()",
        "\n        out[out > 0.1] = 7",
    ),
}


@pytest.mark.parametrize(("body", "expected"), REWRITES.values(), ids=REWRITES)
@pytest.mark.parametrize("flag", ["True", "False"])
def test_the_same_is_decided_without_the_question(body: str, expected: str, flag: str) -> None:
    code = evaluation(body.format(flag="chatty"), f"seen, chatty = 0, {flag}", "return seen", head=TORCH_ONLY)
    new = fixed(code, "SYNC05")
    assert expected.format(flag="chatty") in new
    assert repr(result_of(code, "evaluate", 4)) == repr(result_of(new, "evaluate", 4))
    assert findings(new, "SYNC05") == []


def test_the_lines_of_a_condition_stay_as_they_are() -> None:
    body = "if (\n    {}\n    and {}\n):\n    print(1)"
    given = ("torch.isfinite(loss)", "chatty")
    code = evaluation(body.format(*given), "chatty = False", head=TORCH_ONLY)
    assert fixed(code, "SYNC05") == evaluation(body.format(*given[::-1]), "chatty = False", head=TORCH_ONLY)


def test_a_store_without_its_question_is_safe_outside_of_a_graph_only() -> None:
    body = "mask = out > 0.1\nif mask.any():\n    out[mask] = 7\nkept.append(out)"
    for code, expected in ((evaluation(body), Applicability.SAFE), (training(body), Applicability.UNSAFE)):
        [finding] = findings(code, "SYNC05")
        assert finding.fix is not None
        assert finding.fix.applicability is expected


def test_a_store_into_what_a_graph_shares_is_not_safe() -> None:
    body = "low = out.detach()\nif (low < 0).any():\n    low[low < 0] = 0\nkept.append(low)"
    [finding] = findings(training(body, "kept = []"), "SYNC05")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    weight = torch.ones(3, requires_grad=True)
    squares = weight * weight
    loss = (squares**2).sum()
    squares.detach()[squares < 0] = 0  # autograd counts a store under an empty mask, too
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


UNFIXED = {
    "a count": evaluation("if loss > 3:\n    bad += 1", "bad = 0", "return bad"),
    "an assertion": training("assert torch.all(out < 3)"),
    "a report": training("if torch.isnan(loss):\n    print('the loss is NaN')"),
    "the test runs a model": evaluation("if model(x).mean() > 0 and chatty:\n    raise ValueError(step)"),
    "the test changes its tensor": evaluation("if out.mul_(2).max() > 0 and chatty:\n    raise ValueError(step)"),
    "the test binds a name": evaluation("if (top := out.max()) > 0 and chatty:\n    raise ValueError(top)"),
    "what is stored is picked by the mask": evaluation(
        "mask = out > 0.1\nif mask.any():\n    out[mask] = x[mask]\nkept.append(out)"
    ),
    "a store into a graph that goes backward below": training(
        "mask = out.exp()\nif (mask > 9).any():\n    mask[mask > 9] = 9\nmask.sum().backward()"
    ),
    "a comment would be lost": evaluation("mask = out > 0\nif mask.any():  # clip\n    out[mask] = 0"),
}


@pytest.mark.parametrize("code", UNFIXED.values(), ids=UNFIXED)
def test_no_fix_where_the_question_may_be_meant(code: str) -> None:
    assert all(finding.fix is None for finding in findings(code, "SYNC05"))


@pytest.mark.parametrize(("asked", "count"), [("'depth' in found", 0), ("3 in found", 1)])
def test_what_has_a_text_among_its_keys_is_no_tensor(asked: str, count: int) -> None:
    code = evaluation(f"assert {asked}").replace("found", "out")
    assert len(findings(code, "SYNC05")) == count
