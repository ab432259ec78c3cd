"""What an operation makes of values: pure functions from values to a value, driven by the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from torchlint.semantics import torch_api
from torchlint.semantics.torch_api import Entry
from torchlint.semantics.values import NONE, NUMBER, STRING, UNKNOWN, Grad, Kind, Place, Value, join
from torchlint.semantics.vocabulary import is_loss_function

INTEGER = Value(Kind.NUMBER, dtype="int")
BOOLEAN = Value(Kind.NUMBER, dtype="bool")
SHAPE = Value(Kind.TUPLE, element=INTEGER)
_DTYPES = ("bool", "int", "float", "complex")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Values of the arguments of a call. With starred ones whose parts are not known, `open` is set, and `starred` has
    them whole."""

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
    if value.kind in (Kind.LIST, Kind.TUPLE, Kind.SET, Kind.DICT, Kind.ITERATOR) and depth < 4:
        parts = list(value.items or ()) + ([value.element] if value.element is not None else [])
        grads = [_deep_grad(part, depth + 1) for part in parts]
        if Grad.CARRIES in grads:
            return Grad.CARRIES
        return Grad.UNKNOWN if Grad.UNKNOWN in grads or not grads else Grad.DETACHED
    if value.kind in (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN):
        return value.grad
    return Grad.DETACHED


def mixed_place(values: Sequence[Value]) -> Place:
    places = [value.place for value in values if value.kind in (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN)]
    if Place.ACCELERATOR in places:
        return Place.ACCELERATOR
    return Place.HOST if places and all(place is Place.HOST for place in places) else Place.UNKNOWN


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
            place = Place.ACCELERATOR if value.place is Place.ACCELERATOR else Place.HOST  # accelerate's loaders move
            return Value(Kind.BATCH, Grad.DETACHED, place, origins=value.origins)
        case Kind.TENSOR:
            return value.but(rank=value.rank - 1 if value.rank else None, optional=False)
        case Kind.ARRAY:
            return value.element or value
        case Kind.BATCH | Kind.STRING:
            return value
        case Kind.PARAMETERS:
            return Value(Kind.TENSOR, Grad.CARRIES, value.place, ref="torch.nn.Parameter")
        case Kind.MODULE:
            return Value(Kind.MODULE)
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
            rank=_binary_rank(operator, left, right),
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


def _binary_rank(operator: str, left: Value, right: Value) -> int | None:
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
    return _widest((left, right))


def comparison(values: Sequence[Value]) -> Value:
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


# -- methods ---------------------------------------------------------------------------------------------------------


def tensor_method(receiver: Value, method: str, given: Arguments, enabled: bool | None) -> Value:
    """Result of a method call on a tensor, or on a batch of which a tensor is the likeliest part."""
    match method:
        case "item":
            return Value(Kind.NUMBER, dtype=receiver.dtype)
        case "tolist":
            return Value(Kind.LIST, element=NUMBER)
        case "size" if given.positional or given.keywords:
            return INTEGER
        case "size" | "stride":
            return SHAPE.but(items=(INTEGER,) * receiver.rank if receiver.rank else None)
        case "detach" | "detach_" | "sample":  # no tensor has `sample`: it is a distribution that a network returned
            return receiver.but(grad=Grad.DETACHED, kind=Kind.TENSOR)
        case "requires_grad_":
            on = given.get("requires_grad", 0)
            off = on is not None and on.constant is False
            return receiver.but(kind=Kind.TENSOR, grad=Grad.DETACHED if off else Grad.CARRIES)
        case "cpu":
            return receiver.but(place=Place.HOST)
        case "cuda":
            return receiver.but(place=Place.ACCELERATOR)
        case "to" | "type":
            return _moved(receiver, given)
        case "clone" | "contiguous" | "pin_memory" | "share_memory_" | "float" | "double" | "half" | "bfloat16":
            dtype = receiver.dtype if method in _KEEPING_DTYPE else "float"
            return receiver.but(kind=Kind.TENSOR, dtype=dtype)
    if method in ("items", "keys", "get", "pop"):  # no tensor has them: it is a dict of tensors
        return _mapping(receiver.but(rank=None), method)
    if receiver.kind is Kind.BATCH and method in ("values", "copy", "update"):
        return _mapping(receiver, method)
    entry = torch_api.method(method)
    if entry is not None:
        return _returned(entry, receiver, given, enabled, receiver.place)
    if receiver.kind is Kind.BATCH:
        return receiver
    return Value(Kind.TENSOR, mixed_grad((receiver, *given.all()), enabled), receiver.place, dtype=receiver.dtype)


_KEEPING_DTYPE = ("clone", "contiguous", "pin_memory", "share_memory_")


# Tensors in what models of transformers, diffusers and timm return. Of other objects that look like a tensor because
# a network made them, nothing is known by an attribute's name.
_OUTPUTS = frozenset(
    """
    loss logits last_hidden_state hidden_states attentions encoder_last_hidden_state pooler_output image_embeds
    text_embeds logits_per_image logits_per_text start_logits end_logits pred_masks pred_boxes sample latents
    prediction_logits past_key_values
    """.split()
)


def tensor_attribute(owner: Value, name: str) -> Value:
    """An attribute of a tensor, or of a batch of which it may be a part."""
    entry = torch_api.attribute(name)
    if entry is None:
        is_tensor = owner.kind is Kind.BATCH or name in _OUTPUTS
        return owner if is_tensor else Value(grad=owner.grad, place=owner.place, origins=owner.origins)
    if not entry.results or entry.results[0][0] not in _TENSORS:
        return _OTHERS.get(entry.results[0][0], UNKNOWN) if len(entry.results) == 1 else UNKNOWN
    return owner.but(kind=Kind.TENSOR, grad=Grad.DETACHED if entry.grad == "no" else owner.grad)


# Where the parts of what torch returns stand; a plain tuple has no attributes.
_NAMES = ("values eigenvalues U Q sign solution", "indices eigenvectors S R logabsdet", "V Vh")
_PARTS = {name: place for place, names in enumerate(_NAMES) for name in names.split()}


def named_part(owner: Value, name: str) -> Value:
    """`x.max(1).values`, `torch.linalg.svd(x).S`."""
    place = _PARTS.get(name)
    is_there = place is not None and owner.items is not None and place < len(owner.items)
    return owner.items[place] if is_there else UNKNOWN  # type: ignore[index]


def _mapping(receiver: Value, method: str) -> Value:
    match method:
        case "items":
            return Value(Kind.ITERATOR, element=Value(Kind.TUPLE, items=(UNKNOWN, receiver)))
        case "values":
            return Value(Kind.ITERATOR, element=receiver)
        case "keys":
            return Value(Kind.ITERATOR)
        case _:
            return receiver


def distribution(name: str, given: Arguments, enabled: bool | None) -> Value:
    """An object of torch.distributions; its graph is the one of its parameters."""
    if name.endswith("kl_divergence"):
        grads = [value.grad for value in given.all()]
        known = Grad.UNKNOWN if Grad.UNKNOWN in grads else Grad.DETACHED
        carries = Grad.CARRIES in grads and enabled
        return Value(Kind.TENSOR, Grad.CARRIES if carries else known)
    inner = [value for value in given.all() if not (value.ref or "").startswith("torch.distributions.")]
    nested = [value.grad for value in given.all() if value not in inner]
    grad = Grad.CARRIES if Grad.CARRIES in nested else mixed_grad(inner, enabled)
    return Value(Kind.INSTANCE, grad, mixed_place(given.all()), ref=name)


def distribution_method(receiver: Value, method: str, enabled: bool | None) -> Value:
    """Result of a method of an object of torch.distributions."""
    entry = torch_api.lookup(f"torch.distributions.Distribution.{method}")
    if entry is None or not entry.results:
        return UNKNOWN
    if not entry.returns_tensors:
        return receiver
    if entry.grad == "no" or enabled is False:
        return Value(Kind.TENSOR, Grad.DETACHED, receiver.place)
    return Value(Kind.TENSOR, receiver.grad if enabled else Grad.UNKNOWN, receiver.place)


def _moved(receiver: Value, given: Arguments) -> Value:
    target = given.get("device") or (given.positional[0] if given.positional else None)
    if target is None:
        return receiver
    place = place_of_target(target)
    dtypes = [value.dtype for value in given.all() if value.kind is Kind.DTYPE]
    moved = receiver.but(dtype=dtypes[0]) if dtypes else receiver
    return moved if place is None else moved.but(place=place)


# -- what the table says of a call -----------------------------------------------------------------------------------

_TENSORS = ("tensor", "index", "tensors")
_OTHERS = {
    "none": NONE,
    "bool": BOOLEAN,
    "int": INTEGER,
    "float": Value(Kind.NUMBER, dtype="float"),
    "number": NUMBER,
    "str": STRING,
    "shape": SHAPE,
    "dtype": Value(Kind.DTYPE),
    "device": Value(Kind.DEVICE),
    "array": Value(Kind.ARRAY, place=Place.HOST),
}


def torch_function(entry: Entry, given: Arguments, enabled: bool | None) -> Value:
    """Result of a function of torch."""
    if entry.kind in ("factory", "legacy-tensor"):
        return _factory(entry, given, enabled)
    arguments = given.all()
    place = mixed_place([_flat(value) for value in arguments])
    if not arguments:
        return _returned(entry, NUMBER, given, enabled, place)
    first = given.positional[0] if given.positional else given.get("input") or arguments[0]
    rest = {name: value for name, value in given.keywords.items() if value is not first}
    return _returned(
        entry, _flat(first), Arguments(given.positional[1:], rest, given.open, given.starred), enabled, place
    )


def _flat(value: Value) -> Value:
    return element_of(value) if value.kind in (Kind.LIST, Kind.TUPLE, Kind.ITERATOR) else value


def _returned(entry: Entry, first: Value, given: Arguments, enabled: bool | None, place: Place) -> Value:
    """What a call makes of its first argument, which may be the receiver, and of the others."""
    parts = _alternative(entry, given)
    if parts is None or parts[0] not in _TENSORS:
        return _OTHERS.get(parts[0], UNKNOWN) if parts is not None else UNKNOWN
    tensor = Value(
        Kind.TENSOR,
        Grad.DETACHED if entry.grad == "no" else mixed_grad((first, *given.all()), enabled),
        place,
        rank=_rank(entry, first, given),
        dtype=_dtype(entry, first, given),
        origins=first.origins if entry.may("view") else frozenset(),
    )
    if parts == ("tensors",):
        return Value(Kind.TUPLE, element=tensor)
    if len(parts) == 1:
        return tensor
    index = tensor.but(grad=Grad.DETACHED, dtype="int")
    others = {"index": index, "tensors": Value(Kind.TUPLE, element=tensor), "none": NONE}
    return Value(Kind.TUPLE, items=tuple(others.get(part, tensor) for part in parts))


def _alternative(entry: Entry, given: Arguments) -> tuple[str, ...] | None:
    """Which of its possible results a call has: `x.max(1)` returns two, `x.max()` and `x.max(y)` return one."""
    if len(entry.results) < 2:
        return entry.results[0] if entry.results else None
    several = next((parts for parts in entry.results if len(parts) > 1), None)
    if several is not None and ("tensor",) in entry.results:
        by_dim = not given.positional[0].is_tensor if given.positional else "dim" in given.keywords
        return several if by_dim else ("tensor",)
    if ("tensors",) in entry.results and (_asks_for_parts(given) or _is_nonzero(entry, given)):
        return ("tensors",)
    return next((parts for parts in entry.results if parts[0] in _TENSORS), entry.results[0])


def _asks_for_parts(given: Arguments) -> bool:
    """`unique(x, return_inverse=True)`, `nonzero(x, as_tuple=True)`."""
    return any(
        name.startswith(("return_", "as_tuple")) and value.constant is not False
        for name, value in given.keywords.items()
    )


def _is_nonzero(entry: Entry, given: Arguments) -> bool:
    return entry.name == "torch.where" and not given.positional and not given.keywords


def _dtype(entry: Entry, first: Value, given: Arguments) -> str | None:
    asked = given.get("dtype")
    if asked is not None and asked.kind is not Kind.NONE:
        return asked.dtype
    if is_loss_function(entry.name):
        return "float"
    kind = first.dtype
    match entry.dtype:
        case "":
            return None
        case "promoted":
            return _widest([first, *given.positional])
        case "complex":
            return "complex"
        case "same":
            return kind
        case "inexact":
            return "complex" if kind == "complex" else "float"
        case "inexact-real":
            return "float"
        case "real":
            return "float" if kind == "complex" else kind
        case "widened":
            return "int" if kind == "bool" else kind
        case name:
            return kind_of_dtype(name)


def kind_of_dtype(name: str) -> str | None:
    """`float` for `float16`."""
    entry = torch_api.lookup(f"torch.{name}")
    return entry.dtype if entry is not None else None


def _widest(values: Sequence[Value]) -> str | None:
    kinds = [value.dtype for value in values]
    return max((kind for kind in kinds if kind), key=_DTYPES.index) if kinds and all(kinds) else None


def _rank(entry: Entry, first: Value, given: Arguments) -> int | None:
    match entry.rank:
        case "keep":
            return first.rank if first.rank is not None or entry.short != "permute" else _count(given)
        case "broadcast":
            return _broadcast([first, *given.positional])
        case "reduce":
            return _reduced(entry, first, given)
        case "sized":
            return first.rank if given.positional and given.positional[0].kind is Kind.DTYPE else _count(given)
        case "product":
            return _binary_rank("MatrixMultiply", first, given.positional[0]) if given.positional else None
        case "":
            return 0 if is_loss_function(entry.name) and not _is_unreduced(entry, given) else None
        case change if change[0] in "+-":
            return max(first.rank + int(change), 0) if first.rank is not None else None
        case number:
            return int(number)


def _is_unreduced(entry: Entry, given: Arguments) -> bool:
    """Whether a loss may be computed for each sample."""
    names = {"reduction", "reduce", "size_average"} & given.keywords.keys()
    position = torch_api.position(entry.name, "reduction")
    told = [given.keywords[name] for name in names]
    if position is not None and position < len(given.positional):
        told.append(given.positional[position])
    return given.open or any(value.constant not in ("mean", "sum", "batchmean") for value in told)


def _broadcast(values: Sequence[Value]) -> int | None:
    ranks = [value.rank if value.is_tensor or value.kind is Kind.UNKNOWN else 0 for value in values]
    known = [rank for rank in ranks if rank is not None]
    return max(known) if len(known) == len(ranks) else None


def _reduced(entry: Entry, first: Value, given: Arguments) -> int | None:
    dim = given.get("dim", torch_api.position(entry.name, "dim"))
    keep = given.get("keepdim", torch_api.position(entry.name, "keepdim"))
    if dim is not None and dim.is_tensor:
        return _broadcast([first, dim])
    if given.open or (keep is not None and keep.constant is True):
        return first.rank if not given.open else None
    if dim is None or dim.kind is Kind.NONE or dim.dtype == "bool":
        return 0
    if first.rank is None or (keep is not None and keep.constant is not False):
        return None
    if dim.kind in (Kind.TUPLE, Kind.LIST):
        return max(first.rank - len(dim.items), 0) if dim.items is not None else None
    return max(first.rank - 1, 0) if dim.kind is Kind.NUMBER else None


def _count(given: Arguments) -> int | None:
    """How many sizes or dimensions are given: `(2, 3)`, `2, 3`."""
    if given.open:
        return None
    sizes = given.get("size") or given.get("shape") or next((v for v in given.positional if v.is_container), None)
    if sizes is not None:
        return len(sizes.items) if sizes.is_container and sizes.items is not None else None
    return len(given.positional) if given.positional and all(v.kind is Kind.NUMBER for v in given.positional) else None


def _factory(entry: Entry, given: Arguments, enabled: bool | None) -> Value:
    """A tensor made of sizes, numbers or data, or like another one."""
    first = given.positional[0] if given.positional else None
    is_like = entry.short.endswith("_like") or (entry.rank in ("keep", "") and first is not None and first.is_tensor)
    like = first if is_like else None
    device, wants = given.get("device"), given.get("requires_grad")
    if device is not None:
        place = place_of_target(device) or Place.UNKNOWN
    elif entry.name.startswith("torch.cuda."):
        place = Place.ACCELERATOR
    else:
        place = like.place if like is not None else Place.HOST
    grad = Grad.DETACHED if wants is None or wants.constant is False else Grad.CARRIES
    if like is not None and entry.may("view"):
        grad = mixed_grad((like,), enabled)
    literal = first if first is not None and entry.name == "torch.tensor" else None
    rank = _literal_rank(literal) if literal is not None else _rank(entry, like or UNKNOWN, given)
    dtype = _dtype(entry, like or UNKNOWN, given)
    if literal is not None and given.get("dtype") is None:
        dtype = _literal_dtype(literal)
    return Value(Kind.TENSOR, grad, place, rank=rank, dtype=dtype)


def _literal_dtype(value: Value) -> str | None:
    if value.kind in (Kind.LIST, Kind.TUPLE) and value.items:
        return _widest([Value(dtype=_literal_dtype(item)) for item in value.items])
    return value.dtype if value.kind is Kind.NUMBER or value.is_tensor else None


def _literal_rank(value: Value) -> int | None:
    if value.kind is Kind.NUMBER:
        return 0
    if value.kind in (Kind.LIST, Kind.TUPLE) and value.items:
        inner = _literal_rank(value.items[0])
        return None if inner is None else inner + 1
    return None
