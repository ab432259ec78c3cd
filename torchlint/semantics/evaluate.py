"""Evaluating a file: statements forward through each function, joins at branches, rounds until summaries settle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchlint.semantics import frameworks, transfer
from torchlint.semantics import vocabulary as words
from torchlint.semantics.arguments import string_value
from torchlint.semantics.branches import brought_back, left, merge, ruled_out
from torchlint.semantics.calls import Calls
from torchlint.semantics.entities import Binding, Function
from torchlint.semantics.expressions import Env
from torchlint.semantics.growing import additions
from torchlint.semantics.library_calls import loss_and_others
from torchlint.semantics.names import Names
from torchlint.semantics.regions import GradModes
from torchlint.semantics.scopes import Scopes, is_placeholder
from torchlint.semantics.summaries import Run, Tables, no_answers
from torchlint.semantics.transfer import Arguments
from torchlint.semantics.tree import walk
from torchlint.semantics.values import NONE, STRING, UNKNOWN, Kind, Place, Value

if TYPE_CHECKING:
    from torchlint.semantics.foreign import Imports

_ROUNDS = 6
_REHEARSALS = 3  # of functions that are called in one another
_NESTED_RUNS = 20
_LOOP_PASSES = 2
_ANNOTATIONS = {
    "torch.Tensor": Value(Kind.TENSOR),
    "torch.nn.Module": Value(Kind.MODULE),
    "torch.optim.Optimizer": Value(Kind.OPTIMIZER),
    "torch.utils.data.DataLoader": Value(Kind.LOADER),
    "torch.utils.data.Dataset": Value(Kind.DATASET),
    "torch.device": Value(Kind.DEVICE),
    "torch.amp.GradScaler": Value(Kind.SCALER),
    "torch.cuda.amp.GradScaler": Value(Kind.SCALER),
    "numpy.ndarray": Value(Kind.ARRAY),
    "builtins.int": transfer.INTEGER,
    "builtins.float": Value(Kind.NUMBER, dtype="float"),
    "builtins.bool": transfer.BOOLEAN,
    "builtins.str": STRING,
    "builtins.list": Value(Kind.LIST),
    "builtins.dict": Value(Kind.DICT),
}
_ACCELERATORS = ("cuda", "gpu", "mps", "xpu")
_AUGMENTED = {
    "AddAssign": "Add",
    "SubtractAssign": "Subtract",
    "MultiplyAssign": "Multiply",
    "DivideAssign": "Divide",
    "MatrixMultiplyAssign": "MatrixMultiply",
}


class Evaluator(Calls):
    """Runs over the file until what functions know of each other no longer changes."""

    def __init__(self, scopes: Scopes, names: Names, imports: Imports | None = None) -> None:
        super().__init__(scopes, names, imports)
        of_foreign = imports.grad_switch if imports is not None else None
        self.grad_modes = GradModes(scopes, names, self._value_anywhere, of_foreign)
        self.grads: dict[cst.CSTNode, bool | None] = {}  # whether autograd is on at a statement
        self._ends: list[Env] = []  # of iterations that a break or continue cuts short
        self._breaks = False
        self._runs: dict[Function, Run] = {}  # the last of each function
        self._running: list[Function] = []
        self._is_first_round = True
        self._rehearsed: dict[object, Value] = {}
        self._looked_into: set[Function] = set()  # functions with values that the running one has read
        self._classes_by_name = {cls.qualname: cls for cls in reversed(scopes.classes)}
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
            cst.Assert: self._eval_parts,
            cst.Del: self._eval_parts,
        }

    def run(self) -> None:
        stale = self._first_round()
        for _ in range(_ROUNDS - 1):
            if not stale:
                break
            stale = self._next_round(stale)
        self.grads = {node: enabled for run in self._runs.values() for node, enabled in run.grads.items()}
        for function in self.scopes.functions:
            function.parameters = {name: self._parameter(function, name) for name in function.params}

    def _first_round(self) -> set[Function]:
        """Run every function once, in the order of calls where that is plain; the functions that must run again."""
        self.known = self.noted
        self._note_foreign_callers()
        for function in self._callers_first():
            self.run_first(function)
        self._is_first_round = False
        return self._stale(set(self._runs))

    def _next_round(self, stale: set[Function]) -> set[Function]:
        self.noted = Tables()
        self._note_foreign_callers()
        enclosing = self._enclosing_grad
        for function in self.scopes.functions:
            if function in stale:
                self._runs[function] = self._recorded_run(function)
            else:
                self.noted.note_again(self._runs[function].journal)
        self.known = self.noted
        return self._stale(stale) if enclosing is self._enclosing_grad else set(self._runs)

    def _stale(self, rerun: set[Function]) -> set[Function]:
        if len(self._runs) == 1:
            return set()
        return {function for function, run in self._runs.items() if run.is_stale(self.known, rerun)}

    def _callers_first(self) -> list[Function]:
        """The module body, then functions that nothing in the file calls by their name; methods of later classes
        before those of the classes that they are made of."""
        module, *others = self.scopes.functions
        written = (call.node.func for call in self.scopes.calls)
        names = (func.attr if isinstance(func, cst.Attribute) else func for func in written)
        called = {name.value for name in names if isinstance(name, cst.Name)}
        place = {cls: -position for position, cls in enumerate(self.scopes.classes, 1)}

        def rank(function: Function) -> tuple[bool, int]:
            if function.cls is not None:
                return True, place[function.cls]
            return function.name in called, 0

        return [module, *sorted(others, key=rank)]

    def _recorded_run(self, function: Function) -> Run:
        """Run one function, be it in the middle of another that calls it."""
        outer = self.noted.journal, self.grads, self._looked_into, self.known.answers()
        variables = self.env, self.grad, self.function, self.looks_elsewhere, self._ends, self._breaks, self.unbound
        self.noted.journal, self.grads, self._looked_into, answers = [], {}, set(), no_answers()
        self.known.note_answers(answers)
        self._running.append(function)
        self._run_function(function)
        self._running.pop()
        run = Run(self.noted.journal, self.grads, answers, self._looked_into)
        self.env, self.grad, self.function, self.looks_elsewhere, self._ends, self._breaks, self.unbound = variables
        self.noted.journal, self.grads, self._looked_into, before = outer
        self.known.note_answers(before)
        return run

    def run_first(self, function: Function) -> None:
        """In the first round a function runs when it is first called, so that the caller knows what it returns."""
        if not self._is_first_round or function in self._runs or function in self._running:
            return
        if len(self._running) < _NESTED_RUNS:
            self._runs[function] = self._recorded_run(function)

    def _value_anywhere(self, node: cst.CSTNode) -> Value:
        """Of a node that may be in another function than the one that runs."""
        function = self.scopes.contexts[node].function
        if function is not self.function:
            self._looked_into.add(function)
        return self.values.get(node, UNKNOWN)

    def _note_foreign_callers(self) -> None:
        """What other files hand to functions that this file itself does not call."""
        if self.imports is None:
            return
        for function in self.scopes.functions:
            function.foreign_callers = self.imports.callers(function)
            for call in function.foreign_callers:
                self.noted.note_call_grad(function, call.grad_enabled)
                self._hand_over(function, call.given, bound=function.cls is not None)

    def rehearse(self, function: Function, given: Arguments, grad: bool | None, *, bound: bool) -> Value:
        """What the function returns when it is given these arguments, seen from another file. Nothing is kept."""
        if function.is_procedure:
            return NONE
        if function in self.rehearsing or len(self.rehearsing) == _REHEARSALS:
            settled: Value = self.known.returns.get(function, UNKNOWN)
            return settled
        key = (function, tuple(given.positional), tuple(given.keywords.items()), given.open, grad, bound)
        if key not in self._rehearsed:
            self._rehearsed[key] = self._rehearse(function, given, grad, bound)
        return self._rehearsed[key]

    def _rehearse(self, function: Function, given: Arguments, grad: bool | None, bound: bool) -> Value:
        before = self.known, self.noted, self.values, self.env, self.grad, self.function, self.looks_elsewhere
        self.noted, self.values = Tables(), {}
        self._hand_over(function, given, bound=bound)
        handed = self.noted.parameters.get(function, {})
        self.known = self.known.for_one_call(function, handed, grad)
        self.rehearsing = (*self.rehearsing, function)
        try:
            self._run_function(function)
            returned: Value = self.noted.returns.get(function, UNKNOWN)
            return returned
        finally:
            self.rehearsing = self.rehearsing[:-1]
            self.known, self.noted, self.values, self.env, self.grad, self.function, self.looks_elsewhere = before

    def _run_function(self, function: Function) -> None:
        self.function = function
        self.looks_elsewhere = function.cls is None or not function.cls.is_module or function.cls.is_lightning
        self.env = {}
        self.grad = self.base_grad(function)
        if isinstance(function.node, cst.Module):
            self._block(function.node.body)
            return
        self._bind_parameters(function)
        if isinstance(function.node, cst.Lambda):
            self.noted.note_return(function, self.eval(function.node.body))
        elif self._suite(function.node.body) and not function.is_generator:
            self.noted.note_return(function, UNKNOWN if is_placeholder(function) else NONE)

    _enclosing_grad: bool | None = True  # of the module body, once it has switched gradients for good

    def base_grad(self, function: Function) -> bool | None:
        """Whether gradients are on when the function begins: off only if a decorator or every caller says so."""
        if function.decorators:
            state = self.grad_modes.of_decorators(function)
            if state.switches:
                return state.enabled
        made = self.grad_modes.of_construction(function)
        if made.switches and not made.enabled:
            return made.enabled
        if frameworks.is_metric_update(function):
            return None
        grads = self.known.call_grads.get(function)
        if not grads:
            return self._enclosing_grad
        if function.passed_around:  # others that it is handed to may call it, too
            return None if grads == {False} else self._enclosing_grad
        return None if grads == {None} else grads != {False} and (True in grads or None)

    def _bind_parameters(self, function: Function) -> None:
        assert not isinstance(function.node, cst.Module)
        params = function.node.params
        for param in [*params.posonly_params, *params.params, *params.kwonly_params]:
            binding = self.scopes.bindings[param.name]
            value = self._parameter(function, param.name.value)
            self.env[binding] = value
            self.values[param.name] = value
            self.noted.note_binding(binding, value)
        handed = self.known.parameters.get(function, {})
        for star, kind in ((params.star_arg, Kind.TUPLE), (params.star_kwarg, Kind.DICT)):
            if isinstance(star, cst.Param):
                self.env[self.scopes.bindings[star.name]] = handed.get(star.name.value, Value(kind))

    def _parameter(self, function: Function, name: str) -> Value:
        if isinstance(function.node, cst.Module):
            return UNKNOWN
        params = function.node.params
        listed = [*params.posonly_params, *params.params, *params.kwonly_params]
        param = next((p for p in listed if p.name.value == name), None)
        if param is None:
            handed: Value = self.known.parameters.get(function, {}).get(name, UNKNOWN)
            return handed
        if function.cls is not None and function.params[0] == name and not function.is_static:
            return self._self_value(function)
        value = self.known.parameters.get(function, {}).get(name)
        annotated = frameworks.parameter(function, name) or self._annotation(param.annotation)
        if value is None or value.kind is Kind.UNKNOWN:
            value = annotated if annotated is not None else (value or self._accelerator_by_default(param))
        if param.default is not None and isinstance(param.default, cst.Name) and param.default.value == "None":
            value = value.but(optional=True)
        return self.refined(self.scopes.bindings[param.name], value)

    def _accelerator_by_default(self, param: cst.Param) -> Value:
        """`device="cuda"`, of a function whose callers are out of sight: what lives there may be on a GPU."""
        default = self.known.defaults.get(param.default, UNKNOWN) if param.default is not None else UNKNOWN
        if default.kind is Kind.DEVICE:
            return Value(Kind.DEVICE, place=default.place) if default.place is Place.ACCELERATOR else UNKNOWN
        is_name = isinstance(default.constant, str) and default.constant.startswith(_ACCELERATORS)
        return Value(Kind.DEVICE, place=Place.ACCELERATOR) if is_name else UNKNOWN

    def _self_value(self, function: Function) -> Value:
        assert function.cls is not None
        if function.takes_class:
            return Value(Kind.CLASS, ref=function.cls.ref, origins=frozenset([function.cls.node]))
        return Value(function.cls.kind, ref=function.cls.ref)

    def _annotation(self, annotation: cst.Annotation | None) -> Value | None:
        if annotation is None:
            return None
        node = annotation.annotation
        if isinstance(node, cst.Subscript):
            name = self.names.qualified(node.value)
            if name is not None and name.startswith("jaxtyping.") and len(node.slice) == 2:
                return self._jaxtyping(node)
            if name == "typing.Optional" and isinstance(node.slice[0].slice, cst.Index):
                return self._optional(self._annotated_as(node.slice[0].slice.value))
            return _ANNOTATIONS.get(name or "")
        if isinstance(node, cst.BinaryOperation):
            return self._optional(self._annotated_as(node.left))
        return self._annotated_as(node)

    @staticmethod
    def _optional(value: Value | None) -> Value | None:
        return value.but(optional=True) if value is not None else None

    def _annotated_as(self, node: cst.BaseExpression) -> Value | None:
        """What a name, or a string, says that a value is: one of torch's nouns, a class of the file, or a module."""
        name = string_value(node) or self.names.qualified(node) or ""
        if name in _ANNOTATIONS:
            return _ANNOTATIONS[name]
        if frameworks.is_owner(name):
            return Value(Kind.INSTANCE, ref=name)
        cls = self._classes_by_name.get(name)
        if cls is not None:
            return Value(cls.kind, ref=cls.ref)
        is_module = (words.class_kind(name) or self._kind_in_project(name)) is Kind.MODULE
        return Value(Kind.MODULE, ref=self.named(name).ref) if is_module else None

    @staticmethod
    def _jaxtyping(node: cst.Subscript) -> Value:
        index = node.slice[1].slice
        rank = None
        if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
            text = index.value.evaluated_value
            if isinstance(text, str) and "*" not in text and "..." not in text:
                rank = len(text.split())
        return Value(Kind.TENSOR, rank=rank)

    # -- statements --------------------------------------------------------------------------------------------------

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
            self.assign(target.target, loss_and_others(node.value, value, target.target))
        self._shape_unpacking(node)

    def _return(self, node: cst.Return) -> bool:
        value = self.eval(node.value) if node.value is not None else NONE
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

    def _while(self, node: cst.While) -> bool:
        outer, self._breaks = self._breaks, False
        self._loop_body(node, lambda: self.eval(node.test))
        ends = self._breaks or not (isinstance(node.test, cst.Name) and node.test.value == "True")
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
        """`torch.set_grad_enabled(False)` as a statement rules what follows; so does a context that a stack enters."""
        if not isinstance(node, cst.Call):
            return
        if self.names.qualified(node.func) == "torch.set_grad_enabled":
            self.grad = self.grad_modes.of_call(node).enabled
            if self.function.is_module:
                self._enclosing_grad = self.grad
        elif self.scopes.call_of[node].method == "enter_context" and node.args:
            state = self.grad_modes.of_context(node.args[0].value)
            self.grad = state.enabled if state.switches else self.grad

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
