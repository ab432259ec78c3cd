"""What values are made of: parts, joins and operators; pure functions from values to a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from torchlint.semantics.values import STRING, UNKNOWN, Grad, Kind, Place, Value, join

INTEGER = Value(Kind.NUMBER, dtype="int")
BOOLEAN = Value(Kind.NUMBER, dtype="bool")
SHAPE = Value(Kind.TUPLE, element=INTEGER)
PARAMETER = Value(Kind.TENSOR, Grad.CARRIES, ref="torch.nn.Parameter")
_DTYPES = ("bool", "int", "float", "complex")


@dataclass(slots=True)
class Arguments:
    """Values of the arguments of a call. With starred ones whose parts are not known, `open` is set, and `starred` has
    them whole. Like values, they are never changed."""

    positional: Sequence[Value] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)
    open: bool = False
    starred: Sequence[Value] = ()

    def get(self, name: str, position: int | None = None) -> Value | None:
        if name in self.keywords:
            return self.keywords[name]
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return None

    def all(self) -> list[Value]:
        return [*self.positional, *self.keywords.values(), *self.starred]


def join_all(values: Sequence[Value]) -> Value:
    """What covers all of the values."""
    return reduce(join, values) if values else UNKNOWN


def mixed_grad(values: Sequence[Value], enabled: bool | None) -> Grad:
    """Graph state of a tensor computed from `values`."""
    if enabled is False:
        return Grad.DETACHED
    grads = [_deep_grad(value) for value in values]
    if Grad.CARRIES in grads:
        return Grad.CARRIES if enabled else Grad.UNKNOWN
    return Grad.UNKNOWN if Grad.UNKNOWN in grads else Grad.DETACHED


def _deep_grad(value: Value, depth: int = 0) -> Grad:
    if value.kind in (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN):
        return value.grad
    if value.kind is Kind.PARAMETERS:
        return element_of(value).grad
    if value.kind in (Kind.LIST, Kind.TUPLE, Kind.SET, Kind.DICT, Kind.ITERATOR) and depth < 4:
        parts = list(value.items or ()) + ([value.element] if value.element is not None else [])
        grads = [_deep_grad(part, depth + 1) for part in parts]
        if Grad.CARRIES in grads:
            return Grad.CARRIES
        return Grad.UNKNOWN if Grad.UNKNOWN in grads or not grads else Grad.DETACHED
    return Grad.DETACHED


def mixed_place(values: Sequence[Value]) -> Place:
    """Where a tensor is that is computed from `values`."""
    places = [value.place for value in values if value.kind in (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN)]
    if Place.ACCELERATOR in places:
        return Place.ACCELERATOR
    return Place.HOST if places and all(place is Place.HOST for place in places) else Place.UNKNOWN


def computed_by(network: Value, result: Value) -> Value:
    """What a method returns: a tensor that a network on the host computes is there, too."""
    is_there = network.kind is Kind.MODULE and network.place is Place.HOST
    is_open = result.kind is Kind.TENSOR and result.place is Place.UNKNOWN
    return result.but(place=Place.HOST) if is_there and is_open else result


def place_behind(values: Sequence[Value]) -> Place:
    """Of what code out of sight returns for values: a batch, as the loader yields it, it may copy to the device."""
    place = mixed_place(values)
    is_raw = place is Place.HOST and any(value.kind is Kind.BATCH for value in values)
    return Place.UNKNOWN if is_raw else place


def detached(value: Value, depth: int = 0) -> Value:
    """The value with no graph in it, however deeply nested."""
    if depth > 4:
        return UNKNOWN
    if value.is_tensor or value.kind is Kind.UNKNOWN:
        return value.but(grad=Grad.DETACHED)
    if value.is_container or value.kind is Kind.ITERATOR:
        return value.but(
            element=detached(value.element, depth + 1) if value.element is not None else None,
            items=tuple(detached(item, depth + 1) for item in value.items) if value.items is not None else None,
            fields=tuple((k, detached(v, depth + 1)) for k, v in value.fields) if value.fields is not None else None,
            entries=tuple((k, detached(v, depth + 1)) for k, v in value.entries) if value.entries is not None else None,
        )
    return value


def element_of(value: Value) -> Value:
    """What iterating over the value yields."""
    match value.kind:
        case Kind.LOADER:
            if value.place is Place.ACCELERATOR:  # accelerate's loaders move what they have pinned
                return Value(Kind.BATCH, Grad.DETACHED, Place.ACCELERATOR, origins=value.origins)
            return Value(Kind.BATCH, Grad.DETACHED, Place.HOST, pinned=value.pinned, origins=value.origins)
        case Kind.TENSOR:
            return value.but(rank=value.rank - 1 if value.rank else None, optional=False)
        case Kind.ARRAY:
            return value.element or value
        case Kind.BATCH:
            return value
        case Kind.STRING:
            return STRING
        case Kind.PARAMETERS:
            return PARAMETER.but(place=value.place)
        case Kind.MODULE:
            if value.ref == "torch.nn.ParameterList":
                return PARAMETER.but(place=value.place)
            if value.ref == "torch.nn.ModuleDict":
                return STRING
            return value.element.but(place=value.place) if value.element is not None else Value(Kind.MODULE)
        case Kind.DICT:
            return STRING if value.known_fields else UNKNOWN
        case Kind.LIST | Kind.TUPLE | Kind.SET | Kind.ITERATOR:
            if value.element is not None:
                return value.element
            return join_all(value.items) if value.items else UNKNOWN
        case _:
            return Value(place=value.place)


def unpacked(value: Value, count: int) -> list[Value]:
    """The parts of a value that is assigned to `count` targets."""
    if value.items is not None and len(value.items) == count:
        return list(value.items)
    if value.kind in (Kind.LIST, Kind.TUPLE, Kind.TENSOR, Kind.BATCH, Kind.ARRAY, Kind.ITERATOR, Kind.LOADER):
        return [element_of(value)] * count
    return [Value(place=value.place)] * count


# -- operators -------------------------------------------------------------------------------------------------------


def binary(operator: str, left: Value, right: Value, enabled: bool | None) -> Value:
    """Arithmetic of two values; `operator` is the LibCST class name of the operator."""
    if left.is_tensor or right.is_tensor:
        return Value(
            Kind.TENSOR,
            mixed_grad((left, right), enabled),
            mixed_place((left, right)),
            rank=binary_rank(operator, left, right),
            dtype=_binary_dtype(operator, left, right),
        )
    kinds = {left.kind, right.kind}
    if Kind.STRING in kinds and left.kind is Kind.STRING:
        return STRING
    if kinds == {Kind.NUMBER}:
        return Value(Kind.NUMBER, dtype=_binary_dtype(operator, left, right))
    if Kind.ARRAY in kinds and Kind.UNKNOWN not in kinds:  # a tensor times `np.pi` is a tensor
        return Value(Kind.ARRAY, place=Place.HOST)
    if left.kind in (Kind.LIST, Kind.TUPLE):
        if right.kind is left.kind:
            return Value(left.kind, element=join(element_of(left), element_of(right)))
        return Value(left.kind, element=element_of(left))
    return Value(place=mixed_place((left, right)), grad=mixed_grad((left, right), enabled))


def binary_rank(operator: str, left: Value, right: Value) -> int | None:
    """How many dimensions the result of an operator has, where that is known."""
    a = 0 if left.kind is Kind.NUMBER else left.rank
    b = 0 if right.kind is Kind.NUMBER else right.rank
    if a is None or b is None:
        return None
    if operator != "MatrixMultiply":
        return max(a, b)
    if a == 1 and b == 1:
        return 0
    if 1 in (a, b):
        return max(a, b) - 1
    return max(a, b)


def _binary_dtype(operator: str, left: Value, right: Value) -> str | None:
    if left.dtype is None or right.dtype is None:
        return None
    if operator == "Divide" and {left.dtype, right.dtype} <= {"bool", "int"}:
        return "float"
    return widest((left, right))


def comparison(values: Sequence[Value]) -> Value:
    """What comparing these values gives."""
    if any(value.is_tensor for value in values):
        ranks = [0 if value.kind is Kind.NUMBER else value.rank for value in values]
        known = [rank for rank in ranks if rank is not None]
        rank = max(known) if len(known) == len(ranks) else None
        return Value(Kind.TENSOR, Grad.DETACHED, mixed_place(values), rank=rank, dtype="bool")
    if any(value.kind is Kind.ARRAY for value in values):
        return Value(Kind.ARRAY, place=Place.HOST)
    if any(value.kind is Kind.UNKNOWN for value in values):
        return Value(place=mixed_place(values), grad=Grad.DETACHED, dtype="bool")
    return BOOLEAN


# -- placement -------------------------------------------------------------------------------------------------------


def place_named(text: str) -> Place:
    """Where `cpu`, `cuda:1` and the like are."""
    return Place.HOST if text.startswith(("cpu", "meta")) else Place.ACCELERATOR


def place_of_target(value: Value) -> Place | None:
    """Where `.to(value)` puts a tensor; None when `value` is no device (a dtype, another tensor)."""
    match value.kind:
        case Kind.DEVICE:
            return value.place if value.place is not Place.UNKNOWN else Place.ACCELERATOR
        case Kind.STRING:
            return place_named(value.constant) if isinstance(value.constant, str) else Place.ACCELERATOR
        case Kind.NUMBER:
            return Place.ACCELERATOR
        case Kind.TENSOR | Kind.BATCH:
            return value.place
        case Kind.DTYPE:
            return None
        case _:
            return value.place if value.place is not Place.UNKNOWN else None


def widest(values: Sequence[Value]) -> str | None:
    """The dtype of numbers and tensors together; None where one is not known."""
    kinds = [value.dtype for value in values]
    return max((kind for kind in kinds if kind), key=_DTYPES.index) if kinds and all(kinds) else None
