"""What the table of torch's functions and methods says of a call."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from torchlint.semantics import torch_api
from torchlint.semantics.torch_api import Entry
from torchlint.semantics.transfer import (
    BOOLEAN,
    INTEGER,
    SHAPE,
    Arguments,
    binary_rank,
    element_of,
    mixed_grad,
    mixed_place,
    place_of_target,
    widest,
)
from torchlint.semantics.values import NONE, NUMBER, STRING, UNKNOWN, Grad, Kind, Place, Value
from torchlint.semantics.vocabulary import is_loss_function

_REDUCTIONS = ("mean", "sum", "batchmean")
TENSORS = ("tensor", "index", "tensors")
OTHERS = {
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
    given = as_torch_names(given)
    if entry.kind in ("factory", "legacy-tensor"):
        return _factory(entry, given, enabled)
    arguments = given.all()
    flat = [_flat(value) for value in arguments]
    place = Place.HOST if flat and all(value.kind is Kind.NUMBER for value in flat) else mixed_place(flat)
    if not arguments:
        return returned(entry, NUMBER, given, enabled, place)
    first = given.positional[0] if given.positional else given.get("input") or arguments[0]
    if first.is_container and {("tensor",), ("tensors",)} <= set(entry.results):
        return _several(Value(Kind.TENSOR, mixed_grad(arguments, enabled), place))
    rest = {name: value for name, value in given.keywords.items() if value is not first}
    return returned(
        entry, _flat(first), Arguments(given.positional[1:], rest, given.open, given.starred), enabled, place
    )


# Parameters for what is no tensor that could have a graph: sizes, dimensions and places.
_NO_TENSORS = frozenset(
    """
    index dim dims dim0 dim1 axis0 axis1 size shape sizes repeats dtype start_dim end_dim keepdim chunks split_size
    """.split()
)


def as_torch_names(given: Arguments) -> Arguments:
    """`x.sum(axis=0, keepdims=True)` as `x.sum(dim=0, keepdim=True)`: torch takes numpy's names too."""
    if torch_api.NUMPY_NAMES.keys().isdisjoint(given.keywords):
        return given
    keywords = {torch_api.NUMPY_NAMES.get(name, name): value for name, value in given.keywords.items()}
    return Arguments(given.positional, keywords, given.open, given.starred)


def _flat(value: Value) -> Value:
    return element_of(value) if value.kind in (Kind.LIST, Kind.TUPLE, Kind.ITERATOR) else value


def returned(entry: Entry, first: Value, given: Arguments, enabled: bool | None, place: Place) -> Value:
    """What a call makes of its first argument, which may be the receiver, and of the others."""
    given = as_torch_names(given)
    parts = _alternative(entry, given)
    if parts is None or parts[0] not in TENSORS:
        return OTHERS.get(parts[0], UNKNOWN) if parts is not None else UNKNOWN
    if _is_nonzero(entry, given):
        return _several(Value(Kind.TENSOR, Grad.DETACHED, place, rank=1, dtype="int"))
    tensor = Value(
        Kind.TENSOR,
        Grad.DETACHED if entry.grad == "no" else _grad(entry, first, given, enabled),
        place,
        rank=_rank(entry, first, given),
        dtype=result_dtype(entry, first, given),
        origins=first.origins if entry.may("view") else frozenset(),
    )
    if parts == ("tensors",):
        beside = any(value.is_tensor for value in given.positional)
        return _several(tensor.but(rank=None, dtype=None) if beside else tensor)
    if len(parts) == 1:
        return tensor
    if first.dtype == "complex":  # the parts of `std_mean` are of different types then
        tensor = tensor.but(dtype=None)
    index = tensor.but(grad=Grad.DETACHED, dtype="int")
    others = {"index": index, "tensors": _several(tensor), "none": NONE}
    return Value(Kind.TUPLE, items=tuple(others.get(part, tensor) for part in parts))


def module_result(module: Value, first: Value, grad: Grad, place: Place) -> Value:
    """What a forward pass of a module returns for its first input; a tensor, where torch's table does not say."""
    tensor = Value(Kind.TENSOR, grad, place)
    entry = torch_api.lookup(module.ref or "")
    if entry is None or not entry.results:
        return tensor
    made_with = [argument for node in module.origins if isinstance(node, cst.Call) for argument in node.args]
    if len(entry.results) > 1 and any(arg.keyword and arg.keyword.value == "return_indices" for arg in made_with):
        return UNKNOWN
    if not (entry.rank.isdigit() and made_with):  # `Flatten()` leaves two dimensions, `Flatten(2)` three
        tensor = tensor.but(rank=_rank(entry, first, Arguments()))
    parts = entry.results[0]
    if len(parts) == 1:
        return tensor
    return Value(Kind.TUPLE, items=tuple(tensor if part != "tensors" else _several(tensor) for part in parts))


def _several(tensor: Value) -> Value:
    return Value(Kind.TUPLE, element=tensor)


def _alternative(entry: Entry, given: Arguments) -> tuple[str, ...] | None:
    """Which of its possible results a call has: `x.max(1)` returns two, `x.max()` and `x.max(y)` return one."""
    if len(entry.results) < 2:
        return entry.results[0] if entry.results else None
    if entry.short in ("unique", "unique_consecutive"):
        return _of_unique(given, places=1 if entry.short == "unique" else 0)
    several = next((parts for parts in entry.results if len(parts) > 1), None)
    if several is not None and ("tensor",) in entry.results:
        asks = _asks_for_indices(entry, given)
        return None if asks is None else several if asks else ("tensor",)
    if ("tensors",) in entry.results and (_asks_for_parts(given) or _is_nonzero(entry, given)):
        return ("tensors",)
    if entry.short.startswith("atleast_") and given.positional:
        return ("tensors",)
    return next((parts for parts in entry.results if parts[0] in TENSORS), entry.results[0])


def _asks_for_indices(entry: Entry, given: Arguments) -> bool | None:
    """`x.max(1)`, `max_pool2d(x, 2, return_indices=True)`."""
    if entry.takes("return_indices"):
        asked = given.get("return_indices", torch_api.position(entry.name, "return_indices"))
        if asked is None:
            return False
        return bool(asked.constant) if asked.constant is not None else None
    return not given.positional[0].is_tensor if given.positional else "dim" in given.keywords


def _asks_for_parts(given: Arguments) -> bool:
    """`unique(x, return_inverse=True)`, `nonzero(x, as_tuple=True)`."""
    return any(
        name.startswith(("return_", "as_tuple")) and value.constant is not False
        for name, value in given.keywords.items()
    )


def _of_unique(given: Arguments, places: int) -> tuple[str, ...] | None:
    """`places`: how many arguments by position say nothing of what is returned."""
    asked = [name for name in ("return_inverse", "return_counts") if name in given.keywords]
    if len(given.positional) > places or given.open or any(given.keywords[name].constant is None for name in asked):
        return None
    wanted = sum(given.keywords[name].constant is True for name in asked)
    return ("tensor", *["index"] * wanted)


def _is_nonzero(entry: Entry, given: Arguments) -> bool:
    return entry.name == "torch.where" and not given.positional and not given.keywords


def _is_no_tensor(entry: Entry, at: int) -> bool:
    """Whether what a call is given at a place has no graph, in whatever way the function may be called."""
    place = at + (entry.kind != "method")
    named = {_parameter(names, place) for names in entry.parameter_lists} - {None}
    return bool(named) and named <= _NO_TENSORS


def _parameter(names: Sequence[str], place: int) -> str | None:
    """The parameter that takes what is given at a place: `size` of `*size` for the third number, too."""
    for at, name in enumerate(names):
        if name == "*":
            break
        if at == place or name.startswith("*"):
            return name.lstrip("*")
    return None


def _grad(entry: Entry, first: Value, given: Arguments, enabled: bool | None) -> Grad:
    if enabled is False and first.carries and entry.may("view"):
        return Grad.UNKNOWN  # a view that is made with autograd off keeps its base, and the graph of that
    if not given.open:
        positional = [value for at, value in enumerate(given.positional) if not _is_no_tensor(entry, at)]
        given = Arguments(
            positional, {name: value for name, value in given.keywords.items() if name not in _NO_TENSORS}
        )
    return mixed_grad((first, *given.all()), enabled)


def result_dtype(entry: Entry, first: Value, given: Arguments) -> str | None:
    """The kind of dtype of what is returned, "int", "float", "complex" or "bool", where it is known."""
    asked = given.get("dtype")
    if asked is not None and asked.kind is not Kind.NONE:
        return asked.dtype
    if is_loss_function(entry.name):
        return "float" if first.dtype in ("float", None) and not _has_wider(first, given) else None
    kind = first.dtype
    match entry.dtype:
        case "":
            return None
        case "promoted":
            return widest([first, *given.positional])
        case "complex":
            return "complex"
        case "inexact-real":
            return "float"
        case "real" if kind == "complex":
            return "float"
        case "inexact" | "same" | "real" | "widened" if not entry.may("inplace") and _has_wider(first, given):
            return None
        case "same" | "real":
            return kind
        case "inexact":
            return "complex" if kind == "complex" else "float"
        case "widened":
            return "int" if kind == "bool" else kind
        case name:
            return kind_of_dtype(name)


def _has_wider(first: Value, given: Arguments) -> bool:
    """Whether another tensor is of a type to which the first may be promoted."""
    others = (value for value in given.positional if value.is_tensor and value.dtype is not None)
    return first.dtype is not None and any(widest([first, other]) != first.dtype for other in others)


def kind_of_dtype(name: str) -> str | None:
    """`float` for `float16`."""
    entry = torch_api.lookup(f"torch.{name}")
    return entry.dtype if entry is not None else None


def _rank(entry: Entry, first: Value, given: Arguments) -> int | None:
    match entry.rank:
        case "keep":
            if first.rank is None:
                return _count(given) if entry.short == "permute" else None
            others = [value.rank for value in given.positional if value.is_tensor and value.rank is not None]
            return first.rank if entry.may("inplace") or max(others, default=0) <= first.rank else None
        case "broadcast":
            return _broadcast([first, *given.positional])
        case "reduce":
            return _reduced(entry, first, given)
        case "sized":
            return first.rank if given.positional and given.positional[0].kind is Kind.DTYPE else _count(given)
        case "product":
            return binary_rank("MatrixMultiply", first, given.positional[0]) if given.positional else None
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
    return given.open or any(value.constant not in _REDUCTIONS for value in told)


def rank_of_loss(module: Value) -> int | None:
    """0, unless the object may have been made to compute a loss for each sample."""
    calls = (node for node in module.origins if isinstance(node, cst.Call))
    return None if any(_may_leave_unreduced(arg) for call in calls for arg in call.args) else 0


def _may_leave_unreduced(arg: cst.Arg) -> bool:
    told = arg.value.evaluated_value if isinstance(arg.value, cst.SimpleString) else None
    match arg.keyword:
        case cst.Name(value="reduction"):
            return told not in _REDUCTIONS
        case cst.Name(value="reduce"):
            return not (isinstance(arg.value, cst.Name) and arg.value.value in ("True", "None"))
    return bool(arg.star) or told == "none"


def _broadcast(values: Sequence[Value]) -> int | None:
    ranks = [value.rank if value.is_tensor or value.kind is Kind.UNKNOWN else 0 for value in values]
    known = [rank for rank in ranks if rank is not None]
    return max(known) if len(known) == len(ranks) else None


def _reduced(entry: Entry, first: Value, given: Arguments) -> int | None:
    dim = given.get("dim", torch_api.position(entry.name, "dim"))
    keep = given.get("keepdim", torch_api.position(entry.name, "keepdim"))
    has_default = entry.results == (("tensor", "index"),)  # `x.mode()` and `x.kthvalue(2)` go along the last dimension
    if dim is not None and dim.is_tensor:
        return _broadcast([first, dim])
    if given.open or not (entry.parameters or given.all() == []) or any(v.is_tensor for v in given.positional):
        return None
    if keep is not None and keep.constant is True:
        return first.rank
    if not entry.takes("keepdim") and len(given.positional) > 1:  # `x.count_nonzero(0, 1)`
        return None
    if dim is None and has_default:
        return max(first.rank - 1, 0) if first.rank is not None and keep is None else None
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
    is_of_data = entry.rank in ("keep", "") and not entry.short.startswith("from")
    is_like = entry.short.endswith("_like") or (is_of_data and first is not None and first.is_tensor)
    like = first if is_like else None
    device, wants = given.get("device"), given.get("requires_grad")
    if device is not None:
        place = place_of_target(device) or Place.UNKNOWN
    elif entry.name.startswith("torch.cuda."):
        place = Place.ACCELERATOR
    else:
        place = like.place if like is not None else Place.HOST
    grad = Grad.DETACHED if wants is None or wants.constant is False else Grad.CARRIES
    if entry.grad == "yes" or (like is not None and entry.may("view")):
        grad = mixed_grad(given.all(), enabled)
    literal = first if first is not None and entry.name == "torch.tensor" else None
    rank = _literal_rank(literal) if literal is not None else _rank(entry, like or UNKNOWN, given)
    dtype = result_dtype(entry, like or UNKNOWN, given)
    if literal is not None and given.get("dtype") is None:
        dtype = _literal_dtype(literal)
    elif entry.short == "arange" and given.get("dtype") is None:
        dtype = widest(given.positional)
    asked = given.get("pin_memory")
    return Value(Kind.TENSOR, grad, place, rank=rank, pinned=asked is not None and asked.constant is True, dtype=dtype)


def _literal_dtype(value: Value) -> str | None:
    if value.kind in (Kind.LIST, Kind.TUPLE) and value.items:
        return widest([Value(dtype=_literal_dtype(item)) for item in value.items])
    return value.dtype if value.kind is Kind.NUMBER or value.is_tensor else None


def _literal_rank(value: Value) -> int | None:
    if value.kind is Kind.NUMBER:
        return 0
    if value.kind in (Kind.LIST, Kind.TUPLE) and value.items:
        inner = _literal_rank(value.items[0])
        return None if inner is None else inner + 1
    return None
