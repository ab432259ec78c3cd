"""Runs a program in float64 throughout: what differs between two versions by rounding alone vanishes there.

Random numbers of another type are another stream, so a run in float64 is comparable to another such run only.
"""

from __future__ import annotations

import atexit
import functools
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

_LOW = {torch.float32, torch.float16, torch.bfloat16}
_COMPLEX = {torch.complex64, torch.complex32}


class Double(TorchDispatchMode):
    """Every request for a shorter type becomes one for float64, and so does every shorter tensor that is only read.

    Views keep what they look at, and a tensor that is written in place keeps its type.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.is_view:
            return func(*args, **kwargs)
        written = [argument.alias_info is not None for argument in func._schema.arguments]
        args = tuple(value if at < len(written) and written[at] else _longer(value) for at, value in enumerate(args))
        names = {argument.name for argument in func._schema.arguments if argument.alias_info is not None}
        return func(*args, **{name: value if name in names else _longer(value) for name, value in kwargs.items()})


def _longer(value: Any) -> Any:
    return tree_map(_longer_leaf, value)


def _longer_leaf(leaf: Any) -> Any:
    if isinstance(leaf, torch.dtype):
        return longer(leaf)
    if isinstance(leaf, torch.Tensor) and leaf.dtype is not longer(leaf.dtype):
        return leaf.to(longer(leaf.dtype))
    return leaf


def longer(dtype: torch.dtype) -> torch.dtype:
    """float64 or complex128 for the shorter types of their kind, any other type for itself."""
    return torch.float64 if dtype in _LOW else torch.complex128 if dtype in _COMPLEX else dtype


def run_in_double() -> None:
    torch.set_default_dtype(torch.float64)
    for name in ("from_numpy", "as_tensor", "frombuffer"):
        setattr(torch, name, _lengthened(getattr(torch, name)))
    mode = Double()  # type: ignore[no-untyped-call]
    mode.__enter__()  # type: ignore[no-untyped-call]
    atexit.register(lambda: mode)  # keeps it: torch 2.4 frees a mode that only its own stack refers to


def _lengthened(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _longer(function(*args, **kwargs))

    return call
