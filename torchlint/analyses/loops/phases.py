"""Conditions that are true in training and false in evaluation: `phase == "train"`, or a flag that callers set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import bare_text, given_to, text
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function, Guard
    from torchlint.semantics.foreign import ForeignCall
    from torchlint.semantics.model import Model
    from torchlint.semantics.values import Value

Truths = frozenset[bool]  # what a condition can be, as far as all who decide it are in sight; empty where they are not
_BOTH: Truths = frozenset({True, False})
_NOBODY: Truths = frozenset()
_PHASES = re.compile(r"(?i)^\W*(train|training|val|valid|validation|test|eval|evaluation|dev)\W*$")
_DEPTH = 4


def separates_phases(guard: Guard, model: Model) -> bool:
    """Whether what a condition guards runs in one phase, and the code around it in two."""
    return guard.test is not None and truths(guard.test, model) == _BOTH


def condition(guard: Guard, model: Model) -> str:
    """The condition of a guard, as code that is True where the guarded code runs and False elsewhere."""
    test, holds = guard.test, guard.branch == "body"
    assert test is not None
    while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, holds = test.expression, not holds
    if isinstance(test, cst.Name) and any(_is_given(value) is False for value in _held(test, model, 0)):
        return f"{bare_text(test)} is not None" if holds else f"{bare_text(test)} is None"
    if holds:
        return bare_text(test)
    return f"not {text(test)}" if isinstance(test, (cst.Name, cst.Attribute)) else f"not ({bare_text(test)})"


def calls_setting(test: cst.BaseExpression, state: bool, model: Model, depth: int = 0) -> Iterator[Call]:
    """The calls of this file that give a condition, which is a parameter or the opposite of one, a state."""
    while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test, state = test.expression, not state
    parameter = model.binding(test)
    if parameter is None or not parameter.is_parameter or depth > _DEPTH:
        return
    for call in parameter.scope_function.callers:
        given = next(given_to(call, parameter), None)
        if given is not None and _truth(model.value(given)) is state:
            yield call
        elif given is not None:
            yield from calls_setting(given, state, model, depth + 1)


def truths(test: cst.BaseExpression, model: Model, depth: int = 0) -> Truths:
    """The values that a condition takes."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return frozenset(not truth for truth in truths(inner, model, depth))
        case cst.Comparison(
            comparisons=[
                cst.ComparisonTarget(operator=cst.Equal() | cst.NotEqual(), comparator=cst.SimpleString(value=word))
            ]
        ) if _PHASES.match(word):
            return _BOTH
        case cst.Comparison(
            left=cst.Name() as name,
            comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot() as operator, comparator=other)],
        ) if model.value(other).kind is Kind.NONE:
            present = _known(map(_is_given, _held(name, model, depth)))
            return present if isinstance(operator, cst.IsNot) else frozenset(not state for state in present)
        case cst.Attribute(attr=cst.Name(value="training"), value=module) if model.value(module).is_(Kind.MODULE):
            return _BOTH
        case cst.Name():
            source = _sole_source(test, model)
            if source is not None and depth < _DEPTH:
                return truths(source, model, depth + 1)
            return _known(_truth(value) for value in _held(test, model, depth))
    return _NOBODY


def _known(states: Iterable[bool | None]) -> Truths:
    """Of a flag or an optimizer: who leaves it out evaluates, so somebody who hands in what is not known trains."""
    found = frozenset(states)
    if None in found:
        return _BOTH if False in found else _NOBODY
    return found  # type: ignore[return-value]


def _truth(value: Value) -> bool | None:
    if value.is_(Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER):
        return None if value.optional else True
    if value.kind is Kind.NONE:
        return False
    return value.constant if isinstance(value.constant, bool) else None


def _is_given(value: Value) -> bool | None:
    """Whether a value is something other than None."""
    if value.kind is Kind.NONE:
        return False
    return None if value.kind is Kind.UNKNOWN or value.optional else True


def _sole_source(name: cst.Name, model: Model) -> cst.BaseExpression | None:
    """What a variable is assigned to, where that happens once."""
    binding = model.binding(name)
    if binding is None or len(binding.writes) != 1:
        return None
    write = binding.writes[0]
    return write.value if write.kind == "assign" and not write.unpacked else None


# -- parameters


def _held(name: cst.Name, model: Model, depth: int) -> list[Value]:
    """What all calls of a function, in this file and in others, give to a parameter that nothing else is put into."""
    binding = model.binding(name)
    if binding is None or [write.kind for write in binding.writes] != ["parameter"]:
        return []
    function = binding.scope_function
    if function.passed_around:
        return []
    default = default_of(function, binding.name, model)
    found: list[Value | None] = []
    for call in function.callers:
        found += _given(call, binding, default, model, depth)
    found += [_given_by_foreign(call, function, binding.name, default) for call in function.foreign_callers]
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else []


def _given(call: Call, parameter: Binding, default: Value | None, model: Model, depth: int) -> list[Value | None]:
    given = next(given_to(call, parameter), None)
    if given is None:
        return [None if any(arg.star for arg in call.arguments) else default]
    if isinstance(given, cst.Name) and depth < _DEPTH:
        handed_on = _held(given, model, depth + 1)
        if handed_on:
            return [*handed_on]
    return [model.value(given)]


def _given_by_foreign(call: ForeignCall, function: Function, name: str, default: Value | None) -> Value | None:
    if name in call.given.keywords:
        return call.given.keywords[name]
    if call.given.open:
        return None
    params = function.params[function.cls is not None and not function.is_static :]
    place = params.index(name) if name in params else len(params)
    return call.given.positional[place] if place < len(call.given.positional) else default


def default_of(function: Function, name: str, model: Model) -> Value | None:
    """What a parameter holds where a call leaves it out; None where it has to be given."""
    params = function.node.params if isinstance(function.node, cst.FunctionDef) else None
    for param in [*params.posonly_params, *params.params, *params.kwonly_params] if params is not None else ():
        if param.name.value == name and param.default is not None:
            return model.value(param.default)
    return None
