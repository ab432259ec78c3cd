"""Which reads of a training step the rules about host synchronisation see, whatever the step is made of."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.rules.sync.programs import training
from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source


def lines_in(path: Path, files: dict[str, str], *codes: str) -> list[str]:
    """The stripped lines of main.py on which the rules find something."""
    (path / "pyproject.toml").touch()
    for name, code in files.items():
        (path / name).write_text(dedent(code))
    main = Source.read(path / "main.py")
    found = lint(main, Settings.selecting(*codes), strict=True, project=Project())
    return [main.line(finding.line).strip() for finding in found]


REPORTS = {
    "behind a check for NaN": "value = loss.item()\nif not math.isnan(value) and rank == 0:\n    print(step, value)",
    "behind a bound": "value = loss.item()\nif value > 100:\n    print('large', value)",
    "with names of its own": (
        "value = loss.item()\nif value > 0:\n    took = time.time() - start\n    logger.log_training(value, took)"
    ),
}


@pytest.mark.parametrize("body", REPORTS.values(), ids=REPORTS)
def test_a_test_that_only_guards_a_report_can_wait(body: str) -> None:
    assert len(findings(training(body), "SYNC01")) == 1


DECISIONS = {
    "a stop": "value = loss.item()\nif math.isnan(value):\n    print(value)\n    break",
    "an exception": "value = loss.item()\nif not math.isfinite(value):\n    raise ValueError(value)\nprint(value)",
    "the best so far": "value = loss.item()\nif value < best:\n    best = value\n    print(best)",
    "another report": "value = loss.item()\nif value > 9:\n    print(value)\nelse:\n    model.reset()",
    "an answer that is stored": "is_bad = math.isnan(loss.item())\nif is_bad:\n    continue",
    "a forward pass for the report": "value = loss.item()\nif value > 9:\n    shown = model(x)\n    print(shown)",
    "the test itself, which another rule reports": "if loss.item() > 100:\n    print('large')",
}


@pytest.mark.parametrize("body", DECISIONS.values(), ids=DECISIONS)
def test_a_test_that_the_step_hangs_on_needs_its_number(body: str) -> None:
    assert findings(training(body, "best = 9.0"), "SYNC01") == []


RUNNING_MEANS = {
    "begun by a test for None": ("mean is None", "mean = {first}", "mean = 0.9 * mean + 0.1 * loss.item()"),
    "gone on with by a test for None": ("mean is not None", "mean = 0.9 * mean + 0.1 * loss.item()", "mean = {first}"),
    "gone on with where it is true": ("mean", "mean = 0.9 * mean + 0.1 * loss.item()", "mean = {first}"),
}


@pytest.mark.parametrize(("test", "then", "otherwise"), RUNNING_MEANS.values(), ids=RUNNING_MEANS)
def test_a_running_mean_is_begun_once_and_read_in_every_other_step(test: str, then: str, otherwise: str) -> None:
    body = f"if {test}:\n    {then}\nelse:\n    {otherwise}\nbar.set_description(str(mean))"
    code = training(body.format(first="loss.item()"), "bar = Bar()\nmean = None")
    assert [code.splitlines()[found.line - 1].strip() for found in findings(code, "SYNC01")] == [
        "mean = 0.9 * mean + 0.1 * loss.item()"
    ]


def test_a_number_that_decides_by_its_value_is_needed() -> None:
    body = "if mean:\n    mean = 0.9 * mean + 0.1 * loss.item()\nelse:\n    mean = loss.item()\n"
    assert findings(training(body + "if mean == 0:\n    break", "mean = None"), "SYNC01") == []
    assert findings(training(body, "mean = 0.0"), "SYNC01") == []


def test_what_begins_beside_a_mean_that_is_zero_at_first_is_read_once() -> None:
    begun = "if mean == 0.0:\n    mean = loss.item()\n    error = loss.sqrt().item()\n"
    code = training(begun + "error = 0.9 * error + loss.sqrt().item()\nprint(error)", "mean = 0.0")
    assert [code.splitlines()[found.line - 1].strip() for found in findings(code, "SYNC01")] == [
        "error = 0.9 * error + loss.sqrt().item()"
    ]


@pytest.mark.parametrize(("read", "count"), [("[()]", 1), ("", 0), ("[0]", 0)])
def test_the_one_number_of_an_array_without_dimensions_is_a_number(read: str, count: int) -> None:
    body = f"history.append(criteria[0](model(x), y).data.cpu().numpy(){read})\nloss = loss.mean()"
    assert len(findings(training(body, "history = []"), "SYNC01")) == count


CRITERION = """
    from torch import nn


    class SpeechLoss(nn.Module):
        def forward(self, guess, truth):
            error = (guess - truth).square().mean()
            size = guess.abs().mean()
            return {returned}
"""


@pytest.mark.parametrize(
    ("returned", "reading"),
    [
        ("[error, size], error + size", "for part in parts:\n            history.append(part.data.clone().item())"),
        ("{'error': error, 'size': size}, error + size", "for part in parts.values():\n            note(part.item())"),
        ("{'error': error, 'size': size}, error + size", "history.append(parts['size'].item())"),
    ],
)
def test_the_parts_of_a_loss_of_another_file_are_read(tmp_path: Path, returned: str, reading: str) -> None:
    program = f"""
    import torch
    from criterion import SpeechLoss

    def train(model, loader, optimizer):
        criterion = SpeechLoss().cuda()
        history = []
        for x, y in loader:
            optimizer.zero_grad()
            parts, loss = criterion(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            {reading}
        return history
    """
    files = {"criterion.py": CRITERION.replace("{returned}", returned), "main.py": program}
    assert lines_in(tmp_path, files, "SYNC01") == [reading.rpartition("\n")[2].strip()]


def test_data_parallel_as_a_function_is_a_forward_pass() -> None:
    code = """
        import torch
        from torch.nn.parallel import data_parallel

        class Trainer:
            def __init__(self, net, devices):
                self.net = net
                self.devices = devices

            @torch.no_grad()
            def validate(self, loader):
                errors = []
                for batch in loader:
                    guess = data_parallel(self.net, batch["mix"], device_ids=self.devices)
                    errors.append(measure(guess, batch).item())
                return errors

        def measure(guess, batch):
            return (guess - batch["voice"].to(guess.device)).square().mean()
    """
    assert [finding.line for finding in findings(code, "SYNC01")] == [14]


def test_after_a_break_at_one_iteration_every_other_iteration_goes_on() -> None:
    reading = "if step == len(loader.dataset) // size:\n    break\nprint(loss.item())"
    assert len(findings(training(reading, "size = 64"), "SYNC01")) == 1


@pytest.mark.parametrize(("leaving", "count"), [("break", 1), ("continue", 0)])
def test_before_a_break_all_iterations_run_whatever_its_limit_is_called(leaving: str, count: int) -> None:
    reading = f"if max_eval_steps > 0 and step >= max_eval_steps:\n    {leaving}\nprint(loss.item())"
    assert len(findings(training(reading, "max_eval_steps = 64"), "SYNC01")) == count


def test_after_such_a_break_a_number_is_still_needed_where_the_next_step_uses_it() -> None:
    reading = (
        "if step == len(loader.dataset) // size:\n    break\nscale = loss.item()\n(model(x) ** scale).sum().backward()"
    )
    assert findings(training(reading, "size = 64"), "SYNC01") == []


@pytest.mark.parametrize("condition", ["writer is not None", "writer != None", "args.wandb", "tb_writer and rank == 0"])
def test_whether_there_is_a_place_to_log_to_is_no_interval(condition: str) -> None:
    code = training(f"if {condition}:\n    writer.add_scalar('loss', loss.item(), step)", "writer = make_writer()")
    assert len(findings(code, "SYNC01")) == 1


@pytest.mark.parametrize("condition", ["writer is not None and step % 10 == 0", "args.wandb_every", "args.debug"])
def test_an_interval_is_one_beside_a_place_to_log_to(condition: str) -> None:
    code = training(f"if {condition}:\n    writer.add_scalar('loss', loss.item(), step)", "writer = make_writer()")
    assert findings(code, "SYNC01") == []


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("words = out.ne(0).sum().item()", 1),
        ("out.ne(0).sum().item()", 0),  # somebody waits for the device
        ("_ = out.ne(0).sum().item()", 0),
        ("words = out.ne(0).sum().item()\nif words > 3:\n    break", 0),
    ],
)
def test_a_number_that_nothing_reads(body: str, count: int) -> None:
    found = findings(training(body), "SYNC01")
    assert ["Nothing reads the number" in finding.message for finding in found] == [True] * count


SCRIPT = """
    import torch

    net, device = torch.nn.Linear(2, 2), torch.device("cuda")
    net.to(device)
    opt = torch.optim.SGD(net.parameters(), 0.1)

    def report():
        print(total)

    for epoch in range(9):
        total = 0.0
        for x in batches:
            loss = net(x.to(device)).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            {within}
        {behind}
    """


@pytest.mark.parametrize(("within", "behind", "count"), [("pass", "report()", 1), ("report()", "pass", 0)])
def test_a_function_that_shows_a_sum_of_the_script(within: str, behind: str, count: int) -> None:
    assert len(findings(SCRIPT.format(within=within, behind=behind), "SYNC01")) == count


@pytest.mark.parametrize("show", ["accelerator.print", "self.print", "console.print"])
def test_what_a_method_prints_is_shown(show: str) -> None:
    assert len(findings(training(f"{show}('loss', loss.item())"), "SYNC01")) == 1
