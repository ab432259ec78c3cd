"""Which parts of an expression bring an autograd graph into it, and where that graph comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.mem.backward_pass import freeing_passes, is_term_of_loss
from torchlint.analyses.modules.parameter_free import is_parameter_free_pass
from torchlint.analyses.single_tensor import carries, is_graphless, is_one_tensor
from torchlint.semantics import vocabulary as words
from torchlint.semantics.dataflow import text, upstream, writes_reaching
from torchlint.semantics.taken_apart import place_of, returned_at
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Loop, Write
    from torchlint.semantics.model import Model


def carriers(model: Model, expression: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The smallest parts of an expression whose graphs it holds."""
    match expression:
        case cst.Tuple() | cst.List() | cst.Set():
            for element in expression.elements:
                yield from carriers(model, element.value)
        case cst.Dict():
            for entry in expression.elements:
                yield from carriers(model, entry.value)
        case cst.ListComp() | cst.SetComp() | cst.GeneratorExp():
            yield from carriers(model, expression.elt)
        case cst.DictComp():
            yield from carriers(model, expression.value)
        case cst.IfExp():
            for branch, other in ((expression.body, expression.orelse), (expression.orelse, expression.body)):
                if not _is_what_is_no_tensor(branch, other, expression.test):
                    yield from carriers(model, branch)
        case _:
            if _counts_parts(model, expression) or _is_left_with_others(model, expression):
                return
            if carries(model.value(expression)):
                yield _smallest(model, expression)
            elif is_term_of_loss(model, expression):
                yield expression
            elif (operand := _backpropagated_operand(model, expression)) is not None:
                yield operand


def _counts_parts(model: Model, expression: cst.BaseExpression) -> bool:
    """Python's `sum(lengths)` of one of the results of a network out of sight: those that it takes are in a list."""
    match expression:
        case cst.Call(func=cst.Name("sum" | "max" | "min" | "len"), args=[cst.Arg(value=cst.Name() as whole)]):
            binding = model.binding(whole) if model.value(whole).is_tensor else None
            return binding is not None and all(write.unpacked for write in binding.writes)
    return False


def _is_left_with_others(model: Model, expression: cst.BaseExpression) -> bool:
    """`spent`, or `hits[step]`, of `hits, step, spent, *_ = model(x)`: a network out of sight that returns so much
    returns numbers, too, and nothing that is asked of this one tells that it is a tensor."""
    whole = expression.value if isinstance(expression, cst.Subscript) else expression
    binding = model.binding(whole) if isinstance(whole, cst.Name) else None
    if binding is None or any(map(words.is_tensor_method, binding.methods)):
        return False
    return any(_is_taken_with_star(model, write) for write in writes_reaching(model, binding, whole))


def _is_taken_with_star(model: Model, write: Write) -> bool:
    call = model.call(write.value) if write.unpacked and isinstance(write.value, cst.Call) else None
    if call is None or not call.is_forward or call.target is not None or model.elsewhere(call) is not None:
        return False
    above = model.parent(write.target)
    together = model.parent(above) if above is not None else None
    if not isinstance(together, (cst.Tuple, cst.List)):
        return False
    return any(isinstance(element, cst.StarredElement) for element in together.elements)


def _is_what_is_no_tensor(branch: cst.BaseExpression, other: cst.BaseExpression, test: cst.BaseExpression) -> bool:
    """The last `x` of `x.item() if isinstance(x, Tensor) else x`."""
    name = text(branch)
    asks = isinstance(branch, cst.Name) and isinstance(test, (cst.Call, cst.UnaryOperation)) and _mentions(test, name)
    return asks and isinstance(other, cst.Call) and _mentions(other, name)


def _mentions(expression: cst.BaseExpression, name: str) -> bool:
    return any(isinstance(node, cst.Name) and node.value == name for node in walk(expression))


def _backpropagated_operand(model: Model, expression: cst.BaseExpression) -> cst.BaseExpression | None:
    """`loss` of `loss * n`, where gradients may be on or off, and a backward pass of the same function starts from the
    loss: where that runs they are on, for both."""
    match expression:
        case cst.BinaryOperation(left=left, right=right) if model.grad_enabled(expression) is None:
            operands = [left, right]
        case _:
            return None
    carrying = [operand for operand in operands if isinstance(operand, cst.Name) and carries(model.value(operand))]
    binding = model.binding(carrying[0]) if len(carrying) == 1 else None
    if binding is None or not any(True for _ in freeing_passes(model, carrying[0])):
        return None
    around = _contexts(model, expression)
    return carrying[0] if all(_contexts(model, write.target) == around for write in binding.writes) else None


def _contexts(model: Model, node: cst.CSTNode) -> list[cst.CSTNode]:
    """The `with` statements around a node."""
    return [outer for outer in model.ancestors(node) if isinstance(outer, cst.With)]


def _smallest(model: Model, expression: cst.BaseExpression) -> cst.BaseExpression:
    """Down to the operand that brings the graph in, where there is just one and it is a tensor."""
    while True:
        match expression:
            case cst.BinaryOperation(left=left, right=right):
                sides = [left, right]
            case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
                sides = [inner]
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=method), value=receiver)):
                if not words.is_tensor_method(method) or method.endswith("_"):
                    return expression
                sides = [receiver, *(arg.value for arg in expression.args)]
            case _:
                return expression
        bringing = [side for side in sides if not is_graphless(model.value(side))]
        if len(bringing) != 1 or not is_one_tensor(model, bringing[0]):
            return expression
        expression = bringing[0]


def is_freed_inside(model: Model, graph: cst.BaseExpression, depth: int = 3) -> bool:
    """Whether an expression calls a function of the project that has sent what it returns backward already."""
    home, parts = _returned(model, graph)
    if not depth or parts == [graph]:
        return False
    return bool(parts) and all(
        any(True for _ in freeing_passes(home, part)) or is_freed_inside(home, part, depth - 1) for part in parts
    )


def returned_by(model: Model, expression: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The parts with a graph of what the function of this file returns that an expression calls, or got a value from;
    of other expressions, the expression.
    """
    home, parts = _returned(model, expression)
    return parts if home is model else [expression]


def _returned(model: Model, expression: cst.BaseExpression) -> tuple[Model, list[cst.BaseExpression]]:
    """The same of a function of any file of the project, and the model of that file."""
    called, place = _only_value(model, expression)
    call = model.call(called) if isinstance(called, cst.Call) else None
    entered = (model, call.target) if call is not None and call.target is not None else None
    entered = model.elsewhere(call) if entered is None and call is not None else entered
    values = returned_at(entered[1], place) if entered is not None else None
    if entered is None or values is None:
        return model, [expression]
    return entered[0], [part for value in values for part in carriers(entered[0], value)]


def _only_value(model: Model, expression: cst.BaseExpression) -> tuple[cst.BaseExpression, int | None]:
    """What the only assignment to a variable that it can hold there gives it, and which of its elements; other
    expressions stand for themselves."""
    binding = model.binding(expression)
    writes = binding.writes if binding is not None else []
    if binding is not None and len(writes) > 1:
        writes = writes_reaching(model, binding, expression)
    if len(writes) != 1:
        return expression, None
    write = writes[0]
    if write.kind != "assign" or write.value is None:
        return expression, None
    if not write.unpacked:
        return write.value, None
    place = place_of(model, write)
    return (write.value, place) if place is not None else (expression, None)


def depends_on_forward(model: Model, graph: cst.BaseExpression, loop: Loop | None) -> bool:
    """Whether the graph comes from a model that ran in the loop, or in the function where there is none."""
    if _is_of_nothing_to_train(model, graph):
        return False
    sources: list[cst.CSTNode] = [graph]
    for binding in upstream(model, graph, inside=loop):
        for write in binding.writes:
            inside = loop is None or (write.loop is not None and loop in write.loop.around())
            if inside and write.value is not None and not _runs_before(model, write, loop):
                sources.append(write.value)
    return any(_runs_model(model, node) for source in sources for node in walk(source))


def _is_of_nothing_to_train(model: Model, graph: cst.BaseExpression, depth: int = 4) -> bool:
    """Whether a module without parameters has made it, of what is not known to have a graph: then it has none."""
    home, parts = _returned(model, graph)
    if parts != [graph]:
        return bool(parts) and depth > 0 and all(_is_of_nothing_to_train(home, part, depth - 1) for part in parts)
    made, _ = _only_value(model, graph)
    while isinstance(made, (cst.Call, cst.Subscript)):
        call = model.call(made) if isinstance(made, cst.Call) else None
        if call is not None and call.is_forward:
            given = [arg.value for arg in call.arguments if carries(model.value(arg.value))]
            return is_parameter_free_pass(model, call) and (
                not given or (depth > 0 and all(_is_of_nothing_to_train(model, arg, depth - 1) for arg in given))
            )
        method = call.receiver if call is not None and words.is_tensor_method(call.method or "") else None
        made = made.value if isinstance(made, cst.Subscript) else method  # type: ignore[assignment]
    is_other = isinstance(made, cst.Name) and made is not graph and depth > 0
    return is_other and _is_of_nothing_to_train(model, made, depth - 1)


def _runs_before(model: Model, write: Write, loop: Loop | None) -> bool:
    """`for part in net(x)`: the model has run, once, when the loop begins; a generator may run it again and again."""
    if write.kind != "for" or write.loop is not loop or not isinstance(write.value, cst.Call):
        return False
    call = model.call(write.value)
    entered = call.target or call.foreign
    return call.is_forward and not (entered is not None and entered.is_generator)


def _runs_model(model: Model, node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.Call):
        return False
    call = model.call(node)
    if is_parameter_free_pass(model, call):
        return False
    entered = [call.target] if call.target is not None else call.alternatives
    return call.is_forward or any(model.effects(function).forwards for function in entered)
