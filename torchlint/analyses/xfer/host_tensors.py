"""Tensors that the host makes of nothing but sizes and numbers, so that any device could make them just as well."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.order import is_before
from torchlint.analyses.variable_wrapper import VARIABLE, is_false
from torchlint.semantics import vocabulary as words
from torchlint.semantics.dataflow import reaches, text
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Write
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


def _words(names: str) -> frozenset[str]:
    return frozenset(names.split())


_FACTORIES = {
    **dict.fromkeys(_words("zeros ones full empty eye tril_indices triu_indices"), Agreement.EXACT),
    **dict.fromkeys(
        _words("linspace logspace hann_window hamming_window bartlett_window blackman_window kaiser_window"),
        Agreement.ROUNDED,
    ),
    **dict.fromkeys(_words("rand randn randint randperm"), Agreement.RANDOM),
    "nn.Transformer.generate_square_subsequent_mask": Agreement.EXACT,
}
_ALIKE = {
    **dict.fromkeys(_words("zeros_like ones_like full_like empty_like"), Agreement.EXACT),
    **dict.fromkeys(_words("rand_like randn_like randint_like"), Agreement.RANDOM),
}
_TRANSPARENT = frozenset(
    {"builtins.staticmethod", "builtins.classmethod", "torch.no_grad", "torch.inference_mode", "typing.override"}
)
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
PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
# Arguments that bind the tensor, or what is drawn, to the host.
_BINDING = ("device", "pin_memory", "generator", "out", "layout", "names")
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
_TAKING_APART = (cst.Attribute, cst.Subscript, cst.For, cst.CompFor, cst.StarredElement)
_EXACT_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply)
_MADE_OF_NUMBERS = _words("torch.tensor torch.as_tensor torch.asarray torch.scalar_tensor")
_CONVERTERS = _words("tensor as_tensor from_numpy asarray frombuffer scalar_tensor stack cat concat")
_SYMBOL = re.compile(r"(?i)_*(sos|eos|bos|pad|unk|go|cls|sep|blank)(_?(token|idx|id|index|symbol|word))?")
_MAY_BE_NUMBERS = (Kind.UNKNOWN, Kind.FUNCTION, Kind.NAMESPACE, Kind.CLASS)  # what is imported may be any of these
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
        if model.value(node).is_(Kind.NUMBER, Kind.STRING, Kind.DTYPE) or _is_literal(node):
            continue
        part = made(node, model, depth + 1)
        if part is not None:
            found.append(part)
        elif guess and looks_like_number(node, model):
            guesses += 1
        else:
            return None
    return _joined(found, agreement, is_guessed=guesses > 0) if len(found) >= required else None


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
    if call.target is not None or call.foreign is not None:
        return _of_helper(call, model, depth)
    package, _, function = name.rpartition(".")
    if name == VARIABLE:
        is_leaf = _makes_leaf(call, 1)
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
    return None


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
    copies = [arg.value for arg in call.arguments if method.endswith("_") and is_host_copy(arg.value, model)]
    given = _of_arguments(call, method, model, depth, copies) if source is not None else None
    if source is None or given is None:
        return None
    exact = method in CASTS | _SHAPING | _FILLING | _ROUNDED_ALIKE
    agreement = Agreement.EXACT if exact else _drawn(method, Agreement.ROUNDED)
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


def _continues(method: str) -> bool:
    if method in CASTS | _SHAPING | _FILLING | _DRAWING | _ROUNDED_ALIKE:
        return True
    if method in _BRINGING_OTHERS:
        return False
    return words.is_tensor_method(method) and not words.leaves_tensors(method)


def _of_arguments(
    call: Call, method: str, model: Model, depth: int, besides: Sequence[cst.BaseExpression] = ()
) -> list[Made] | None:
    """What the arguments of a method are made of; None where one may bring data with it, or name a device."""
    values = [arg.value for arg in call.arguments if arg.value not in besides]
    if method in ("to", "type"):
        return [] if all(model.value(node).kind is Kind.DTYPE or _is_dtype(node, model) for node in values) else None
    if method in _SHAPING | _FILLING | _DRAWING:
        return []
    found = [_combined([node], model, depth, Agreement.EXACT, required=0) for node in values]
    return [part for part in found if part is not None] if None not in found else None


def _is_dtype(node: cst.BaseExpression, model: Model) -> bool:
    if isinstance(node, cst.Attribute) and node.attr.value == "dtype":
        return True
    return re.fullmatch(r"torch\.(\w*Tensor|[a-z]+\d*)", model.qualified(node) or "") is not None


# -- factories


def _factory(call: Call, model: Model) -> Agreement | None:
    """How far another device agrees on what a call makes, where it is a factory that makes it on the host."""
    name = call.callee or ""
    if not name.startswith("torch.") or any(not call.argument(bound).absent for bound in _BINDING):
        return None
    if _makes_leaf(call):
        return None
    short = name[6:]
    if short in _FACTORIES:
        return _FACTORIES[short]
    if short in _ALIKE:
        model_tensor = call.argument("input", 0).value
        return _ALIKE[short] if model_tensor.is_tensor and model_tensor.place is Place.HOST else None
    if short in ("arange", "range"):
        whole = all(model.value(arg.value).dtype == "int" for arg in call.arguments if arg.keyword is None)
        return Agreement.EXACT if whole else Agreement.ROUNDED
    if short == "normal":
        numbers = [call.argument(key, place) for place, key in enumerate(("mean", "std"))]
        takes_numbers = call.argument("size", 2).given or all(number.value.kind is Kind.NUMBER for number in numbers)
        return Agreement.RANDOM if takes_numbers else None
    if name in _MADE_OF_NUMBERS:
        return Agreement.EXACT if numbers_given(call, model) is not None else None
    if name in SIZED_CLASSES:
        given = _is_given_sizes(call, model) or numbers_given(call, model) is not None
        return Agreement.EXACT if given else None
    return None


def _makes_leaf(call: Call, position: int | None = None) -> bool:
    """Whether gradients may be wanted of what a call makes."""
    wanted = call.argument("requires_grad", position)
    return not wanted.absent and not is_false(wanted.node)


def numbers_given(call: Call, model: Model) -> cst.BaseExpression | None:
    """The first argument of a call that makes a tensor of it, where numbers are written out there."""
    first = call.arguments[0] if call.arguments else None
    if first is None or first.star or first.keyword is not None:
        return None
    takes_number = call.callee in _MADE_OF_NUMBERS
    if not takes_number and call.callee not in SIZED_CLASSES:
        return None
    given = _is_list_of_numbers(first.value, model) or (takes_number and _is_number(first.value, model))
    return first.value if given else None


def _is_list_of_numbers(node: cst.BaseExpression, model: Model) -> bool:
    """`[0, 1]`, `[[step]]`, `[0] * n`, `[SOS_token for _ in range(n)]`, `range(n)`."""
    match node:
        case cst.List() | cst.Tuple():
            parts = [element.value for element in node.elements]
            return bool(parts) and all(_is_entry(part, model) or _is_list_of_numbers(part, model) for part in parts)
        case cst.ListComp(elt=part, for_in=cst.CompFor(iter=cst.Call() as rounds, inner_for_in=None)):
            same = _is_entry(part, model) or _is_list_of_numbers(part, model)
            return same and not _reads_variable(part, node.for_in) and _is_list_of_numbers(rounds, model)
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            times = model.value(right).is_(Kind.NUMBER, Kind.UNKNOWN)
            return times and isinstance(left, (cst.List, cst.Tuple)) and _is_list_of_numbers(left, model)
        case cst.Call():
            return model.call(node).callee == "builtins.range"
    return False


def _is_entry(node: cst.BaseExpression, model: Model) -> bool:
    """A number, or the name of what stands for a word in a vocabulary."""
    if _is_number(node, model):
        return True
    name = node.attr if isinstance(node, cst.Attribute) else node
    is_symbol = isinstance(name, cst.Name) and _SYMBOL.fullmatch(name.value) is not None
    return is_symbol and model.value(node).is_(*_MAY_BE_NUMBERS)


def _reads_variable(node: cst.CSTNode, comprehension: cst.CompFor) -> bool:
    while isinstance(node, cst.ListComp):
        node = node.elt
    names = {part.value for part in walk(comprehension.target) if isinstance(part, cst.Name)}
    return any(isinstance(part, cst.Name) and part.value in names for part in walk(node))


def equal_numbers(node: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    """The shape of what is written out, and the number that all of it is; None where they differ, and of several, which
    are written out to be read: `[0.5, 0.5, 0.5]`."""
    if not isinstance(node, (cst.List, cst.Tuple)):
        return ("()", node) if _is_literal(node) else None
    if len(node.elements) > 1:
        return None
    rows = [equal_numbers(element.value) for element in node.elements]
    first = rows[0] if rows else None
    if first is None or any(row is None or row[0] != first[0] or text(row[1]) != text(first[1]) for row in rows):
        return None
    inner = first[0].strip("(),")
    return f"({len(rows)}, {inner})" if inner else f"({len(rows)},)", first[1]


def types_of(node: cst.BaseExpression, model: Model) -> frozenset[str | None]:
    """The types of the numbers that `numbers_given` finds: "int", "float", "bool", or None of what is not known."""
    match node:
        case cst.List() | cst.Tuple():
            return frozenset().union(*(types_of(element.value, model) for element in node.elements))
        case cst.BinaryOperation(left=cst.List() | cst.Tuple() as left):
            return types_of(left, model)
        case cst.UnaryOperation():
            return types_of(node.expression, model)
        case cst.Call(func=cst.Name(value="range")):
            return frozenset(["int"])
    return frozenset([model.value(node).dtype])


def _is_number(node: cst.BaseExpression, model: Model) -> bool:
    return model.value(node).kind is Kind.NUMBER or _is_literal(node)


def looks_like_number(node: cst.CSTNode, model: Model) -> bool:
    """Whether an expression may be a number and nothing in the file treats it as anything else."""
    match node:
        case cst.BinaryOperation(left=left, right=right):
            return all(_is_literal(part) or looks_like_number(part, model) for part in (left, right))
        case cst.Name() | cst.Attribute():
            value, binding = model.value(node), model.binding(node)
            if value.kind is Kind.NUMBER:
                return True
            return value.kind is Kind.UNKNOWN and binding is not None and not _is_taken_apart(binding, model)
        case cst.Subscript():
            return _is_number_of_row(node, model) or _is_place_in_table(node, model)
    return False


def _is_number_of_row(node: cst.Subscript, model: Model) -> bool:
    """`steps[i + 1]` of an array or list of numbers."""
    row = model.value(node.value)
    index = [part.slice for part in node.slice]
    return row.element is not None and row.element.kind is Kind.NUMBER and isinstance(index[0], cst.Index)


def _is_place_in_table(node: cst.Subscript, model: Model) -> bool:
    """`bounds[0][i]`: an element of an element of what nothing says to be a tensor, at places that are numbers."""
    inner = node.value
    tables = (inner, inner.value) if isinstance(inner, cst.Subscript) else ()
    places = [part for row in (node, inner) if isinstance(row, cst.Subscript) for part in row.slice]
    return bool(tables) and (
        all(model.value(table).kind is Kind.UNKNOWN for table in tables)
        and all(isinstance(part.slice, cst.Index) and _is_number(part.slice.value, model) for part in places)
    )


def brings_numbers(call: Call, model: Model, besides: Sequence[cst.BaseExpression] = ()) -> bool:
    """`x.mul_(0.5)`: a method that a tensor made of sizes and numbers keeps being such a tensor through, if it is given
    nothing else `besides`."""
    if call.method is None or not _continues(call.method) or not call.argument("generator").absent:
        return False
    return _of_arguments(call, call.method, model, 0, besides) is not None


def _is_taken_apart(binding: Binding, model: Model) -> bool:
    """Whether a variable has parts, methods or elements, or is called: numbers are just computed with."""
    above = [model.parent(read) for read in binding.reads]
    return binding.called or any(isinstance(node, _TAKING_APART) or getattr(node, "star", "") for node in above)


def _is_given_sizes(call: Call, model: Model) -> bool:
    """Whether `torch.FloatTensor(...)` gets sizes, or nothing. A single list, tuple or array is data, unless it is
    filled over."""
    if any(arg.star == "**" for arg in call.arguments):
        return False
    if has_sizes(call, model):
        return True
    only = call.arguments[0]
    if only.keyword is not None or model.value(only.value).kind is not Kind.UNKNOWN:
        return False
    return (
        _is_filled_over(call.node, model)
        or _is_filled_over_next(call, model)
        or text(only.value) in model.once(_sizes_among_others)
    )


def _sizes_among_others(model: Model) -> frozenset[str]:
    """What a file gives as one of several sizes: `opt.batch` of `torch.FloatTensor(opt.batch, 3)` is no list."""
    calls = (call for call in model.calls_to(*SIZED_CLASSES) if len(call.arguments) > 1)
    return frozenset(text(arg.value) for call in calls for arg in call.arguments if arg.keyword is None)


def _is_filled_over(node: cst.CSTNode, model: Model) -> bool:
    """`x.fill_(1)`, `x.data.normal_()` of what a node gives: whatever it was made of, it keeps the shape alone."""
    above = model.parent(node)
    if isinstance(above, cst.Attribute) and above.attr.value == "data":
        above = model.parent(above)
    return isinstance(above, cst.Attribute) and above.attr.value in _FILLING | _DRAWING


def _is_filled_over_next(call: Call, model: Model) -> bool:
    """Whether the next statement fills the variable that a tensor is put into."""
    inner: cst.CSTNode = call.node
    while isinstance(arg := model.parent(inner), cst.Arg):
        wrapper = model.parent(arg)
        if not isinstance(wrapper, cst.Call) or model.call(wrapper).callee != VARIABLE:
            return False
        inner = wrapper
    match model.parent(inner):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]):
            binding, line = model.binding(target), model.statement(inner)
            body = getattr(model.parent(line), "body", ())
            after = body[body.index(line) + 1 :][:1] if line in body else ()
            reads = binding.reads if binding is not None else ()
            return any(model.statement(read) in after and _is_filled_over(read, model) for read in reads)
    return False


def has_sizes(call: Call, model: Model) -> bool:
    """Whether all arguments of a class of tensors are sizes for sure."""
    if not call.arguments:
        return True
    if any(arg.keyword is not None for arg in call.arguments):
        return [arg.keyword.value for arg in call.arguments if arg.keyword is not None] == ["size"]
    if len(call.arguments) > 1:
        return True
    only = call.arguments[0].value
    value = model.value(only)
    if call.arguments[0].star == "*":
        return not (value.element is not None and value.element.is_(Kind.TENSOR, Kind.ARRAY, Kind.BATCH, Kind.LIST))
    return _is_torch_size(only, model) or (value.kind is Kind.NUMBER and value.dtype == "int")


def _is_torch_size(node: cst.BaseExpression, model: Model) -> bool:
    """`x.size()`, and `x.shape` of what is a tensor: the shape of an array or of a space is data."""
    match node:
        case cst.Attribute(value=owner, attr=cst.Name(value="shape")):
            return model.value(owner).is_tensor
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[]):
            return True
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            parts = (left, right)
            plain = all(_is_torch_size(part, model) or isinstance(part, cst.Tuple) for part in parts)
            return plain and any(_is_torch_size(part, model) for part in parts)
    return False


# -- variables


def _of_variable(node: cst.Name | cst.Attribute, model: Model, depth: int) -> Made | None:
    """What a variable holds where it is read: every write that reaches the place is made of sizes and numbers, or is a
    None, which has no methods."""
    writes = _reaching(node, model)
    found = []
    for write in writes or ():
        if write.kind == "assign" and isinstance(write.value, cst.Name) and write.value.value == "None":
            continue
        part = _of_write(node, write, model, depth)
        if part is None:
            return None
        found.append(part)
    if not found:
        return None
    return _joined(found)


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
    match node:
        case cst.List() | cst.Tuple():
            wanted = slice(None) if place is None else slice(place, place + 1)
            parts = [element.value for element in node.elements[wanted]]
            return _combined(parts, model, depth, Agreement.EXACT, required=max(len(parts), 1))
        case cst.ListComp() | cst.GeneratorExp():
            return made(node.elt, model, depth + 1)
        case cst.Call() if model.call(node).target is not None or model.call(node).foreign is not None:
            return _of_helper(model.call(node), model, depth, elements=True)
        case cst.Name():
            writes = _reaching(node, model)
            if writes is None or len(writes) != 1 or writes[0].value is None or writes[0].unpacked or depth > _DEPTH:
                return None
            inner = _of_elements(writes[0].value, model, depth + 1, place)
            return inner.through(node, writes[0]) if inner is not None else None
    return None


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
