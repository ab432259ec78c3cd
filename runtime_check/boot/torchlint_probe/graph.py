"""The autograd graph that live tensors hold."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from typing import Any

import torch

CAP = 400_000


def live_roots() -> list[Any]:
    """The nodes that made the tensors that are alive."""
    gc.collect()
    return [
        thing.grad_fn
        for thing in gc.get_objects()
        if issubclass(type(thing), torch.Tensor) and thing.grad_fn is not None
    ]


def walk(roots: Iterable[Any], seen: set[Any]) -> Iterator[Any]:
    """Every node that can be reached and is not in `seen` yet, which grows by it up to a limit."""
    pending = list(roots)
    while pending and len(seen) < CAP:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending += [following for following, _ in node.next_functions if following is not None]
            yield node
