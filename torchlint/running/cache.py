"""Which contents were found clean before, as digests in `.torchlint_cache`.

A digest covers the bytes of the file, the state of its project, the rules in force and torchlint itself, so nothing in
the cache can be stale, and a damaged cache file holds digests that match nothing.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from torchlint import __version__
from torchlint.config import Settings
from torchlint.files.atomic import replace_file
from torchlint.plugins import fingerprint

FOLDER = ".torchlint_cache"
_DIGEST_BYTES = 16
_MOST_ENTRIES = 200_000
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# Written by torchlint; safe to delete.\n"


@lru_cache(maxsize=1)
def tool_fingerprint() -> str:
    """Of torchlint's own sources, rules and fixers included, and of what they run on."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    digest.update(f"{__version__} {sys.version}".encode())
    for file in (_version_of_libcst(), *sorted(_own_sources())):
        with open(file, "rb") as stream:
            digest.update(os.path.basename(file).encode() + b"\0" + stream.read())
    return digest.hexdigest()


def _version_of_libcst() -> str:
    """The file that has it; importing LibCST, or importlib.metadata, takes longer than all else that a start needs."""
    found = find_spec("libcst")
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin)
    version = package.with_name("_version.py")
    return str(version if version.exists() else package)


def _own_sources() -> Iterator[str]:
    for package in ("torchlint", "torchlint.rules", "torchlint.fixers"):
        for folder, _, names in os.walk(import_module(package).__path__[0]):
            yield from (os.path.join(folder, name) for name in names if name.endswith(".py"))


@dataclass
class Cache:
    """`folder` is None where nothing is cached. Nothing is read before the first question."""

    folder: Path | None
    _new: set[bytes] = field(default_factory=set)
    _used: set[bytes] = field(default_factory=set)

    @cached_property
    def _old(self) -> frozenset[bytes]:
        return self._read()

    def _read(self) -> frozenset[bytes]:
        try:
            data = b"" if self.folder is None else (self.folder / tool_fingerprint()).read_bytes()
        except OSError:
            return frozenset()
        starts = range(0, len(data) - _DIGEST_BYTES + 1, _DIGEST_BYTES)
        return frozenset(data[start : start + _DIGEST_BYTES] for start in starts)

    def digest(self, data: bytes, path: Path, settings: Settings, project: bytes = b"") -> bytes:
        if self.folder is None:
            return b""
        rules = ",".join(sorted(settings.codes(path)))
        about = f"{tool_fingerprint()} {fingerprint()} {path.suffix} {settings.target_torch} {rules}\0"
        return hashlib.blake2b(about.encode() + project + data, digest_size=_DIGEST_BYTES).digest()

    def is_clean(self, digest: bytes) -> bool:
        if digest not in self._old:
            return False
        self._used.add(digest)
        return True

    def add_clean(self, digest: bytes) -> None:
        self._new.add(digest)

    def save(self) -> None:
        """Nothing is lost where this fails, so a folder that cannot be written is not an error."""
        if self.folder is None or not self._new or self._new <= self._old:
            return
        with suppress(OSError):
            self.folder.mkdir(exist_ok=True)
            replace_file(self.folder / ".gitignore", b"*\n", sync=False)
            replace_file(self.folder / "CACHEDIR.TAG", _TAG.encode(), sync=False)
            name = tool_fingerprint()
            for stale in self.folder.iterdir():
                if len(stale.name) == len(name) and stale.name != name:
                    stale.unlink(missing_ok=True)
            now = self._read()  # what other runs have added meanwhile counts too
            kept = now if len(now) < _MOST_ENTRIES else self._used
            replace_file(self.folder / name, b"".join(sorted(kept | self._new)), sync=False)


def remove(folder: Path) -> bool:
    """Delete a cache folder, if it is one. Runs that are writing to it begin another. Raises OSError."""
    if not (folder / "CACHEDIR.TAG").is_file():
        return False
    import shutil

    aside = folder.with_name(f"{folder.name}.{os.urandom(16).hex()}")
    try:
        folder.rename(aside)
    except FileNotFoundError:
        return False
    try:
        shutil.rmtree(aside)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):  # a run is still putting files there, or taking them
            raise
        shutil.rmtree(aside)  # a run that still had the folder in hand has put a file into it
    return True
