"""Small seeded calls of torch's functions, methods and modules, from the samples of torch's own tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db

DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64)
_SEED = 20
_PER_OPERATION = 16
_GENERATED = 100  # of these they are taken
_LARGEST = 20_000


@dataclass(frozen=True)
class Sample:
    """One call. `first` is a tensor, or a list of tensors, or what else the function takes."""

    dtype: torch.dtype
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


def seed() -> None:
    torch.manual_seed(_SEED)
    random.seed(_SEED)
    numpy.random.seed(_SEED)


@cache
def _operations() -> dict[str, list[Any]]:
    """torch's operator tests by the short names of what they test, aliases included."""
    found: dict[str, list[Any]] = {}
    for operation in op_db:
        names = {operation.name, *(alias.name for alias in operation.aliases)}
        for name in names:
            found.setdefault(name, []).append(operation)
    return found


def operations(name: str) -> list[Any]:
    """The tests of a public name, or of another function with the same last name."""
    path = name.removeprefix("torch.").removeprefix("Tensor.")
    short = path.rpartition(".")[2]
    every = _operations()
    spaces = ("", "nn.functional.", "linalg.", "special.", "fft.")
    for candidate in (path, *(space + short for space in spaces)):
        if candidate in every:
            return every[candidate]
    if short.endswith("_") and not short.endswith("__"):
        return operations(name.rstrip("_"))
    return []


def _small(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.numel() <= _LARGEST
    return not isinstance(value, (list, tuple)) or all(_small(item) for item in value)


def of_operation(operation: Any, dtype: torch.dtype) -> Iterator[Sample]:
    if dtype not in operation.dtypes:
        return
    seed()
    every: list[Sample] = []
    try:
        tests = operation.sample_inputs("cpu", dtype, requires_grad=dtype.is_floating_point)
        every.extend(
            Sample(dtype, (made.input, *made.args), dict(made.kwargs))
            for made in islice(tests, _GENERATED)
            if _small(made.input) and _small(made.args)
        )
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError):
        pass  # a sample maker that needs another device or package
    chosen = random.Random(_SEED).sample(range(len(every)), min(_PER_OPERATION, len(every)))
    yield from (every[index] for index in sorted(chosen))


def _tensor(dtype: torch.dtype, *size: int) -> torch.Tensor:
    made = torch.randn(size)
    if dtype is torch.bool:
        return made > 0
    made = (made * 3).to(dtype) if not dtype.is_complex else torch.randn(size, dtype=dtype)
    return made.requires_grad_() if dtype.is_floating_point else made


# Calls of what torch's tests do not call, on tensors of the sizes (3, 4), (3,) and (2, 3, 4).
_METHODS_WITH_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "__contains__": (1.0,),
    "__getitem__": (0,),
    "__setitem__": (0, 1),
    "apply_": (abs,),
    "copy_": (0,),
    "fill_": (1,),
    "get_device": (),
    "map_": (),
    "normal_": (),
    "random_": (),
    "register_hook": (print,),
    "register_post_accumulate_grad_hook": (print,),
    "reshape_as": (),
    "requires_grad_": (),
    "softmax": (-1,),
    "type": (torch.float64,),
}
_SAME_SHAPED = frozenset({"copy_", "view_as", "reshape_as", "expand_as", "type_as", "is_set_to", "is_same_size"})


def of_method(name: str, dtype: torch.dtype) -> Iterator[Sample]:
    """Calls of a method without arguments, or with those that it needs."""
    seed()
    given = _METHODS_WITH_ARGUMENTS.get(name, ())
    for size in ((3, 4), (3,), (2, 3, 4)):
        receiver = _tensor(dtype, *size)
        yield Sample(dtype, (receiver, _tensor(dtype, *size)) if name in _SAME_SHAPED else (receiver, *given), {})
    if not given:
        yield Sample(dtype, (_tensor(dtype),), {})


# Calls of functions that take no tensor.
_FUNCTIONS_WITH_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "torch.from_numpy": (numpy.ones((2, 3)),),
    "torch.normal": (0.0, 1.0, (2, 3)),
    "torch.randint": (0, 10, (2, 3)),
    "torch.tensor": ([1.0, 2.0],),
    "torch.tril_indices": (3, 3),
    "torch.triu_indices": (3, 3),
    "torch.full": ((2, 3), 1.0),
    "torch.linspace": (0.0, 1.0, 5),
    "torch.logspace": (0.0, 1.0, 5),
    "torch.arange": (5,),
}


def of_factory(name: str) -> Iterator[Sample]:
    """Calls of what makes a tensor of nothing, with sizes."""
    given = _FUNCTIONS_WITH_ARGUMENTS.get(name)
    for arguments in (given,) if given is not None else (((2, 3),), (4,)):
        yield Sample(torch.float32, arguments, {})


def of_function(dtype: torch.dtype) -> Iterator[Sample]:
    """Calls of a function that torch's tests do not call: with one tensor, then with two."""
    seed()
    for count in (1, 2):
        for size in ((3, 4), (3, 3), (2, 3, 4)):
            yield Sample(dtype, tuple(_tensor(dtype, *size) for _ in range(count)), {})


@dataclass(frozen=True)
class ModuleSample:
    make: Callable[[], torch.nn.Module]
    forward: Sample


@cache
def _module_tests() -> dict[type, Any]:
    return {info.module_cls: info for info in module_db}


def of_module(cls: type) -> Iterator[ModuleSample]:
    """Modules and calls of them: torch's own, or the module without arguments on one tensor."""
    info = _module_tests().get(cls)
    seed()
    if info is None:
        for size in ((3, 4), (2, 3, 4), (2, 3, 4, 4)):
            yield ModuleSample(cls, Sample(torch.float32, (_tensor(torch.float32, *size),), {}))
        return
    for made in islice(info.module_inputs_func(info, "cpu", torch.float32, True, True), _PER_OPERATION):
        if made.forward_input is None:
            continue
        build = made.constructor_input
        yield ModuleSample(
            partial(cls, *build.args, **build.kwargs),
            Sample(torch.float32, tuple(made.forward_input.args), dict(made.forward_input.kwargs)),
        )
