"""Run one piece in one checkout: what it computes, and which lines run."""

from __future__ import annotations

import functools
import hashlib
import multiprocessing
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.evidence.driving import seed
from tests.evidence.piece import Values

SECONDS = 300

Lines = dict[str, set[tuple[int, bool]]]
"""Per file the lines that ran, each with whether it did so inside of a function."""


normal = functools.cache(os.path.normpath)


class Tracer:
    """Notes the lines of a folder that run; for `sys.settrace`."""

    def __init__(self, root: Path) -> None:
        self.root = f"{root}/"
        self.lines: Lines = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        path = normal(frame.f_code.co_filename)
        if not path.startswith(self.root):
            return None
        seen = self.lines.setdefault(path.removeprefix(self.root), set())
        inside = frame.f_code.co_name != "<module>"
        seen.add((frame.f_lineno, inside))

        def line(frame: FrameType, event: str, argument: object) -> Any:
            seen.add((frame.f_lineno, inside))
            return line

        return line


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Tensors, arrays, numbers and texts of nested containers, with their names."""
    if isinstance(value, nn.Module | torch.optim.Optimizer):
        value = value.state_dict()
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            yield from leaves(item, f"{name}[{position}]")
    elif isinstance(value, torch.Tensor):
        yield name, value.detach().clone()
    elif isinstance(value, np.ndarray | np.generic):
        yield name, torch.from_numpy(np.array(value))
    elif isinstance(value, bool | int | float | complex | str | None):
        yield name, value
    else:
        raise TypeError(f"{name} is {type(value).__name__}, which cannot be compared.")


def observe(run: Callable[[Path], Values], root: Path, *, traced: bool = False) -> dict[str, Any]:
    """In a process of its own, so that runs share no module, and torch is imported once for all of them."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "values"), Path(folder, "errors")
        process = multiprocessing.get_context("fork").Process(target=observed, args=(run, root, traced, output, errors))
        process.start()
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
            return {"error": f"still running after {SECONDS} s"}
        if process.exitcode:
            return {"error": errors.read_text().strip()}
        result: dict[str, Any] = torch.load(output, weights_only=False)
        return result


def observed(run: Callable[[Path], Values], root: Path, traced: bool, output: Path, errors: Path) -> None:
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
    os.environ["MPLBACKEND"] = "Agg"
    torch.use_deterministic_algorithms(True)
    tracer = Tracer(root)
    seed()
    sys.settrace(tracer if traced else None)
    try:
        values = run(root)
    finally:
        sys.settrace(None)
    torch.save({"values": dict(leaves(values)), "random state": random_state(), "lines": tracer.lines}, output)


def random_state() -> tuple[str, ...]:
    """What the generators would draw next, as digests."""
    states = (
        torch.get_rng_state().numpy().tobytes(),
        np.random.get_state()[1].tobytes(),
        repr(random.getstate()).encode(),
    )
    return tuple(hashlib.sha1(state).hexdigest() for state in states)
