"""Whether an expression is one tensor for sure, or something that only looks like it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import vocabulary as words
from torchlint.semantics.dataflow import hold_the_same, text
from torchlint.semantics.taken_apart import place_of, returned_at
from torchlint.semantics.values import Grad, Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function, Write
    from torchlint.semantics.model import Model

_Maker = tuple[str, "int | None"]
_SEVERAL = re.compile(r"torch\.nn\.(\w*(RNN|LSTM|GRU)|LSTMCell|MultiheadAttention|AdaptiveLogSoftmaxWithLoss)$")
_KEPT_BY_OTHERS_TOO = frozenset(
    """
    to cuda cpu float half double bfloat16 type clone detach contiguous size dim add split index_select pin_memory
    record_stream copy_ item tolist numpy max min sort topk median mode kthvalue cummax cummin std_mean var_mean chunk
    unbind tensor_split hsplit vsplit dsplit svd qr share_memory_ requires_grad_ apply_ map_ where data_ptr backward
    """.split()
)
_PROVING_METHODS = frozenset(
    """
    backward view unsqueeze squeeze permute argmax softmax log_softmax masked_fill gather expand requires_grad_ abs mean
    numel transpose reshape flatten sigmoid
    """.split()
)


def carries(value: Value) -> bool:
    """Whether there is a graph in a value, be it in a part of a container."""
    rest, seen = [value], {id(value)}
    for part in rest:  # it grows while the loop runs: parts are in several containers, as what each round adds to is
        if not part.is_container:
            if part.carries and part.is_(Kind.TENSOR, Kind.UNKNOWN):
                return True
            continue
        inner = [*(part.items or ()), *(each for _, each in part.known_fields)]
        for each in [*inner, part.element] if part.element is not None else inner:
            if id(each) not in seen:
                seen.add(id(each))
                rest.append(each)
    return False


def is_graphless(value: Value) -> bool:
    """Whether there is certainly no graph in a value."""
    if value.is_(Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.DTYPE, Kind.DEVICE, Kind.ARRAY):
        return True
    if value.is_(Kind.TUPLE, Kind.LIST) and value.items is not None:
        return all(map(is_graphless, value.items))
    if value.is_(Kind.TUPLE) and value.element is not None:
        return is_graphless(value.element)
    return value.is_tensor and value.grad is Grad.DETACHED


def is_one_tensor(model: Model, expression: cst.BaseExpression, depth: int = 4) -> bool:
    """Whether an expression is a single tensor for sure, so that `.detach()` on it works.

    What an unknown module or loss returns is taken for a tensor elsewhere; here its use has to prove it.
    """
    value = model.value(expression)
    if value.optional or is_graphless(value):
        return False
    if _is_backpropagated(model, expression) or is_what_trains(model, expression):
        return True
    if not value.is_(Kind.TENSOR) or not value.carries:
        return False
    match expression:
        case cst.BinaryOperation(left=left, right=right):
            return depth > 0 and any(is_one_tensor(model, side, depth - 1) for side in (left, right))
        case cst.UnaryOperation(expression=inner) | cst.Subscript(value=inner):
            return depth > 0 and is_one_tensor(model, inner, depth - 1)
        case cst.Call():
            return _returns_one_tensor(model, model.call(expression), depth)
        case cst.Name() | cst.Attribute():
            binding = model.binding(expression)
            return binding is not None and _holds_one_tensor(model, binding, depth)
    return False


def _returns_one_tensor(model: Model, call: Call, depth: int) -> bool:
    callee = call.callee or ""
    if call.target is not None:
        returned = [node.value for node in call.target.returns if node.value is not None]
        return depth > 0 and bool(returned) and all(is_one_tensor(model, value, depth - 1) for value in returned)
    if callee.startswith("torch.Tensor."):
        if call.method in _KEPT_BY_OTHERS_TOO:
            receiver = call.receiver
            keeps = call.method in ("clone", "contiguous", "to", "cuda", "cpu", "float", "half", "double")
            return keeps and depth > 0 and receiver is not None and is_one_tensor(model, receiver, depth - 1)
        return True
    if callee.startswith("torch.nn.") and callee.rpartition(".")[2][:1].isupper():
        return _SEVERAL.match(callee) is None
    return words.returns_tensor(callee)


def _holds_one_tensor(model: Model, binding: Binding, depth: int) -> bool:
    if binding.methods & _PROVING_METHODS:
        return True
    writes = [write for write in binding.writes if write.kind != "augmented"]
    return bool(writes) and depth > 0 and all(_writes_one_tensor(model, write, depth) for write in writes)


def _writes_one_tensor(model: Model, write: Write, depth: int) -> bool:
    if write.kind != "assign" or write.value is None:
        return False
    if not write.unpacked:
        return is_one_tensor(model, write.value, depth - 1)
    place = place_of(model, write)
    target = model.call(write.value).target if isinstance(write.value, cst.Call) else None
    parts = returned_at(target, place) if target is not None and place is not None else None
    return parts is not None and all(is_one_tensor(model, part, depth - 1) for part in parts)


def is_what_trains(model: Model, expression: cst.BaseExpression) -> bool:
    """Whether a variable holds nothing but results that a function of the file goes back through: a test has its loss
    of `criterion(output, target)`, as the training has."""
    binding = model.binding(expression)
    writes = [write for write in binding.writes if write.kind != "augmented"] if binding is not None else []
    return bool(writes) and all(_maker(model, write) in model.once(_makers_of_losses) for write in writes)


def _makers_of_losses(model: Model) -> frozenset[_Maker]:
    """Those whose result runs `backward()`, which takes one real number, under the only name that it gets."""
    losses = (model.binding(node) for node in _backpropagated(model))
    makers = (_maker(model, loss.writes[0]) for loss in losses if loss is not None and len(loss.writes) == 1)
    return frozenset(maker for maker in makers if maker is not None)


def _backpropagated(model: Model) -> Iterator[cst.BaseExpression]:
    """`x` of `x.backward()` and of `scaler.scale(x).backward()`, and of `optimize(x)` whose function runs that."""
    for call in model.calls:
        if call.method == "backward" and call.receiver is not None:
            scaled = model.call(call.receiver) if isinstance(call.receiver, cst.Call) else None
            is_scaled = scaled is not None and scaled.method == "scale" and len(scaled.arguments) == 1
            if call.argument("gradient", 0).absent:
                yield scaled.arguments[0].value if scaled is not None and is_scaled else call.receiver
            continue
        for name, place in _gone_back_through(model, call):
            given = call.argument(name, place).node
            if given is not None:
                yield given


def _gone_back_through(model: Model, call: Call) -> Iterator[tuple[str, int]]:
    """The parameters, and their places in the call, that the function that is called runs `backward()` of."""
    home, function = (model, call.target) if call.target is not None else model.elsewhere(call) or (model, None)
    if function is None:
        return
    for name in home.once(_parameters_gone_back_through).get(function, ()):
        yield name, function.params.index(name) - (function.cls is not None and not function.is_static)


def _parameters_gone_back_through(model: Model) -> dict[Function, list[str]]:
    """Of functions, the parameters that they run `backward()` of, whatever else they do."""
    found: dict[Function, list[str]] = {}
    for call in model.calls:
        binding = model.binding(call.receiver) if call.method == "backward" and call.receiver is not None else None
        if binding is None or not binding.is_parameter or len(binding.writes) != 1:
            continue
        is_always = call.argument("gradient", 0).absent and not model.guards(call.node)
        if is_always and call.function is binding.scope_function and binding.name in call.function.params:
            found.setdefault(call.function, []).append(binding.name)
    return found


def _maker(model: Model, write: Write) -> _Maker | None:
    """The function or object out of sight that is called, as it is written, and which of its results is taken."""
    if write.kind != "assign" or not isinstance(write.value, cst.Call) or model.call(write.value).target is not None:
        return None
    place = place_of(model, write) if write.unpacked else None
    return None if write.unpacked and place is None else (text(write.value.func), place)


def _is_backpropagated(model: Model, expression: cst.BaseExpression) -> bool:
    """`x.backward()`, `(x / n).backward()`, `scaler.scale(x)` or `accelerator.backward(x)` in the same function."""
    if not isinstance(expression, (cst.Name, cst.Attribute, cst.Subscript)):
        return False
    binding = model.binding(expression)
    for call in model.function(expression).calls:
        if call.method not in ("backward", "scale", "manual_backward"):
            continue
        for given in [call.receiver, *(arg.value for arg in call.node.args)]:
            while isinstance(given, cst.BinaryOperation) and isinstance(given.operator, cst.Divide):
                given = given.left
            if type(given) is not type(expression):
                continue
            if binding is None and text(given) == text(expression):
                return True
            if binding is not None and model.binding(given) is binding and hold_the_same(model, given, expression):
                return True
    return False
