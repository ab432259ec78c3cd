"""Fixes that those of other files make possible: one run makes them all, so that a second one finds nothing to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_check import check, plant
from tests.conftest import PlantedRule, _zeros, rename_to
from torchlint.finding import Applicability, Edit, FileEdits, Fix
from torchlint.rule import Report, Rule
from torchlint.running import runner
from torchlint.semantics.model import Model

BASE = "import torch\nsize = torch.zeros(1)\n"
MIDDLE = "import torch\nfrom base import size\nx = torch.zeros(1)\n"
TOP = "import torch\nfrom middle import x\ny = torch.zeros(1)\n"
HELPERS = "import torch\nfrom torch.autograd import Variable\n\ndef letters(n):\n    return Variable(torch.zeros(n))\n"
STUDY = "from helpers import *\n\nx = Variable(torch.ones(3))\nprint(x)  # no Variable any more\n"


def once_its_imports_are_fixed(rule: Rule, model: Model) -> Iterator[Report]:
    imported = {file for _, file in model.imports_of_project()}
    if not any("zeros" in file.text for file in model.neighbours() if os.path.abspath(file.path) in imported):
        yield from _zeros(rule, model)


@pytest.fixture
def chain(project: Path, planted: PlantedRule) -> PlantedRule:
    """Three files, in each of which something is found once it is fixed in the one that it imports."""
    planted.check_with(once_its_imports_are_fixed)
    for text, name in ((BASE, "base.py"), (MIDDLE, "middle.py"), (TOP, "top.py")):
        plant(text, name)
    return planted


def texts(*names: str) -> list[str]:
    return [Path(f"{name}.py").read_text() for name in names]


@pytest.mark.parametrize("before", [False, True], ids=["first run", "two files are known to be clean"])
def test_one_run_makes_the_fixes_that_other_fixes_make_possible(chain: PlantedRule, before: bool) -> None:
    if before:
        assert check().exit_code == 1
    assert check("--fix").stderr == "Fixed 3 findings. Checked 3 files, found nothing more.\n"
    assert not any("zeros" in text for text in texts("base", "middle", "top"))
    assert check("--fix").stderr == "Checked 3 files, found nothing.\n"


def test_a_file_that_was_not_named_makes_nothing_possible(chain: PlantedRule) -> None:
    check("--fix", "middle.py", "top.py")
    assert texts("base", "middle", "top") == [BASE, MIDDLE, TOP]


def test_a_fix_that_breaks_a_file_leaves_it_as_the_fixes_before_have_made_it(chain: PlantedRule) -> None:
    def fix(report: Report, model: Model) -> Fix | None:
        name = "(" if model.source.path.name == "middle.py" else "torch.ones"
        return rename_to(name)(report, model)

    chain.fix_with(fix)
    result = check("--fix")
    assert result.exit_code == 2
    assert texts("base", "middle", "top") == [BASE.replace("zeros", "ones"), MIDDLE, TOP]


def test_what_several_files_change_for_together_goes_on_from_the_fixes_before(chain: PlantedRule) -> None:
    def fix(report: Report, model: Model) -> Fix:
        own = rename_to("torch.ones")(report, model)
        base = next((file for file in model.neighbours() if file.path.name == "base.py"), None)
        if own is None or base is None:
            return own
        end = len(base.text)
        return Fix(own.edits, Applicability.SAFE, elsewhere=(FileEdits(base, (Edit(end, end, "z = 1\n"),)),))

    chain.fix_with(fix)
    check("--fix")
    after = [text.replace("zeros", "ones") for text in (BASE, MIDDLE, TOP)]
    assert texts("base", "middle", "top") == [after[0] + "z = 1\n", *after[1:]]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_import_that_others_took_goes_with_their_last_use_of_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    monkeypatch.setattr(runner, "_BYTES_WORTH_A_WORKER", 1)
    plant(HELPERS, "helpers.py")
    plant(STUDY, "study.py")
    (project / "other").mkdir()
    plant(HELPERS, "other/helpers.py")
    plant("from helpers import *\nprint(Variable)\n", "other/study.py")
    check("--fix", "--select", "TRAIN10", "--jobs", jobs)
    assert "Variable" not in texts("helpers")[0]
    assert "x = torch.ones(3)" in texts("study")[0]
    assert "import Variable" in texts("other/helpers")[0]
