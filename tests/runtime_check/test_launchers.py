"""Programs as people start them: a notebook, ranks of torchrun, hydra."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from textwrap import indent

import pytest

from tests.cli.test_check import call
from tests.runtime_check.programs import launch
from tests.runtime_check.test_command import FEW
from tests.runtime_check.test_profile import profile
from torchlint.fixing.units import FixUnits
from torchlint.settings_file import Configuration

pytestmark = pytest.mark.usefixtures("forked")

LEAKING = """\
losses = []
for step in range(40):
    loss = model(torch.ones(4, 2)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
"""
HEAD = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
RANKS = """\
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel


def main():
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        loss = model(torch.ones(4, 2) * distributed.get_rank()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
"""
HYDRA = """\
import hydra
import torch
from torch import nn


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
"""


def notebook(*cells: str) -> str:
    codes = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell.splitlines(True)} for cell in cells]
    metadata = {"language_info": {"name": "python"}}
    return json.dumps({"cells": codes, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def verdict(folder: Path, *words: str) -> dict[str, object]:
    """What `verify` says of the fix of MEM01."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = call("verify", "--select", "MEM01", "--output-format", "json", *words)
    assert done.exit_code in (0, 3), done.output
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_a_notebook_runs_as_the_program_of_its_cells_and_gets_its_fix(tmp_path: Path) -> None:
    file = tmp_path / "train.ipynb"
    file.write_text(notebook("%matplotlib inline\n" + HEAD, "files = !ls\ndisplay(files)\n", LEAKING))
    before = file.read_text()
    found = verdict(tmp_path, *FEW, "--apply", "--", sys.executable, "train.ipynb")
    (fix,) = found["fixes"]  # type: ignore[misc]
    assert (fix["status"], fix["fix"]["cell"], fix["fix"]["line"]) == ("kept", 2, 7)
    assert found["equivalence"]["verdict"] == "identical"  # type: ignore[index]
    assert file.read_text() == before.replace("losses.append(loss)", "losses.append(loss.detach())")


def test_a_profile_of_a_notebook_names_the_lines_of_its_cells(tmp_path: Path) -> None:
    (tmp_path / "train.ipynb").write_text(notebook(HEAD, LEAKING))
    few = ["--steps", "12", "--warmup", "2", "--output-format", "json"]
    found = json.loads(profile(tmp_path, *few, "--", sys.executable, "train.ipynb").stdout)
    (leak,) = (row["finding"] for row in found["findings"] if row["finding"]["code"] == "MEM01")
    assert (leak["cell"], leak["line"]) == (1, 7)
    spots = {spot["source"]: (spot["cell"], spot["line"]) for spot in found["hotspots"]}
    assert spots["loss = model(torch.ones(4, 2)).square().mean()"] == (1, 3)


def test_notebooks_that_the_command_does_not_name_are_left_alone(tmp_path: Path) -> None:
    named, other = (tmp_path / name for name in ("train.ipynb", "other.ipynb"))
    for file in (named, other):
        file.write_text(notebook(HEAD, LEAKING))
    units = FixUnits((tmp_path,), Configuration(), unsafe=True, notebooks=[named.resolve()]).units
    assert {unit.path for unit in units} == {named}


def test_ranks_of_torchrun_are_helpers_that_do_not_wait_with_their_program(tmp_path: Path) -> None:
    words = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py")
    outcome = launch(tmp_path / "project", RANKS, *words, steps=6, warmup=1, mode="time", boundary="optimizer")
    assert outcome.run is not None, outcome.log
    assert (outcome.run.helpers, len(outcome.run.steps)) == (1, 6)


@pytest.mark.skipif(importlib.util.find_spec("hydra") is None, reason="needs hydra-core")
def test_hydra_finds_its_configuration_and_writes_into_the_copy(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text("lr: 0.1\n")
    (tmp_path / "train.py").write_text(HYDRA + indent(LEAKING, "    ") + "\n\nmain()\n")
    found = verdict(tmp_path, *FEW, "--", sys.executable, "train.py", "lr=0.01")
    assert [fix["status"] for fix in found["fixes"]] == ["kept"]  # type: ignore[attr-defined]
    assert not (tmp_path / "outputs").exists()
