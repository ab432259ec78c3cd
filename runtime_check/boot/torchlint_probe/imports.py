"""What the probe changes in the import system: a call-back after torch, and editable installs led to the copy."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .settings import Settings


class _AfterImport(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, callback: Callable[[], None]) -> None:
        self.name = name
        self.callback = callback

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self.callback()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def after_import(name: str, callback: Callable[[], None]) -> None:
    if name in sys.modules:
        callback()
    else:
        sys.meta_path.insert(0, _AfterImport(name, callback))


def redirect_imports(settings: Settings) -> None:
    """An editable install points to the original tree; without this both versions would import the same files."""

    def moved(path: str) -> str:
        real = os.path.realpath(path)
        if real == settings.original or real.startswith(settings.original + os.sep):
            return settings.tree + real[len(settings.original) :]
        return path

    sys.path[:] = [moved(entry) if entry and "site-packages" not in entry else entry for entry in sys.path]
    for finder in sys.meta_path:
        owner = sys.modules.get(getattr(finder, "__module__", ""))
        mapping: Any = getattr(owner, "MAPPING", None)
        if isinstance(mapping, dict):
            for name, path in mapping.items():
                if isinstance(path, str):
                    mapping[name] = moved(path)


class Modules:
    """Which files of the copy were imported, and which of the original slipped past the redirection."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.program = getattr(sys.modules["__main__"], "__file__", None)  # Python takes it away before the end

    def step(self, number: int) -> dict[str, float]:
        return {}

    def result(self) -> dict[str, Any]:
        files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        absolute = [file for file in (*files, self.program) if file and os.path.isabs(file)]
        real = {os.path.realpath(file) for file in absolute if "site-packages" not in file}
        return {
            "loaded": sorted(_below(self.settings.tree, real)),
            "escaped": sorted(_below(self.settings.original, real)),
        }


def _below(folder: str, files: set[str]) -> list[str]:
    return [os.path.relpath(file, folder) for file in files if file.startswith(folder + os.sep)]
