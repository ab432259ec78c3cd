"""Data flows one way: what is nearer to the text knows nothing of what is made of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ABOVE = {
    "torchlint/semantics": ("torchlint.analyses", "torchlint.rules", "torchlint.fixers", "torchlint.engine"),
    "torchlint/analyses": ("torchlint.rules", "torchlint.fixers", "torchlint.engine"),
    "torchlint/edits": ("torchlint.analyses", "torchlint.rules", "torchlint.fixers", "torchlint.engine"),
    "rules": ("torchlint.fixers", "torchlint.engine"),
}


def imported(file: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(file.read_text())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


@pytest.mark.parametrize("folder", ABOVE)
def test_a_layer_imports_nothing_of_those_that_build_on_it(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    wrong = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in files
        for name in imported(file)
        if name.startswith(ABOVE[folder])
    }
    assert not wrong


def test_what_several_families_ask_knows_none_of_them() -> None:
    analyses = ROOT / "torchlint" / "analyses"
    families = tuple(f"torchlint.analyses.{folder.name}." for folder in (ROOT / "rules").iterdir() if folder.is_dir())
    shared = [file for file in analyses.rglob("*.py") if not (ROOT / "rules" / file.parent.name).is_dir()]
    assert len(shared) > 50
    imports = {(file, name) for file in shared for name in imported(file)}
    assert not {f"{file.relative_to(ROOT)}: {name}" for file, name in imports if name.startswith(families)}
