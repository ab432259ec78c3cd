"""Callers that are in sight and switch autograd off: all of them, or the one that means the function at hand."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from torchlint.analyses.callers_by_name import calls_in_other_files, may_run_without_gradients
from torchlint.analyses.fate import Fate, Tracer
from torchlint.semantics.dataflow import parameter_of_function
from torchlint.semantics.outline import values_taken
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model
    from torchlint.source import Source

_DEPTH = 2
_TRIAL = re.compile(r"(?i)(^|_)(sanity|tests?|demo)(_|$)")


def is_off_abroad(model: Model, function: Function) -> bool:
    """Whether other files reach a function, and none of them with autograd on, or whether its own file switches it."""
    if function.callers and not any(model.grad_enabled(call.node) for call in function.callers):
        return True  # its own file switches it off: others that do not are the ones to do so
    entered = list(_entered(function))
    here = [model.grad_enabled(call.node) for entry in entered for call in entry.callers if call.function.is_module]
    if any(here):
        return False  # whatever other files do, which would have to be evaluated
    abroad = [grad for entry in entered for grad in _grads_abroad(model, entry)]
    return bool(here or abroad) and not any(abroad)


def is_trained_abroad(model: Model, function: Function, passes: Sequence[Call]) -> bool:
    """Whether other files take a function that its own file calls, too, perhaps only to try it, or hand it around, and
    may send backward what it returns of the passes in it."""
    if not Tracer(model).is_returned(function, *(call.node for call in passes)):
        return False
    if not function.callers:
        return _is_handed_around_abroad(model, function)
    abroad = calls_in_other_files(model, function)
    if not abroad:
        is_only_tried = all(call.function.is_module for call in function.callers)
        return is_only_tried and function.cls is None and model.is_taken_elsewhere(function.name) is True
    fates = (
        Tracer(home).of_expression(call.node) for home, call in abroad if home.grad_enabled(call.node) is not False
    )
    return any(fate & (Fate.BACKWARD | Fate.ESCAPES) for fate in fates)


def _is_handed_around_abroad(model: Model, function: Function) -> bool:
    """Whether its file or another one puts a function into a dict, or asks its module for what is named there, so that
    nobody sees who calls it, and a file from which it can be reached takes gradients."""
    if function.cls is not None or function.parent is None or not function.parent.is_module:
        return False
    users = model.users()
    names = {function.name, model.path.stem}
    if not any("backward(" in source.text for source in users):
        return False
    return function.passed_around or any(not names.isdisjoint(model.once_of(source, _values_taken)) for source in users)


def _values_taken(source: Source) -> frozenset[str]:
    return values_taken(source.text)


def _grads_abroad(model: Model, function: Function) -> list[bool | None]:
    """Whether autograd is on where other files call a function; trials count where there are no other calls."""
    abroad = calls_in_other_files(model, function)
    serious = [(home, call) for home, call in abroad if not _TRIAL.search(home.path.stem)]
    return [_grad_at(home, call) for home, call in serious or abroad]


def _grad_at(model: Model, call: Call, depth: int = _DEPTH) -> bool | None:
    """Whether autograd is on where a call stands, or else where all those stand that lead to its function."""
    enabled = model.grad_enabled(call.node)
    if enabled is not True or not depth or call.function.is_module:
        return enabled
    above = [(model, caller) for caller in call.function.callers] + calls_in_other_files(model, call.function)
    if not above:
        return not may_run_without_gradients(model, call.function)
    return any(_grad_at(home, caller, depth - 1) for home, caller in above)


def is_off_at_entries(model: Model, function: Function) -> bool:
    """Whether no call in sight leads to those functions of the file through which a function is reached, and each may
    run with autograd off."""
    entries = [entry for entry in _entered(function) if not entry.callers]
    return bool(entries) and all(may_run_without_gradients(model, entry) for entry in entries)


def is_chosen_with_autograd_off(model: Model, function: Function) -> bool:
    """Whether a function is one of those that a variable may hold, and the function that calls that variable runs with
    autograd off, too: `step = self.val_step if validation else self.train_step`."""
    choices = (call for call in function.callers if len(call.alternatives) > 1)
    return any(model.grad_enabled(call.node) is not True for choice in choices for call in _ways_to(choice))


def is_switched_on_one_way(model: Model, function: Function) -> bool:
    """Whether a caller switches autograd off on one of its ways to a function, and not on another: it is asked to."""
    ways: defaultdict[Function, set[bool | None]] = defaultdict(set)
    for call in function.callers:
        ways[call.function].add(model.grad_enabled(call.node))
    return any({True, False} <= found for found in ways.values())


def is_off_where_handed_to(model: Model, function: Function) -> bool:
    """Whether a function of another file, to which this one is handed, calls it with autograd off."""
    if not function.passed_around:
        return False
    handing = (call for call in model.calls if function in call.passes)
    return any(home.grad_enabled(inner.node) is False for call in handing for home, inner in _calls_back(model, call))


def _calls_back(model: Model, call: Call) -> Iterator[tuple[Model, Call]]:
    """The calls of its parameters that a function of another file makes where a call enters it."""
    elsewhere = model.elsewhere(call)
    if elsewhere is None:
        return
    home, entered = elsewhere
    handed = [arg for arg in call.node.args if model.value(arg.value).kind is Kind.FUNCTION]
    parameters = {parameter_of_function(call, entered, arg) for arg in handed} - {None}
    yield from ((home, inner) for inner in entered.calls if home.binding(inner.node.func) in parameters)


def _ways_to(call: Call) -> Iterator[Call]:
    yield call
    for entry in _entered(call.function):
        yield from entry.callers


def _entered(function: Function) -> Iterator[Function]:
    """A function and those of its file that lead to it."""
    entered = [function]
    for entry in entered:  # it grows while the loop runs
        yield entry
        entered.extend({call.function: None for call in entry.callers if call.function not in entered})
