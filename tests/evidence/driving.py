"""What drivers share: running a script or importing a module of a checkout, and stand-ins for packages with data."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
from torch.utils.data import Dataset


def seed(value: int = 0) -> None:
    random.seed(value)
    np.random.seed(value)
    torch.manual_seed(value)


def load(root: Path, name: str) -> Any:
    """The module `name` with `root` first on the path of imports, as a script that lies there would see it."""
    sys.path.insert(0, str(root))
    with contextlib.redirect_stdout(io.StringIO()):
        return importlib.import_module(name)


@contextlib.contextmanager
def inside(folder: Path, *arguments: str) -> Iterator[io.StringIO]:
    """Work in `folder` with these arguments of a command line, and catch what is printed."""
    before, argv = Path.cwd(), sys.argv
    os.chdir(folder)
    sys.argv = ["script", *arguments]
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            yield printed
    finally:
        os.chdir(before)
        sys.argv = argv


def run_script(
    script: Path, *arguments: str, replace: dict[str, str] | None = None, **names: Any
) -> tuple[dict[str, Any], str]:
    """Run a script as its user would, and give its global names and what it printed. `replace` makes it shorter (fewer
    epochs); `names` are there before it."""
    variables = {"__name__": "__main__", "__file__": str(script), **names}
    source = shortened(script.read_text(encoding="utf-8-sig"), replace or {})
    sys.path.insert(0, str(script.parent))
    with inside(script.parent, *arguments) as printed:
        exec(compile(source, str(script), "exec"), variables)
    return variables, printed.getvalue()


def run_cells(
    notebook: Path, *cells: int, replace: dict[str, str] | None = None, **names: Any
) -> tuple[dict[str, Any], str]:
    """The same for these cells of a notebook, counted from 0."""
    variables = {"__name__": "__main__", **names}
    content = json.loads(shortened(notebook.read_text(), replace or {}))
    with inside(notebook.parent) as printed:
        for number in cells:
            source = "".join(content["cells"][number]["source"])
            exec(compile(source, f"{notebook}#{number}", "exec"), variables)
    return variables, printed.getvalue()


def shortened(source: str, replace: dict[str, str]) -> str:
    for old, new in replace.items():
        assert old in source, f"{old} is not there"
        source = source.replace(old, new)
    return source


def stand_in(name: str, **members: Any) -> ModuleType:
    """Make `import name` work where the package is missing: only these members compute anything."""
    module = ModuleType(name)
    module.__path__ = []
    module.__getattr__ = lambda member: MagicMock(name=f"{name}.{member}")  # type: ignore[method-assign]
    vars(module).update(members)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules.get(parent) or stand_in(parent), child, module)
    return module


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    """Random pictures with random labels, called the way that the datasets of torchvision are."""

    shape: tuple[int, ...] = (1, 28, 28)
    classes = 10
    counts = (200, 100)

    def __init__(self, root: object = None, train: bool = True, *ignored: object, **options: object) -> None:
        count = self.counts[not train]
        generator = torch.Generator().manual_seed(count)
        self.data = torch.rand(count, *self.shape, generator=generator)
        self.targets = torch.randint(self.classes, (count,), generator=generator)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, position: int) -> tuple[torch.Tensor, int]:
        return self.data[position], int(self.targets[position])


def torchvision(**datasets: type[Pictures]) -> None:
    """A stand-in of torchvision with these datasets; its transforms do nothing."""
    stand_in("torchvision")
    stand_in("torchvision.transforms")
    stand_in("torchvision.utils")
    stand_in("torchvision.models")
    stand_in("torchvision.datasets", **datasets)


def without_times(text: str) -> str:
    """What was printed, less every number that is a time, and what pads it: one before a unit, or behind the word."""
    return re.sub(r"(?i)((?:time|ms/)[^0-9\n]*?) *[\d.]+| *[\d.]+ ?(?:ms|s|sec|seconds)\b", r"\1", text)
