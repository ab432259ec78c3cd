"""Evaluating statements: forward through a block, joins at branches, loops until an iteration tells no more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchlint.semantics import transfer
from torchlint.semantics.branches import brought_back, left, merge, ruled_out
from torchlint.semantics.declared import Declared
from torchlint.semantics.entities import Binding, Function
from torchlint.semantics.growing import additions
from torchlint.semantics.library_calls import loss_and_others
from torchlint.semantics.lookup import Env
from torchlint.semantics.names import Names
from torchlint.semantics.regions import GradModes
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.tree import is_name, walk
from torchlint.semantics.values import NONE, UNKNOWN, Kind, Place, Value

if TYPE_CHECKING:
    from torchlint.semantics.foreign import Imports

_LOOP_PASSES = 2
_KEPT = (Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER)
_AUGMENTED = {
    "AddAssign": "Add",
    "SubtractAssign": "Subtract",
    "MultiplyAssign": "Multiply",
    "DivideAssign": "Divide",
    "MatrixMultiplyAssign": "MatrixMultiply",
}


class Statements(Declared):
    """Runs statements one after the other, and keeps of each whether autograd is on there."""

    _enclosing_grad: bool | None = True  # of the module body, once it has switched gradients for good

    def __init__(self, scopes: Scopes, names: Names, imports: Imports | None = None) -> None:
        super().__init__(scopes, names, imports)
        of_foreign = imports.grad_switch if imports is not None else None
        self.grad_modes = GradModes(scopes, names, self._value_anywhere, of_foreign)
        self.grads: dict[cst.CSTNode, bool | None] = {}  # whether autograd is on at a statement
        self._ends: list[Env] = []  # of iterations that a break or continue cuts short
        self._breaks = False
        self._looked_into: set[Function] = set()  # functions with values that the running one has read
        self._runners: dict[type[Any], Callable[[Any], bool | None]] = {
            cst.SimpleStatementLine: lambda node: self._block(node.body),
            cst.Expr: self._expression,
            cst.Assign: self._assignment,
            cst.AnnAssign: self._annotated_assignment,
            cst.AugAssign: self._augmented,
            cst.Return: self._return,
            cst.Raise: self._raise,
            cst.Continue: self._jump,
            cst.Break: self._break,
            cst.If: self._if,
            cst.For: self._for,
            cst.While: self._while,
            cst.With: self._with,
            cst.Try: self._try,
            cst.TryStar: self._try,
            cst.Match: self._match,
            cst.FunctionDef: self._definition_statement,
            cst.ClassDef: self._definition_statement,
            cst.Assert: self._assert,
            cst.Del: self._eval_parts,
        }

    def _value_anywhere(self, node: cst.CSTNode) -> Value:
        """Of a node that may be in another function than the one that runs."""
        function = self.scopes.contexts[node].function
        if function is not self.function:
            self._looked_into.add(function)
        return self.values.get(node, UNKNOWN)

    def _suite(self, suite: cst.BaseSuite) -> bool:
        return self._block(suite.body)

    def _block(self, statements: Iterable[cst.CSTNode]) -> bool:
        """Run statements in order; False when control never reaches the end."""
        for statement in statements:
            if not self._statement(statement):
                return False
        return True

    def _statement(self, node: cst.CSTNode) -> bool:
        """Run one statement; False when control does not go on behind it."""
        if not self.rehearsing:
            known = self.grads.setdefault(node, self.grad)
            if known is not self.grad:
                self.grads[node] = None
        runner = self._runners.get(type(node))
        return True if runner is None else runner(node) is not False

    def _expression(self, node: cst.Expr) -> None:
        self.eval(node.value)
        self._grad_switch(node.value)

    def _assignment(self, node: cst.Assign) -> None:
        value = self.eval(node.value)
        for target in node.targets:
            given = self._given_back(node.value, value, target.target)
            self.assign(target.target, loss_and_others(node.value, given, target.target))
        self._shape_unpacking(node)

    def _given_back(self, source: cst.BaseExpression, value: Value, target: cst.CSTNode) -> Value:
        """`model, opt = train(model, opt)`: a function out of sight gives back what goes by the same name again."""
        call = self.scopes.call_of.get(source)
        if call is None or call.target is not None or value.kind is not Kind.UNKNOWN or value.origins:
            return value
        bindings = self.scopes.bindings
        given = {bindings.get(arg.value): self.values.get(arg.value, UNKNOWN) for arg in call.node.args if not arg.star}
        kept = {binding: held for binding, held in given.items() if binding is not None and held.is_(*_KEPT)}
        if isinstance(target, cst.Name):
            return kept.get(bindings.get(target), value)  # type: ignore[arg-type]
        names = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else []
        if not any(bindings.get(name) in kept for name in names):
            return value
        return Value(Kind.TUPLE, items=tuple(kept.get(bindings.get(name), value) for name in names))  # type: ignore[arg-type]

    def _return(self, node: cst.Return) -> bool:
        value = self.eval(node.value) if node.value is not None else NONE
        if "abc.abstractmethod" in self.function.decorators:
            value = UNKNOWN  # the classes that derive from this one say
        if not self.function.is_generator and node.value not in self.pending:
            self.noted.note_return(self.function, value)
        return False

    def _raise(self, node: cst.Raise) -> bool:
        self._eval_parts(node)
        return False

    def _jump(self, node: cst.CSTNode) -> bool:
        self._ends.append(self.env)
        return False

    def _break(self, node: cst.Break) -> bool:
        self._breaks = True
        return self._jump(node)

    def _annotated_assignment(self, node: cst.AnnAssign) -> None:
        annotated = self._annotation(node.annotation)
        if node.value is None:
            binding = self.scopes.bindings.get(node.target)
            if binding is not None and annotated is not None:
                self.annotated[binding] = annotated
            return
        value = self.eval(node.value)
        if value.kind is Kind.UNKNOWN and annotated is not None:
            value = annotated
        self.assign(node.target, value)

    def _augmented(self, node: cst.AugAssign) -> None:
        current = self.eval(node.target)
        operator = type(node.operator).__name__
        value = self.eval(node.value)
        if current.kind is Kind.LIST and operator == "AddAssign":
            result = self.extended(current, transfer.element_of(value))
        else:
            result = transfer.binary(_AUGMENTED.get(operator, operator), current, value, self.grad)
        if current.kind is Kind.NUMBER and result.is_tensor:
            result = result.but(optional=True)
        if current.kind is Kind.TENSOR and result.is_tensor and not current.optional:  # it is changed in place
            rank = result.rank if current.rank is None else current.rank
            place = result.place if current.place is Place.UNKNOWN else current.place
            result = result.but(dtype=current.dtype or result.dtype, rank=rank, place=place)
        self.assign(node.target, result)
        self.values[node] = result

    def _shape_unpacking(self, node: cst.Assign) -> None:
        """`b, c, h, w = x.shape` says that x has four dimensions."""
        target = node.targets[0].target
        source = node.value
        if type(target) is cst.Name or not isinstance(target, (cst.Tuple, cst.List)):
            return
        if any(isinstance(element, cst.StarredElement) for element in target.elements):
            return
        if isinstance(source, cst.Call) and not source.args:
            source = source.func
        if not isinstance(source, cst.Attribute) or source.attr.value not in ("shape", "size"):
            return
        binding = self.scopes.bindings.get(source.value)
        value = self.values.get(source.value, UNKNOWN)
        if binding is not None and value.kind in (Kind.TENSOR, Kind.UNKNOWN, Kind.BATCH) and binding in self.env:
            kind = value.kind if source.attr.value == "shape" else Kind.TENSOR
            self.env[binding] = value.but(rank=len(target.elements), kind=kind)

    def _if(self, node: cst.If) -> bool:
        self.eval(node.test)
        before, grad = self.env, self.grad
        known = self._ruled_out(node.test)
        self.env = {**before, **known[0]}
        falls = self._suite(node.body)
        then, then_grad = self.env, self.grad
        self.env, self.grad = {**before, **known[1]}, grad
        if node.orelse is None:
            otherwise = True
        elif isinstance(node.orelse, cst.If):
            otherwise = self._if(node.orelse)
        else:
            otherwise = self._suite(node.orelse.body)
        if falls and otherwise:
            self.env = left(before, then, self.env, known)
            self.grad = self.grad if self.grad is then_grad else None
        elif falls:
            self.env, self.grad = then, then_grad
        return falls or otherwise

    def _assert(self, node: cst.Assert) -> None:
        self._eval_parts(node)
        self.env = {**self.env, **self._ruled_out(node.test)[0]}

    def _ruled_out(self, test: cst.BaseExpression) -> tuple[Env, Env]:
        """What a test says of variables where it holds, and where it does not."""
        then, otherwise = (ruled_out(self.env, test, holds, self.scopes, self.names) for holds in (True, False))
        return then, otherwise

    def _for(self, node: cst.For) -> None:
        iterates = self.eval(node.iter)
        if not self.rehearsing:
            self.scopes.loop_of[node].iterates = iterates
        element = self.elements(iterates)
        if node.asynchronous is not None:
            element = UNKNOWN
        self._loop_body(node, lambda: self.assign(node.target, element))
        self._note_moved_entries(node)

    def _note_moved_entries(self, loop: cst.For) -> None:
        """`for key, part in batch.items(): batch[key] = part.to(device)` leaves the whole batch on the device, unless
        the loop picks some of the keys."""
        call = loop.iter if isinstance(loop.iter, cst.Call) else None
        is_view = call is not None and self.scopes.call_of[call].method in ("items", "keys")
        owner = call.func.value if is_view else loop.iter  # type: ignore[union-attr]
        binding = self.scopes.bindings.get(owner)
        held = self.env.get(binding, UNKNOWN) if binding is not None else UNKNOWN
        if binding is None or held.kind is not Kind.BATCH or held.place is Place.ACCELERATOR:
            return
        first = loop.target.elements[0].value if isinstance(loop.target, cst.Tuple) else loop.target
        key = self.scopes.bindings.get(first)
        nodes = [*walk(loop.body)]
        stored = (part.target for part in nodes if isinstance(part, cst.AssignTarget))
        moves_entry = any(
            isinstance(target, cst.Subscript)
            and self.scopes.bindings.get(target.value) is binding
            and self._is_place(target, key)
            and self.values.get(target, UNKNOWN).place is Place.ACCELERATOR
            for target in stored
        )
        if moves_entry and not any(self._picks_key(node, key) for node in nodes):
            self.write(binding, held.but(place=Place.ACCELERATOR))

    def _is_place(self, target: cst.Subscript, key: Binding | None) -> bool:
        """Whether a subscript is the one place of a variable."""
        places = [part.slice.value for part in target.slice if isinstance(part.slice, cst.Index)]
        return key is not None and [self.scopes.bindings.get(place) for place in places] == [key]

    def _picks_key(self, node: cst.CSTNode, key: Binding | None) -> bool:
        """`key == "image"`, `key in wanted`, `key.startswith("image")`"""
        match node:
            case cst.Comparison(
                left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal() | cst.In(), comparator=right)]
            ):
                return key in (self.scopes.bindings.get(left), self.scopes.bindings.get(right))
            case cst.Call(func=cst.Attribute(value=owner)):
                return self.scopes.bindings.get(owner) is key
        return False

    def _while(self, node: cst.While) -> bool:
        outer, self._breaks = self._breaks, False
        self._loop_body(node, lambda: self.eval(node.test))
        ends = self._breaks or not (is_name(node.test, "True"))
        self._breaks = outer
        return ends

    def _loop_body(self, node: cst.For | cst.While, begin: Callable[[], object]) -> None:
        breaks, ends, unbound = self._breaks, self._ends, self.unbound
        for _ in range(_LOOP_PASSES):
            before = self.env
            self.env, self._ends, self.unbound = dict(before), [], set()
            begin()
            self._suite(node.body)
            behind = self._joined([self.env, *self._ends])
            self.env = self._joined([merge(before, self.env), *self._ends])
            unbound |= self.unbound
            if not self._carries_on(node, before):
                break
        if isinstance(node, cst.For):
            self.env = brought_back(self.env, behind)
        self._ends, self.unbound = ends, unbound
        if isinstance(node, cst.For):
            self._breaks = breaks
        if node.orelse is not None:
            self._suite(node.orelse.body)

    def _carries_on(self, loop: cst.For | cst.While, before: Env) -> bool:
        """Whether the next iteration would read anything else than the first did."""
        after = self.env
        if any(binding in after and binding not in before for binding in self.unbound):
            return True
        changed = [binding for binding, was in before.items() if after[binding] is not was and after[binding] != was]
        return not all(self._only_grows(loop, binding, before[binding]) for binding in changed)

    def _only_grows(self, loop: cst.For | cst.While, binding: Binding, before: Value) -> bool:
        """Whether a loop does nothing with a list or set but add to it, so that another iteration tells no more."""
        after = self.env[binding]
        if before.kind not in (Kind.LIST, Kind.SET) or after.kind is not before.kind:
            return False
        places = additions(binding, loop, self.function, self.scopes)
        self.values.update(dict.fromkeys(places or (), after))
        return places is not None

    def _with(self, node: cst.With) -> bool:
        outer = self.grad
        for item in node.items:
            value = self.eval(item.item)
            if item.asname is not None:
                self.assign(item.asname.name, self.entered(value, item.item))
            state = self.grad_modes.of_context(item.item)
            if state.switches:
                self.grad = state.enabled
        falls = self._suite(node.body)
        self.grad = outer
        return falls

    def _grad_switch(self, node: cst.BaseExpression) -> None:
        """`torch.set_grad_enabled(False)` as a statement rules what follows; so does a context that is entered by its
        method, and until its end one that a stack enters."""
        if not isinstance(node, cst.Call):
            return
        method = self.scopes.call_of[node].method
        if self.names.qualified(node.func) == "torch.set_grad_enabled":
            self._switch_for_good(self.grad_modes.of_call(node).enabled)
        elif method in ("__enter__", "__exit__") and isinstance(node.func, cst.Attribute):
            state = self.grad_modes.of_context(node.func.value)
            if state.switches:
                self._switch_for_good(state.enabled if method == "__enter__" else None)
        elif method == "enter_context" and node.args:
            state = self.grad_modes.of_context(node.args[0].value)
            self.grad = state.enabled if state.switches else self.grad

    def _switch_for_good(self, enabled: bool | None) -> None:
        self.grad = enabled
        if self.function.is_module:
            self._enclosing_grad = enabled

    def _try(self, node: cst.Try | cst.TryStar) -> bool:
        before = dict(self.env)
        falls = self._suite(node.body)
        if falls and node.orelse is not None:
            falls = self._suite(node.orelse.body)
        ends: list[Env] = [self.env] if falls else []
        raised = merge(before, self.env)
        for handler in node.handlers:
            self.env = dict(raised)
            if handler.type is not None:
                self.eval(handler.type)
            if handler.name is not None:
                self.assign(handler.name.name, UNKNOWN)
            if self._suite(handler.body):
                ends.append(self.env)
        self.env = self._joined(ends) if ends else raised
        if node.finalbody is not None:
            return self._suite(node.finalbody.body) and bool(ends)
        return bool(ends)

    @staticmethod
    def _joined(environments: Sequence[Env]) -> Env:
        merged = environments[0]
        for other in environments[1:]:
            merged = merge(merged, other)
        return merged

    def _match(self, node: cst.Match) -> bool:
        subject = self.eval(node.subject)
        before = self.env
        ends: list[Env] = []
        exhaustive = False
        for case in node.cases:
            self.env = dict(before)
            self._capture(case.pattern, subject)
            if case.guard is not None:
                self.eval(case.guard)
            if self._suite(case.body):
                ends.append(self.env)
            exhaustive |= case.guard is None and isinstance(case.pattern, cst.MatchAs) and case.pattern.pattern is None
        if not exhaustive:
            ends.append(before)
        self.env = self._joined(ends) if ends else before
        return bool(ends)

    def _capture(self, pattern: cst.MatchPattern, subject: Value) -> None:
        """Names that a pattern binds: what they are is known of the whole subject, and of objects of a class."""
        for part in walk(pattern):
            if isinstance(part, (cst.MatchAs, cst.MatchStar)) and part.name is not None:
                value = subject if part is pattern and isinstance(part, cst.MatchAs) else UNKNOWN
                if isinstance(part, cst.MatchAs) and isinstance(part.pattern, cst.MatchClass):
                    value = self._annotated_as(part.pattern.cls) or value
                self.assign(part.name, value)

    def _definition_statement(self, node: cst.FunctionDef | cst.ClassDef) -> None:
        for decorator in node.decorators:
            self.eval(decorator.decorator)
        if isinstance(node, cst.FunctionDef):
            self.eval_defaults(node.params)
        binding = self.scopes.bindings.get(node)
        value = self.defined(node)
        if binding is not None and value is not None:
            self.env[binding] = value
            self.noted.note_binding(binding, value)
        if isinstance(node, cst.ClassDef):
            for base in node.bases:
                self.eval(base.value)
            self._suite(node.body)
