"""What is to be done with one file, and what comes of it: what goes to worker processes and back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.config import Settings
from torchlint.finding import Finding
from torchlint.source import Source

if TYPE_CHECKING:
    from torchlint.fixing.passes import Fixed


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What tasks see of the project around their files: what is on disk, but for the `changed` ones."""

    changed: tuple[Source, ...] = field(default=(), compare=False)
    name: str = field(default_factory=lambda: os.urandom(16).hex())  # as no others have


@dataclass(frozen=True, slots=True)
class Task:
    """One file's bytes. `fix` is None to lint only, else says whether unsafe fixes count. Tasks with the same
    surroundings share what was read of them. `before` is what fixes have made the bytes of, if any have."""

    path: Path
    data: bytes
    settings: Settings
    fix: bool | None = None
    around: Surroundings = field(default_factory=Surroundings)
    before: bytes | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """`findings` are those left in `source`, which is None where there is nothing to show. `fixed` is None where no fix
    was wanted or none applied. `suppressed` do not count. `seconds` as in `Examined`, of a run that fixes nothing.
    `looked_at` are the files of the project, by their absolute paths, that the result depends on."""

    path: Path
    findings: tuple[Finding, ...] = ()
    source: Source | None = None
    fixed: Fixed | None = None
    suppressed: tuple[Finding, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    looked_at: frozenset[str] = frozenset()
