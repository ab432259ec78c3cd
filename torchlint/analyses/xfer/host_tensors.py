"""Tensors that the host makes of nothing but sizes and numbers, so that any device could make them just as well."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.moves import moves_to_accelerator
from torchlint.analyses.order import is_before
from torchlint.analyses.variable_wrapper import VARIABLE
from torchlint.analyses.xfer.agreement import (
    CASTS,
    DRAWING,
    FILLING,
    ROUNDED_ALIKE,
    SHAPING,
    Agreement,
    agreement_if_drawn,
    continues,
)
from torchlint.analyses.xfer.factories import agreement_of, makes_leaf
from torchlint.analyses.xfer.numbers import is_literal, looks_like_number, may_hold_numbers
from torchlint.semantics import vocabulary as words
from torchlint.semantics.dataflow import writes_reaching
from torchlint.semantics.tree import is_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Write
    from torchlint.semantics.model import Model


@dataclass(frozen=True, slots=True)
class Made:
    """What an expression is made of: calls of factories, and the variables that hold it on the way."""

    factories: tuple[Call, ...]
    agreement: Agreement = Agreement.EXACT
    writes: tuple[tuple[cst.CSTNode, Write], ...] = ()  # each variable where it is read, and the write that it reads
    is_guessed: bool = (
        False  # something in it looks like a number, but is not known to be one, or is a copy on the host
    )

    def at_best(self, agreement: Agreement) -> Made:
        return replace(self, agreement=max(self.agreement, agreement))

    def through(self, read: cst.CSTNode, write: Write) -> Made:
        return replace(self, writes=(*self.writes, (read, write)))


def _joined(parts: Sequence[Made], agreement: Agreement = Agreement.EXACT, *, is_guessed: bool = False) -> Made:
    return Made(
        tuple(dict.fromkeys(call for part in parts for call in part.factories)),
        max([agreement, *(part.agreement for part in parts)]),
        tuple(dict.fromkeys(step for part in parts for step in part.writes)),
        is_guessed or any(part.is_guessed for part in parts),
    )


_TRANSPARENT = frozenset(
    {"builtins.staticmethod", "builtins.classmethod", "torch.no_grad", "torch.inference_mode", "typing.override"}
)
PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
_EXACT_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply)
_CONVERTERS = frozenset("tensor as_tensor from_numpy asarray frombuffer scalar_tensor stack cat concat".split())
_SAMPLING = ("sample", "rsample", "sample_n")
_DEPTH = 12


def made(node: cst.CSTNode, model: Model, depth: int = 0) -> Made | None:
    """What a tensor is made of, where that is sizes and numbers only; None where it is data, or not all in sight."""
    if depth > _DEPTH:
        return None
    match node:
        case cst.Call():
            return _of_call(model.call(node), model, depth)
        case cst.BinaryOperation(left=left, right=right):
            exact = Agreement.EXACT if isinstance(node.operator, _EXACT_OPERATORS) else Agreement.ROUNDED
            return _combined([left, right], model, depth, exact, guess=True)
        case cst.Comparison(left=left, comparisons=[target]):
            return _combined([left, target.comparator], model, depth, Agreement.EXACT)
        case cst.UnaryOperation(operator=cst.Minus() | cst.BitInvert()):
            return made(node.expression, model, depth + 1)
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer() as place))]):
            part = _of_elements(node.value, model, depth + 1, place.evaluated_value)
            return part or made(node.value, model, depth + 1)
        case cst.Subscript() if all(_is_plain_index(part.slice) for part in node.slice):
            return made(node.value, model, depth + 1)
        case cst.Attribute(attr=cst.Name(value="data")) if model.binding(node) is None:
            return made(node.value, model, depth + 1)
        case cst.Name() | cst.Attribute():
            return _of_variable(node, model, depth)
    return None


def _combined(
    nodes: Iterable[cst.CSTNode], model: Model, depth: int, agreement: Agreement, required: int = 1, guess: bool = False
) -> Made | None:
    """Of a computation: at least one operand is made of sizes and numbers, the others are too, or are numbers."""
    found, guesses = [], 0
    for node in nodes:
        if model.value(node).is_(Kind.NUMBER, Kind.STRING, Kind.DTYPE) or is_literal(node):
            continue
        part = made(node, model, depth + 1)
        if part is not None:
            found.append(part)
        elif guess and looks_like_number(node, model):
            guesses += 1
        else:
            return None
    return _joined(found, agreement, is_guessed=guesses > 0) if len(found) >= required else None


def _is_plain_index(part: cst.BaseSlice) -> bool:
    match part:
        case cst.Slice():
            return True
        case cst.Index(value=cst.Name(value="None") | cst.Ellipsis() | cst.Integer()):
            return True
    return False


# -- calls


def _of_call(call: Call, model: Model, depth: int) -> Made | None:
    factory = agreement_of(call, model)
    if factory is not None:
        return Made((call,), factory)
    if may_hold_numbers(call, model):
        return Made((call,), Agreement.EXACT, (), is_guessed=True)
    name = call.callee or ""
    if call.target is not None or call.foreign is not None:
        return _of_helper(call, model, depth)
    package, _, function = name.rpartition(".")
    if name == VARIABLE:
        is_leaf = makes_leaf(call, 1)
        return _of_first(call, model, depth, Agreement.EXACT) if not is_leaf else None
    if name in PARAMETERS:
        is_lost = isinstance(model.parent(call.node), cst.Attribute)  # nothing keeps the leaf
        return _of_first(call, model, depth, Agreement.EXACT) if is_lost else None
    if package == "torch.nn.init":
        drawn = function not in ("zeros_", "ones_", "constant_", "eye_")
        return _of_first(call, model, depth, Agreement.RANDOM if drawn else Agreement.EXACT)
    if package in ("torch", "torch.nn.functional"):
        return _of_function(call, function, model, depth)
    if call.receiver is not None and call.method is not None and package in ("", "torch.Tensor"):
        return _of_method(call, call.method, model, depth)
    if package.startswith("torch.distributions.") and function in _SAMPLING and call.receiver is not None:
        return Made((call,), Agreement.RANDOM) if _is_of_numbers(call.receiver, model) else None
    return None


def _is_of_numbers(distribution: cst.BaseExpression, model: Model) -> bool:
    """`Uniform(-1, 1)`, or a variable that holds it: the host keeps the numbers, and draws by them."""
    if isinstance(distribution, cst.Call):
        call = model.call(distribution)
        given = [arg.value for arg in call.arguments if not arg.star]
        numbers = all(is_literal(node) or model.value(node).kind is Kind.NUMBER for node in given)
        is_whole = len(given) == len(call.arguments) and bool(given)
        return is_whole and numbers and (call.callee or "").startswith("torch.distributions.")
    binding = model.binding(distribution)
    values = [write.value for write in binding.writes] if binding is not None else []
    return bool(values) and all(isinstance(value, cst.Call) and _is_of_numbers(value, model) for value in values)


def _of_helper(call: Call, model: Model, depth: int, *, elements: bool = False) -> Made | None:
    """Of a function of the project, which makes what it returns for its callers alone: its call is the factory."""
    home, function = model.elsewhere(call) or (model, call.target)
    if function is None or function.is_generator or set(function.decorators) - _TRANSPARENT:
        return None
    of = _of_elements if elements else made
    parts = [of(node.value, home, depth + 1) if node.value is not None else None for node in function.returns]
    found = [part for part in parts if part is not None]
    if not found or len(found) < len(parts):
        return None
    chain = {read for part in found for read, _ in part.writes}
    bindings = (home.binding(read) for read in chain)
    if any(binding is None or not chain.issuperset(binding.reads) for binding in bindings):
        return None
    return Made((call,), max(part.agreement for part in found), (), any(part.is_guessed for part in found))


def _of_function(call: Call, function: str, model: Model, depth: int) -> Made | None:
    if function in ("stack", "cat", "concat") and call.arguments:
        parts = call.arguments[0].value
        if isinstance(parts, (cst.List, cst.Tuple)):
            return _combined([element.value for element in parts.elements], model, depth, Agreement.EXACT)
        return (
            _of_elements(parts, model, depth) if isinstance(parts, (cst.ListComp, cst.GeneratorExp, cst.Call)) else None
        )
    if function in _CONVERTERS or words.leaves_tensors(function) or not words.returns_tensor(call.callee or ""):
        return None
    if function in SHAPING:
        return _of_first(call, model, depth, Agreement.EXACT)
    if function == "normal":
        return _combined([arg.value for arg in call.arguments], model, depth, Agreement.RANDOM, guess=True)
    alike = Agreement.EXACT if function in ROUNDED_ALIKE else Agreement.ROUNDED
    return _combined([arg.value for arg in call.arguments], model, depth, agreement_if_drawn(function, alike))


def _of_first(call: Call, model: Model, depth: int, agreement: Agreement) -> Made | None:
    first = made(call.arguments[0].value, model, depth + 1) if call.arguments else None
    return first.at_best(agreement) if first is not None else None


def _of_method(call: Call, method: str, model: Model, depth: int) -> Made | None:
    assert call.receiver is not None
    if method == "requires_grad_" and call.argument("requires_grad", 0).value.constant is False:
        return made(call.receiver, model, depth + 1)
    if not continues(method) or not call.argument("generator").absent:
        return None
    source = made(call.receiver, model, depth + 1)
    copies = [arg.value for arg in call.arguments if method.endswith("_") and is_host_copy(arg.value, model)]
    given = _of_arguments(call, method, model, depth, copies) if source is not None else None
    if source is None or given is None:
        return None
    exact = method in CASTS | SHAPING | FILLING | ROUNDED_ALIKE
    agreement = Agreement.EXACT if exact else agreement_if_drawn(method, Agreement.ROUNDED)
    return _joined([source, *given], agreement, is_guessed=bool(copies))


def is_host_copy(node: cst.BaseExpression, model: Model) -> bool:
    """`y.cpu().view(-1, 1)`, or its name: what had to leave the device because the tensor is not there."""
    while isinstance(node, (cst.Call, cst.Attribute)):
        if isinstance(node, cst.Call) and model.call(node).method == "cpu":
            return True
        node = node.func if isinstance(node, cst.Call) else node.value
    binding = model.binding(node)
    value = binding.writes[0].value if binding is not None and len(binding.writes) == 1 else None
    return isinstance(value, cst.Call) and is_host_copy(value, model)


def _of_arguments(
    call: Call, method: str, model: Model, depth: int, besides: Sequence[cst.BaseExpression]
) -> list[Made] | None:
    """What the arguments of a method are made of; None where one may bring data with it, or name a device."""
    values = [arg.value for arg in call.arguments if arg.value not in besides]
    if method in ("to", "type"):
        return [] if all(model.value(node).kind is Kind.DTYPE or _is_dtype(node, model) for node in values) else None
    if method in SHAPING | FILLING | DRAWING:
        return []
    found = [_combined([node], model, depth, Agreement.EXACT, required=0) for node in values]
    return [part for part in found if part is not None] if None not in found else None


def _is_dtype(node: cst.BaseExpression, model: Model) -> bool:
    if isinstance(node, cst.Attribute) and node.attr.value == "dtype":
        return True
    return re.fullmatch(r"torch\.(\w*Tensor|[a-z]+\d*)", model.qualified(node) or "") is not None


# -- factories


def brings_numbers(call: Call, model: Model, besides: Sequence[cst.BaseExpression]) -> bool:
    """`x.mul_(0.5)`: a method that a tensor made of sizes and numbers keeps being such a tensor through, if it is given
    nothing else `besides`."""
    if call.method is None or not continues(call.method) or not call.argument("generator").absent:
        return False
    return _of_arguments(call, call.method, model, 0, besides) is not None


def _of_variable(node: cst.Name | cst.Attribute, model: Model, depth: int) -> Made | None:
    """What a variable holds where it is read: every write that reaches the place is made of sizes and numbers, or is a
    None, which has no methods, or a copy of what it holds already, which an iteration before has made."""
    writes = _reaching(node, model)
    found = []
    for write in writes or ():
        if write.kind == "assign" and (is_name(write.value, "None") or _is_moved_again(write, model)):
            continue
        part = _of_write(node, write, model, depth)
        if part is None:
            return None
        found.append(part)
    if not found:
        return None
    return _joined(found)


def _is_moved_again(write: Write, model: Model) -> bool:
    """`x = x.cuda()` in a loop, before which `x` was made."""
    call = model.call(write.value) if isinstance(write.value, cst.Call) else None
    if call is None or call.receiver is None or write.loop is None or write.unpacked:
        return False
    binding = model.binding(write.target)
    return moves_to_accelerator(call, model) and binding is not None and model.binding(call.receiver) is binding


def _of_write(read: cst.CSTNode, write: Write, model: Model, depth: int) -> Made | None:
    if write.value is None or write.kind not in ("assign", "for", "walrus"):
        return None
    if write.kind == "assign" and not write.unpacked:
        part = made(write.value, model, depth + 1)
    else:
        part = _of_elements(write.value, model, depth)
    return part.through(read, write) if part is not None else None


def _of_elements(node: cst.BaseExpression, model: Model, depth: int, place: int | None = None) -> Made | None:
    """Of what an expression yields one by one, or at one place: a list or tuple of tensors, in a variable, returned."""
    if depth > _DEPTH:
        return None
    match node:
        case cst.List() | cst.Tuple():
            wanted = slice(None) if place is None else slice(place, place + 1)
            parts = [element.value for element in node.elements[wanted]]
            return _combined(parts, model, depth, Agreement.EXACT, required=max(len(parts), 1))
        case cst.ListComp() | cst.GeneratorExp():
            return made(node.elt, model, depth + 1)
        case cst.Call() if model.call(node).target is not None or model.call(node).foreign is not None:
            return _of_helper(model.call(node), model, depth, elements=True)
        case cst.Call() if model.call(node).callee == "torch.meshgrid":
            axes = _axes(node)
            return _combined(axes, model, depth, Agreement.EXACT, required=max(len(axes), 1))
        case cst.Name():
            writes = _reaching(node, model)
            if writes is None or len(writes) != 1 or writes[0].value is None or writes[0].unpacked:
                return None
            inner = _of_elements(writes[0].value, model, depth + 1, place)
            return inner.through(node, writes[0]) if inner is not None else None
    return None


def _axes(grid: cst.Call) -> Sequence[cst.BaseExpression]:
    """`x` and `y` of `torch.meshgrid(x, y)`, or `torch.meshgrid([x, y])`."""
    match grid.args:
        case [cst.Arg(star="", value=cst.List() | cst.Tuple() as parts), *_]:
            return [part.value for part in parts.elements]
    return [arg.value for arg in grid.args if arg.keyword is None]


def _reaching(node: cst.Name | cst.Attribute, model: Model) -> list[Write] | None:
    """The writes of a variable of the same function that a read of it may see; None where others may come between."""
    binding, function = model.binding(node), model.function(node)
    if binding is None:
        return None
    if binding.cls is None:
        if binding.scope_function is not function:
            return None
        return writes_reaching(model, binding, node)
    above = set(model.ancestors(node))
    own = [write for write in binding.writes if write.function is function and write.statement not in above]
    before = [write for write in own if is_before(model, write.target, node)]
    return before if len(before) == 1 and not model.loops_around(node) else None
