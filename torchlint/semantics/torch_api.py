"""Torch's vocabulary: what its functions, methods and classes are, return and do. The data is `torch_api.tsv`.

One row per name, measured on the torch that its first line names, by `python -m tools.torch_api`; linting imports no
torch. The columns:

* `kind`: function, factory (makes a tensor of sizes, numbers or data), method, attribute (of a tensor), module, loss,
  optimizer, scheduler, sampler, dataset, loader, scaler, distribution, context, class, tensor, legacy-tensor, dtype,
  ...; alias: `result` is the name that the same object has here.
* `result`: what a call returns, for a module what calling the module returns. Alternatives are divided by `|`, the
  parts of a tuple by `,`. `index` is a tensor of integers without a graph, `tensors` any number of tensors, `self`
  the object whose method it is.
* `dtype` of the first tensor of the result, from that of the first input: `same`, `inexact` (integers become
  float32, or are refused), `real` (of complex numbers), `inexact-real`, `widened` (bool becomes int64), `promoted`
  (that of the widest input), `complex`, or one dtype.
* `grad`: whether the result carries the graph of an input: yes or no.
* `rank` of the result: `keep`, `broadcast` (that of the widest input), `reduce` (by `dim`, or to 0), `product` (as
  matmul), `sized` (as many as sizes are given), a change (`+1`), or a number.
* `batch`: `elementwise`; `native` (a stack of inputs gives the stack of results); `vmap` (torch.vmap makes it so); no.
* `flags`, of modules in training: view, inplace, writes (to an input that is not the result), random, reads (a value
  back to the host), dynamic (the shape depends on values), each with `may-` where it depends on the arguments;
  parameter-free (module); unexported (not by `import *`); hand, removed (said in tools/torch_api/supplement.py).
* `parameters`: the names in order, with defaults; overloads are divided by ` | `.

An empty column is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

_DATA = Path(__file__).with_name("torch_api.tsv")
_METHOD = "torch.Tensor."
_TENSORS = ("tensor", "index", "tensors")
# What torch's own argument parser takes in place of its names (torch/csrc/utils/python_arg_parser.cpp).
NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}


class Entry(NamedTuple):
    """One row of the table."""

    name: str
    kind: str
    results: tuple[tuple[str, ...], ...] = ()  # the alternatives, each as the parts that it has
    dtype: str = ""
    grad: str = ""
    rank: str = ""
    batch: str = ""
    flags: frozenset[str] = frozenset()
    parameters: str = ""

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]

    def may(self, flag: str) -> bool:
        """Whether some calls do it: `may("view")`. What every call does is in the flags."""
        return flag in self.flags or f"may-{flag}" in self.flags

    @property
    def returns_tensors(self) -> bool:
        """Whether every call returns a tensor, or a tuple or list of them."""
        return bool(self.results) and all(parts[0] in _TENSORS for parts in self.results)

    def takes(self, parameter: str) -> bool:
        """Whether a parameter of some overload has this name."""
        return any(parameter in names for names in self.parameter_lists)

    @property
    def parameter_lists(self) -> list[tuple[str, ...]]:
        """Per overload the names of the parameters in order; `*` divides off those that are given by name only."""
        return [
            tuple(word.partition("=")[0] for word in overload.split(", ") if word)
            for overload in self.parameters.split(" | ")
        ]


def _row(line: str) -> Entry:
    name, kind, *rest = line.split("\t")
    result, dtype, grad, rank, batch, flags, parameters = rest + [""] * (7 - len(rest))
    results = tuple(tuple(word.split(",")) for word in result.split("|")) if result else ()
    return Entry(name, kind, results, dtype, grad, rank, batch, frozenset(filter(None, flags.split(","))), parameters)


@cache
def _lines() -> dict[str, str]:
    text = _DATA.read_text(encoding="utf-8")
    return {line.partition("\t")[0]: line for line in text.splitlines()[2:]}


@cache
def version() -> str:
    """The version of torch that the table describes."""
    with _DATA.open(encoding="utf-8") as file:
        return file.readline().split()[2].rstrip(".")


@cache
def lookup(name: str) -> Entry | None:
    """The row of a qualified name, `torch.linalg.inv`; None where torch has no such name."""
    line = _lines().get(name)
    return _row(line) if line is not None else None


@cache
def method(name: str) -> Entry | None:
    """The row of a method of tensors."""
    entry = lookup(_METHOD + name)
    return entry if entry is not None and entry.kind == "method" else None


@cache
def attribute(name: str) -> Entry | None:
    """The row of an attribute of tensors."""
    entry = lookup(_METHOD + name)
    return entry if entry is not None and entry.kind == "attribute" else None


@cache
def position(name: str, parameter: str) -> int | None:
    """Which of the arguments, those before it counted and the first tensor left out, a parameter takes by position.

    It is that of the first overload that has the parameter.
    """
    entry = lookup(name)
    for names in entry.parameter_lists if entry is not None else ():
        places = names[: names.index("*")] if "*" in names else names
        if parameter in places:
            return places.index(parameter) - (entry is not None and entry.kind != "method")
    return None


def canonical(name: str) -> str:
    """The one name here of what torch has under several, or of what is inside it; itself where there is no other."""
    head, tail = name, ""
    while "." in head:
        entry = lookup(head)
        if entry is not None:
            return entry.results[0][0] + tail if entry.kind == "alias" else name
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
    return name


def entries(namespace: str) -> Iterator[Entry]:
    """The rows of what is directly in a namespace, `torch.Tensor`; aliases and removed names too."""
    prefix = namespace + "."
    for name, line in _lines().items():
        if name.startswith(prefix) and "." not in name[len(prefix) :]:
            yield _row(line)


@cache
def star_exports(namespace: str) -> frozenset[str]:
    """The short names that `from namespace import *` brings."""
    found = (entry for entry in entries(namespace) if not {"unexported", "removed"} & entry.flags)
    return frozenset(entry.short for entry in found)
