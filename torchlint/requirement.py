"""The oldest torch that a project says it runs with, read from its lists of dependencies and its README as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FILES = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "requirements.txt",
    "requirements/base.txt",
    "environment.yml",
    "environment.yaml",
    "cog.yaml",
)
_READMES = ("README.md", "README.rst", "README.txt", "readme.md")
STATEMENTS = (*_FILES, *_READMES)
# `torch==1.9.0`, `pytorch=1.7`, `torch>=1.6,<2`, `torch = "^1.10"`; not `torch<2`, which names no oldest release.
_REQUIREMENT = re.compile(
    r"""(?<![\w./-])(?:py)?torch(?:\[\w+\])?["']?\s*(?:==?=?|>=|~=)\s*["']?[\^~>=]*\s*v?(\d+(?:\.\d+)*)"""
)
# `PyTorch 1.3`, `pytorch version >= 1.7.1`, `Pytorch0.4.1`, `[PyTorch](https://pytorch.org) (>= 1.2)`, and the badge
# `https://img.shields.io/badge/pytorch-1.8-red`
_MENTION = re.compile(
    r"""(?i)(?:(?<![\w./-])|(?<=/badge/))(?:py)?torch(?:\]\([^)\s]*\))?"""
    r"""[ \t`*:(_-]*(?:version)?[ \t`*:]*(?:[=<>~v]|%3[DE]){0,2}[ \t`*]*(\d\.\d+(?:\.\d+)*)"""
)
_COMMENT = re.compile(r"#.*")
_LAST_MINOR = {0: 4, 1: 13}  # of the release series that are closed


@dataclass(frozen=True, slots=True)
class TorchRequirement:
    """`file` is relative to the folder of the project, `text` what it says."""

    oldest: tuple[int, ...]
    file: str
    text: str


def torch_requirement(folder: Path) -> TorchRequirement | None:
    """What the first file of the folder says that names an oldest release; None where none does. A README counts where
    no list says it."""
    for name in STATEMENTS:
        is_list = name in _FILES
        try:
            text = (folder / name).read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
        found = _REQUIREMENT.search(_COMMENT.sub("", text)) if is_list else _MENTION.search(text)
        if found is not None:
            said = " ".join(found[0].split())
            return TorchRequirement(_release(found[1]), name, said)
    return None


def _release(said: str) -> tuple[int, ...]:
    """What a version means; `1.81`, which there never was, means 1.8.1."""
    major, *minor = map(int, said.split("."))
    last = _LAST_MINOR.get(major)
    if last is None or not minor or minor[0] <= last:
        return major, *minor
    digits = str(minor[0])
    known = max((end for end in range(1, len(digits)) if int(digits[:end]) <= last), default=len(digits))
    return (major, *(int(part) for part in (digits[:known], digits[known:]) if part))
