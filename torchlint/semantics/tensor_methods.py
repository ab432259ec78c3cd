"""What methods and attributes of tensors and of distributions give."""

from __future__ import annotations

from functools import reduce

from torchlint.semantics import torch_api
from torchlint.semantics.string_methods import string_method
from torchlint.semantics.torch_results import OTHERS, TENSORS, as_torch_names, result_dtype, returned
from torchlint.semantics.transfer import INTEGER, SHAPE, Arguments, mixed_grad, mixed_place, place_of_target
from torchlint.semantics.values import STRING, UNKNOWN, Grad, Kind, Place, Value


def tensor_method(receiver: Value, method: str, given: Arguments, enabled: bool | None) -> Value:
    """Result of a method call on a tensor, or on a batch of which a tensor is the likeliest part."""
    result = _result(receiver, method, given, enabled)
    pinned = method == "pin_memory" or (receiver.pinned and _shares_memory(method))
    return result if result.pinned is pinned else result.but(pinned=pinned)


def _shares_memory(method: str) -> bool:
    """Whether what a method returns lies where its tensor lies, or is a part of a batch that is no tensor."""
    entry = torch_api.method(method)
    return entry is None or not entry.flags.isdisjoint(("view", "inplace"))


def _result(receiver: Value, method: str, given: Arguments, enabled: bool | None) -> Value:
    given = as_torch_names(given)
    match method:
        case "item":
            return Value(Kind.NUMBER, dtype=receiver.dtype)
        case "tolist":
            return _listed(receiver)
        case "size" | "stride" if (dim := given.get("dim", 0)) is not None and dim.kind is not Kind.NONE:
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
        case "type" if not given.all():
            return STRING
        case "to" | "type":
            return _moved(receiver, given)
        case "view" if given.positional and given.positional[0].kind is Kind.DTYPE:
            return receiver.but(dtype=given.positional[0].dtype, rank=None)
        case "clone" | "contiguous" | "pin_memory" | "share_memory_" | "float" | "double" | "half" | "bfloat16":
            dtype = receiver.dtype if method in _KEEPING_DTYPE else "float"
            return receiver.but(kind=Kind.TENSOR, dtype=dtype)
        case "type_as" if given.positional:
            other = given.positional[0]
            return receiver.but(kind=Kind.TENSOR, dtype=other.dtype, place=other.place)
    if method in ("items", "keys", "get", "pop"):  # no tensor has them: it is a dict of tensors
        return _mapping(receiver.but(rank=None), method)
    if receiver.kind is Kind.BATCH and method in ("values", "copy", "update"):
        return _mapping(receiver, method)
    entry = torch_api.method(method)
    if _is_of_string(method, given, is_of_tensor=entry is not None):
        return string_method(method)
    if entry is not None:
        value = returned(entry, receiver, given, enabled, receiver.place)
        is_receiver = receiver.carries and entry.may("inplace") and value.kind is Kind.TENSOR
        return value.but(grad=Grad.CARRIES) if is_receiver else value
    if receiver.kind is Kind.BATCH:
        return receiver
    return Value(Kind.TENSOR, mixed_grad((receiver, *given.all()), enabled), receiver.place, dtype=receiver.dtype)


def _is_of_string(method: str, given: Arguments, *, is_of_tensor: bool) -> bool:
    """Whether what may be a part of a batch is a string: `name.strip()`, `name.split("_")`."""
    if method == "split":
        return not given.all() or given.all()[0].kind is Kind.STRING
    return not is_of_tensor and hasattr(str, method)


def _listed(receiver: Value) -> Value:
    """What `tolist` gives: a list of lists, down to the numbers, or a number."""
    if receiver.rank is None:
        return Value(Kind.LIST)
    number = Value(Kind.NUMBER, dtype=receiver.dtype)
    return reduce(lambda inner, _: Value(Kind.LIST, element=inner), range(receiver.rank), number)


_KEEPING_DTYPE = ("clone", "contiguous", "pin_memory", "share_memory_")


# Tensors in what models of transformers, diffusers and timm return. Of other objects that look like a tensor because
# a network made them, nothing is known by an attribute's name.
_OUTPUTS = frozenset(
    """
    loss logits last_hidden_state encoder_last_hidden_state pooler_output image_embeds text_embeds logits_per_image
    logits_per_text start_logits end_logits pred_masks pred_boxes sample latents prediction_logits
    """.split()
)
# One tensor of each layer.
_LAYERS = frozenset(
    """
    hidden_states attentions past_key_values cross_attentions encoder_hidden_states encoder_attentions
    decoder_hidden_states decoder_attentions
    """.split()
)
# What a batch of graphs is asked for, in torch_geometric and in torchtext: numbers of Python.
_COUNTS = frozenset(
    """
    num_graphs num_nodes num_edges num_faces num_events num_features num_node_features num_edge_features batch_size
    """.split()
)


def tensor_attribute(owner: Value, name: str) -> Value:
    """An attribute of a tensor, or of a batch of which it may be a part."""
    entry = torch_api.attribute(name)
    if owner.kind is Kind.BATCH and name in _COUNTS:
        return Value(Kind.NUMBER, dtype="int")
    if entry is None:
        if name in _LAYERS and owner.kind is not Kind.BATCH:
            return Value(Kind.TUPLE, owner.grad, owner.place, element=owner, origins=owner.origins)
        is_tensor = owner.kind is Kind.BATCH or name in _OUTPUTS
        return owner if is_tensor else Value(grad=owner.grad, place=owner.place, origins=owner.origins)
    if not entry.results or entry.results[0][0] not in TENSORS:
        return OTHERS.get(entry.results[0][0], UNKNOWN) if len(entry.results) == 1 else UNKNOWN
    grad = Grad.DETACHED if entry.grad == "no" else owner.grad
    dtype = result_dtype(entry, owner, Arguments()) if entry.dtype else owner.dtype
    return owner.but(kind=Kind.TENSOR, grad=grad, dtype=dtype, optional=("none",) in entry.results)


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


def distribution_method(receiver: Value, method: str, given: Arguments, enabled: bool | None) -> Value:
    """Result of a method of an object of torch.distributions. A flow is trained through the points of `log_prob`."""
    entry = torch_api.lookup(f"torch.distributions.Distribution.{method}")
    if entry is None or not entry.results:
        return UNKNOWN
    if not entry.returns_tensors:
        return receiver
    if entry.grad == "no" or enabled is False:
        return Value(Kind.TENSOR, Grad.DETACHED, receiver.place)
    grad = Grad.CARRIES if any(value.grad is Grad.CARRIES for value in given.all()) else receiver.grad
    return Value(Kind.TENSOR, grad if enabled else Grad.UNKNOWN, receiver.place)


def _moved(receiver: Value, given: Arguments) -> Value:
    target = given.get("device") or (given.positional[0] if given.positional else None)
    place = place_of_target(target) if target is not None else None
    dtypes = [value.dtype for value in given.all() if value.is_(Kind.DTYPE, Kind.TENSOR)]
    moved = receiver.but(dtype=dtypes[0]) if dtypes else receiver
    return moved if place is None else moved.but(place=place)
