"""Small questions about how values move: into which parameter, from which variables, past which writes."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import takewhile
from operator import is_, is_not
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.numbering import Numbering
from torchlint.semantics.signatures import Signature
from torchlint.semantics.tree import children, walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function, Loop, Write
    from torchlint.semantics.model import Model


_PRINTER = cst.Module([])
_RECEIVING = re.compile(r"all_(reduce|gather|to_all)|reduce|broadcast|gather|scatter|i?recv")
_BODIES = frozenset({cst.Module, cst.IndentedBlock, cst.SimpleStatementLine, cst.SimpleStatementSuite})


@lru_cache(maxsize=2048)
def text(node: cst.CSTNode) -> str:
    """The code of one node. `Model.code` needs the positions of the whole file, which only findings pay for.

    Rules ask for the same tests and targets again and again, and LibCST prints slowly.
    """
    if isinstance(node, cst.Name) and not node.lpar:
        return node.value
    if type(node) is cst.Attribute and not node.lpar and _is_bare(node.dot):
        return f"{text(node.value)}.{text(node.attr)}"
    return _PRINTER.code_for_node(node)


def bare_text(node: cst.BaseExpression) -> str:
    """The same without the parentheses around all of it."""
    return text(node.with_changes(lpar=(), rpar=()) if node.lpar else node)


def _is_bare(dot: cst.Dot) -> bool:
    """Whether there is nothing around a dot."""
    before, after = dot.whitespace_before, dot.whitespace_after
    return type(before) is type(after) is cst.SimpleWhitespace and not (before.value or after.value)


def as_receiver(node: cst.BaseExpression) -> str:
    """The code of an expression as it stands before a dot: `(loss / n)` of `(loss / n).detach()`."""
    code = text(node).strip()
    is_operation = isinstance(node, (cst.BinaryOperation, cst.UnaryOperation, cst.IfExp)) and not node.lpar
    return f"({code})" if is_operation else code


def parameter_of(call: Call, arg: cst.Arg) -> Binding | None:
    """The parameter of a function of this file that an argument of a call fills, where that is plain."""
    return parameter_of_function(call, call.target, arg) if call.target is not None else None


def parameter_of_function(call: Call, function: Function, arg: cst.Arg) -> Binding | None:
    """The parameter that an argument fills where a call enters the given function, of this file or of another."""
    return parameter_at(call, function, open_parameters(call, function), arg)


def parameter_at(call: Call, function: Function, params: Sequence[str], arg: cst.Arg) -> Binding | None:
    """The parameter that an argument fills, where the arguments of the call fill `params` in order."""
    if arg.star:
        return None
    if arg.keyword is not None:
        name = arg.keyword.value if arg.keyword.value in params else _keywords(function)
    else:
        before = call.node.args[: list(call.node.args).index(arg)]
        place = len(before)
        name = params[place] if place < len(params) and not any(other.star for other in before) else None
    return function.scope.bindings.get(name) if name is not None else None


def open_parameters(call: Call, function: Function) -> Sequence[str]:
    """The parameters that a call of a function fills, in order: not the first of a method that it is called on, nor
    what a functools.partial has filled in."""
    if call.partial:
        return _left_by_partial(call, function)
    is_built = call.targets_class is not None or (function is call.foreign and _is_constructor(call, function))
    named = is_built or call.method is not None or function.name in ("__call__", "forward")
    is_bound = function.cls is not None and named and (is_built or function.takes_receiver(call.receiver_value))
    return function.params[is_bound:]


def _is_constructor(call: Call, function: Function) -> bool:
    """A call of a class of another file: the model knows only the function that it runs."""
    return function.name == "__init__" and function.cls is not None and call.method != "__init__"


def _left_by_partial(call: Call, function: Function) -> Sequence[str]:
    """Empty where it is not plain which they are."""
    made = next(iter(call.partial))
    if len(call.partial) > 1 or not isinstance(made, cst.Call) or any(arg.star for arg in made.args):
        return ()
    filled = sum(arg.keyword is None for arg in made.args) - 1
    of_class = function.cls is not None and text(made.args[0].value) == f"{function.cls.name}.{function.name}"
    is_bound = function.cls is not None and not function.is_static and (function.takes_class or not of_class)
    return function.params[filled + is_bound :]


def _keywords(function: Function) -> str | None:
    """The name of `**kwargs`."""
    params = function.node.params if isinstance(function.node, (cst.FunctionDef, cst.Lambda)) else None
    return params.star_kwarg.name.value if params is not None and params.star_kwarg is not None else None


def given_to(call: Call, parameter: Binding) -> Iterator[cst.BaseExpression]:
    """What a call gives to a parameter of the function that it reaches, in this file or in another."""
    function = parameter.scope_function
    for arg in call.node.args if function in (call.target, call.foreign) else ():
        if parameter_of_function(call, function, arg) is parameter:
            yield arg.value


def unfilled_default(model: Model, node: cst.CSTNode | None) -> cst.BaseExpression | None:
    """The default of the parameter that a name is, where calls of the function are in sight and none fills it."""
    parameter = model.binding(node) if isinstance(node, cst.Name) else None
    if parameter is None or not parameter.is_parameter or len(parameter.writes) > 1:
        return None
    function = parameter.scope_function
    if not function.callers or function.foreign_callers or function.passed_around:
        return None
    is_open = any(call.target is not function or any(arg.star for arg in call.arguments) for call in function.callers)
    is_filled = any(True for call in function.callers for _ in given_to(call, parameter))
    return None if is_open or is_filled else Signature.of(function).defaults.get(parameter.name)


def reaches(model: Model, binding: Binding, written_at: cst.CSTNode, read: cst.CSTNode) -> bool:
    """Whether a value that is written to a variable at one node can be what another node reads.

    False only where an unconditional write to the same variable always comes between.
    """
    return model.once(_Order).reaches(binding, written_at, read)


def writes_reaching(model: Model, binding: Binding, read: cst.CSTNode) -> list[Write]:
    """The writes of a variable whose values can be what a node reads: those whose targets reach it, all at once."""
    return model.once(_Order).reaching(binding, read)


def comes_round(model: Model, binding: Binding, loop: Loop) -> bool:
    """Whether an iteration of a loop may read what an earlier one has left in a variable."""
    numbering = model.once(Numbering)
    start, end = numbering.first[loop.node], numbering.last[loop.node]
    writes = [write for write in binding.writes if loop.holds(write.loop) and write.kind in ("assign", "augmented")]
    reads: list[cst.CSTNode] = [read for read in binding.reads if start < numbering.first[read] <= end]
    reads += [write.target for write in writes if write.kind == "augmented"]
    return any(
        numbering.first[read] <= numbering.last[write.statement] and reaches(model, binding, write.target, read)
        for write in writes
        for read in reads
    )


class _Order:
    """From which parts of a function values of a variable reach its reads: rules ask for the same again and again."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._numbering = model.once(Numbering)
        self._ranges: dict[tuple[Binding, cst.CSTNode], list[tuple[int, int]]] = {}
        self._places: dict[cst.CSTNode, dict[cst.CSTNode, int]] = {}
        self._always: dict[Binding, dict[cst.CSTNode, list[int]]] = {}
        self._sorted: dict[tuple[Binding, Function], _Sorted] = {}
        self._named: dict[Binding, bool] = {}

    def reaches(self, binding: Binding, written_at: cst.CSTNode, read: cst.CSTNode) -> bool:
        if binding.cls is not None or self._model.function(written_at) is not self._model.function(read):
            return True
        number = self._numbering.first[written_at]
        return any(start <= number < end for start, end in self._before(binding, read))

    def reaching(self, binding: Binding, read: cst.CSTNode) -> list[Write]:
        if binding.cls is not None:
            return binding.writes
        function = self._model.function(read)
        if (binding, function) not in self._sorted:
            self._sorted[binding, function] = _Sorted(self._model, binding, function)
        return self._sorted[binding, function].within(self._before(binding, read))

    def _before(self, binding: Binding, read: cst.CSTNode) -> list[tuple[int, int]]:
        """The parts of the function of a read from which values of the variable reach it, as ranges of numbers."""
        known = self._ranges.get((binding, read))
        if known is None:
            first, last = self._numbering.first, self._numbering.last
            known = self._ranges[binding, read] = [
                (first[start], last[start] + 1 if end is None else first[end])
                for start, end in self._parts_before(binding, read)
            ]
        return known

    def _parts_before(self, binding: Binding, read: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode | None]]:
        """Each by the node with which it begins, and the one before which it ends, or None if it is one node."""
        function = self._model.function(read)
        here: cst.CSTNode = read
        for outer in self._model.ancestors(read):
            if type(outer) in _BODIES:
                last = self._last_write(binding, outer, self._place(outer, here))
                yield outer.body[max(last, 0)], here  # type: ignore[attr-defined]
                if last >= 0:
                    return
            elif isinstance(outer, cst.For) and here is outer.body and _binds(self._model, outer.target, binding):
                yield outer.target, None
                return
            elif _comes_round(outer, here):
                yield outer, None
            elif isinstance(outer, (cst.BaseCompoundStatement, cst.MatchCase)):
                yield from ((part, None) for part in _leading_into(outer, here) if part is not None)
            elif self._is_named_in_expressions(binding):
                yield from ((part, None) for part in takewhile(partial(is_not, here), _evaluated(outer)))
            if outer is function.node:
                if isinstance(outer, (cst.FunctionDef, cst.Lambda)):
                    yield outer.params, None
                return
            here = outer
        yield self._model.module, None

    def _is_named_in_expressions(self, binding: Binding) -> bool:
        """`f(x := 1, x)`"""
        if binding not in self._named:
            above = (self._model.parent(write.target) for write in binding.writes)
            self._named[binding] = any(isinstance(node, cst.NamedExpr) for node in above)
        return self._named[binding]

    def _place(self, body: cst.CSTNode, statement: cst.CSTNode) -> int:
        """The index of a statement in its body."""
        if body not in self._places:
            self._places[body] = {node: place for place, node in enumerate(body.body)}  # type: ignore[attr-defined]
        return self._places[body].get(statement, 0)

    def _last_write(self, binding: Binding, body: cst.CSTNode, end: int) -> int:
        """The place of the last statement of a body before `end` that always writes the variable; -1 without one."""
        if binding not in self._always:
            self._always[binding] = self._find_always(binding)
        places = self._always[binding].get(body, ())
        before = bisect_left(places, end)
        return places[before - 1] if before else -1

    def _find_always(self, binding: Binding) -> dict[cst.CSTNode, list[int]]:
        """By body, the places of the statements that write the variable whenever they run, in order."""
        found: dict[cst.CSTNode, list[int]] = {}
        for small in {self._model.small_statement(write.target): None for write in binding.writes}:
            if small is not None and _assigns(self._model, small, binding):
                self._note(small, found)
        return {body: sorted(places) for body, places in found.items()}

    def _note(self, node: cst.CSTNode, found: dict[cst.CSTNode, list[int]]) -> None:
        body = self._model.parent(node)
        if body is not None and type(body) in _BODIES:
            found.setdefault(body, []).append(self._place(body, node))
            if isinstance(body, cst.SimpleStatementLine):
                self._note(body, found)


class _Sorted:
    """The writes of a variable in one function, in the order of the text."""

    def __init__(self, model: Model, binding: Binding, function: Function) -> None:
        first = model.once(Numbering).first
        self._writes = binding.writes
        own = {index for index, write in enumerate(binding.writes) if model.function(write.target) is function}
        self._own = sorted(own, key=lambda index: first[binding.writes[index].target])
        self._starts = [first[binding.writes[index].target] for index in self._own]
        self._elsewhere = [index for index in range(len(binding.writes)) if index not in own]

    def within(self, ranges: Iterable[tuple[int, int]]) -> list[Write]:
        """Those in some parts of the function, and all of other functions, in the order in which they are known."""
        found = set(self._elsewhere)
        for start, end in ranges:
            found.update(self._own[bisect_left(self._starts, start) : bisect_left(self._starts, end)])
        return [self._writes[index] for index in sorted(found)]


def hold_the_same(model: Model, a: cst.CSTNode, b: cst.CSTNode) -> bool:
    """Whether two reads of one variable in one function see the same writes, so that what one proves holds for both."""
    binding = model.binding(a)
    if binding is None or binding is not model.binding(b):
        return False
    seen, other = (writes_reaching(model, binding, read) for read in (a, b))
    return len(seen) == len(other) and all(map(is_, seen, other))


def _comes_round(outer: cst.CSTNode, here: cst.CSTNode) -> bool:
    """Whether control can come from another part of a compound node to the part `here`."""
    if isinstance(outer, cst.For):
        return here is not outer.iter
    return isinstance(outer, (cst.While, cst.BaseComp, cst.CompFor))


def _leading_into(outer: cst.CSTNode, here: cst.CSTNode) -> Sequence[cst.CSTNode | None]:
    """The parts of a compound node that run before its part `here`: `with f() as x:`, `if x := f():`."""
    match outer:
        case cst.With(items=items):
            return list(takewhile(partial(is_not, here), items))
        case cst.If(test=test):
            return (test,)
        case cst.Try() | cst.TryStar() if here is not outer.body:
            return (outer.body, *outer.handlers, outer.orelse) if here is outer.finalbody else (outer.body,)
        case cst.Match(subject=subject, cases=cases) if here is not subject:
            tried = takewhile(partial(is_not, here), cases)
            return (subject, *(part for case in tried for part in (case.pattern, case.guard)))
        case cst.MatchCase(pattern=pattern, guard=guard):
            return (pattern, guard) if here is outer.body else (pattern,)
    return ()


def _evaluated(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """The parts of an expression or a simple statement, in the order in which they are evaluated."""
    match node:
        case cst.Assign(value=value, targets=targets):
            return [value, *targets]
        case cst.NamedExpr(value=value, target=target):
            return [value, target]
        case cst.IfExp(test=test, body=body, orelse=orelse):
            return [test, body, orelse]
    return children(node)


def _assigns(model: Model, statement: cst.BaseSmallStatement, binding: Binding) -> bool:
    if isinstance(statement, cst.Assign):
        return any(_binds(model, target.target, binding) for target in statement.targets)
    return (
        isinstance(statement, cst.AnnAssign)
        and statement.value is not None
        and _binds(model, statement.target, binding)
    )


def _binds(model: Model, target: cst.CSTNode, binding: Binding) -> bool:
    if isinstance(target, (cst.Tuple, cst.List)):
        return any(_binds(model, element.value, binding) for element in target.elements)
    return isinstance(target, cst.Name) and model.binding(target) is binding


def is_changed(model: Model, read: cst.CSTNode) -> bool:
    """Whether a tensor, or what holds some, is changed in place where it is read: `t[i] = 0`, `t.mul_(2)`."""
    node, parent = read, model.parent(read)
    while isinstance(parent, (cst.Subscript, cst.Attribute)) and parent.value is node:
        if (
            isinstance(parent, cst.Attribute)
            and parent.attr.value.endswith("_")
            and not parent.attr.value.endswith("__")
        ):
            return True
        node, parent = parent, model.parent(parent)
    if isinstance(parent, cst.Arg):
        return _fills(model, parent)
    return isinstance(parent, cst.AssignTarget) or (isinstance(parent, cst.AugAssign) and parent.target is node)


def _fills(model: Model, arg: cst.Arg) -> bool:
    """`torch.mul(a, b, out=t)`, and what other processes send: `all_gather_into_tensor(t, mine)`, `all_reduce(t)`."""
    site = model.parent(arg)
    callee = (model.call(site).callee or "") if isinstance(site, cst.Call) else ""
    if arg.keyword is not None and arg.keyword.value == "out":
        return callee.startswith("torch.")
    package, _, name = callee.rpartition(".")
    return package == "torch.distributed" and _RECEIVING.match(name) is not None


def upstream(model: Model, expression: cst.CSTNode, inside: Loop | None = None) -> frozenset[Binding]:
    """The variables that an expression is computed from."""
    known = model.once(_Reads).upstream
    if (expression, inside) not in known:
        bindings = (model.binding(node) for node in sources(model, expression, inside))
        known[expression, inside] = frozenset(binding for binding in bindings if binding is not None)
    return known[expression, inside]


def sources(
    model: Model, expression: cst.CSTNode, inside: Loop | None = None, limit: int = 2000
) -> list[cst.Name | cst.Attribute]:
    """Reads of the variables that an expression is computed from, in the function where it stands; with `inside`,
    through statements of that loop only.
    """
    function = model.function(expression)
    seen: set[Binding] = set()
    reads = model.once(_Reads)
    found = list(reads.names(expression))
    for node in found:  # it grows while the loop runs
        binding = model.binding(node)
        if binding is None or binding in seen or len(found) > limit:
            continue
        seen.add(binding)
        for write in binding.writes:
            if write.value is None or write.function is not function or write.kind == "for":
                continue
            if inside is None or (write.loop is not None and inside in write.loop.around()):
                found.extend(reads.names(write.value))
    return found


class _Reads:
    """What expressions read. In a long function the same ones are asked for over and over."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._names: dict[cst.CSTNode, list[cst.Name | cst.Attribute]] = {}
        self.upstream: dict[tuple[cst.CSTNode, Loop | None], frozenset[Binding]] = {}

    def names(self, expression: cst.CSTNode) -> list[cst.Name | cst.Attribute]:
        """Of variables."""
        if expression not in self._names:
            self._names[expression] = [
                node
                for node in walk(expression)
                if isinstance(node, (cst.Name, cst.Attribute)) and self._model.binding(node) is not None
            ]
        return self._names[expression]


def is_from_caller(model: Model, node: cst.BaseExpression) -> bool:
    """Whether a variable is a parameter, or one, or an attribute, that nothing but parameters is kept in."""
    binding = model.binding(node)
    if binding is None:
        return False
    kept = (write.value for write in binding.writes if write.kind == "assign" and write.value)
    sources = [model.binding(value) for value in kept] or [binding]
    return all(source is not None and source.is_parameter for source in sources)
