"""Numbers that a function of another file reads from the device, seen where a step calls it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability, Finding
from torchlint.semantics.project import Project
from torchlint.source import Source

MAIN = """
import torch
import measures

def train(model, loader, optimizer, criterion):
    total, history = 0.0, []
    for step, (x, y) in enumerate(loader):
        x, y = x.cuda(), y.cuda()
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
{body}
    print(sum(history), total.item())
    return history, total
"""
ACCURACY = """
def measure(out, y):
    hits = out.argmax(1) == y
    return hits.float().mean().item()
"""
APPEND = "history.append(measures.measure(out, y))"


def _found(tmp_path: Path, helper: str, body: str, code: str = "SYNC01") -> list[Finding]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "measures.py").write_text("import torch\n" + dedent(helper))
    (tmp_path / "main.py").write_text(MAIN.format(body=indent(dedent(body), " " * 8)))
    source = Source.read(tmp_path / "main.py")
    return lint(source, Settings.selecting(code), strict=True, project=Project())


@pytest.mark.parametrize(
    ("helper", "body"),
    [
        (ACCURACY, APPEND),
        (ACCURACY, "value = measures.measure(out, y)\nhistory.append(value)"),
        (ACCURACY, "total += measures.measure(out, y)"),
        ("def measure(out, y):\n    return float((out - y).abs().mean())", APPEND),
        (
            "def measure(out, y):\n    return len(y), (out - y).abs().mean().item()",
            "n, part = measures.measure(out, y)\ntotal += part",
        ),
        ("def measure(n):\n    return (n * 2.0).cuda().item()", "history.append(measures.measure(loss))"),
        ("def measure(loss):\n    return loss.view(-1).data.tolist()[0]", "history.append(measures.measure(loss))"),
        ("def measure(loss):\n    return loss.detach().cpu().numpy()", "total += measures.measure(loss)"),
        (
            "def measure(out, y):\n    if out.is_cuda:\n        return out.sum().item()\n    return y.sum().item()",
            APPEND,
        ),
    ],
)
def test_a_number_that_the_helper_of_another_file_returns_is_read_at_its_call(
    tmp_path: Path, helper: str, body: str
) -> None:
    (found,) = _found(tmp_path, helper, body)
    assert "measures.py" in found.message
    assert found.fix is None or found.fix.applicability is Applicability.DISPLAY


@pytest.mark.parametrize(
    ("helper", "body"),
    [
        # it hands out a tensor
        ("def measure(out, y):\n    return (out - y).abs().mean()", APPEND),
        # the read is for something else than what it returns
        ("def measure(out, y):\n    print(out.mean().item())\n    return len(y)", APPEND),
        # it reads at intervals
        (
            "def measure(out, y, step=0):\n    if step % 50 == 0:\n        return out.mean().item()\n    return 0.0",
            "history.append(measures.measure(out, y, step))",
        ),
        # it decides by what it reads
        (
            "def measure(out, y):\n    mean = out.mean().item()\n    if mean > 9:\n        exit()\n    return mean",
            APPEND,
        ),
        # what it reads is nothing that it is given
        ("WEIGHT = torch.ones(3)\n\ndef measure(out, y):\n    return WEIGHT.mean().item()", APPEND),
        # it makes a tensor of the number that it is given
        (
            "def measure(n):\n    return torch.tensor(n * 2.0).cuda().item()",
            "history.append(measures.measure(loss))",
        ),
        # a class is the answer that the model is asked for, and no measure of it
        ("def measure(out, y):\n    best = out.argmax()\n    return best.item()", APPEND),
        # what it makes a float of is a sum of floats, for which another function has waited, or has not
        (
            """
            def hits(guess, truth):
                return float((guess == truth).float().mean().numpy())

            def measure(out, y):
                total = 0.0
                for row in range(len(y)):
                    total += hits(out[row], y[row])
                return float(total / len(y))
            """,
            APPEND,
        ),
        # the loop waits at intervals, goes on by the number, or has copied the tensor for it
        (ACCURACY, "if step % 50 == 0:\n    " + APPEND),
        (ACCURACY, "if measures.measure(out, y) > 0.9:\n    break"),
        (ACCURACY, "out, y = out.cpu(), y.cpu()\nhistory.append((out, y))\n" + APPEND),
    ],
)
def test_other_helpers_and_other_calls_are_left_alone(tmp_path: Path, helper: str, body: str) -> None:
    assert [finding for finding in _found(tmp_path, helper, body) if "measure" in finding.message] == []


@pytest.mark.parametrize(
    ("second", "codes"),
    [
        pytest.param("history.append(measures.measure(out, y))", ["SYNC02"], id="the same"),
        pytest.param("history.append(measures.certainty(out))", [], id="another measure"),
        pytest.param("history.append(measures.measure(out, x))", [], id="for something else"),
    ],
)
def test_only_the_same_function_of_the_same_reads_the_same_number_again(
    tmp_path: Path, second: str, codes: list[str]
) -> None:
    helper = ACCURACY + "\ndef certainty(out):\n    return out.max(1).values.mean().item()\n"
    found = _found(tmp_path, helper, f"{APPEND}\n{second}", "SYNC02")
    assert [finding.code for finding in found] == codes


ON_HOST = """
def measure(out, y, distance):
    out_cpu, y_cpu = {copies}
    rows = [out_cpu[start : start + 2].mean(0) for start in range(0, out.shape[0], 2)]
    return distance(torch.stack(rows), y_cpu).mean()
"""


@pytest.mark.parametrize(("copies", "count"), [('out.to("cpu"), y.cpu()', 0), ("out.detach(), y.cpu()", 1)])
def test_a_loss_that_copies_what_it_is_given_is_on_the_host(tmp_path: Path, copies: str, count: int) -> None:
    body = "part = measures.measure(out, y, criterion)\npart.backward()\nhistory.append(part.item())"
    found = _found(tmp_path, ON_HOST.format(copies=copies), body)
    assert len([finding for finding in found if "part.item()" in finding.message]) == count


@pytest.mark.parametrize(("gate", "is_fixed"), [("", False), ("if step % 9 == 0:\n    ", True)])
def test_a_sum_beside_a_helper_that_waits_in_each_step_is_not_kept_on_the_device(
    tmp_path: Path, gate: str, is_fixed: bool
) -> None:
    found = _found(tmp_path, ACCURACY, f"total += loss.item()\n{gate}{APPEND}")
    [own] = [finding for finding in found if "`loss.item()`" in finding.message]
    assert (own.fix is not None) is is_fixed
    assert is_fixed or "waits for the device anyway" in own.no_fix


TOPK = """
import torch

def accuracy(output, target, places=(1,)):
    output, target = {}, {}
    hits = output.topk(3, 1).indices.t() == target.view(1, -1)
    found = []
    for k in places:
        found.append(hits[:k].reshape(-1).float().{})
    return found
"""
TESTED = """
import torch
from measures import accuracy

@torch.no_grad()
def evaluate(model, loader, meter):
    for x, y in loader:
        out = model(x.cuda())
        first, third = accuracy(out, y.cuda(), (1, 3))
        {}
"""


@pytest.mark.parametrize(
    ("copy", "count", "given", "lines"),
    [
        ("output.to(torch.device('cpu'))", "sum(0, keepdim=True)", "meter.update(first[0])", [5]),
        ("output.cpu()", "mean(dim=0)", "meter.update(first.item())", [5]),
        ("output.to(target.device)", "sum(0, keepdim=True)", "meter.update(first[0])", []),
        ("output.cpu()", "cumsum(0)[:2]", "meter.update(first[0])", []),  # an array of them is gathered
    ],
)
def test_scores_that_a_measure_copies_before_it_counts_hits(
    tmp_path: Path, copy: str, count: str, given: str, lines: list[int]
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "measures.py").write_text(TOPK.format(copy, "target", count))
    (tmp_path / "main.py").write_text(TESTED.format(given))
    source = Source.read(tmp_path / "measures.py")
    found = lint(source, Settings.selecting("SYNC03"), strict=True, project=Project())
    assert [each.line for each in found] == lines
