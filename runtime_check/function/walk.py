"""Whatever a value holds, by path: tensors, numbers and the shape of the containers around them."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

_OPAQUE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_PLAIN = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device, torch.Size)
_HIDDEN = {"_parameters", "_buffers", "_modules"}  # of a module: their entries stand under the module itself
_HOOKS = "_hooks"


@dataclass(frozen=True)
class Kind:
    """Stands at a path for a container or an object: its type and its size, or the path where it was met before."""

    name: str
    size: int = 0
    same_as: str = ""

    def __str__(self) -> str:
        return f"the same object as {self.same_as}" if self.same_as else f"{self.name} of {self.size}"


def leaves(value: Any, path: str) -> dict[str, Any]:
    """Path -> tensor, plain value or Kind, in a fixed order. Tensors, too, that are met again are Kinds."""
    return dict(_walk(value, path, {}))


def _walk(value: Any, path: str, seen: dict[int, str]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, _PLAIN):
        yield path, value
        return
    if id(value) in seen:
        yield path, Kind(type(value).__name__, same_as=seen[id(value)])
        return
    seen[id(value)] = path
    if isinstance(value, torch.Tensor):
        yield path, value
        if value.is_leaf and value.grad is not None:
            yield f"{path}.grad", value.grad
    elif isinstance(value, torch.Generator):
        yield path, value.get_state()
    elif type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        yield path, (type(value).__name__, str(value.dtype), value.shape, value.tobytes())
    elif isinstance(value, _OPAQUE):
        yield path, Kind(str(getattr(value, "__qualname__", "")))
    elif isinstance(value, (set, frozenset)):
        yield path, tuple(sorted(map(repr, value)))
    else:
        entries = [*_entries(value)]
        yield path, Kind(type(value).__name__, len(entries))
        for name, entry in entries:
            yield from _walk(entry, f"{path}{name}", seen)


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", entry) for key, entry in value.items())
        return
    if isinstance(value, (tuple, list)):
        yield from ((f"[{number}]", entry) for number, entry in enumerate(value))
        return
    attributes = dict(getattr(value, "__dict__", {}))
    if isinstance(value, nn.Module):
        for group in _HIDDEN:
            attributes.update(attributes.pop(group, {}))
        attributes = {name: entry for name, entry in attributes.items() if not name.endswith(_HOOKS)}
    for name in sorted(attributes):
        yield f".{name}", attributes[name]
    for slot in getattr(type(value), "__slots__", ()):
        if hasattr(value, slot):
            yield f".{slot}", getattr(value, slot)
