"""Which names torch has: the public ones of its main namespaces, and the other paths to the same objects."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
from collections.abc import Iterator
from typing import Any

import torch

# The first namespace that has a class or a context manager gives it its name.
NAMESPACES = (
    "torch.amp",
    "torch",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.parallel",
    "torch.nn.utils",
    "torch.nn.init",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.optim.swa_utils",
    "torch.utils.data",
    "torch.cuda.amp",
    "torch.cuda",
    "torch.distributed",
    "torch.distributed.fsdp",
    "torch.autograd",
    "torch.autograd.functional",
    "torch.autograd.profiler",
    "torch.func",
    "torch.utils.checkpoint",
    "torch.random",
    "torch.nn.utils.rnn",
    "torch.nn.attention",
    "torch.distributions",
    "torch.accelerator",
    "torch.mps",
    "torch.compiler",
    "torch.jit",
    "torch.profiler",
    "torch.hub",
    "torch.sparse",
)
# Packages whose inner modules people import from: their paths are aliases.
_PACKAGES = ("torch.nn", "torch.optim", "torch.utils.data", "torch.amp", "torch.cuda.amp", "torch.autograd")
# Their bases: private by name, public by use.
_PRIVATE_CLASSES = frozenset({"_Loss", "_WeightedLoss", "_BatchNorm", "_ConvNd", "_LRScheduler", "_InstanceNorm"})
# Classes whose objects have methods that torch's users call.
NOUNS = (
    "torch.nn.Module",
    "torch.nn.ModuleList",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.optim.Optimizer",
    "torch.optim.lr_scheduler.LRScheduler",
    "torch.optim.swa_utils.AveragedModel",
    "torch.amp.GradScaler",
    "torch.utils.data.DataLoader",
    "torch.cuda.Event",
    "torch.cuda.Stream",
    "torch.distributions.Distribution",
)
DUNDERS = ("__bool__", "__contains__", "__float__", "__getitem__", "__index__", "__int__", "__len__", "__setitem__")


def _is_api(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return False
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return True
    module = getattr(value, "__module__", None) or ""
    if isinstance(value, type):
        return module.startswith("torch") and not issubclass(value, torch._C.Type)
    return callable(value) and (module.startswith("torch") or isinstance(value, types.BuiltinFunctionType))


def public(namespace: str) -> dict[str, Any]:
    """The API objects of a namespace by their short names."""
    module = importlib.import_module(namespace)
    names = {*getattr(module, "__all__", ()), *(name for name in dir(module) if not name.startswith("_"))}
    return {name: getattr(module, name) for name in sorted(names) if _is_api(getattr(module, name, None))}


def star_exported(namespace: str, name: str) -> bool:
    exported = getattr(importlib.import_module(namespace), "__all__", None)
    return exported is None or name in exported


def _defined_here(value: Any, namespace: str) -> bool:
    """Whether the namespace is where people look for the object, and not merely a module that uses it."""
    home = getattr(value, "__module__", None) or ""
    if namespace == "torch.nn.functional" and isinstance(value, types.BuiltinFunctionType):
        return True
    return not home or home == namespace or home.startswith((namespace + ".", "torch._")) or namespace == "torch"


def _inner_modules() -> Iterator[types.ModuleType]:
    yield importlib.import_module("torch.functional")
    for package in _PACKAGES:
        outer = importlib.import_module(package)
        for found in sorted(pkgutil.walk_packages(outer.__path__, package + "."), key=lambda module: module.name):
            if not any(part.startswith("_") for part in found.name.split(".")) and "quant" not in found.name:
                try:
                    yield importlib.import_module(found.name)
                except ImportError:  # needs a package that is not installed
                    continue


def _may_be_renamed(value: Any) -> bool:
    return isinstance(value, (type, types.FunctionType))


def objects_and_aliases() -> tuple[dict[str, Any], dict[str, str]]:
    """Every public name with its object, and every other path to one of them with that name."""
    objects: dict[str, Any] = {}
    name_of: dict[int, str] = {}
    aliases: dict[str, str] = {}
    for namespace in NAMESPACES:
        exported = getattr(importlib.import_module(namespace), "__all__", ())
        for short, value in public(namespace).items():
            name = f"{namespace}.{short}"
            known = name_of.get(id(value)) if _may_be_renamed(value) else None
            if known is not None and (namespace.startswith(("torch.autograd", "torch.nn.parallel"))):
                aliases[name] = known
            elif short in exported or _defined_here(value, namespace):
                objects[name] = value
                name_of.setdefault(id(value), name)
    for module in _inner_modules():
        names = {*getattr(module, "__all__", ()), *vars(module)}
        for short in sorted(names):
            value = getattr(module, short, None)
            path = f"{module.__name__}.{short}"
            if path in objects or path in aliases or not _may_be_renamed(value):
                continue
            at_home = getattr(value, "__module__", None) == module.__name__
            if not at_home and short not in getattr(module, "__all__", ()):
                continue
            known = name_of.get(id(value))
            if known is not None and known != path:
                aliases[path] = known
            elif short in _PRIVATE_CLASSES:
                objects[path] = value
                name_of[id(value)] = path
    return objects, aliases


def methods(cls: type) -> dict[str, Any]:
    """The public methods that a class has and its bases in the list of nouns have not, by name."""
    plain = cls is not torch.nn.Module and issubclass(cls, torch.nn.Module)
    known = {*dir(torch.nn.Module)} if plain else set()
    names = [name for name in dir(cls) if not name.startswith("_") and name not in known]
    static = {name: inspect.getattr_static(cls, name) for name in names}
    return {name: value for name, value in static.items() if isinstance(value, types.FunctionType)}


def tensor_members() -> dict[str, Any]:
    """Methods and attributes of tensors by name."""
    names = [name for name in dir(torch.Tensor) if not name.startswith("_")]
    return {name: getattr(torch.Tensor, name) for name in (*DUNDERS, *names)}
