"""Runs a program once under the probe."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

from torchlint.runtime_check.boot.torchlint_probe.settings import Settings
from torchlint.runtime_check.launch import Outcome, command
from torchlint.runtime_check.overlay import plan


def launch(root: Path, code: str, *words: str, name: str = "train.py", **given: object) -> Outcome:
    """Write `code` into root/name and run it there, or `python *words`. Each `root` serves one launch."""
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(dedent(code))
    work = root.parent / "work"
    for folder in ("results", "logs"):
        (work / folder).mkdir(parents=True)
    plan(root.resolve(), [], words).build(work / "copy", {})
    folders = {"tree": (work / "copy").resolve(), "original": root.resolve(), "results": work / "results"}
    settings = Settings(**{key: str(path) for key, path in folders.items()}, **{"mode": "observe", **given})  # type: ignore[arg-type]
    return command([sys.executable, *(words or (name,))], Path(), 300.0).run(settings, work / "logs")
