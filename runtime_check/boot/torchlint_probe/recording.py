"""Real arguments of one function, written as it is called: the first calls, every new shape, and ever rarer ones.

A call is stored as torch stores tensors: by storage, so that views stay views and strides and requires_grad survive.
Whatever the function can reach through its arguments comes along, a module with its parameters and buffers included.
"""

from __future__ import annotations

import inspect
import io
import os
import pickle
import random
import sys
import threading
import types
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_flatten

if TYPE_CHECKING:
    from .settings import Settings

FIRST = 3  # calls recorded whatever they are
MOST = 12
MOST_BYTES = 256 << 20
_DEVICES = ("cpu", "cuda")


class Recording:
    """`settings.function` lists where the code of the function, and of each decorator around it, starts, outermost
    first: file, line, name. A file of results begins with the name of the function's module in the program."""

    def __init__(self, settings: Settings) -> None:
        self.results = settings.results
        self.chain = [tuple(place) for place in settings.function]
        self.process = os.getpid()
        self.calls = self.recorded = self.bytes = 0
        self.shapes: Counter[Any] = Counter()
        self.unrecorded: Counter[str] = Counter()
        self.depths: dict[Any, int] = {}

    def start(self) -> None:
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def _profile(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call" and self._depth(frame.f_code) == 0 and self._leads_inside(frame):
            if self.recorded >= MOST or os.getpid() != self.process:
                sys.setprofile(None)
                return
            self._called(frame)

    def _depth(self, code: Any) -> int:
        """The code's place in the chain, or -1. Most calls of a program end here."""
        depth = self.depths.get(code)
        if depth is None:
            place = _place(code)
            depth = self.depths[code] = self.chain.index(place) if place in self.chain else -1
        return depth

    def _leads_inside(self, frame: Any) -> bool:
        """A decorator's code serves many functions: this one has ours in its closure."""
        if len(self.chain) == 1:
            return True
        inner = [value for value in frame.f_locals.values() if inspect.isfunction(value)]
        return any(self._depth(function.__code__) == 1 for function in inner)

    def _called(self, frame: Any) -> None:
        self.calls += 1
        arguments = arguments_of(frame)
        leaves, _ = tree_flatten(arguments)
        shape = tuple(_signature(leaf) for leaf in leaves)
        self.shapes[shape] += 1
        is_rare = self.calls & (self.calls - 1) == 0
        if self.calls > FIRST and self.shapes[shape] > 1 and not is_rare:
            return
        try:
            data = stored(arguments)
        except Exception as error:
            self.unrecorded[f"{type(error).__name__}: {error}".splitlines()[0][:200]] += 1
            return
        if self.bytes + len(data) > MOST_BYTES:
            self.unrecorded[f"more than {MOST_BYTES >> 20} MB of arguments"] += 1
            return
        self.bytes += len(data)
        with open(os.path.join(self.results, f"{self.process}-{self.calls:08}.call"), "wb") as file:
            file.write(frame.f_globals.get("__name__", "").encode() + b"\n" + data)
        self.recorded += 1

    def step(self, number: int) -> dict[str, float]:
        return {}

    def result(self) -> dict[str, Any]:
        sys.setprofile(None)
        return {"calls": self.calls, "unrecorded": dict(self.unrecorded)}


def arguments_of(frame: Any) -> tuple[list[Any], dict[str, Any]]:
    """What a frame that has just started was called with: positional, and by keyword."""
    code, values = frame.f_code, frame.f_locals
    names = code.co_varnames
    keywords_from = code.co_argcount
    rest_from = keywords_from + code.co_kwonlyargcount
    positional = [values[name] for name in names[:keywords_from]]
    keywords = {name: values[name] for name in names[keywords_from:rest_from]}
    rest = iter(names[rest_from:])
    if code.co_flags & inspect.CO_VARARGS:
        positional += values[next(rest)]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        keywords.update(values[next(rest)])
    return positional, keywords


def stored(arguments: Any) -> bytes:
    """The call and what it depends on: random numbers, gradient and autocast modes."""
    call = {
        "arguments": arguments,
        "random": random_states(),
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": {
            device: (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)) for device in _DEVICES
        },
        "default_dtype": torch.get_default_dtype(),
    }
    buffer = io.BytesIO()
    torch.save(call, buffer, pickle_module=_pickling)
    return buffer.getvalue()


def random_states() -> dict[str, Any]:
    states: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if "numpy" in sys.modules:
        states["numpy"] = sys.modules["numpy"].random.get_state()
    if torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def intermediate(tensor: torch.Tensor) -> torch.Tensor:
    """Stands for a tensor that was computed with gradients; who reads the call puts something better in its place."""
    return tensor.requires_grad_()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.requires_grad and not value.is_leaf:
            return intermediate, (value.detach(),)
        return NotImplemented


_pickling = types.ModuleType("pickle")
_pickling.__dict__.update(vars(pickle), Pickler=_Pickler)


def _place(code: Any) -> tuple[str, int, str]:
    return os.path.abspath(code.co_filename), code.co_firstlineno, code.co_name


def _signature(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return tuple(leaf.shape), leaf.dtype, leaf.device, leaf.requires_grad
    return leaf if isinstance(leaf, (int, float, str, bool)) else type(leaf)
