"""The hooks for pre-commit: what it calls them with, and what they answer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
LEAK = "import torch\nx = 1  # torchlint: ignore[NOPE]\n"


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_runs_as_declared(hook: dict[str, Any], project: Path) -> None:
    (project / "leak.py").write_text(LEAK)
    (project / "plain.py").write_text("import os\n")
    (project / "build").mkdir()
    (project / "build" / "generated.py").write_text(LEAK)
    assert (hook["language"], hook["require_serial"], hook["args"]) == ("python", True, [])
    assert hook["types_or"] == ["python", "pyi", "jupyter"]

    def call(*files: str) -> int:
        command = [sys.executable, "-m", *hook["entry"].split(), *hook["args"], *files]
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert call("plain.py") == 0
    assert call("build/generated.py") == 0
    assert call("leak.py", "plain.py") == (0 if "--fix" in hook["entry"] else 1)


@pytest.mark.skipif(shutil.which("pre-commit") is None, reason="pre-commit is not installed")
@pytest.mark.parametrize(("text", "code"), [(LEAK, 1), ("import os\n", 0)], ids=["with a finding", "without torch"])
def test_pre_commit_runs_the_hook(text: str, code: int, project: Path) -> None:
    (project / "a.py").write_text(text)
    subprocess.run(["git", "init", "-q", "."], check=True)
    subprocess.run(["git", "add", "a.py"], check=True)
    environment = {**os.environ, "PRE_COMMIT_HOME": str(project / "home")}
    command = ["pre-commit", "try-repo", str(ROOT), "torchlint", "--files", "a.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
