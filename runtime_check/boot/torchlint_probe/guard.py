"""Keeps the user's tree unwritten. Data in the copy are links: the first write to one makes it a private file.

An audit hook sees every open() and every change of the file system that Python makes, before it happens. Native code
does not pass here; torch.save, the one that matters, is led through `own` by `attach`, and the launcher looks at the
linked files afterwards.
"""

from __future__ import annotations

import os
import shutil
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .settings import Settings

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES_CONTENT = {"os.truncate", "os.utime", "os.chmod", "sqlite3.connect", "shutil.rmtree"}
_CHANGES_FOLDER = {
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.link": (1,),
    "os.symlink": (1,),
}


class Guard:
    def __init__(self, settings: Settings) -> None:
        self.tree = settings.tree
        self.original = settings.original
        self.state = threading.local()

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(arguments[2], int) and arguments[2] & _WRITE_FLAGS:
                self.own(arguments[0], empty=bool(arguments[2] & os.O_TRUNC))
        elif event in _CHANGES_CONTENT:
            self.own(arguments[0])
        elif event in _CHANGES_FOLDER:
            for position in _CHANGES_FOLDER[event]:
                self.own(arguments[position], folder_only=True)

    def own(self, path: Any, *, empty: bool = False, folder_only: bool = False) -> None:
        """Make `path` safe to write. Raises PermissionError where only the user's own file could be meant."""
        if getattr(self.state, "busy", False) or not isinstance(path, (str, bytes, os.PathLike)):
            return
        self.state.busy = True
        try:
            full = os.path.abspath(os.fsdecode(path))
            if full.startswith(self.tree + os.sep):
                self._own_in_tree(full, empty, folder_only)
            elif _is_inside(os.path.realpath(full), self.original):
                raise PermissionError(
                    f"torchlint verify keeps the original tree unwritten, and the program writes {full}"
                )
        finally:
            self.state.busy = False

    def _own_in_tree(self, full: str, empty: bool, folder_only: bool) -> None:
        current = self.tree
        names = full[len(self.tree) + 1 :].split(os.sep)
        for depth, name in enumerate(names):
            current = os.path.join(current, name)
            is_leaf = depth == len(names) - 1
            if os.path.islink(current) and not (is_leaf and folder_only):
                _make_private(current, empty and is_leaf)


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)


def _make_private(link: str, empty: bool) -> None:
    target = os.path.realpath(link)
    if os.path.isdir(target):
        os.unlink(link)
        os.mkdir(link)
        for entry in os.listdir(target):
            os.symlink(os.path.join(target, entry), os.path.join(link, entry))
    elif empty or not os.path.exists(target):
        os.unlink(link)
    else:
        copy = f"{link}.{os.getpid()}.torchlint"
        shutil.copy2(target, copy)
        os.replace(copy, link)
