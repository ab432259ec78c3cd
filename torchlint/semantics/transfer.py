"""What an operation makes of values: pure functions from values to a value, driven by the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from torchlint.semantics import vocabulary as words
from torchlint.semantics.values import NONE, NUMBER, STRING, UNKNOWN, Grad, Kind, Place, Value, join

INTEGER = Value(Kind.NUMBER, dtype="int")
BOOLEAN = Value(Kind.NUMBER, dtype="bool")
SHAPE = Value(Kind.TUPLE, element=INTEGER)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Values of the arguments of a call; starred ones are left out and `open` is set."""

    positional: Sequence[Value] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)
    open: bool = False

    def get(self, name: str, position: int | None = None) -> Value | None:
        if name in self.keywords:
            return self.keywords[name]
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return None

    def all(self) -> list[Value]:
        return [*self.positional, *self.keywords.values()]


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
        case Kind.BATCH | Kind.ARRAY | Kind.STRING:
            return value
        case Kind.PARAMETERS:
            return Value(Kind.TENSOR, Grad.CARRIES, ref="torch.nn.Parameter")
        case Kind.MODULE:
            return Value(Kind.MODULE)
        case Kind.DICT:
            return STRING if value.fields else UNKNOWN
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
    if Kind.ARRAY in kinds:
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
    order = ["bool", "int", "float", "complex"]
    if left.dtype is None or right.dtype is None:
        return None
    if operator == "Divide" and {left.dtype, right.dtype} <= {"bool", "int"}:
        return "float"
    return order[max(order.index(left.dtype), order.index(right.dtype))]


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
    grad = mixed_grad((receiver, *given.all()), enabled)
    tensor = Value(Kind.TENSOR, grad, receiver.place, dtype=receiver.dtype)
    match method:
        case "item":
            return Value(Kind.NUMBER, dtype=receiver.dtype)
        case "tolist":
            return Value(Kind.LIST, element=NUMBER)
        case "numpy":
            return Value(Kind.ARRAY, place=Place.HOST)
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
            return receiver.but(kind=Kind.TENSOR, dtype="float" if method in ("float", "double") else receiver.dtype)
    if method in words.NONE_METHODS:
        return NONE
    if method in words.NUMBER_METHODS:
        return INTEGER
    if receiver.kind is Kind.BATCH and method in ("items", "keys", "values", "get", "pop", "copy", "update"):
        return _batch_mapping(receiver, method)
    if receiver.kind is Kind.BATCH and method not in words.TENSOR_METHODS:
        return receiver
    if method in words.NON_DIFFERENTIABLE_METHODS:
        dtype = "int" if method in words.INTEGER_METHODS else "bool"
        return tensor.but(grad=Grad.DETACHED, dtype=dtype, rank=_reduced_rank(receiver, method, given))
    if method in words.SEQUENCE_METHODS:
        drop = 1 if method == "unbind" and receiver.rank else 0
        return Value(Kind.TUPLE, element=tensor.but(rank=receiver.rank - drop if receiver.rank else None))
    if method in words.PAIR_METHODS_WITH_DIM and _returns_pair(method, given):
        values = tensor.but(rank=_reduced_rank(receiver, method, given))
        return Value(Kind.TUPLE, items=(values, values.but(grad=Grad.DETACHED, dtype="int")))
    if method in words.REDUCTIONS:
        is_real = method in _REAL_REDUCTIONS and receiver.dtype != "complex"
        rank = _reduced_rank(receiver, method, given)
        return tensor.but(rank=rank, dtype="float" if is_real else receiver.dtype)
    origins = receiver.origins if method in _VIEWS else frozenset()
    return tensor.but(rank=_method_rank(receiver, method, given), origins=origins)


def _returns_pair(method: str, given: Arguments) -> bool:
    """`x.max(1)` is (values, indices), `x.max()` and `x.max(y)` are not."""
    if method in ("topk", "sort"):
        return True
    if given.positional:
        return not given.positional[0].is_tensor
    return "dim" in given.keywords


def _batch_mapping(receiver: Value, method: str) -> Value:
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
    if method == "sample" or enabled is False:
        return Value(Kind.TENSOR, Grad.DETACHED, receiver.place)
    if method in ("log_prob", "entropy", "rsample", "cdf", "icdf", "perplexity"):
        return Value(Kind.TENSOR, receiver.grad if enabled else Grad.UNKNOWN, receiver.place)
    return receiver if method == "expand" else UNKNOWN


def _moved(receiver: Value, given: Arguments) -> Value:
    target = given.get("device") or (given.positional[0] if given.positional else None)
    if target is None:
        return receiver
    place = place_of_target(target)
    return receiver if place is None else receiver.but(place=place)


def _reduced_rank(receiver: Value, method: str, given: Arguments) -> int | None:
    dim = given.get("dim", None if method in ("norm", "std", "var") and not given.keywords else 0)
    if method in words.BOOLEAN_METHODS - {"any", "all"} or method in ("long", "int", "short", "byte", "argsort"):
        return receiver.rank
    if method in ("topk", "sort"):
        return receiver.rank
    keep = given.get("keepdim", 1)
    if keep is not None and keep.constant is not False:
        return receiver.rank
    if dim is None:
        return 0
    if dim.kind is Kind.NUMBER and receiver.rank is not None:
        return max(receiver.rank - 1, 0)
    if dim.kind in (Kind.TUPLE, Kind.LIST) and dim.items is not None and receiver.rank is not None:
        return max(receiver.rank - len(dim.items), 0)
    return None


# They refuse integers.
_REAL_REDUCTIONS = frozenset(["mean", "std", "var", "norm", "logsumexp", "nanmean"])
# Methods whose result is the same data, seen in another shape.
_VIEWS = frozenset(
    "view reshape flatten unflatten squeeze unsqueeze permute transpose t expand narrow select movedim".split()
)
_RANK_KEEPING = frozenset(
    """
    abs exp log log1p log2 log10 sqrt rsqrt sigmoid tanh relu softmax log_softmax clamp clip clamp_min
    clamp_max neg sign floor ceil round trunc frac conj real imag angle square sin cos tan erf transpose
    permute t flip roll cumsum cumprod tril triu contiguous pow fill_ zero_ copy_ masked_fill masked_fill_
    repeat_interleave requires_grad_ add_ sub_ mul_ div_ abs_ exp_ sqrt_ clamp_ neg_ normal_ uniform_
    inverse
    """.split()
)


def _method_rank(receiver: Value, method: str, given: Arguments) -> int | None:
    if method in ("view", "reshape", "expand", "repeat", "permute"):
        first = given.positional[0] if given.positional else None
        if first is not None and first.kind in (Kind.TUPLE, Kind.LIST):
            return len(first.items) if first.items is not None else None
        return len(given.positional) if first is not None and first.kind is Kind.NUMBER and not given.open else None
    if receiver.rank is None:
        return None
    if method == "unsqueeze":
        return receiver.rank + 1
    if method in ("squeeze", "select") and given.positional:
        return receiver.rank - 1 if method == "select" else None
    if method in _RANK_KEEPING:
        return receiver.rank
    if method == "flatten" and not given.positional:
        return 1
    if method in ("matmul", "mm", "bmm", "mv", "dot") and given.positional:
        return _binary_rank("MatrixMultiply", receiver, given.positional[0])
    if method in ("add", "sub", "mul", "div") and given.positional:
        return _binary_rank("Add", receiver, given.positional[0])
    return None


# -- functions -------------------------------------------------------------------------------------------------------


def torch_function(name: str, given: Arguments, enabled: bool | None) -> Value:
    """Result of a function of torch that returns a tensor, a tuple or a sequence of them."""
    short = name.rpartition(".")[2]
    if name in words.FACTORIES or short.endswith("_like") or words.LEGACY_TENSOR_CLASSES.fullmatch(name):
        return _factory(name, short, given)
    if name in words.GRADIENT_NORMS:
        return Value(Kind.TENSOR, Grad.DETACHED, rank=0, dtype="float")
    arguments = given.all()
    tensor = Value(Kind.TENSOR, mixed_grad(arguments, enabled), mixed_place([_flat(value) for value in arguments]))
    first = given.positional[0] if given.positional else given.get("input")
    if words.LOSS_FUNCTIONS.fullmatch(name):
        is_mean = not given.open and not {"reduction", "reduce", "size_average"} & given.keywords.keys()
        return tensor.but(dtype="float", rank=0 if is_mean and len(given.positional) <= 2 else None)
    if name in words.SEQUENCE_FUNCTIONS:
        return Value(Kind.TUPLE, element=tensor.but(rank=first.rank if first and short != "unbind" else None))
    if name in words.PAIR_FUNCTIONS or (
        name in words.PAIR_FUNCTIONS_WITH_DIM
        and ("dim" in given.keywords or (len(given.positional) > 1 and given.positional[1].kind is Kind.NUMBER))
    ):
        return Value(Kind.TUPLE, items=(tensor, tensor.but(grad=Grad.DETACHED) if "linalg" not in name else tensor))
    if name in words.TRIPLE_FUNCTIONS:
        return Value(Kind.TUPLE, items=(tensor, tensor, tensor))
    if name == "torch.where" and len(given.positional) == 1:
        return Value(Kind.TUPLE, element=tensor.but(grad=Grad.DETACHED, dtype="int"))
    if first is not None and (first.is_tensor or first.kind is Kind.UNKNOWN) and short in words.TENSOR_METHODS:
        rest = Arguments(given.positional[1:], given.keywords, given.open)
        return tensor_method(first.but(kind=Kind.TENSOR), short, rest, enabled)
    if short in ("stack", "cat", "concat", "hstack", "vstack") and first is not None:
        inner = element_of(first)
        rank = inner.rank + 1 if short == "stack" and inner.rank is not None else inner.rank
        return tensor.but(rank=rank if short in ("stack", "cat", "concat") else None)
    if short in ("normalize", "relu", "softmax", "log_softmax", "dropout", "gelu", "silu") and first is not None:
        return tensor.but(rank=first.rank)
    return tensor


def _flat(value: Value) -> Value:
    return element_of(value) if value.kind in (Kind.LIST, Kind.TUPLE, Kind.ITERATOR) else value


def _factory(name: str, short: str, given: Arguments) -> Value:
    device = given.get("device")
    place = place_of_target(device) if device is not None else Place.HOST
    like = given.positional[0] if short.endswith("_like") and given.positional else None
    if like is not None and device is None:
        place = like.place
    if ".cuda." in name:
        place = Place.ACCELERATOR
    wants = given.get("requires_grad")
    grad = Grad.DETACHED if wants is None or wants.constant is False else Grad.CARRIES
    integer = name in words.INTEGER_FACTORIES or "Long" in short or "Int" in short
    rank = like.rank if like is not None else _factory_rank(name, given)
    dtype = "int" if integer else ("float" if short in ("rand", "randn", "zeros", "ones") else None)
    if given.get("dtype") is not None:
        dtype = None
    return Value(Kind.TENSOR, grad, place or Place.UNKNOWN, rank=rank, dtype=dtype)


def _factory_rank(name: str, given: Arguments) -> int | None:
    if given.open:
        return None
    sizes = given.get("size", 0)
    if name in words.SHAPED_BY_POSITION or name == "torch.full":
        if sizes is not None and sizes.kind in (Kind.TUPLE, Kind.LIST):
            return len(sizes.items) if sizes.items is not None else None
        if name != "torch.full" and sizes is not None and all(v.kind is Kind.NUMBER for v in given.positional):
            return len(given.positional)
        return None
    if name in ("torch.arange", "torch.linspace", "torch.randperm", "torch.logspace"):
        return 1
    if name == "torch.eye":
        return 2
    if name == "torch.tensor" and given.positional:
        return _literal_rank(given.positional[0])
    return None


def _literal_rank(value: Value) -> int | None:
    if value.kind is Kind.NUMBER:
        return 0
    if value.kind in (Kind.LIST, Kind.TUPLE) and value.items:
        inner = _literal_rank(value.items[0])
        return None if inner is None else inner + 1
    return None
