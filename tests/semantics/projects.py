"""Projects of a few files, and what is known of one of them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import libcst as cst

from torchlint.semantics.model import Model
from torchlint.semantics.project import Project
from torchlint.semantics.values import Value
from torchlint.source import Source

MARKER = "pyproject.toml"


def write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / MARKER).touch()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).removeprefix("\n"))


def model_of(folder: Path, name: str) -> Model:
    return Project().model_to_lint(Source.read(folder / name))


def value_of(model: Model, variable: str) -> Value:
    """The value that the last assignment to the variable gives it."""
    targets = [node.target for node in model.nodes_of(cst.AssignTarget) if isinstance(node, cst.AssignTarget)]
    return model.value(next(t for t in reversed(targets) if isinstance(t, cst.Name) and t.value == variable))
