"""`torchlint profile` on programs whose costs are known."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from torchlint.runtime_check import Options
from torchlint.runtime_check.profile import SCHEMA, Cost, Finding, Hotspot, Measured, Profile, Ranked, measure
from torchlint.runtime_check.profile_report import lines
from torchlint.runtime_check.verdict import Environment

from tests.cli.test_check import call

pytestmark = pytest.mark.usefixtures("forked")

TRAINING = """\
import time

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x):
        rows = []
        for i in range(x.shape[0]):
            rows.append(self.layer(x[i]))
        return torch.stack(rows)


def train(steps):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses, running = [], 0.0
    batches = [torch.randn(8, 64) for _ in range(steps)]
    for x in batches:
        x = x.to(device)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        running += loss.item()
        time.sleep(0.05)
        x.tolist()


def evaluate(model, loader):
    model.eval()
    return [model(x).argmax(dim=1) for x, _ in loader]


train(60)
"""


def line_of(text: str) -> int:
    """The only line of the program that has this text."""
    (number,) = [number for number, line in enumerate(TRAINING.splitlines(), 1) if text in line]
    return number


def profile(folder: Path, *words: str) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return call("profile", "--quiet", *words)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(TRAINING)
    done = profile(
        folder, "--steps", "15", "--warmup", "3", "--output-format", "json", "--", sys.executable, "train.py"
    )
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def cost_of(found: dict[str, Any], code: str, text: str) -> dict[str, float]:
    wanted = code, line_of(text)
    (cost,) = [row["cost"] for row in found["findings"] if (row["finding"]["code"], row["finding"]["line"]) == wanted]
    return dict(cost)


def hotspot(found: dict[str, Any], text: str) -> dict[str, Any]:
    (spot,) = [row for row in found["hotspots"] if row["line"] == line_of(text)]
    return dict(spot)


def test_a_run_is_timed_first_and_counted_then(training: dict[str, Any]) -> None:
    assert training["schema"] == SCHEMA
    assert (training["timed_steps"], training["counted_steps"]) == (6, 6)
    assert training["environment"]["boundary"] == "optimizer"
    assert training["step_seconds"] > 0.05


def test_a_loop_costs_what_it_calls_and_its_part_of_the_backward_pass(training: dict[str, Any]) -> None:
    cost = cost_of(training, "VEC02", "for i in range")
    assert cost["operations"] > 8 * 3
    assert 0 < cost["backward_seconds"] < training["step_seconds"]


def test_a_read_is_a_synchronisation_of_its_line(training: dict[str, Any]) -> None:
    assert cost_of(training, "SYNC01", "item()")["syncs"] == 1
    assert cost_of(training, "MEM01", "losses.append")["syncs"] == 0


def test_what_a_list_keeps_is_charged_to_the_finding_about_the_list(training: dict[str, Any]) -> None:
    """Eight rows of four nodes (select, view, addmm and squeeze, or so), their stack, the square and the mean."""
    cost = cost_of(training, "MEM01", "losses.append")
    assert cost["kept_nodes"] >= 8 * 2 + 3
    assert cost["kept_bytes"] == 4
    assert all(row["line"] != line_of("loss = model") or not row["cost"]["kept_nodes"] for row in training["hotspots"])


def test_a_batch_that_is_moved_and_read_is_counted_in_bytes(training: dict[str, Any]) -> None:
    assert hotspot(training, "x = x.to(device)")["cost"]["moved_bytes"] == 8 * 64 * 4
    read = cost_of(training, "SYNC03", "x.tolist()")
    assert (read["syncs"], read["moved_bytes"]) == (1, 8 * 64 * 4)


def test_lines_without_a_finding_are_named_with_what_they_cost(training: dict[str, Any]) -> None:
    sleep = hotspot(training, "time.sleep")
    assert sleep["source"] == "time.sleep(0.05)"
    assert 0.05 <= sleep["cost"]["seconds"] <= training["step_seconds"]


def test_rows_are_in_the_order_of_their_share(training: dict[str, Any]) -> None:
    shares = [round(row["share"], 2) for row in training["findings"]]
    assert shares == sorted(shares, reverse=True)


def test_findings_whose_lines_did_not_run_stand_apart(training: dict[str, Any]) -> None:
    assert [finding["code"] for finding in training["not_run"]] == ["MEM05"]


def test_a_program_without_steps_is_timed_and_then_counted_as_a_whole(tmp_path: Path) -> None:
    code = "import time\nimport torch\n\ntime.sleep(0.3)\nx = torch.ones(4)\nfor i in range(4):\n    float(x[i])\n"
    (tmp_path / "work.py").write_text(code)
    found = measure(tmp_path, [sys.executable, "work.py"], Options(timeout=120.0))
    assert (found.environment.boundary, found.timed_steps, found.counted_steps) == ("program", 1, 1)
    assert found.cost({"work.py": [4]}).seconds >= 0.29
    assert found.cost({"work.py": [7]}).syncs == 4
    assert found.ran["work.py"] >= {4, 5, 6, 7}


def test_a_command_that_fails_is_named_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit('no data')\n")
    done = profile(tmp_path, "--", sys.executable, "train.py")
    assert done.exit_code == 2
    assert "baseline does not run: exit code 1" in done.stderr
    assert "no data" in done.stderr


def made(device: str) -> Profile:
    environment = Environment("2026-01-01", device, "X", None, "2.13.0", None, 1, 0.1, "optimizer", 30, 5)
    cost = Cost(0.01, 0.005, 12.0, 1.0, 4096.0, 4.0, 18.0)
    hotspot = Hotspot("train.py", 3, "x.cpu()", cost, 0.5)
    return Profile(("python", "train.py"), environment, 0.03, 12, 13, (), (hotspot,), ())


def text_of(profile: Profile) -> str:
    return "\n".join(line.plain for line in lines(profile))


def test_every_figure_of_the_cpu_says_so() -> None:
    text = text_of(made("cpu"))
    figures = [line for line in text.splitlines() if " ms" in line]
    assert len(figures) == 2
    assert all("CPU" in line for line in figures)
    assert "CPU" not in text_of(made("cuda"))


def test_figures_are_words() -> None:
    assert (
        "50.0% of a step (15 ms, 5 ms of it backward), 12 operations, 1 synchronisation, 4.0 KiB moved, "
        "18 autograd nodes kept, 4 bytes of tensors kept"
    ) in text_of(made("cuda"))


def test_the_readme_has_every_field_of_the_json_form() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Profile")[2].partition("## Measure")[0]
    named = [field.name for form in (Profile, Ranked, Finding, Hotspot, Cost) for field in fields(form)]
    assert [name for name in named if f"`{name}`" not in section] == []


def test_lines_of_two_sets_are_counted_once() -> None:
    chain = (("a.py", 2), ("a.py", 1))
    measured = Measured(Path(), (), made("cpu").environment, 1.0, 1, 1, {"a.py": {1, 2}}, ((chain, Cost(seconds=0.5)),))
    assert measured.cost({"a.py": [1]}, {"a.py": [2]}).seconds == 0.5
    assert measured.cost({"a.py": [3]}).seconds == 0
