"""The sweep is only worth its time if it sees what it is there to see: it runs against linters that misbehave."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SWEEP = Path(__file__).with_name("sweep.py")
BEFORE = "import torch\n\nx = torch.ones(1)  # one\ny = x + 1\nz = y.item()\n"

LINTER = """
import json, pathlib, sys
path = pathlib.Path("train.py")
text = path.read_text()
finding = {{"path": "train.py", "line": 5, "end_line": 5, "fix": None, "code": "SYNC01", "message": ""}}
if {when}:
    {act}
print(json.dumps([finding]))
"""

MISBEHAVIOUR = {
    "crashes": ("True", "raise ValueError('boom')", "Traceback"),
    "writes without --fix": (
        "'--fix' not in sys.argv",
        "path.write_text(text + 'a = 1\\n')",
        "check without --fix wrote",
    ),
    "breaks the syntax": (
        "'--fix' in sys.argv",
        "path.write_text(text.replace('z =', 'z ='*2 + '('))",
        "no longer compiles",
    ),
    "drops a comment": (
        "'--fix' in sys.argv",
        "path.write_text(text.replace('  # one', ''))",
        "comments lost: ['# one']",
    ),
    "edits another line": (
        "'--fix' in sys.argv",
        "path.write_text(text.replace('ones', 'zeros'))",
        "lines [3] changed",
    ),
    "uses an unknown name": ("'--fix' in sys.argv", "path.write_text(text.replace('z = y', 'z = w'))", "new F821"),
    "never settles": ("'--fix' in sys.argv", "path.write_text(text.replace('.item()', '.item() + 0'))", "second run"),
    "leaves a file alone": ("True", "finding['code'] = 'LINT05'", "compiles, but was left alone"),
    "removes a file": ("'--fix' in sys.argv", "path.unlink(); finding['line'] = 1", "appeared or vanished"),
}


def sweep(tmp_path: Path, when: str, act: str) -> subprocess.CompletedProcess[str]:
    corpus = tmp_path / "corpus" / "repository"
    corpus.mkdir(parents=True)
    (corpus / "train.py").write_text(BEFORE)
    linter = tmp_path / "linter.py"
    linter.write_text(LINTER.format(when=when, act=act))
    command = [sys.executable, str(SWEEP), str(corpus.parent), "--torchlint", f"{sys.executable} {linter}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("case", MISBEHAVIOUR)
def test_the_sweep_sees_a_linter_that(case: str, tmp_path: Path) -> None:
    when, act, message = MISBEHAVIOUR[case]
    done = sweep(tmp_path, when, act)
    assert message in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1


def test_the_sweep_is_content_with_a_linter_that_keeps_its_promises(tmp_path: Path) -> None:
    done = sweep(tmp_path, "'--fix' in sys.argv", "path.write_text(text.replace('z = y.item()', 'z = y'))")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 repositories, 1 files, 1 findings, 0 defects" in done.stdout
