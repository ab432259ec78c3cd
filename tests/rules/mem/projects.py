"""Projects of several files, of which one is linted for graphs that are recorded or kept for nothing."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Finding
from torchlint.semantics.project import Project
from torchlint.source import Source


def linted(folder: Path, *codes: str, **files: str) -> list[Finding]:
    """What is found in `main.py` of a project of these files, beside those that are there already."""
    (folder / "pyproject.toml").touch()
    for name, code in files.items():
        (folder / f"{name}.py").write_text(dedent(code))
    settings = Settings.selecting(*(codes or ("MEM05", "MEM09")))
    return lint(Source.read(folder / "main.py"), settings, strict=True, project=Project())


def found_in(folder: Path, **files: str) -> list[str]:
    """The lines of `main.py` of such a project where MEM05 is found."""
    found = linted(folder, "MEM05", **files)
    source = Source.read(folder / "main.py")
    return [source.line(finding.line).strip() for finding in found]
