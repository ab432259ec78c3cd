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
    from torchlint.fixing import Fixed


def new_run() -> str:
    """A name that no other run has."""
    return os.urandom(16).hex()


@dataclass(frozen=True, slots=True)
class Task:
    """One file's bytes. `fix` is None to lint only, else says whether unsafe fixes count. Tasks of one `run` share what
    was read of the files around theirs."""

    path: Path
    data: bytes
    settings: Settings
    fix: bool | None = None
    run: str = field(default_factory=new_run)


@dataclass(frozen=True, slots=True)
class Result:
    """`findings` are those left in `source`, which is None where there is nothing to show. `fixed` is None where no fix
    was wanted or none applied. `suppressed` do not count. `seconds` as in `Examined`, of a run that fixes nothing."""

    path: Path
    findings: tuple[Finding, ...] = ()
    source: Source | None = None
    fixed: Fixed | None = None
    suppressed: tuple[Finding, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
