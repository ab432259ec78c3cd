"""What outlives an iteration although nobody sends it backward: graphs kept by containers and running sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import vocabulary as words
from torchlint.semantics.fate import Fate, Tracer, parameter_of, upstream
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Grad, Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function, Loop
    from torchlint.semantics.model import Model


class Way(Enum):
    APPEND = "append"  # a container holds one more
    SUM = "sum"  # a running sum is one term longer
    BEST = "best"  # the best value so far is replaced


@dataclass(frozen=True, slots=True)
class Retention:
    """`node` is the statement or call that keeps; `graphs` are the smallest expressions whose graphs it keeps.

    `freed`: a backward pass of the same iteration frees the buffers of the graph, its nodes stay.
    `detachable`: all of `graphs` are known to be single tensors.
    """

    way: Way
    node: cst.CSTNode
    holder: cst.BaseExpression
    graphs: tuple[cst.BaseExpression, ...]
    freed: bool
    detachable: bool


@dataclass(frozen=True, slots=True)
class _Candidate:
    way: Way
    node: cst.CSTNode
    holder: cst.BaseExpression
    kept: cst.BaseExpression


def retentions(model: Model, *ways: Way) -> Iterator[Retention]:
    """Every place of the file that keeps a graph in one of the given ways, in source order."""
    judge = _Judge(model)
    for candidate in _candidates(model):
        if candidate.way in ways:
            yield from judge.verdicts(candidate)


# -- candidates ------------------------------------------------------------------------------------------------------

_CONTAINER_METHODS = {"append": 0, "appendleft": 0, "add": 0, "extend": 0, "insert": 1}


def _candidates(model: Model) -> Iterator[_Candidate]:
    for node in walk(model.module):
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=method), value=holder)):
                place = _CONTAINER_METHODS.get(method)
                if place is not None and len(node.args) == place + 1 and not node.args[place].star:
                    yield _Candidate(Way.APPEND, node, holder, node.args[place].value)
            case cst.AugAssign(operator=cst.AddAssign() | cst.SubtractAssign()):
                yield _Candidate(_way_of_sum(node.value), node, node.target, node.value)
            case cst.Assign(targets=[cst.AssignTarget(target=target)]):
                yield from _assigned(model, node, target)


def _way_of_sum(added: cst.BaseExpression) -> Way:
    return Way.APPEND if isinstance(added, (cst.List, cst.ListComp)) else Way.SUM


def _assigned(model: Model, node: cst.Assign, target: cst.BaseAssignTargetExpression) -> Iterator[_Candidate]:
    if not isinstance(target, (cst.Name, cst.Attribute, cst.Subscript)):
        return
    if isinstance(node.value, (cst.ListComp, cst.DictComp, cst.SetComp)):
        yield _Candidate(Way.APPEND, node, target, node.value)
    terms = list(_terms(node.value))
    same = [term for term in terms if _is_previous(model, term, target)]
    if len(same) == 1 and len(terms) > 1:
        for term in terms:
            if term is not same[0]:
                yield _Candidate(_way_of_sum(term), node, target, term)
    elif not same and _is_best_so_far(model, node, target):
        yield _Candidate(Way.BEST, node, target, node.value)


def _terms(expression: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
            stack += [node.right, node.left]
        else:
            yield node


def _is_previous(model: Model, term: cst.BaseExpression, target: cst.BaseExpression) -> bool:
    """Whether a term is the old value of the target, weighted or not."""
    while isinstance(term, cst.BinaryOperation) and isinstance(term.operator, (cst.Multiply, cst.Divide)):
        sides = (term.left, term.right)
        inner = [side for side in sides if not model.value(side).is_(Kind.NUMBER) or _is_same(model, side, target)]
        if len(inner) != 1:
            return any(_is_same(model, side, target) for side in sides)
        term = inner[0]
    return _is_same(model, term, target)


def _is_same(model: Model, a: cst.BaseExpression, b: cst.BaseExpression) -> bool:
    if isinstance(a, cst.Call) and isinstance(b, cst.Subscript):  # d[k] = d.get(k, 0) + x
        func = a.func
        return isinstance(func, cst.Attribute) and func.attr.value == "get" and _is_same(model, func.value, b.value)
    return type(a) is type(b) and model.code(a) == model.code(b)


def _is_best_so_far(model: Model, node: cst.Assign, target: cst.BaseExpression) -> bool:
    statement = model.statement(node)
    guard = next((outer for outer in model.ancestors(statement) if isinstance(outer, cst.If)), None)
    if guard is None:
        return False
    new, old = model.code(node.value), model.code(target)
    for test in walk(guard.test):
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            operator = test.comparisons[0].operator
            sides = {model.code(test.left), model.code(test.comparisons[0].comparator)}
            if isinstance(operator, (cst.LessThan, cst.GreaterThan, cst.LessThanEqual, cst.GreaterThanEqual)):
                return sides == {new, old}
    return False


# -- verdicts --------------------------------------------------------------------------------------------------------


class _Judge:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._tracer = Tracer(model)

    def verdicts(self, candidate: _Candidate) -> Iterator[Retention]:
        model = self._model
        graphs = list(carriers(model, candidate.kept))
        if not graphs or model.grad_enabled(candidate.node) is False or self._ends_with_iteration(candidate):
            return
        if candidate.way is Way.SUM and self._is_recurrence(candidate):
            return
        fed = [graph for graph in graphs if self._parameters(graph)]
        if fed:
            yield from self._where_fed(candidate, fed)
        graphs = [graph for graph in graphs if graph not in fed]
        if graphs:
            freed = all(is_freed(model, graph) for graph in graphs)
            if self._is_kept(candidate, freed):
                yield self._retention(candidate, candidate.node, graphs, freed)

    def _retention(
        self, candidate: _Candidate, node: cst.CSTNode, graphs: list[cst.BaseExpression], freed: bool
    ) -> Retention:
        detachable = all(is_one_tensor(self._model, graph) for graph in graphs)
        return Retention(candidate.way, node, candidate.holder, tuple(graphs), freed, detachable)

    def _is_kept(self, candidate: _Candidate, freed: bool) -> bool:
        fate = self._fate(candidate)
        if Fate.BACKWARD in fate:
            return False
        return freed or (Fate.ESCAPES not in fate and self._grows(candidate))

    def _grows(self, candidate: _Candidate) -> bool:
        """Whether an iteration makes a graph of its own: it runs a model, or a backward pass."""
        loop = _loop(self._model, candidate.node)
        if isinstance(candidate.kept, (cst.ListComp, cst.DictComp, cst.SetComp)):
            loop = next((inner for inner in self._model.loops if inner.node is candidate.kept.for_in), loop)
        where = loop if loop is not None else self._model.function(candidate.node)
        effects = self._model.effects(where)
        return bool(effects.forwards or effects.backward)

    def _fate(self, candidate: _Candidate) -> Fate:
        binding = root(self._model, candidate.holder)
        if binding is None:
            return Fate.ESCAPES
        fate = self._tracer.of_binding(binding, written_at=candidate.node)
        if binding.is_parameter and candidate.way is Way.APPEND:
            fate |= self._fate_at_callers(binding)
        return fate

    def _fate_at_callers(self, parameter: Binding) -> Fate:
        """A list that was handed in lives on where it came from."""
        fate = Fate.NONE
        sources = [
            source for call in parameter.scope_function.callers for source in _given(self._model, call, parameter)
        ]
        for source in sources:
            binding = root(self._model, source)
            fate |= Fate.ESCAPES if binding is None else self._tracer.of_binding(binding)
        return fate if sources else Fate.ESCAPES

    # -- where the graph comes in through a parameter

    def _parameters(self, graph: cst.BaseExpression) -> list[Binding]:
        """Parameters of the surrounding function through which the graph of an expression came in."""
        found = []
        for node in walk(graph):
            binding = self._model.binding(node) if isinstance(node, cst.Name) else None
            if binding is not None and all(write.kind == "parameter" for write in binding.writes):
                if carries(self._model.value(node)) and not is_freed(self._model, node):
                    found.append(binding)
        return found

    def _where_fed(self, candidate: _Candidate, graphs: list[cst.BaseExpression]) -> Iterator[Retention]:
        """The helper only keeps what it is given, so the call that gives it a graph is the place to mend."""
        for parameter in dict.fromkeys(found for graph in graphs for found in self._parameters(graph)):
            for call in parameter.scope_function.callers:
                for given in _given(self._model, call, parameter):
                    fed = list(carriers(self._model, given))
                    freed = bool(fed) and all(is_freed(self._model, graph) for graph in fed)
                    enabled = self._model.grad_enabled(call.node) is not False
                    if fed and enabled and not self._parameters(fed[0]) and self._is_kept(candidate, freed):
                        yield self._retention(candidate, call.node, fed, freed)

    # -- what is gone when the iteration is over

    def _ends_with_iteration(self, candidate: _Candidate) -> bool:
        model = self._model
        binding = root(model, candidate.holder)
        if binding is None:
            return True
        loop = _loop(model, candidate.node)
        if loop is None:
            if isinstance(candidate.kept, (cst.ListComp, cst.DictComp, cst.SetComp)):
                return False
            function = model.function(candidate.node)
            handed_in = binding.is_parameter and candidate.way is Way.APPEND
            return binding.cls is None and binding.scope_function is function and not handed_in
        return any(self._resets(candidate, node, loop) for node in self._resetting_nodes(candidate, binding))

    def _resetting_nodes(self, candidate: _Candidate, binding: Binding) -> Iterator[cst.CSTNode]:
        for write in binding.writes:
            if write.statement is self._model.statement(candidate.node) or write.kind in ("augmented", "parameter"):
                continue
            if write.value is None or all(self._model.binding(node) is not binding for node in walk(write.value)):
                yield write.statement
        for read in binding.reads:
            parent = self._model.parent(read)
            if isinstance(parent, cst.Attribute) and parent.attr.value == "clear":
                yield read
            if isinstance(parent, cst.Subscript) and isinstance(self._model.parent(parent), cst.Del):
                yield read

    def _resets(self, candidate: _Candidate, node: cst.CSTNode, loop: Loop) -> bool:
        """Whether a node that empties the holder runs whenever the candidate does, once per iteration of the loop."""
        if loop.node not in self._model.ancestors(node):
            return False
        here = {(guard.node, guard.branch) for guard in self._model.guards(candidate.node, inside=loop)}
        return all((guard.node, guard.branch) in here for guard in self._model.guards(node, inside=loop))

    def _is_recurrence(self, candidate: _Candidate) -> bool:
        """x = x + f(x): the next state of something, not a sum of terms."""
        binding = root(self._model, candidate.holder)
        loop = _loop(self._model, candidate.node)
        return binding in upstream(self._model, candidate.kept, inside=loop)


def _given(model: Model, call: Call, parameter: Binding) -> Iterator[cst.BaseExpression]:
    for arg in call.node.args:
        if parameter_of(call, arg) is parameter:
            yield arg.value


def _loop(model: Model, node: cst.CSTNode) -> Loop | None:
    return next((loop for loop in model.loops_around(node) if not loop.is_comprehension), None)


def root(model: Model, holder: cst.CSTNode) -> Binding | None:
    """The variable or attribute of self that an object is reached through: `logs` of `logs["train"][0]`."""
    while True:
        binding = model.binding(holder)
        if binding is not None:
            return binding
        match holder:
            case cst.Subscript() | cst.Attribute():
                holder = holder.value
            case cst.Call(func=cst.Attribute(value=inner)):
                holder = inner
            case _:
                return None


# -- graphs ----------------------------------------------------------------------------------------------------------


def carries(value: Value) -> bool:
    """Whether there is a graph in a value, be it in a part of a container."""
    if value.is_container:
        parts = [*(value.items or ()), *(part for _, part in value.fields or ())]
        return any(map(carries, parts)) or (value.element is not None and carries(value.element))
    return value.carries and value.is_(Kind.TENSOR, Kind.UNKNOWN)


def carriers(model: Model, expression: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The smallest parts of an expression whose graphs it keeps alive."""
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
            yield from carriers(model, expression.body)
            yield from carriers(model, expression.orelse)
        case _:
            if carries(model.value(expression)):
                yield _smallest(model, expression)


def _smallest(model: Model, expression: cst.BaseExpression) -> cst.BaseExpression:
    """Down to the operand that brings the graph in, where there is just one and it is a tensor."""
    while True:
        match expression:
            case cst.BinaryOperation():
                sides = (expression.left, expression.right)
            case cst.UnaryOperation(operator=cst.Minus()):
                sides = (expression.expression,)
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=method), value=receiver)):
                if method not in words.TENSOR_METHODS or method.endswith("_"):
                    return expression
                sides = (receiver, *(arg.value for arg in expression.args))
            case _:
                return expression
        bringing = [side for side in sides if not _is_graphless(model.value(side))]
        if len(bringing) != 1 or not is_one_tensor(model, bringing[0]):
            return expression
        expression = bringing[0]


def _is_graphless(value: Value) -> bool:
    if value.is_(Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.DTYPE, Kind.DEVICE):
        return True
    if value.is_(Kind.TUPLE, Kind.LIST) and value.items is not None:
        return all(map(_is_graphless, value.items))
    return value.is_tensor and value.grad is Grad.DETACHED


def is_one_tensor(model: Model, expression: cst.BaseExpression) -> bool:
    value = model.value(expression)
    return value.is_(Kind.TENSOR) and value.carries and not value.optional


def is_freed(model: Model, graph: cst.BaseExpression, depth: int = 3) -> bool:
    """Whether a backward pass of the same iteration frees the graph of an expression for good."""
    if isinstance(graph, cst.Call) and depth:
        target = model.call(graph).target
        if target is not None and _returns_freed(model, target, depth - 1):
            return True
    tensors = _tensors(model, graph)
    loops = model.loops_around(graph)
    for call in model.function(graph).calls:
        if not call.is_backward or (call.loop is not None and call.loop not in loops):
            continue
        if call.loop is None and loops:
            continue
        source = _backpropagated(call)
        if source is not None and not _keeps_graph(call) and tensors & upstream(model, source, inside=call.loop):
            return True
    return False


def _returns_freed(model: Model, function: Function, depth: int) -> bool:
    values = [node.value for node in function.returns if node.value is not None]
    graphs = [graph for value in values for graph in carriers(model, value)]
    return bool(graphs) and all(is_freed(model, graph, depth) for graph in graphs)


def _tensors(model: Model, graph: cst.BaseExpression) -> set[Binding]:
    """The variables in an expression that hold a graph, or may."""
    found = set()
    for node in walk(graph):
        binding = model.binding(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
        if binding is not None:
            value = model.value(node)
            if carries(value) or (value.is_(Kind.UNKNOWN, Kind.TENSOR) and value.grad is Grad.UNKNOWN):
                found.add(binding)
    return found


def _backpropagated(call: Call) -> cst.BaseExpression | None:
    if call.method == "backward" and call.receiver is not None and not call.node.args:
        return call.receiver
    if call.receiver_value.is_tensor and call.receiver is not None:
        return call.receiver
    positional = [arg.value for arg in call.node.args if arg.keyword is None and not arg.star]
    if positional and not call.receiver_value.is_tensor and call.callee != "torch.Tensor.backward":
        return positional[0]
    return call.receiver


def _keeps_graph(call: Call) -> bool:
    for name in ("retain_graph", "create_graph"):
        argument = call.argument(name)
        if argument.hidden or (argument.given and argument.value.constant is not False):
            return True
    return False
