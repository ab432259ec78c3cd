"""One row per public name of torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import torch
from torch.nn.modules.lazy import LazyModuleMixin

from tools.torch_api import facts, namespaces, samples, signatures
from tools.torch_api.batching import batch
from tools.torch_api.facts import Facts
from tools.torch_api.observe import Observation, attempt, needs_layout, observe
from tools.torch_api.supplement import supplement

COLUMNS = ("name", "kind", "result", "dtype", "grad", "rank", "batch", "flags", "parameters")
_OTHER_DTYPES = 4
_TENSOR_NAMESPACES = ("torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft", "torch.nn.init")
_KINDS: tuple[tuple[type, str], ...] = (
    (torch.optim.Optimizer, "optimizer"),
    (torch.optim.lr_scheduler.LRScheduler, "scheduler"),
    (torch.nn.modules.loss._Loss, "loss"),
    (torch.nn.Module, "module"),
    (torch.utils.data.Sampler, "sampler"),
    (torch.utils.data.Dataset, "dataset"),
    (torch.utils.data.DataLoader, "loader"),
    (torch.amp.GradScaler, "scaler"),
    (torch.Tensor, "tensor"),
    (torch.autograd.Function, "autograd-function"),
    (torch.distributions.Distribution, "distribution"),
    (BaseException, "exception"),
)


@dataclass
class Row:
    name: str
    kind: str
    facts: Facts
    parameters: str = ""

    @property
    def columns(self) -> dict[str, str]:
        measured = asdict(self.facts) | {"flags": ",".join(self.facts.flags)}
        return {"name": self.name, "kind": self.kind, **measured, "parameters": self.parameters}


# -- functions and methods -------------------------------------------------------------------------------------------


def _from_tests(name: str, function: Callable[..., Any]) -> list[Observation]:
    every: list[Observation] = []
    for operation in samples.operations(name):
        for dtype in samples.DTYPES:
            made = samples.of_operation(operation, dtype)
            wanted = made if dtype is torch.float32 else islice(made, _OTHER_DTYPES)
            every += _observed(function, wanted, name)
    return every


def _observed(function: Callable[..., Any], calls: Iterator[samples.Sample], name: str) -> list[Observation]:
    is_method = name.startswith("torch.Tensor.")
    usable = (call for call in calls if not is_method or isinstance(call.arguments[0], torch.Tensor))
    return [made for made in (observe(function, call) for call in usable) if made is not None]


def observations(name: str, function: Callable[..., Any], declared: set[str]) -> list[Observation]:
    """The calls that can be made: torch's own test inputs, or else a few plain tensors."""
    every = _from_tests(name, function)
    namespace, _, short = name.rpartition(".")
    if not every and namespace == "torch.Tensor":
        for dtype in samples.DTYPES:
            every += _observed(function, samples.of_method(short, dtype), name)
    elif not every and namespace in _TENSOR_NAMESPACES and any("tensor" in word for word in declared):
        for dtype in samples.DTYPES:
            every += _observed(function, samples.of_function(dtype), name)
    return every


def measured(name: str, function: Callable[..., Any], every: list[Observation], declared: set[str]) -> Facts:
    found = facts.flags(every, name)
    if "view" in found and any(needs_layout(function, made) for made in every):
        found = (found - {"view"}) | {"may-view"}
    if "synchronizes that device with the CPU" in (getattr(function, "__doc__", None) or ""):
        found.add("reads")
    floating = [made for made in every if made.sample.dtype is torch.float32]
    may_lift = not any(flag.removeprefix("may-") in ("random", "inplace", "writes") for flag in found)
    lifts = batch(function, floating or every, may_lift) if not {"random", "may-random"} & found else ""
    found_out = Facts(
        facts.result(every, declared),
        facts.dtype(every),
        facts.grad(every),
        facts.rank(floating or every),
        lifts,
        tuple(sorted(found)),
    )
    return facts.of_several(function, found_out, every)


def _function(name: str, value: Callable[..., Any]) -> Row:
    declared = signatures.declared_results(name, value)
    parameters = signatures.parameters(name, value)
    given = {word.partition("=")[0] for word in parameters.replace(" | ", ", ").split(", ")}
    kind = "factory" if {"device", "requires_grad"} <= given else "function"
    if kind == "factory" and "input" not in given:
        every = _observed(value, samples.of_factory(name), name)
    else:
        every = observations(name, value, declared)
    return Row(name, kind, measured(name, value, every, declared), parameters)


def _member(name: str, value: Any) -> Row:
    path = f"torch.Tensor.{name}"
    if callable(value):
        declared = {"tensor" if word == "self" else word for word in signatures.declared_results(path, value)}
        every = observations(path, value, declared)
        return Row(path, "method", measured(path, value, every, declared), signatures.parameters(path, value))
    every = []
    for dtype in samples.DTYPES:
        every += _observed(lambda tensor: getattr(tensor, name), samples.of_method("ndim", dtype), path)
    square = [made for made in every if made.inputs[0].dim() == 2]
    return Row(path, "attribute", measured(path, value, every if name not in ("T", "H") else square, set()))


def _method(name: str, value: Callable[..., Any]) -> Row:
    """A method of what is no tensor: as torch declares it."""
    result = "|".join(sorted(signatures.declared_results(name, value)))
    return Row(name, "method", Facts(result), signatures.parameters(name, value))


# -- classes and constants -------------------------------------------------------------------------------------------


def _class(name: str, cls: type) -> Row:
    if isinstance(cls, type(torch.FloatTensor)):
        return Row(name, "legacy-tensor", Facts("tensor", facts.kind_of_dtype(cls.dtype), "no"))
    kind = next((word for base, word in _KINDS if issubclass(cls, base)), "class")
    if kind == "class" and hasattr(cls, "__enter__"):
        kind = "context"
    row = Row(name, kind, Facts(), signatures.parameters(name, cls))
    if kind in ("module", "loss"):
        row.facts = _module(cls)
    return row


def _module(cls: type) -> Facts:
    every: list[Observation] = []
    bare: list[bool] = []
    for made in samples.of_module(cls):
        samples.seed()
        try:
            module = made.make()
        except Exception:  # needs arguments that nothing here knows
            continue
        bare.append(next(module.parameters(), None) is None)
        if isinstance(module, LazyModuleMixin):
            attempt(module, made.forward)  # the first call makes the parameters
        seen = observe(module, made.forward)
        every += [seen] if seen is not None else []
    found = {flag for flag in facts.flags(every, "") if not flag.endswith("writes")}
    if all(bare) and (every or issubclass(cls, torch.nn.modules.loss._Loss)):
        found.add("parameter-free")
    return Facts(facts.result(every, set()), "", facts.grad(every), facts.rank(every), "", tuple(sorted(found)))


def _constant(name: str, value: Any) -> Row:
    made = Row(name, type(value).__name__, Facts())
    if isinstance(value, torch.dtype):
        made.facts.dtype = facts.kind_of_dtype(value)
    return made


# -- the table -------------------------------------------------------------------------------------------------------


def _row(name: str, value: Any) -> Row:
    if isinstance(value, type):
        return _class(name, value)
    return _function(name, value) if callable(value) else _constant(name, value)


def table(only: frozenset[str] | None = None) -> list[dict[str, str]]:
    """The rows, sorted by name; of `only` these names, if it is given."""
    objects, aliases = namespaces.objects_and_aliases()
    rows: dict[str, dict[str, str]] = {}
    for name, value in objects.items():
        if only is None or name in only:
            rows[name] = _row(name, value).columns
            namespace, _, short = name.rpartition(".")
            if not namespaces.star_exported(namespace, short):
                _add_flags(rows[name], "unexported")
    for name, value in namespaces.tensor_members().items():
        if only is None or f"torch.Tensor.{name}" in only:
            rows[f"torch.Tensor.{name}"] = _member(name, value).columns
    for noun in namespaces.NOUNS:
        for short, value in namespaces.methods(objects[noun]).items():
            if only is None or f"{noun}.{short}" in only:
                rows[f"{noun}.{short}"] = _method(f"{noun}.{short}", value).columns
    for name, target in aliases.items():
        if only is None or name in only:
            rows[name] = dict.fromkeys(COLUMNS, "") | {"name": name, "kind": "alias", "result": target}
    for name, said in supplement().items():
        if only is None or name in only:
            row = rows.setdefault(name, dict.fromkeys(COLUMNS, "") | {"name": name})
            row |= {column: text for column, text in said.items() if column != "source"}
            _add_flags(row, said["source"])
    return [rows[name] for name in sorted(rows)]


def _add_flags(row: dict[str, str], flags: str) -> None:
    known = {flag for flag in row["flags"].split(",") if flag}
    row["flags"] = ",".join(sorted(known | set(flags.split(","))))
