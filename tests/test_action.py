"""The GitHub action: its steps, run one by one as a runner runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
INSTALL, CHECK = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{\s*(\w+)\.([\w-]+)\s*\}\}")
LEAK = "import torch\nx = 1  # torchlint: ignore[NOPE]\n"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the steps are run by bash")


@dataclass
class Runner:
    """What a runner gives to the steps of one use of the action."""

    folder: Path
    inputs: dict[str, str]
    path: str = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def file(self, name: str) -> Path:
        return self.folder / f"runner_{name}"

    def evaluated(self, text: str) -> str:
        values = {key: str(value.get("default", "")) for key, value in ACTION["inputs"].items()} | self.inputs
        contexts = {"inputs": values, "github": {"action_path": str(ROOT)}}
        return EXPRESSION.sub(lambda found: contexts[found[1]][found[2]], text)

    def run(self, step: dict[str, Any], **environment: str) -> subprocess.CompletedProcess[str]:
        assert step["shell"] == "bash"
        files = {name: str(self.file(name)) for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
        own = {key: self.evaluated(value) for key, value in step["env"].items()}
        script = self.file("script.sh")
        script.write_text(step["run"])
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=self.folder / self.evaluated(step.get("working-directory", ".")),
            env={
                **os.environ,
                "RUNNER_TEMP": str(self.folder),
                "GITHUB_WORKSPACE": str(self.folder),
                "PATH": self.path,
                **files,
                **own,
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def source(project: Path) -> Path:
    """A checkout with a finding in a folder whose name has a space."""
    (project / "my code").mkdir()
    (project / "my code" / "leak.py").write_text(LEAK)
    (project / "clean.py").write_text("import torch\n")
    return project


def test_no_input_gets_into_a_script() -> None:
    assert not [step["name"] for step in ACTION["runs"]["steps"] if "${{" in step["run"]]


def test_findings_are_annotations_and_a_summary_and_fail_the_step(source: Path) -> None:
    runner = Runner(source, {"sarif": "found.sarif"})
    done = runner.run(CHECK)
    assert done.returncode == 1
    assert done.stdout.startswith("::warning title=torchlint (LINT03),file=my code/leak.py,line=2")
    assert "LINT03" in runner.file("GITHUB_STEP_SUMMARY").read_text()
    assert runner.file("GITHUB_OUTPUT").read_text() == "exit-code=1\n"
    (run,) = json.loads((source / "found.sarif").read_text())["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["LINT03"]


@pytest.mark.parametrize(
    ("inputs", "code", "out"),
    [
        ({"paths": "clean.py"}, 0, ""),
        ({"paths": "clean.py 'my code'"}, 1, "::warning"),
        ({"working-directory": "my code"}, 1, "::warning title=torchlint (LINT03),file=my code/leak.py"),
        ({"annotations": "false"}, 1, "my code/leak.py:2:"),
        ({"args": "--ignore LINT03 --isolated"}, 0, ""),
        ({"paths": "gone.py"}, 2, ""),
        ({"paths": "$(touch ran) ; touch ran"}, 2, ""),
        ({"args": "`touch ran` --select $(touch ran)"}, 2, ""),
    ],
)
def test_inputs(inputs: dict[str, str], code: int, out: str, source: Path) -> None:
    done = Runner(source, inputs).run(CHECK)
    assert (done.returncode, done.stdout[: len(out)]) == (code, out), done.stderr
    assert not (source / "ran").exists()


def test_the_first_step_installs_what_the_second_one_runs(source: Path) -> None:
    here = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))  # instead of an index
    offline = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PYTHONPATH": here}
    runner = Runner(source, {"paths": "'my code'"})
    installed = runner.run(INSTALL, **offline)
    assert installed.returncode == 0, installed.stderr
    runner.path = f"{runner.file('GITHUB_PATH').read_text().strip()}{os.pathsep}{runner.path}"
    assert (source / "torchlint" / "bin" / "torchlint").is_file()
    done = runner.run(CHECK, PYTHONPATH=here)
    assert (done.returncode, done.stdout[:9]) == (1, "::warning")


def test_a_version_comes_from_the_index(source: Path) -> None:
    (source / "bin").mkdir()
    (source / "bin" / "python").write_text('#!/bin/sh\nmkdir -p "$3/bin" && cp "$0.pip" "$3/bin/python"\n')
    (source / "bin" / "python.pip").write_text('#!/bin/sh\necho "$@"\n')
    for file in (source / "bin").iterdir():
        file.chmod(0o755)
    runner = Runner(source, {"version": "1.2.3"}, f"{source / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert runner.run(INSTALL).stdout.split()[-1] == "torchlint==1.2.3"
