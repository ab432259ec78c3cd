"""Passes that take gradients and keep their graph although nothing goes back through it again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import are_alternatives
from torchlint.analyses.fate import Fate, fate_of
from torchlint.analyses.fate_words import FILLING_METHODS
from torchlint.analyses.graph_parts import GraphParts, is_leaf
from torchlint.analyses.mem.backward_pass import backpropagated
from torchlint.analyses.mem.trial_runs import is_test_case
from torchlint.analyses.single_tensor import is_graphless
from torchlint.finding import Confidence
from torchlint.semantics import vocabulary as words
from torchlint.semantics.dataflow import given_to, upstream, writes_reaching
from torchlint.semantics.tree import last_name, walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Argument, Binding, Call, Function, Loop
    from torchlint.semantics.model import Model

_GOING_BACK = re.compile(
    r"(?i)grad|penalt|backward|loss|step|update|train|optim|regular|attack|perturb|scale|closure|hessian|jvp|vjp"
    r"|influence|critic|fit"
)
_TAKING = ("torch.autograd.grad", "torch.autograd.functional.", "torch.func.")
_DATA = re.compile(r"(?i)batch|data|sample|input|target|label|arg|conf|cfg|^opts?$|option|setting|flag|^x|^y")
_GOING_ON = Fate.BACKWARD | Fate.ESCAPES
_DEPTH = 3
_LEARNERS = re.compile(r"(?i)^self$|agent|model|net|policy|learn|trainer|opti|critic|discr|gener|actor")


@dataclass(frozen=True, slots=True)
class Retained:
    """A backward pass, or `torch.autograd.grad`, with `retain_graph=True` whose graph nothing needs any more."""

    call: Call
    argument: cst.Arg
    source: cst.BaseExpression
    loop: Loop | None
    confidence: Confidence


def needlessly_retained(model: Model) -> Iterator[Retained]:
    """Backward passes that keep a graph through which none goes again, in source order."""
    for call in model.calls:
        position = _position(call)
        if position is None:
            continue
        retain, create = call.argument("retain_graph", position), call.argument("create_graph", position + 1)
        source = backpropagated(call) if call.is_backward else call.argument("outputs", 0).node
        if source is None or retain.arg is None or not _is_true(retain) or not _is_off(create):
            continue
        if is_test_case(model, call.function) or _is_given_by_others(model, source):
            continue
        flag = model.binding(retain.node) if retain.node is not None else None
        if flag is not None and flag.is_parameter:
            continue  # the callers that ask for it know what they go back through
        loop = next(iter(call.loops()), None)
        if loop is not None and loop.is_comprehension:
            continue  # what it runs over is there before, and may have one graph
        if loop is None and call.function.is_module and _is_followed(model, call):
            continue  # a demonstration: the next cell or line goes back once more
        if loop is not None and _is_there_before(model, source, loop):
            continue
        inputs = _inputs(model, call)
        parts = GraphParts(model, source, loop, inputs)
        if not call.is_backward and (parts.handed_in or _may_come_with_graph(model, source, inputs)):
            continue  # the callers may have it, and go back through it once more
        if _ends_here(model, call, parts):
            known = model.value(source).is_tensor
            yield Retained(call, retain.arg, source, loop, Confidence.CERTAIN if known else Confidence.LIKELY)


def _position(call: Call) -> int | None:
    """The place of `retain_graph` among the arguments of a call that takes gradients."""
    if call.callee == "torch.autograd.grad":
        return 3
    if not call.is_backward:
        return None
    return 2 if call.callee == "torch.autograd.backward" else 1


def _is_given_by_others(model: Model, source: cst.BaseExpression) -> bool:
    """Whether the pass begins with what a function is given that is handed on, as to a timer, which calls it again and
    again."""
    binding = model.binding(source) if isinstance(source, cst.Name) else None
    return binding is not None and binding.is_parameter and binding.scope_function.passed_around


def _is_there_before(model: Model, source: cst.BaseExpression, loop: Loop) -> bool:
    """`u[i]`, or `u.sum()` where the loop is over parts, of what was computed before the loop: each iteration goes back
    through the same graph."""
    if isinstance(source, cst.UnaryOperation):
        return _is_there_before(model, source.expression, loop)
    if isinstance(source, cst.BinaryOperation):
        return any(_is_there_before(model, side, loop) for side in (source.left, source.right))
    node: cst.BaseExpression | None = source
    while isinstance(node, (cst.Subscript, cst.Call)):
        given = node.args if isinstance(node, cst.Call) and model.call(node).method not in ("to", "view") else ()
        if any(model.value(arg.value).kind is not Kind.NUMBER for arg in given):
            return False  # it is computed from what it is given, too
        node = node.value if isinstance(node, cst.Subscript) else model.call(node).receiver
    binding = model.binding(node) if isinstance(node, cst.Name) else None
    if node is None or binding is None or (binding.is_parameter and binding.scope_function is not loop.function):
        return False
    made = writes_reaching(model, binding, node)
    inside = [write for write in made if write.loop is not None and loop in write.loop.around()]
    return bool(made) and all(write.kind == "for" and write.loop is loop for write in inside)


def _inputs(model: Model, call: Call) -> frozenset[Binding]:
    """What `torch.autograd.grad` takes the gradient of: behind that it does not go back."""
    given = call.argument("inputs", 1).node if not call.is_backward else None
    parts = [element.value for element in given.elements] if isinstance(given, (cst.List, cst.Tuple)) else [given]
    bindings = (model.binding(part) for part in parts if part is not None)
    return frozenset(binding for binding in bindings if binding is not None)


def _may_come_with_graph(model: Model, source: cst.BaseExpression, inputs: frozenset[Binding]) -> bool:
    """Whether a part of what gradients are taken of may have been computed from the inputs elsewhere: inputs that are
    made on the spot are in nothing that is handed in.
    """
    if _comes_of_unknown_function(model, source, inputs):
        return True
    holders = [holder for binding in inputs for holder in _holders(model, binding)]
    if any(holder in upstream(model, source) for holder in holders):
        return True  # it may keep what was computed of its parts: a distribution keeps its probabilities
    if not holders and not any(binding.is_parameter or binding.cls is not None for binding in inputs):
        return not inputs
    return any(binding.is_parameter or binding.cls is not None for binding in _held(model, source, inputs))


def _comes_of_unknown_function(model: Model, source: cst.BaseExpression, inputs: frozenset[Binding]) -> bool:
    """Whether a function that was handed in, or kept for a backward pass, computes from inputs that were there before:
    it may hold what was computed of them already, and others go back through that."""
    made = [write.value for binding in inputs for write in binding.writes if write.value is not None]
    if made and all(is_leaf(model, value) for value in made):
        return False
    held = {binding for binding in _held(model, source, inputs) if binding.cls is None}
    values = [source, *(write.value for binding in held for write in binding.writes if write.value is not None)]
    names = (node for value in values for node in walk(value) if isinstance(node, cst.Name))
    return any(_is_function_handed_in(model, name) for name in names)


def _is_function_handed_in(model: Model, name: cst.Name) -> bool:
    """`f`, which is called, where it is a parameter, or an attribute of one: `f, x = ctx.f, ctx.x`."""
    binding = model.binding(name)
    if binding is None or not binding.called or model.value(name).kind is not Kind.UNKNOWN:
        return False
    taken = [write.value for write in binding.writes if isinstance(write.value, (cst.Attribute, cst.Tuple))]
    roots = (model.binding(node) for value in taken for node in walk(value) if isinstance(node, cst.Name))
    return binding.is_parameter or any(root is not None and root.is_parameter for root in roots)


def _held(model: Model, source: cst.BaseExpression, inputs: frozenset[Binding]) -> Iterator[Binding]:
    """The variables that a value is made of, but for the functions that are called and the inputs: `fx` and `total` of
    `total.mean()` with `total = fx.sum()`, also where an enclosing function made it, or a loop takes it apart."""
    seen = set(inputs)
    work = [source]
    for expression in work:  # it grows while the loop runs
        called = {node.func for node in walk(expression) if isinstance(node, cst.Call)}
        for node in walk(expression):
            binding = (
                model.binding(node) if isinstance(node, (cst.Name, cst.Attribute)) and node not in called else None
            )
            if binding is None or binding in seen or is_graphless(model.value(node)):
                continue
            seen.add(binding)
            yield binding
            if binding.cls is None:
                work += [write.value for write in binding.writes if write.value is not None]


def _holders(model: Model, binding: Binding) -> list[Binding]:
    """`distrib` of `params = params_of(distrib)`, where it is handed in."""
    made = [write.value for write in binding.writes if isinstance(write.value, cst.Call)]
    if any(is_leaf(model, value) or is_graphless(model.value(value)) for value in made):
        return []
    given = (model.binding(arg.value) for value in made for arg in value.args if isinstance(arg.value, cst.Name))
    return [holder for holder in given if holder is not None and holder.is_parameter]


def _is_followed(model: Model, call: Call) -> bool:
    """Whether any other call of the file takes gradients."""
    others = (other for other in model.calls if other is not call)
    return any(other.is_backward or (other.callee or "").startswith(_TAKING) for other in others)


def _is_true(argument: Argument) -> bool:
    return argument.given and argument.value.constant is True


def _is_off(argument: Argument) -> bool:
    return argument.absent or (argument.given and argument.value.constant is False)


def _ends_here(model: Model, call: Call, parts: GraphParts, depth: int = _DEPTH) -> bool:
    """Whether a graph is not used again after a backward pass, or after the call of a function that runs it."""
    if parts.reused or _is_needed(model, call, parts):
        return False
    handed = [(parameter, caller) for parameter in parts.handed_in for caller in parameter.scope_function.callers]
    if handed and not depth:
        return False
    return all(_ends_with(model, caller, parameter, depth) for parameter, caller in handed)


def _ends_with(model: Model, caller: Call, parameter: Binding, depth: int) -> bool:
    given = next(given_to(caller, parameter), None)
    loop = next((loop for loop in caller.loops() if not loop.is_comprehension), None)
    return given is not None and _ends_here(model, caller, GraphParts(model, given, loop), depth - 1)


def _is_needed(model: Model, call: Call, parts: GraphParts) -> bool:
    """Whether the function goes back through a part of the graph again, or lets one go where others may."""
    function = call.function
    start = model.span(call.node)[1]
    for other in function.calls:
        if other is call or model.span(other.node)[1] <= start:
            continue
        if _is_harmless(model, other) or are_alternatives(model, call.node, other.node):
            continue
        if any(_shares(model, node, parts) for node in _given(other)) or _has_same_owner(model, call, other):
            return True
    if _is_stored(model, function, parts):
        return True
    if any(other.is_optimizer_step and model.span(other.node)[0] > start for other in function.calls):
        return False  # the parameters have changed, and with them what the returned graph was computed from
    returned = (node.value for node in function.returns if node.value is not None)
    return any(_shares(model, value, parts) for value in returned) and not _ends_with_callers(model, function)


def _has_same_owner(model: Model, call: Call, other: Call) -> bool:
    """Whether two passes start from parts of one thing that was handed in, which has the graph of both."""
    if not (call.is_backward and other.is_backward):
        return False
    return not _owners(model, backpropagated(call)).isdisjoint(_owners(model, backpropagated(other)))


def _owners(model: Model, source: cst.CSTNode | None) -> set[Binding]:
    """`output` of `loss.sum()` with `loss = output.encoder_loss`, where that is a parameter, and no data."""
    found: set[Binding] = set()
    seen: set[Binding] = set()
    work = [source] if source is not None else []
    for expression in work:  # it grows while the loop runs
        for node in walk(expression):
            binding = model.binding(node) if isinstance(node, cst.Name) else None
            if binding is None or binding in seen or is_graphless(model.value(node)):
                continue
            if model.value(node).kind in (Kind.MODULE, Kind.OPTIMIZER):
                continue
            is_part = isinstance(model.parent(node), (cst.Attribute, cst.Subscript))
            if binding.is_parameter and is_part and not _DATA.search(binding.name) and not _is_object(binding):
                found.add(binding)
            elif not binding.is_parameter and binding.cls is None:
                seen.add(binding)
                work += [write.value for write in binding.writes if write.value is not None]
    return found


def _is_object(binding: Binding) -> bool:
    """`self`"""
    function = binding.scope_function
    return function.cls is not None and function.params[:1] == [binding.name]


def _given(call: Call) -> list[cst.BaseExpression]:
    given = [arg.value for arg in call.arguments]
    return [call.receiver, *given] if call.is_backward and call.receiver is not None else given


def _is_harmless(model: Model, call: Call) -> bool:
    """A call that only looks at the tensors it is given, or computes more from them: what does is asked in its turn."""
    callee = call.callee or ""
    if call.is_backward or callee.startswith(("torch.autograd", "torch.func")):
        return False
    if call.target is not None or call.targets_class is not None:
        effects = model.effects(call)
        return not effects.backward and not effects.gradients
    package = callee.partition(".")[0]
    if package in ("torch", "torchvision", *words.HARMLESS_PACKAGES) or call.is_forward:
        return True
    if call.method == "update":
        return _LEARNERS.search(last_name(call.receiver)) is None
    return _GOING_BACK.search(callee or last_name(call.node.func)) is None or call.value.is_tensor


def _shares(model: Model, expression: cst.BaseExpression, parts: GraphParts) -> bool:
    if is_graphless(model.value(expression)) or model.value(expression).kind in (Kind.MODULE, Kind.OPTIMIZER):
        return False
    return bool(GraphParts(model, expression, None).writes & parts.writes)


def _is_stored(model: Model, function: Function, parts: GraphParts) -> bool:
    """Whether a part of the graph is kept in an attribute or a global, and another function runs a backward pass."""
    if not any(call.function is not function and call.is_backward for call in model.calls):
        return False
    for target in parts.writes:
        binding = model.binding(target)
        if binding is not None and (binding.cls is not None or binding.shared):
            return True
    for node in model.nodes_of(cst.Assign):
        if model.function(node) is function and isinstance(node, cst.Assign):
            kept = [target.target for target in node.targets if isinstance(target.target, cst.Attribute)]
            if kept and _shares(model, node.value, parts):
                return True
    return any(_is_put_by(model, call, parts) for call in function.calls)


def _is_put_by(model: Model, call: Call, parts: GraphParts) -> bool:
    """`self.log_probs.append(log_prob)`"""
    if call.method not in FILLING_METHODS or not isinstance(call.receiver, cst.Attribute):
        return False
    return any(_shares(model, arg.value, parts) for arg in call.arguments)


def _ends_with_callers(model: Model, function: Function) -> bool:
    """Whether no caller of the function can send what it returns backward once more."""
    if function.passed_around and not _is_closure(model, function):
        return False  # an optimizer reads the number
    if not function.callers and not function.passed_around:
        return False
    for call in function.callers:
        above = model.parent(call.node)
        if isinstance(above, cst.Expr):
            continue
        target = above.targets[0].target if isinstance(above, cst.Assign) else None
        if isinstance(above, cst.AugAssign):
            target = above.target
        names = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else [target]
        bindings = [model.binding(name) if name is not None else None for name in names]
        if any(binding is None or fate_of(model, binding) & _GOING_ON for binding in bindings):
            return False
    return True


def _is_closure(model: Model, function: Function) -> bool:
    """Whether a function is handed to nothing but the step of an optimizer, wherever it is called besides."""
    steps = [call for call in model.calls if call.is_optimizer_step and function in call.passes]
    handed = {arg.value for call in steps for arg in call.arguments if isinstance(arg.value, cst.Name)}
    asked = handed | {call.node.func for call in function.callers}
    bindings = {model.binding(name) for name in handed}
    return bool(handed) and all(binding is not None and asked.issuperset(binding.reads) for binding in bindings)
