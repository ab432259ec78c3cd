"""Putting fixed files in the place of the old ones, so that no file is ever half written."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.files.atomic import file_beside

if TYPE_CHECKING:
    from torchlint.fixing.passes import Fixed


class WriteError(Exception):
    """A fixed file could not be written. All files are as they were."""


@dataclass(frozen=True, slots=True)
class _Replacement:
    """A file that lies beside the one whose place it takes."""

    target: Path
    file: Path
    before: bytes
    mode: int


def write(*files: Fixed) -> None:
    """Put the fixed bytes in the place of the old ones, of all files or of none; a symbolic link keeps pointing where
    it pointed. Raises WriteError, also where a file changed since it was read or is read-only."""
    ready: list[_Replacement] = []
    current = ""
    try:
        for fixed in files:
            current = f" ({fixed.before.path})" if len(files) > 1 else ""
            ready.append(_prepared(fixed))
        _replace_all(ready)
    except OSError as error:
        raise WriteError(f"{error.strerror or error}{current}") from error
    except WriteError as error:
        raise WriteError(f"{error}{current}") from error
    finally:
        for replacement in ready:
            replacement.file.unlink(missing_ok=True)


def _prepared(fixed: Fixed) -> _Replacement:
    target = Path(os.path.realpath(fixed.before.path))
    mode = stat.S_IMODE(target.stat().st_mode)
    if not mode & 0o222:
        raise WriteError("the file is read-only")
    if target.read_bytes() != fixed.before.data:
        raise WriteError("the file changed while it was being fixed")
    return _Replacement(target, file_beside(target, fixed.source.data, mode), fixed.before.data, mode)


def _replace_all(ready: list[_Replacement]) -> None:
    """Where one of them fails, those before it get their old bytes back."""
    done: list[_Replacement] = []
    try:
        for replacement in ready:
            os.replace(replacement.file, replacement.target)
            done.append(replacement)
    except BaseException:
        for replacement in done:
            with suppress(OSError):
                os.replace(file_beside(replacement.target, replacement.before, replacement.mode), replacement.target)
        raise
