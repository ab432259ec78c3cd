"""Generated programs: what is certain is found, the work grows with the length, and nothing depends on chance."""

from __future__ import annotations

import cProfile
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.robustness.generated import PROGRAMS, TRAIN, Program, text
from torchlint.analyses.loading.batch_texts import copies_batches
from torchlint.engine import lint
from torchlint.finding import Finding
from torchlint.semantics.project import Project
from torchlint.source import Source

_MOST_GROWTH = 2.8  # in work, where the length doubles; a quadratic step shows as nearly 4
_ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("project")  # reading all files of this one would hide how the work grows


def findings(program: Program, n: int) -> list[Finding]:
    return lint(Source.from_text(text(program, n), "generated.py"), strict=True, project=Project())


def calls_made(program: Program, n: int) -> int:
    """How many functions are entered: a measure of work that is the same in every run."""
    source = Source.from_text(text(program, n), "generated.py")
    profile = cProfile.Profile()
    profile.runcall(lint, source, project=Project())
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize(("program", "n"), PROGRAMS.items(), ids=[p.__name__ for p in PROGRAMS])
def test_what_is_certain_is_found_in_any_program(program: Program, n: int) -> None:
    found = findings(program, n)
    line = text(program, n).count("\n") - TRAIN.count("\n") + TRAIN[: TRAIN.index("total +=")].count("\n") + 1
    assert ("MEM02", line) in {(finding.code, finding.line) for finding in found}
    assert not [finding for finding in found if finding.code.startswith("LINT")]


@pytest.mark.parametrize(("program", "n"), PROGRAMS.items(), ids=[p.__name__ for p in PROGRAMS])
def test_the_work_grows_with_the_length(program: Program, n: int) -> None:
    calls_made(program, 10)  # imports and caches
    assert calls_made(program, n) / calls_made(program, n // 2) < _MOST_GROWTH


@pytest.mark.parametrize(
    "unit", ["a", "9", " ", "\n", "a.", "a, ", "a[", "_", "for ", "for a ", "for a, ", "(", "class a("]
)
def test_a_line_of_any_length_is_read_in_one_go(unit: str) -> None:
    """Other files are looked through as text, with patterns that must not start over at every character."""
    begin = time.process_time()
    code = "for x in loader:\n    " + unit * 20_000
    copies_batches(code, lambda wide: [code])
    assert time.process_time() - begin < 1  # trying anew at each place would take several seconds


def test_a_file_that_is_too_deep_for_the_parser_is_a_finding() -> None:
    deep = "import torch\nx = " + "(" * 5000 + "1" + ")" * 5000 + "\n"
    (finding,) = lint(Source.from_text(deep))
    assert finding.code == "LINT05"


def test_findings_do_not_depend_on_the_order_of_sets(tmp_path: Path) -> None:
    for program, n in PROGRAMS.items():
        (tmp_path / f"{program.__name__}.py").write_text(text(program, max(4, n // 10)))
    outputs = {
        subprocess.run(
            [
                sys.executable,
                "-m",
                "torchlint",
                "check",
                "--no-cache",
                "--isolated",
                "--output-format",
                "json",
                "-j1",
                ".",
            ],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(_ROOT)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1
    assert '"MEM02"' in outputs.pop()
