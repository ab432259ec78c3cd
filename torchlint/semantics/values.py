"""The value lattice: what an expression may be, where it lives and whether it carries an autograd graph.

This module imports no LibCST, so that rules can name kinds without loading it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import reduce
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst as cst


class _Noun(Enum):
    __hash__ = object.__hash__  # as each member is there once; that of Enum is a function in Python


class Kind(_Noun):
    """What sort of thing a value is."""

    UNKNOWN = "unknown"
    NONE = "none"
    NUMBER = "number"  # a Python int, float, complex or bool
    STRING = "string"
    TENSOR = "tensor"
    BATCH = "batch"  # what a data loader yields, or a part of it: a tensor, or a container or string beside one
    MODULE = "module"  # an nn.Module instance; a loss module is one too, with `ref` saying which
    PARAMETERS = "parameters"  # model.parameters() and the like
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    SCALER = "scaler"
    LOADER = "loader"
    SAMPLER = "sampler"
    DATASET = "dataset"
    DEVICE = "device"
    DTYPE = "dtype"
    ARRAY = "array"  # numpy
    LIST = "list"
    TUPLE = "tuple"
    DICT = "dict"
    SET = "set"
    ITERATOR = "iterator"  # enumerate, zip, range, iter, a generator, tqdm(...): `element` is what it yields
    FUNCTION = "function"  # `ref` is its qualified name
    PARTIAL = "partial"  # functools.partial: `element` is what it calls, `items` and `fields` are what it fills in
    CLASS = "class"  # likewise
    NAMESPACE = "namespace"  # an imported module, likewise
    INSTANCE = "instance"  # an object of class `ref`, of the file or imported, that is none of the above


class Grad(_Noun):
    """Whether a tensor has an autograd graph."""

    CARRIES = "carries"  # the tensor holds an autograd graph
    DETACHED = "detached"
    UNKNOWN = "unknown"


class Place(_Noun):
    """Where a tensor or a module is."""

    HOST = "host"
    ACCELERATOR = "accelerator"  # moved to a device that may be a GPU: `.cuda()`, `.to(device)`
    UNKNOWN = "unknown"


@dataclass(unsafe_hash=True, slots=True)
class Value:
    """Never changed once it is made. `frozen` would make each of the thousands in a file five times as dear."""

    kind: Kind = Kind.UNKNOWN
    grad: Grad = Grad.UNKNOWN  # of a module: DETACHED if its parameters were made to take none
    place: Place = Place.UNKNOWN
    rank: int | None = None  # number of dimensions of a tensor
    pinned: bool = False  # in page-locked memory of the host; of a loader: all that it yields is
    dtype: str | None = None  # "int", "float", "complex", "bool" of a tensor or a number
    # The qualified name of the function, class or namespace that it is, or of the class that it is an object of.
    ref: str | None = None
    constant: object = None  # of a literal number or string; None says not known
    element: Value | None = None  # what iterating over it yields
    items: tuple[Value, ...] | None = None  # of a tuple or list of known length
    fields: tuple[tuple[str, Value], ...] | None = None  # of a dict whose keys are known strings, in order
    # Of a dict that has other keys, too, or not all of these: what it holds under those that are known strings.
    entries: tuple[tuple[str, Value], ...] | None = None
    # The calls (or other expressions) that created the object; whole trees, too long to print.
    origins: frozenset[cst.CSTNode] = field(default=frozenset(), repr=False)
    bound: bool = False  # of a function: its first parameter is filled in, as of a method of an object
    optional: bool = False  # may also be None, or a plain Python number (an accumulator that started as 0.0)

    def is_(self, *kinds: Kind) -> bool:
        """Whether it is of one of these kinds."""
        return self.kind in kinds

    @property
    def carries(self) -> bool:
        return self.grad is Grad.CARRIES

    @property
    def is_tensor(self) -> bool:
        return self.kind in (Kind.TENSOR, Kind.BATCH)

    @property
    def is_container(self) -> bool:
        return self.kind in (Kind.LIST, Kind.TUPLE, Kind.DICT, Kind.SET)

    def but(self, **changes: object) -> Value:
        """The same value, with other fields."""
        other = Value(*_all_fields(self))
        for name, value in changes.items():
            setattr(other, name, value)
        return other

    @property
    def known_fields(self) -> tuple[tuple[str, Value], ...]:
        """The entries of a dict that are known, be it that it has others."""
        return self.fields or self.entries or ()

    def field(self, key: str) -> Value | None:
        return dict(self.known_fields).get(key)


_all_fields = attrgetter(*Value.__slots__)

UNKNOWN = Value()
NONE = Value(Kind.NONE)
NUMBER = Value(Kind.NUMBER)
STRING = Value(Kind.STRING)


def _join_place(a: Place, b: Place) -> Place:
    """ACCELERATOR says "may be on a GPU", so it wins: `if cuda: x = x.cuda()` leaves x there."""
    if Place.ACCELERATOR in (a, b):
        return Place.ACCELERATOR
    return a if a is b else Place.UNKNOWN


def _join_nested(a: Value | None, b: Value | None, depth: int) -> Value | None:
    if a is None or b is None:
        return a if b is None else b
    return join(a, b, depth + 1)


def _alike(value: Value, other: Value) -> Value | None:
    """What each part of a tuple is, where another one is longer or shorter, and all parts of both are of one kind."""
    if value.items is None or other.items is None or len(value.items) == len(other.items):
        return None
    parts = (*value.items, *other.items)
    if len({part.kind for part in parts}) != 1:
        return None
    return reduce(join, value.items) if value.items else None


def _calls_differ(a: Value, b: Value) -> bool:
    """Of two functions: whether no list of functions of the file says what a call of one or the other does."""
    return a.kind is Kind.FUNCTION and (a.bound is not b.bound or bool(a.origins) is not bool(b.origins))


def _join_entries(a: Value, b: Value, depth: int) -> tuple[tuple[str, Value], ...] | None:
    """Of two dicts: what may be found under a key that one of them has, wherever it is found at all."""
    one, other = (value.fields if value.fields is not None else value.entries for value in (a, b))
    if one is None or other is None:
        return None
    joined = dict(one)
    joined.update((key, join(joined[key], value, depth + 1) if key in joined else value) for key, value in other)
    return tuple(joined.items())


def join(a: Value, b: Value, depth: int = 0) -> Value:
    """The least value that covers both. Beyond a nesting of four containers everything is unknown."""
    if a is b or (a.kind is b.kind and a == b):
        return a
    if depth > 4:
        return UNKNOWN
    if a.kind is Kind.NONE:
        return b.but(optional=True)
    if b.kind is Kind.NONE:
        return a.but(optional=True)
    pair = {a.kind, b.kind}
    if pair == {Kind.NUMBER, Kind.TENSOR}:
        tensor = a if a.kind is Kind.TENSOR else b
        return tensor.but(optional=True)
    if pair == {Kind.BATCH, Kind.TENSOR}:
        kind = Kind.TENSOR
    elif pair == {Kind.LIST, Kind.TUPLE}:
        kind = Kind.LIST
    elif a.kind is not b.kind or _calls_differ(a, b):
        return Value(place=_join_place(a.place, b.place), origins=a.origins | b.origins)
    else:
        kind = a.kind
    items = None
    if a.items is not None and b.items is not None and len(a.items) == len(b.items):
        items = tuple(join(x, y, depth + 1) for x, y in zip(a.items, b.items))
    fields = None
    if a.fields is not None and b.fields is not None and [k for k, _ in a.fields] == [k for k, _ in b.fields]:
        fields = tuple((k, join(x, y, depth + 1)) for (k, x), (_, y) in zip(a.fields, b.fields))
    if a.grad is b.grad:
        grad = a.grad
    else:
        grad = Grad.CARRIES if Grad.CARRIES in (a.grad, b.grad) and kind is Kind.TENSOR else Grad.UNKNOWN
    return Value(
        kind=kind,
        grad=grad,
        place=_join_place(a.place, b.place),
        rank=a.rank if a.rank == b.rank else None,
        pinned=a.pinned and b.pinned,
        dtype=a.dtype if a.dtype == b.dtype else None,
        ref=a.ref if a.ref == b.ref else None,
        constant=a.constant if a.constant == b.constant and type(a.constant) is type(b.constant) else None,
        element=_join_nested(a.element or _alike(a, b), b.element or _alike(b, a), depth),
        items=items,
        fields=fields,
        entries=_join_entries(a, b, depth) if fields is None else None,
        origins=a.origins | b.origins,
        bound=a.bound,
        optional=a.optional or b.optional,
    )
