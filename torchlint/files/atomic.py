"""Putting bytes in the place of a file, at once or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def replace_file(target: Path, data: bytes, sync: bool = True) -> None:
    """A file that is there keeps its mode, a link its aim; what is no regular file, such as a pipe, is written to.

    sync: the data is on the disk before the old file goes. Raises OSError.
    """
    target = Path(os.path.realpath(target))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG | 0o666 & ~_umask()
    if not stat.S_ISREG(mode):
        target.write_bytes(data)
        return
    file = file_beside(target, data, stat.S_IMODE(mode), sync)
    try:
        os.replace(file, target)
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def file_beside(target: Path, data: bytes, mode: int, sync: bool = True) -> Path:
    """A new file in the folder of the target, to be put in its place. Raises OSError."""
    import tempfile  # takes longer than a run that finds all in the cache has for it

    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    file = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
        os.chmod(file, mode)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    return file


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
