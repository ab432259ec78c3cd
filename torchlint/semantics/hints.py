"""What the use of a variable implies about it, where its value alone says nothing.

`loss.backward()` proves a tensor with a graph, `opt.zero_grad(); opt.step()` an optimizer, `net.parameters()` a module,
`range(n)` a whole number.
A name alone proves nothing, except for a called `model` or `net` in a file that imports torch.
"""

from __future__ import annotations

import re

from torchlint.semantics.entities import Binding
from torchlint.semantics.values import UNKNOWN, Grad, Kind, Place, Value
from torchlint.semantics.vocabulary import is_tensor_method, only_networks_have
from torchlint.word_set import word_set

_MODULE_METHODS = frozenset(
    {"eval", "parameters", "named_parameters", "modules", "named_modules", "requires_grad_", "named_children"}
)
_NO_TENSOR_METHODS = _MODULE_METHODS - {"requires_grad_"}
_MODULE_METHODS_IF_CALLED = frozenset({"train", "load_state_dict", "state_dict", "zero_grad", "cuda", "to", "half"})
_MODULE_NAMES = re.compile(
    r"(?!_?(get|build|create|make|load|init|setup|prepare|define|restore|save|export|select|choose|wrap|convert)_)"
    r"(model|net|network|ddp_model|netg|netd|net_g|net_d|generator|discriminator|encoder|decoder|backbone|classifier"
    r"|teacher|student|(\w+_)(model|net|network)|(model|net)_?[a-z0-9]{1,2}|actor|critic|policy|unet|vae)\d?$",
    re.IGNORECASE,
)
LOSS_NAMES = re.compile(r"(?i)(^|_)(\w*loss\w*|\w*criterion\w*|crit)(_|$|\d)")
_OPTIMIZER_NAMES = re.compile(r"(?i)(^|_|\d)(opt|optim|optimizer|optimiser)(_|$|\d|[dg]$)|optim")
_TENSOR_METHODS = word_set(
    """
    detach requires_grad_ contiguous view view_as type_as dim numel
    permute unsqueeze unbind expand_as repeat_interleave index_select masked_select masked_fill masked_fill_ bmm
    new_zeros new_ones new_empty new_full new_tensor
    """
)


def implied(binding: Binding) -> Value:
    """The value that the methods called on the binding imply; UNKNOWN when they imply nothing."""
    methods = binding.methods
    if binding.counts and not methods:
        return Value(Kind.NUMBER, dtype="int")
    if "backward" in methods and all(map(is_tensor_method, methods)):
        return Value(Kind.TENSOR, Grad.CARRIES, Place.UNKNOWN)
    if {"zero_grad", "step"} <= methods and not methods & _MODULE_METHODS:
        return Value(Kind.OPTIMIZER)
    if {"scale", "update"} <= methods and "step" in methods:
        return Value(Kind.SCALER)
    if "unscale_" in methods:
        return Value(Kind.SCALER)
    if "step" in methods and looks_like_optimizer(binding.name):
        return Value(Kind.OPTIMIZER)
    is_called = binding.called or ("forward" in methods and "setInput" not in methods)  # as a network of OpenCV has
    if (
        methods & _MODULE_METHODS
        or {"clone", "train"} <= methods
        or (is_called and methods & _MODULE_METHODS_IF_CALLED)
    ):
        return Value(Kind.MODULE)
    runs = is_called or any(map(only_networks_have, methods))
    if runs and _MODULE_NAMES.fullmatch(binding.name) and not _is_definition(binding):
        return Value(Kind.MODULE)
    has_dimensions = methods & _TENSOR_METHODS or (binding.sized and all(map(is_tensor_method, methods)))
    if binding.is_parameter and has_dimensions and not binding.called:
        return Value(Kind.TENSOR)
    return UNKNOWN


def _of_tensors(value: Value) -> Value:
    """A list or tuple of which `torch.stack` makes a tensor: what is not known of it is a tensor."""

    def tensor(part: Value) -> Value:
        return (
            part if part.kind is not Kind.UNKNOWN else Value(Kind.TENSOR, part.grad, part.place, origins=part.origins)
        )

    if value.items is not None:
        return value.but(items=tuple(map(tensor, value.items)))
    return value.but(element=tensor(value.element or UNKNOWN))


def _is_definition(binding: Binding) -> bool:
    return any(write.kind in ("def", "class", "import") for write in binding.writes)


def looks_like_optimizer(name: str) -> bool:
    """Whether a variable is one of an optimizer, by its name."""
    return _OPTIMIZER_NAMES.search(name) is not None and "sched" not in name.lower()


def refined(binding: Binding, value: Value) -> Value:
    """`value` where it says something, otherwise what the use of the binding implies."""
    if value.kind is Kind.TENSOR and value.grad is Grad.UNKNOWN and "backward" in binding.methods:
        return value.but(grad=Grad.CARRIES)
    if value.kind is Kind.TENSOR and binding.methods & _NO_TENSOR_METHODS:
        return Value(Kind.MODULE, place=value.place, origins=value.origins)  # `net = net(args)`: that was its class
    if binding.joined and value.is_(Kind.LIST, Kind.TUPLE):
        return _of_tensors(value)
    vague = value.kind is Kind.UNKNOWN or (value.kind is Kind.INSTANCE and not value.optional)
    if not vague:
        return value
    hint = implied(binding)
    if hint.kind is Kind.UNKNOWN:
        return value
    if value.kind is Kind.INSTANCE and hint.is_(Kind.TENSOR, Kind.NUMBER):
        return value
    if value.kind is Kind.INSTANCE and value.ref is None and not binding.methods:
        return value  # of one of several classes, which a name says little about
    return hint.but(origins=value.origins, ref=value.ref, place=value.place, optional=value.optional)
