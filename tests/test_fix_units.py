"""The fixes of a project one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.config import Selection
from torchlint.fixing.units import FixUnits
from torchlint.settings_file import CommandLine, Configuration

TRAIN = """\
import torch


def evaluate(model, loader, criterion):
    model.eval()
    total = 0.0
    for x, y in loader:
        total += criterion(model(x), y).item()
    return total


def train(model, loader, criterion, optimizer):
    losses, total = [], 0.0
    for x, y in loader:
        output = model(x)
        loss = criterion(output, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        total += loss
    return torch.stack(losses).mean().item(), total.item()
"""


@pytest.fixture
def units(tmp_path: Path) -> FixUnits:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "other.py").write_text("import torch\n\nprint(torch.ones(3))\n")
    return FixUnits((tmp_path,), Configuration(CommandLine(Selection(("MEM",)))), unsafe=True)


def test_each_fix_has_the_lines_whose_run_shows_what_it_does(units: FixUnits) -> None:
    lines = {f"{unit.finding.code} {unit.finding.line}": unit.lines for unit in units.units}
    assert lines == {"MEM05 4": frozenset(range(5, 10)), "MEM01 20": {20}, "MEM02 21": {21}}


def test_one_fix_is_made_and_no_other(units: FixUnits) -> None:
    for unit in units.units:
        ((path, fixed),) = units.fixed([unit.key]).items()
        assert path == unit.path
        assert [finding.line for finding in fixed.applied] == [unit.finding.line]


def test_all_fixes_together_are_what_fix_makes(units: FixUnits) -> None:
    (fixed,) = units.fixed([unit.key for unit in units.units]).values()
    assert len(fixed.applied) == len(units.units) == 3
    assert not fixed.remaining


def test_no_fix_is_no_file(units: FixUnits) -> None:
    assert units.fixed([]) == {}
