"""The clean programs, one a file or a folder below loops/, and what torchlint says of a version of one."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Finding
from torchlint.semantics.project import Project
from torchlint.source import Source

LOOPS = Path(__file__).with_name("loops")


@dataclass(frozen=True)
class Program:
    """Files by their names."""

    name: str
    files: dict[str, str]

    def with_file(self, name: str, text: str) -> Program:
        return Program(self.name, {**self.files, name: text})

    def findings(self, settings: Settings) -> dict[str, list[Finding]]:
        """Of each file, as of a project in a folder of its own. Crashes are raised."""
        with tempfile.TemporaryDirectory() as folder:
            paths = {name: Path(folder, name) for name in self.files}
            for name, path in paths.items():
                path.write_text(self.files[name])
            project = Project()
            return {name: lint(Source.read(path), settings, True, project) for name, path in paths.items()}


def programs() -> list[Program]:
    found = [_read(path) for path in sorted(LOOPS.iterdir()) if path.suffix == ".py" or path.is_dir()]
    return [program for program in found if program.files]


def _read(path: Path) -> Program:
    files = sorted(path.glob("*.py")) if path.is_dir() else [path]
    return Program(path.stem, {file.name: file.read_text() for file in files})
