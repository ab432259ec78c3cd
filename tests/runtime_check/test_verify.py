"""Whole checks of small programs, each under the real probe in its own processes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from torchlint.runtime_check import Options, Overall, Verdict, verify_trees
from torchlint.runtime_check.equivalence import Sameness
from torchlint.runtime_check.stats import Pace
from torchlint.runtime_check.verdict import Weight

pytestmark = pytest.mark.usefixtures("forked")

Check = Callable[..., Verdict]

TRAINING = """
    import argparse

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int)
        epochs = parser.parse_args().epochs
        data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses, running = [], 0.0
        for epoch in range(epochs):
            for x, y in DataLoader(data, batch_size=8, shuffle=True):
                rows = []
                for i in range(x.shape[0]):
                    rows.append(x[i] * 2 + 1)
                x = torch.stack(rows)
                loss = (model(x) - y).square().mul(1 / 3).mean().mul(3)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss)
                running += loss.item()
        print(f"mean loss {running / len(losses):.4f}")


    if __name__ == "__main__":
        main()
"""
LEAK = ("losses.append(loss)", "losses.append(loss.detach())")
READ = ("running += loss.item()", "running += loss.detach()")
ROUNDING = (".mul(1 / 3).mean().mul(3)", ".mean()")
ROWS = (
    """rows = []
                for i in range(x.shape[0]):
                    rows.append(x[i] * 2 + 1)
                x = torch.stack(rows)""",
    "x = x * 2 + 1",
)


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Check:
    def check(code: str, *replacements: tuple[str, str], words: tuple[str, ...] = (), **options: object) -> Verdict:
        root = tmp_path_factory.mktemp("project")
        changed = code
        for old, new in replacements:
            assert old in changed
            changed = changed.replace(old, new)
        (root / "train.py").write_text(dedent(code))
        given = {"steps": 12, "warmup": 2, "blocks": 0, "timeout": 60.0, **options}
        command = [sys.executable, "train.py", *words]
        return verify_trees(root, {Path("train.py"): dedent(changed)}, command, Options(**given))  # type: ignore[arg-type]

    return check


@pytest.fixture(scope="module")
def training(check: Check) -> Verdict:
    return check(TRAINING, LEAK, READ, ROWS, ROUNDING, words=("--epochs", "9"))


def test_a_rewrite_that_computes_the_same_and_gains_is_accepted(training: Verdict) -> None:
    assert training.overall is Overall.ACCEPT, training
    assert training.equivalence is not None
    assert training.equivalence.verdict is Sameness.ROUNDING
    assert training.equivalence.double_distance is not None
    assert training.equivalence.double_distance < 1e-12 < training.equivalence.loss_distance < 1e-5
    assert training.equivalence.deterministic_baseline
    assert (training.equivalence.losses, training.equivalence.parameters) == (12, 2)


def test_a_leak_is_a_graph_that_grows_by_its_nodes(training: Verdict) -> None:
    assert training.before is not None
    assert training.after is not None
    # mul, mean, mul, pow (of square), sub, addmm and t (of the weight): seven nodes of each step are kept
    assert training.before.graph_nodes_kept_per_step == 7.0
    assert training.after.graph_nodes_kept_per_step == 0.0
    assert training.memory is not None
    assert training.memory.verdict is Weight.LIGHTER


def test_a_row_loop_is_operations(training: Verdict) -> None:
    assert training.before is not None
    assert training.after is not None
    # eight rows of mul and add, and the stack, become one mul and one add; two mul go, forward and backward
    assert training.before.kernels - training.after.kernels == pytest.approx(8 * 2 + 1 - 2 + 4)


def test_a_read_is_a_line(training: Verdict) -> None:
    assert training.before is not None
    assert training.after is not None
    assert (training.before.syncs, training.after.syncs) == (1.0, 0.0)
    line = next(number for number, text in enumerate(dedent(TRAINING).splitlines(), 1) if "loss.item()" in text)
    assert training.before.sync_lines == {f"train.py:{line}": 1.0}


def test_another_result_is_rejected_without_timing_it(check: Check) -> None:
    verdict = check("import torch\nprint(torch.rand(3))\n", ("rand(3)", "rand(4)[:3]"), blocks=5)
    assert verdict.overall is Overall.REJECT
    assert verdict.reasons == ("results differ: torch random numbers are drawn differently",)
    assert verdict.timing is None


def test_inference_is_measured_per_batch_and_compared_by_its_output(check: Check) -> None:
    code = """
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        torch.manual_seed(3)
        model = torch.nn.Linear(4, 2)
        total = 0.0
        for (x,) in DataLoader(TensorDataset(torch.randn(48, 4)), batch_size=8):
            total += model(x).sum().item()
        print(f"total {total:.4f}")
    """
    verdict = check(code, ("total += model(x)", "with torch.no_grad():\n                total += model(x)"))
    assert verdict.environment is not None
    assert (verdict.environment.boundary, verdict.environment.steps) == ("loader", 6)
    assert verdict.equivalence is not None
    assert verdict.equivalence.verdict is Sameness.IDENTICAL
    assert "output" in verdict.equivalence.reason
    assert verdict.overall is Overall.REVIEW


def test_a_program_without_batches_is_one_step(check: Check) -> None:
    code = "import torch\nx = torch.arange(6.0)\nprint(sum(x[i] * 2 for i in range(6)).item())\n"
    verdict = check(code, ("sum(x[i] * 2 for i in range(6))", "(x * 2).sum()"), blocks=1)
    assert verdict.environment is not None
    assert verdict.environment.boundary == "program"
    assert verdict.overall is Overall.ACCEPT
    assert verdict.reasons == ("fewer operations",)
    assert verdict.timing is not None
    assert verdict.timing.comparison.pace is Pace.INCONCLUSIVE
    assert [len(times) for times in (verdict.timing.original, verdict.timing.control, verdict.timing.changed)] == [
        1
    ] * 3


def test_a_baseline_that_fails_is_never_blamed_on_the_fix(check: Check) -> None:
    verdict = check("raise SystemExit('no data')\n", ("no data", "no fix"))
    assert verdict.overall is Overall.ERROR
    assert verdict.reasons == ("baseline does not run: exit code 1",)
    assert "no data" in verdict.log


def test_a_rewrite_that_fails_is_rejected(check: Check) -> None:
    verdict = check("import torch\nprint(torch.ones(1))\n", ("torch.ones(1)", "torch.one(1)"))
    assert verdict.overall is Overall.REJECT
    assert "AttributeError" in verdict.log


def test_a_hanging_command_says_so(check: Check) -> None:
    verdict = check("import time\ntime.sleep(60)\n", ("60", "61"), timeout=1.0)
    assert verdict.reasons == ("baseline does not run: killed after 1 s without finishing",)


def test_without_torch_there_is_nothing_to_measure(check: Check) -> None:
    verdict = check("print('hello')\n", ("hello", "good day"))
    assert verdict.overall is Overall.ERROR
    assert "did not import torch" in verdict.reasons[0]
