"""A copy of the user's folder that a run may write into, rebuilt at the same path before every run.

Code and small files are copied; larger files and large folders of data are links, which the probe's guard turns into
private files on the first write; folders that hold outputs start empty. Because both versions run at one path, nothing
in them can tell which it is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

CODE = {".py", ".pyi", ".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".sh", ".txt", ".cu", ".cuh", ".cpp", ".h"}
LEFT_OUT = {"__pycache__", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".torchlint_cache"}
OUTPUTS = {
    *("runs", "outputs", "output", "logs", "log", "results", "wandb", "lightning_logs", "mlruns"),
    *("checkpoints", "checkpoint", "ckpt", "ckpts", "saved_models", "tensorboard"),
}
SMALL = 16 << 10
LARGEST_COPY = 4 << 20
LARGE = 2000  # files
LARGEST_DIGEST = 64 << 20


Stamp = tuple[int, int]  # size, time


class OverlayError(Exception):
    """The folder cannot be copied in a way that keeps the original unwritten."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of each entry, relative to `root`; `linked` remembers size and time of every linked file."""

    root: Path
    folders: tuple[str, ...]
    copies: tuple[str, ...]
    links: tuple[str, ...]
    linked: Mapping[str, Stamp]

    def build(self, tree: Path, changed: Mapping[str, bytes]) -> None:
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        for folder in self.folders:
            (tree / folder).mkdir()
        for name in self.copies:
            with suppress(FileNotFoundError):  # somebody's temporary file, gone since the folder was read
                shutil.copy2(self.root / name, tree / name)
        for name in self.links:
            target = (self.root / name).resolve()
            is_inner = (self.root / name).is_symlink() and target.is_relative_to(self.root)
            (tree / name).symlink_to(tree / target.relative_to(self.root) if is_inner else target)
        for name, content in changed.items():
            (tree / name).write_bytes(content)

    def overwritten(self) -> list[str]:
        """Linked files that a run changed through native code, past the guard."""
        return sorted(name for name, before in self.linked.items() if _stamp(self.root / name) != before)


def plan(root: Path, changed: Sequence[str], words: Sequence[str]) -> Plan:
    """`words` are the command's: an output folder that one of them points into is data for this run."""
    root = root.resolve()
    folders: list[str] = []
    copies: list[str] = []
    links: list[str] = []
    kept_open = {path.as_posix() for name in changed for path in (Path(name), *Path(name).parents)}
    for entry, kind in _walk(root, "", kept_open, words):
        {"folder": folders, "copy": copies, "link": links}[kind].append(entry)
    missing = sorted(set(changed) - set(copies))
    if missing:
        raise OverlayError(f"{missing[0]} is not a regular file under {root}")
    linked = {name: stamp for name in links if (stamp := _stamp(root / name)) is not None}
    return Plan(root, tuple(folders), tuple(copies), tuple(links), linked)


def _walk(root: Path, below: str, kept_open: set[str], words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for entry in sorted(os.scandir(root / below), key=lambda entry: entry.name):
        name = f"{below}/{entry.name}" if below else entry.name
        if entry.name in LEFT_OUT:
            continue
        if entry.is_symlink():
            yield name, "link"
        elif entry.is_dir():
            kind = _folder_kind(entry, name, kept_open, words)
            yield name, "folder" if kind == "walk" else kind
            if kind == "walk":
                yield from _walk(root, name, kept_open, words)
        elif entry.is_file():
            yield name, "copy" if name in kept_open or _is_copied(entry) else "link"


def _folder_kind(entry: os.DirEntry[str], name: str, kept_open: set[str], words: Sequence[str]) -> str:
    if name in kept_open:
        return "walk"
    if entry.name == ".git" or os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
        return "link"
    if entry.name.lower() in OUTPUTS:
        is_package = any(file.endswith(".py") for file in os.listdir(entry.path))
        is_named = any(f"{name}/" in word or word.endswith(name) for word in words)
        return "walk" if is_package or is_named else "folder"
    return "link" if _is_data(entry.path) else "walk"


def _is_data(folder: str) -> bool:
    """No code among its first files, and so many of them that one link must do for all."""
    seen = 0
    for _, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        if any(name.endswith(".py") for name in files):
            return False
        seen += len(files)
        if seen > LARGE:
            return True
    return False


def _is_copied(entry: os.DirEntry[str]) -> bool:
    size = entry.stat().st_size
    return size <= SMALL or (Path(entry.name).suffix in CODE and size <= LARGEST_COPY)


def written(tree: Path, before: Mapping[str, Stamp]) -> dict[str, str]:
    """A digest of each regular file that is new or was changed since the tree was built."""
    now = stamps(tree)
    return {name: _digest(tree / name) for name, stamp in sorted(now.items()) if before.get(name) != stamp}


def stamps(tree: Path) -> dict[str, Stamp]:
    """Size and time of each regular file, for `written` to know later what has changed."""
    found = {}
    for folder, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        paths = (Path(folder, name) for name in files)
        stamped = ((path, _stamp(path)) for path in paths if not path.is_symlink())
        found.update({path.relative_to(tree).as_posix(): stamp for path, stamp in stamped if stamp is not None})
    return found


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.sha256(file.read(LARGEST_DIGEST)).hexdigest()
    except OSError:
        return "unreadable"


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_size, status.st_mtime_ns) if path.is_file() else None
