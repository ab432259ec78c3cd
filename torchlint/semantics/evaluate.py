"""Evaluating a file: every function runs, in rounds, until what they know of each other settles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import frameworks
from torchlint.semantics.class_bodies import is_placeholder
from torchlint.semantics.entities import Function
from torchlint.semantics.names import Names
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.statements import Statements
from torchlint.semantics.summaries import Run, Tables, no_answers
from torchlint.semantics.transfer import Arguments
from torchlint.semantics.values import NONE, UNKNOWN, Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.foreign import ForeignCall, Imports

_ROUNDS = 6
_REHEARSALS = 3  # of functions that are called in one another
_NESTED_RUNS = 20


class Evaluator(Statements):
    """Runs over the file until what functions know of each other no longer changes."""

    def __init__(self, scopes: Scopes, names: Names, imports: Imports | None = None) -> None:
        super().__init__(scopes, names, imports)
        self._runs: dict[Function, Run] = {}  # the last of each function
        self._running: list[Function] = []
        self._is_first_round = True
        self._rehearsed: dict[object, Value] = {}

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
        for function in self.scopes.functions:
            if not function.callers:
                self._enter_from_elsewhere(function)  # again: what is left out there is known now, by its default
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
        rehearsed, self._rehearsed = self._rehearsed, {}
        self.noted.journal, self.grads, self._looked_into, answers = [], {}, set(), no_answers()
        self.known.note_answers(answers)
        self._running.append(function)
        self._run_function(function)
        self._running.pop()
        run = Run(self.noted.journal, self.grads, answers, self._looked_into)
        self.env, self.grad, self.function, self.looks_elsewhere, self._ends, self._breaks, self.unbound = variables
        self._rehearsed = rehearsed
        self.noted.journal, self.grads, self._looked_into, before = outer
        self.known.note_answers(before)
        return run

    def run_first(self, function: Function) -> None:
        """In the first round a function runs when it is first called, so that the caller knows what it returns."""
        if not self._is_first_round or function in self._runs or function in self._running:
            return
        if len(self._running) < _NESTED_RUNS:
            self._runs[function] = self._recorded_run(function)

    def _note_foreign_callers(self) -> None:
        """What other files hand to functions that this file itself does not call."""
        if self.imports is None:
            return
        for function in self.scopes.functions:
            function.foreign_callers = self.imports.callers(function)
            self._enter_from_elsewhere(function)

    def _enter_from_elsewhere(self, function: Function) -> None:
        for call in function.foreign_callers:
            self.noted.note_call_grad(function, call.grad_enabled)
            self._hand_over(function, self._as_given(call), bound=function.cls is not None)

    def _as_given(self, call: ForeignCall) -> Arguments:
        """What another file hands to a function: what it knows of that, or what the function returns that made it."""
        given: dict[int | str, Value] = {**dict(enumerate(call.given.positional))}
        given.update(call.given.keywords.items())
        for key, name, part in call.handed_back:
            maker = next((function for function in self.scopes.functions if function.qualname == name), None)
            if maker is None or key not in given or given[key].kind is not Kind.UNKNOWN:
                continue
            self.run_first(maker)
            made: Value = self.known.returns.get(maker, UNKNOWN)
            parts = [made] if part is None else [*(made.items or ())][part : part + 1]
            given[key] = parts[0] if parts else UNKNOWN
        positional = [given[place] for place in range(len(call.given.positional))]
        keywords = {name: given[name] for name in call.given.keywords}
        return Arguments(positional, keywords, call.given.open, call.given.starred)

    def rehearse(self, function: Function, given: Arguments, grad: bool | None, *, bound: bool) -> Value:
        """What the function returns when it is given these arguments. Nothing is kept."""
        if function.is_procedure:
            return NONE
        if function in self.rehearsing or len(self.rehearsing) == _REHEARSALS:
            settled: Value = self.known.returns.get(function, UNKNOWN)
            return settled
        # Within other rehearsals it may be cut short: what is asked first must not decide what is found.
        arguments = tuple(given.positional), tuple(given.keywords.items()), given.open
        key = (self.rehearsing, function, arguments, grad, bound)
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
        self.looks_elsewhere = not function.is_of_network
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
        if frameworks.is_formula(function):
            return None if function.name == "backward" else False
        grads = self.known.call_grads.get(function)
        if frameworks.is_evaluation(function):
            grads = {False, *(grads or ())}
        if not grads:
            return self._grad_around(function)
        if function.passed_around:  # others that it is handed to may call it, too
            return None if grads == {False} else self._enclosing_grad
        return None if grads == {None} else grads != {False} and (True in grads or None)

    def _grad_around(self, function: Function) -> bool | None:
        """For a function that nothing in sight calls: one within a function runs while that does, if at all, unless it
        is handed out."""
        outer = function.parent
        if outer is None or outer.is_module or self.base_grad(outer) is not False:
            return self._enclosing_grad
        return None if function.passed_around else False

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
