"""Tensors that the host makes of nothing but sizes and numbers, so that any device could make them just as well."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import vocabulary as words
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.host_use import is_before
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Write
    from torchlint.semantics.model import Model


class Agreement(IntEnum):
    """How far another device makes the same numbers."""

    EXACT = 0
    ROUNDED = 1  # but for the last bits
    RANDOM = 2  # each device has a random stream of its own


@dataclass(frozen=True, slots=True)
class Made:
    """What an expression is made of: calls of factories, and the variables that hold it on the way."""

    factories: tuple[Call, ...]
    agreement: Agreement = Agreement.EXACT
    writes: tuple[tuple[cst.CSTNode, Write], ...] = ()  # each variable where it is read, and the write that it reads

    def at_best(self, agreement: Agreement) -> Made:
        return Made(self.factories, max(self.agreement, agreement), self.writes)

    def through(self, read: cst.CSTNode, write: Write) -> Made:
        return Made(self.factories, self.agreement, (*self.writes, (read, write)))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FACTORIES = {
    **dict.fromkeys(_words("zeros ones full empty eye tril_indices triu_indices"), Agreement.EXACT),
    **dict.fromkeys(
        _words("linspace logspace hann_window hamming_window bartlett_window blackman_window kaiser_window"),
        Agreement.ROUNDED,
    ),
    **dict.fromkeys(_words("rand randn randint randperm"), Agreement.RANDOM),
}
SIZED_CLASSES = {
    "torch.Tensor": None,
    "torch.FloatTensor": "torch.float32",
    "torch.DoubleTensor": "torch.float64",
    "torch.HalfTensor": "torch.float16",
    "torch.BFloat16Tensor": "torch.bfloat16",
    "torch.LongTensor": "torch.int64",
    "torch.IntTensor": "torch.int32",
    "torch.ShortTensor": "torch.int16",
    "torch.CharTensor": "torch.int8",
    "torch.ByteTensor": "torch.uint8",
    "torch.BoolTensor": "torch.bool",
}
# Arguments that bind the tensor, or what is drawn, to the host, or make it a leaf of the graph.
_BINDING = ("device", "pin_memory", "generator", "requires_grad", "out", "layout", "names")
CASTS = _words("long int short bool byte char float double half bfloat16 type to")
_SHAPING = _words(
    """
    view reshape unsqueeze squeeze expand repeat t transpose permute contiguous flatten view_as expand_as detach clone
    unflatten narrow movedim unsqueeze_ squeeze_ transpose_ t_ resize_ repeat_interleave tile chunk unbind
    """
)
_FILLING = _words("zero_ fill_ fill_diagonal_")
_DRAWING = _words(
    "normal_ uniform_ random_ bernoulli_ exponential_ log_normal_ geometric_ cauchy_ bernoulli multinomial"
)
_ROUNDED_ALIKE = _words(
    """
    mul add sub neg abs clamp clamp_min clamp_max tril triu mul_ add_ sub_ neg_ abs_ clamp_ clamp_min_ clamp_max_ tril_
    triu_ eq ne lt le gt ge logical_not bitwise_not masked_fill masked_fill_ round floor ceil flip roll diag
    """
)
_BRINGING_OTHERS = _words("cuda requires_grad_ pin_memory copy_ apply_ map_ where")
_CONVERTERS = _words("tensor as_tensor from_numpy asarray frombuffer scalar_tensor stack cat concat")
_DEPTH = 12


def made(node: cst.CSTNode, model: Model, depth: int = 0) -> Made | None:
    """What a tensor is made of, where that is sizes and numbers only; None where it is data, or not all in sight."""
    if depth > _DEPTH:
        return None
    match node:
        case cst.Call():
            return _of_call(model.call(node), model, depth)
        case cst.BinaryOperation(left=left, right=right):
            exact = isinstance(node.operator, (cst.Add, cst.Subtract, cst.Multiply))
            return _combined([left, right], model, depth, Agreement.EXACT if exact else Agreement.ROUNDED)
        case cst.Comparison(left=left, comparisons=[target]):
            return _combined([left, target.comparator], model, depth, Agreement.EXACT)
        case cst.UnaryOperation(operator=cst.Minus() | cst.BitInvert()):
            return made(node.expression, model, depth + 1)
        case cst.Subscript() if all(_is_plain_index(part.slice) for part in node.slice):
            return made(node.value, model, depth + 1)
        case cst.Name() | cst.Attribute():
            return _of_variable(node, model, depth)
    return None


def _combined(
    nodes: Iterable[cst.CSTNode], model: Model, depth: int, agreement: Agreement, required: int = 1
) -> Made | None:
    """Of a computation: at least one operand is made of sizes and numbers, the others are too, or are numbers."""
    found = []
    for node in nodes:
        if model.value(node).is_(Kind.NUMBER, Kind.STRING, Kind.DTYPE) or _is_literal(node):
            continue
        part = made(node, model, depth + 1)
        if part is None:
            return None
        found.append(part)
    if len(found) < required:
        return None
    factories = tuple(dict.fromkeys(call for part in found for call in part.factories))
    writes = tuple(dict.fromkeys(step for part in found for step in part.writes))
    return Made(factories, max([agreement, *(part.agreement for part in found)]), writes)


def _is_literal(node: cst.CSTNode) -> bool:
    return isinstance(node, (cst.BaseNumber, cst.BaseString)) or (
        isinstance(node, cst.UnaryOperation) and isinstance(node.expression, cst.BaseNumber)
    )


def _is_plain_index(part: cst.BaseSlice) -> bool:
    match part:
        case cst.Slice():
            return True
        case cst.Index(value=cst.Name(value="None") | cst.Ellipsis() | cst.Integer()):
            return True
    return False


# -- calls


def _of_call(call: Call, model: Model, depth: int) -> Made | None:
    factory = _factory(call, model)
    if factory is not None:
        return Made((call,), factory)
    name = call.callee or ""
    package, _, function = name.rpartition(".")
    if name == "torch.autograd.Variable":
        wanted = call.argument("requires_grad", 1)
        return _of_first(call, model, depth, Agreement.EXACT) if wanted.absent else None
    if package == "torch.nn.init":
        drawn = function not in ("zeros_", "ones_", "constant_", "eye_")
        return _of_first(call, model, depth, Agreement.RANDOM if drawn else Agreement.EXACT)
    if package in ("torch", "torch.nn.functional"):
        return _of_function(call, function, model, depth)
    if call.receiver is not None and call.method is not None and package in ("", "torch.Tensor"):
        return _of_method(call, call.method, model, depth)
    return None


def _of_function(call: Call, function: str, model: Model, depth: int) -> Made | None:
    if function in ("stack", "cat", "concat") and call.arguments:
        parts = call.arguments[0].value
        if isinstance(parts, (cst.List, cst.Tuple)):
            return _combined([element.value for element in parts.elements], model, depth, Agreement.EXACT)
        return made(parts.elt, model, depth + 1) if isinstance(parts, (cst.ListComp, cst.GeneratorExp)) else None
    if function in _CONVERTERS or words.leaves_tensors(function) or not words.returns_tensor(call.callee or ""):
        return None
    if function in _SHAPING:
        return _of_first(call, model, depth, Agreement.EXACT)
    alike = Agreement.EXACT if function in _ROUNDED_ALIKE else Agreement.ROUNDED
    return _combined([arg.value for arg in call.arguments], model, depth, _drawn(function, alike))


def _of_first(call: Call, model: Model, depth: int, agreement: Agreement) -> Made | None:
    first = made(call.arguments[0].value, model, depth + 1) if call.arguments else None
    return first.at_best(agreement) if first is not None else None


def _drawn(name: str, otherwise: Agreement) -> Agreement:
    return Agreement.RANDOM if name in _DRAWING else otherwise


def _of_method(call: Call, method: str, model: Model, depth: int) -> Made | None:
    assert call.receiver is not None
    if not _continues(method) or not call.argument("generator").absent:
        return None
    source = made(call.receiver, model, depth + 1)
    if source is None or any(_fails(arg.value, method, model, depth) for arg in call.arguments):
        return None
    if method in CASTS | _SHAPING | _FILLING | _ROUNDED_ALIKE:
        return source
    return source.at_best(_drawn(method, Agreement.ROUNDED))


def _continues(method: str) -> bool:
    if method in CASTS | _SHAPING | _FILLING | _DRAWING | _ROUNDED_ALIKE:
        return True
    if method in _BRINGING_OTHERS:
        return False
    return words.is_tensor_method(method) and not words.leaves_tensors(method)


def _fails(argument: cst.BaseExpression, method: str, model: Model, depth: int) -> bool:
    """Whether an argument of a method may bring data with it, or name a device."""
    value = model.value(argument)
    if method in ("to", "type"):
        return not (value.kind is Kind.DTYPE or _is_dtype(argument, model))
    if method in _SHAPING | _FILLING | _DRAWING:
        return False
    return _combined([argument], model, depth, Agreement.EXACT, required=0) is None


def _is_dtype(node: cst.BaseExpression, model: Model) -> bool:
    if isinstance(node, cst.Attribute) and node.attr.value == "dtype":
        return True
    return re.fullmatch(r"torch\.(\w*Tensor|[a-z]+\d*)", model.qualified(node) or "") is not None


# -- factories


def _factory(call: Call, model: Model) -> Agreement | None:
    """How far another device agrees on what a call makes, where it is a factory that makes it on the host."""
    name = call.callee or ""
    if not name.startswith("torch.") or name.count(".") != 1:
        return None
    if any(not call.argument(bound).absent for bound in _BINDING):
        return None
    short = name[6:]
    if short in _FACTORIES:
        return _FACTORIES[short]
    if short in ("arange", "range"):
        whole = all(model.value(arg.value).dtype == "int" for arg in call.arguments if arg.keyword is None)
        return Agreement.EXACT if whole else Agreement.ROUNDED
    if short == "normal":
        numbers = [call.argument(key, place) for place, key in enumerate(("mean", "std"))]
        return Agreement.RANDOM if all(number.value.kind is Kind.NUMBER for number in numbers) else None
    if name in SIZED_CLASSES:
        return Agreement.EXACT if _is_given_sizes(call, model) else None
    return None


def _is_given_sizes(call: Call, model: Model) -> bool:
    """Whether `torch.FloatTensor(...)` gets sizes. A single list, tuple or array is data, unless it is filled over."""
    if not call.arguments or any(arg.star == "**" for arg in call.arguments):
        return False
    if has_sizes(call, model):
        return True
    above = model.parent(call.node)
    fills = isinstance(above, cst.Attribute) and above.attr.value in _FILLING | _DRAWING
    return fills and call.arguments[0].keyword is None and model.value(call.arguments[0].value).kind is Kind.UNKNOWN


def has_sizes(call: Call, model: Model) -> bool:
    """Whether all arguments of a class of tensors are sizes for sure."""
    if any(arg.keyword is not None for arg in call.arguments):
        return [arg.keyword.value for arg in call.arguments if arg.keyword is not None] == ["size"]
    if len(call.arguments) > 1 or call.arguments[0].star == "*":
        return True
    only = call.arguments[0].value
    value = model.value(only)
    return _is_torch_size(only, model) or (value.kind is Kind.NUMBER and value.dtype == "int")


def _is_torch_size(node: cst.BaseExpression, model: Model) -> bool:
    """`x.size()`, and `x.shape` of what is a tensor: the shape of an array or of a space is data."""
    match node:
        case cst.Attribute(value=owner, attr=cst.Name(value="shape")):
            return model.value(owner).is_tensor
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[]):
            return True
    return False


# -- variables


def _of_variable(node: cst.Name | cst.Attribute, model: Model, depth: int) -> Made | None:
    """What a variable holds where it is read: every write that reaches the place is made of sizes and numbers."""
    writes = _reaching(node, model)
    found = []
    for write in writes or ():
        part = _of_write(node, write, model, depth)
        if part is None:
            return None
        found.append(part)
    if not found:
        return None
    factories = tuple(dict.fromkeys(call for part in found for call in part.factories))
    steps = tuple(dict.fromkeys(step for part in found for step in part.writes))
    return Made(factories, max(part.agreement for part in found), steps)


def _of_write(read: cst.CSTNode, write: Write, model: Model, depth: int) -> Made | None:
    if write.value is None or write.kind not in ("assign", "for", "walrus"):
        return None
    if write.kind == "assign" and not write.unpacked:
        part = made(write.value, model, depth + 1)
    else:
        part = _of_elements(write.value, model, depth)
    return part.through(read, write) if part is not None else None


def _of_elements(node: cst.BaseExpression, model: Model, depth: int) -> Made | None:
    """Of what an expression yields one by one: a list or tuple of tensors, by itself or in a variable."""
    if isinstance(node, (cst.List, cst.Tuple)):
        parts = [element.value for element in node.elements]
        return _combined(parts, model, depth, Agreement.EXACT, required=max(len(parts), 1))
    if not isinstance(node, cst.Name):
        return None
    writes = _reaching(node, model)
    if writes is None or len(writes) != 1 or writes[0].value is None or writes[0].unpacked:
        return None
    if not isinstance(writes[0].value, (cst.List, cst.Tuple)):
        return None
    inner = _of_elements(writes[0].value, model, depth + 1)
    return inner.through(node, writes[0]) if inner is not None else None


def _reaching(node: cst.Name | cst.Attribute, model: Model) -> list[Write] | None:
    """The writes of a variable of the same function that a read of it may see; None where others may come between."""
    binding, function = model.binding(node), model.function(node)
    if binding is None:
        return None
    if binding.cls is None:
        if binding.scope_function is not function:
            return None
        return [write for write in binding.writes if reaches(model, binding, write.target, node)]
    above = set(model.ancestors(node))
    own = [write for write in binding.writes if write.function is function and write.statement not in above]
    before = [write for write in own if is_before(model, write.target, node)]
    return before if len(before) == 1 and not model.loops_around(node) else None
