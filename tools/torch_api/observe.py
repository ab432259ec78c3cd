"""Runs a call and writes down what happened: results, inputs, and the operators below it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tools.torch_api.samples import Sample, seed

_READS = frozenset({"aten::_linalg_check_errors"})


class _Tape(TorchDispatchMode):
    """Notes whether an operator below reads a value back, or has a result whose shape depends on values."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.reads = False
        self.dynamic = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.reads |= torch.Tag.data_dependent_output in func.tags or func._schema.name in _READS
        self.dynamic |= torch.Tag.dynamic_output_shape in func.tags
        return func(*args, **(kwargs or {}))


@dataclass
class Observation:
    sample: Sample
    inputs: list[torch.Tensor]
    result: Any
    had_graph: bool  # before the call, which may be `detach_`
    ranks: list[int]  # of the inputs, before the call, which may be `squeeze_`
    flags: set[str] = field(default_factory=set)

    @property
    def parts(self) -> list[Any]:
        """The result, or what the tuple that it is holds."""
        return list(self.result) if type(self.result) is not torch.Size and self.is_sequence else [self.result]

    @property
    def is_sequence(self) -> bool:
        return isinstance(self.result, (tuple, list))

    @property
    def main(self) -> torch.Tensor | None:
        parts = self.parts
        return parts[0] if parts and isinstance(parts[0], torch.Tensor) else None


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def _fresh(value: Any) -> Any:
    """A copy that an in-place operator may write to."""
    if isinstance(value, torch.Tensor):
        return value.clone(memory_format=torch.preserve_format) if value.layout is torch.strided else value.clone()
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_fresh(item) for item in value)
    return value


def _storage(tensor: torch.Tensor) -> int | None:
    try:
        return tensor.untyped_storage().data_ptr() or None
    except Exception:  # sparse tensors have none
        return None


def attempt(function: Callable[..., Any], sample: Sample) -> Any:
    """The result of the call, or the exception that says that it cannot be made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seed()
        try:
            return function(*sample.arguments, **sample.keywords)
        except Exception as error:  # whatever a wrong guess of the arguments raises
            return error


def _other_strides(value: Any) -> Any:
    """The same numbers, laid out in memory in another order."""
    if isinstance(value, torch.Tensor) and value.layout is torch.strided and value.dim() > 1:
        return value.transpose(0, -1).contiguous().transpose(0, -1)
    return value


def needs_layout(function: Callable[..., Any], made: Observation) -> bool:
    """Whether a call that returned a view returns a copy when its input is not contiguous."""
    if "view" not in made.flags:
        return False
    moved = Sample(made.sample.dtype, tuple(map(_other_strides, made.sample.arguments)), made.sample.keywords)
    again = attempt(function, moved)
    shared = {_storage(tensor) for tensor in tensors_in(moved.arguments)}
    return isinstance(again, torch.Tensor) and again.numel() > 0 and _storage(again) not in shared


def observe(function: Callable[..., Any], sample: Sample) -> Observation | None:
    """What one call does; None if it cannot be made."""
    own = Sample(sample.dtype, _fresh(sample.arguments), {k: _fresh(v) for k, v in sample.keywords.items()})
    inputs = [*tensors_in(own.arguments), *tensors_in(own.keywords)]
    storages = {_storage(tensor) for tensor in inputs} - {None}
    versions = [tensor._version for tensor in inputs]
    had_graph = any(tensor.requires_grad for tensor in inputs)
    ranks = [tensor.dim() for tensor in inputs]
    seed()
    before = torch.get_rng_state()
    with _Tape() as tape:
        result = attempt(function, own)
    if isinstance(result, (Exception, type(NotImplemented))):
        return None
    made = Observation(own, inputs, result, had_graph, ranks)
    if not torch.equal(before, torch.get_rng_state()):
        made.flags.add("random")
    made.flags |= {name for name in ("reads", "dynamic") if getattr(tape, name)}
    written = [tensor for tensor, version in zip(inputs, versions) if tensor._version != version]
    if inputs and any(tensor is inputs[0] for tensor in written) and result is inputs[0]:
        made.flags.add("inplace")
    elif written:
        made.flags.add("writes")
    elif any(_storage(tensor) in storages for tensor in tensors_in(made.parts)):
        made.flags.add("view")
    return made
