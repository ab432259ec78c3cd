"""SYNC06: counts that are read from the device batch by batch, only to be added up."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.rules.sync.programs import TORCH_ONLY, evaluation, result_of, training
from tests.support import findings, fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability
from torchlint.semantics.project import Project
from torchlint.source import Source

COUNT = "correct += (out.argmax(1) == y).sum().item()"

COUNTED = {
    "a comparison": evaluation(COUNT, "correct = 0", "return correct"),
    "in training": training(COUNT, "correct = 0", "return correct"),
    "eq": evaluation("correct += out.argmax(1).eq(y).sum().item()", "correct = 0", "return correct"),
    "eq of a view": evaluation(
        "_, p = out.max(1)\ncorrect += p.eq(y.view_as(p)).sum().item()", "correct = 0", "return correct"
    ),
    "torch.sum": evaluation("correct += torch.sum(out.argmax(1) == y).item()", "correct = 0", "return correct"),
    "data": evaluation(
        "_, p = torch.max(out.data, 1)\ncorrect += (p == y).sum().item()", "correct = 0", "return correct"
    ),
    "int of a tensor": evaluation("correct += int((out.argmax(1) == y).sum())", "correct = 0", "return correct"),
    "int of a number": evaluation("correct += int(out.argmax(1).eq(y).sum().item())", "correct = 0", "return correct"),
    "under a name": evaluation("hits = (out.argmax(1) == y).sum().item()\ncorrect += hits", "correct = 0"),
    "in a dict": evaluation("stats['correct'] += (out.argmax(1) == y).sum().item()", "stats = {'correct': 0}"),
    "shown batch by batch": evaluation(COUNT + "\nprint(correct)", "correct = 0", "return correct"),
    "through the host": evaluation("correct += (out.argmax(1) == y).sum().cpu().item()", "correct = 0"),
}

SILENT = {
    "a rank, where a search for it has waited": evaluation(
        "best = out.topk(2)[1]\nif y[0] in best:\n    gain += 1 / np.log2((best == y[0]).sum().item() + 2)",
        "gain = 0",
        "return gain",
    ),
    "on the device": evaluation("correct += (out.argmax(1) == y).sum()", "correct = 0", "return int(correct)"),
    "a mean": evaluation("total += (out.argmax(1) == y).float().mean().item()", "total = 0.0", "return total"),
    "a line of text": evaluation("line = 'hits'\nline += f' {(out.argmax(1) == y).sum().item()}'\nprint(line)"),
    "a loss": evaluation("total += loss.item()", "total = 0.0", "return total"),
    "behind a log interval": training("if step % 10 == 0:\n    " + COUNT, "correct = 0", "return correct"),
    "the size of the batch": evaluation("seen += y.size(0)", "seen = 0", "return seen"),
    "it decides": evaluation(COUNT + "\nif correct > 100:\n    break", "correct = 0", "return correct"),
    "labels on the host": """
        import torch

        def count(loader):
            positive = 0
            for x, y in torch.utils.data.DataLoader(loader, num_workers=2):
                x = x.cuda()
                positive += (y == 1).sum().item()
            return positive
    """,
}


@pytest.mark.parametrize("code", COUNTED.values(), ids=COUNTED)
def test_a_count_that_is_read_per_batch_is_found_by_this_rule_alone(code: str) -> None:
    assert [finding.code for finding in findings(code, "SYNC01", "SYNC03", "SYNC06")] == ["SYNC06"]


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_what_is_no_count_or_stays_on_the_device_is_silent(code: str) -> None:
    assert findings(code, "SYNC06") == []


# -- the fix ---------------------------------------------------------------------------------------------------------

REWRITES = {
    "a quotient": (COUNT, "correct = 0", "return correct / 7"),
    "a number": (COUNT, "correct = 0", "return correct"),
    "a percentage": (COUNT, "correct = 0", "return 100. * correct / 7, f'{correct}/{7}'"),
    "a cast": (COUNT, "correct = 0", "return float(correct), int(correct)"),
    "a division behind the loop": (COUNT, "correct = 0", "correct /= 7\nreturn correct"),
    "a quotient under the same name": (COUNT, "correct = 0", "correct = correct / 7\nprint(correct)\nreturn correct"),
    "a count that is written out": (
        "correct = correct + (out.argmax(1) == y).sum().item()",
        "correct = 0",
        "return correct",
    ),
    "both of two": ("correct += ((out.argmax(1) == 1) & (y == 1)).sum().item()", "correct = 0", "return correct"),
    "of what is not known": (
        "p = list([out.argmax(1)])[0]\ncorrect += (p != y).sum().item()",
        "correct = 0",
        "return correct",
    ),
    "int of a tensor": ("correct += int(out.argmax(1).eq(y).sum())", "correct = 0", "return correct // 2"),
    "torch.sum": ("correct += torch.sum(out.argmax(1) == y).item()", "correct = 0", "return correct"),
    "beside another sum": (COUNT + "\nseen += len(y)", "correct = seen = 0", "return correct / max(seen, 1)"),
    "from a float": (COUNT, "correct = 0.0", "return correct / 7, correct"),
    "reset at intervals": (
        COUNT + "\nif step % 2 == 1:\n    kept.append(correct)\n    correct = 0",
        "correct, kept = 0, []",
        "return correct, kept",
    ),
}


@pytest.mark.parametrize(("body", "before", "after"), REWRITES.values(), ids=REWRITES)
@pytest.mark.parametrize("batches", [0, 1, 5])
def test_the_rewritten_count_is_the_same_number(body: str, before: str, after: str, batches: int) -> None:
    code = evaluation(body, before, after, head=TORCH_ONLY)
    new = fixed(code, "SYNC06", unsafe=False)
    assert new != code
    assert ".item()" not in new
    assert repr(result_of(code, "evaluate", batches)) == repr(result_of(new, "evaluate", batches))


def test_only_the_term_and_the_reads_change() -> None:
    code = evaluation(COUNT + "  # per batch", "correct = 0", "return correct / len(loader)  # mean", head=TORCH_ONLY)
    assert fixed(code, "SYNC06", unsafe=False) == code.replace(".sum().item()", ".sum()").replace(
        "return correct", "return int(correct)"
    )


def test_parentheses_that_only_the_readback_needed_go() -> None:
    code = evaluation("correct += (torch.sum(out.argmax(1) == y)).item()", "correct = 0", "return correct")
    assert "correct += torch.sum(out.argmax(1) == y)\n" in fixed(code, "SYNC06", unsafe=False)


TRAIN_AND_TEST = """\
def run(model, criterion, optimizer, loader, test_loader):
    correct = 0
    for x, y in loader:
        optimizer.zero_grad()
        out = model(x.to(device))
        loss = criterion(out, y.to(device))
        loss.backward()
        optimizer.step()
        correct += (out.argmax(1) == y.to(device)).sum().item()
        if loss.item() > 9:
            break
    print(correct)
    TOTAL = 0
    with torch.no_grad():
        for x, y in test_loader:
            TOTAL += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
    print(TOTAL)
"""


@pytest.mark.parametrize(("name", "is_fixed"), [("correct", False), ("right", True)])
def test_one_variable_is_a_number_in_both_of_its_loops_or_in_none(name: str, is_fixed: bool) -> None:
    code = TORCH_ONLY + TRAIN_AND_TEST.replace("TOTAL", name)
    assert ("print(int(" in fixed(code, "SYNC06", unsafe=False)) is is_fixed


UNFIXED = {
    "shown batch by batch": evaluation(COUNT + "\nprint(correct)", "correct = 0", "return correct"),
    "through a name": evaluation("hits = (out.argmax(1) == y).sum().item()\ncorrect += hits", "correct = 0"),
    "a multiple": evaluation("correct += 2 * (out.argmax(1) == y).sum().item()", "correct = 0", "return correct"),
    "a share": evaluation("correct += (out.argmax(1) == y).sum().item() / len(y)", "correct = 0", "return correct"),
    "a sum of another type": evaluation(
        "correct += (out.argmax(1) == y).sum(dtype=torch.float32).item()", "correct = 0", "return correct"
    ),
    "the largest": evaluation("correct += out.argmax(1).max().item()", "correct = 0", "return correct"),
    "beside rows that a mask chooses": evaluation(COUNT + "\nkept = out[out > 0]", "correct = 0", "return correct"),
    "returned by an inner function": evaluation(COUNT, "correct = 0", "return lambda: correct"),
    "int means something else": evaluation(COUNT, "int = str\ncorrect = 0", "return correct"),
}


@pytest.mark.parametrize("code", UNFIXED.values(), ids=UNFIXED)
def test_no_fix_where_a_read_could_tell(code: str) -> None:
    for finding in findings(code, "SYNC06"):
        assert finding.fix is None


def test_the_fix_is_unsafe_where_the_loop_reads_a_clock() -> None:
    code = evaluation(COUNT + "\ntimes.append(time.perf_counter())", "correct, times = 0, []", "return correct")
    [finding] = findings(code, "SYNC06")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


@pytest.mark.parametrize(("name", "fixable"), [("correct", False), ("total", True)])
def test_a_count_that_another_file_imports_stays_a_number(tmp_path: Path, name: str, fixable: bool) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "report.py").write_text(f"from scores import {name}\n")
    code = """
        import torch
        from data import loader, model

        correct = total = 0
        with torch.no_grad():
            for x, y in loader:
                x, y = x.cuda(), y.cuda()
                correct += (model(x).argmax(1) == y).sum().item()
                total += len(y)
        print(correct / total)
        """
    (tmp_path / "scores.py").write_text(dedent(code))
    source = Source.read(tmp_path / "scores.py")
    [found] = lint(source, Settings.selecting("SYNC06"), strict=True, project=Project())
    assert (found.fix is not None) == fixable


@pytest.mark.parametrize(("moved", "count"), [("", 0), (".cuda()", 1)])
def test_a_file_that_only_asks_whether_there_is_a_gpu_does_not_use_it(moved: str, count: int) -> None:
    code = """
        import torch
        print(torch.cuda.is_available())

        net = torch.nn.Linear(2, 2){0}
        correct = 0
        for x, y in torch.utils.data.DataLoader(images):
            correct += (net(x{0}).argmax(1) == y{0}).sum().item()
        print(correct)
        """
    assert len(findings(dedent(code.format(moved)), "SYNC06")) == count


TOLD = """\
import torch
from solvers import Solver, Trainer

def grid(x):
    return torch.arange(x.shape[0]).to(x.device)

solver = Solver(grid)
trainer = Trainer(solver, max_epochs=1, accelerator="{accelerator}")
trainer.fit()
solver.eval()
correct = 0
with torch.no_grad():
    for images, labels in trainer.test_dataloader():
        correct += (solver(images).argmax(1) == labels).sum().item()
print(correct)
"""


@pytest.mark.parametrize(("accelerator", "count"), [("cpu", 0), ("gpu", 1)])
def test_a_trainer_that_is_told_to_stay_on_the_host(accelerator: str, count: int) -> None:
    assert len(findings(TOLD.format(accelerator=accelerator), "SYNC06")) == count


@pytest.mark.parametrize("read", ["gain.mean().item()", "(gain - worst).mean().item()", "gain.item()"])
def test_a_sum_stays_on_the_host_beside_one_of_what_may_wait_for_the_device(read: str) -> None:
    code = f"""
        import torch
        from torch import nn
        from measures import gains

        net = nn.Linear(2, 2).cuda()
        correct = gained = 0
        with torch.no_grad():
            for x, y in torch.utils.data.DataLoader(images):
                out = net(x.cuda())
                gain, worst = gains(out)
                correct += (out.argmax(1) == y.cuda()).sum().item()
                gained += {read}
        print(correct, gained)
        """
    [found] = findings(dedent(code), "SYNC06")
    assert found.fix is None
    assert "waits for the device anyway" in (found.no_fix or "")
