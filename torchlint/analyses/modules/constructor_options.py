"""Options that a class is built with, or a function called, and what it leaves out then: `if norm == "batch":`."""

from __future__ import annotations

from operator import ge, gt, le, lt
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.phases import default_of
from torchlint.semantics.tree import walk
from torchlint.semantics.values import UNKNOWN, Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Class, Function
    from torchlint.semantics.model import Model

_ORDER = {cst.GreaterThan: gt, cst.GreaterThanEqual: ge, cst.LessThan: lt, cst.LessThanEqual: le}
_CHOOSING = (cst.Equal, cst.NotEqual, cst.Is, cst.IsNot, cst.In, cst.NotIn)

Given = dict[str, Value]
"""Numbers, strings and None that parameters of a constructor hold, by name; those that are not known are left out."""


def arguments_of(model: Model, call: Call, home: Model, cls: Class, given: Given) -> Given:
    """What the constructor of a class is given where a call makes an object.

    home: the model of the file of the class. given: what the parameters around the call hold.
    """
    builder = cls.method("__init__")
    if builder is None or builder.module != home.name:
        return {}
    return parameters_of(model, call, home, builder, given)


def parameters_of(model: Model, call: Call, home: Model, function: Function, given: Given) -> Given:
    """What the parameters of a function hold that a call enters."""
    found: Given = {}
    bound = function.cls is not None and not function.is_static
    for place, name in enumerate(list(function.params)[bound:]):
        argument = call.argument(name, place)
        if argument.node is not None:
            value: Value | None = _value(model, argument.node, given)
        else:
            value = default_of(function, name, home) if argument.absent else None
        if value is not None and _is_known(value):
            found[name] = value
    return found


def zeros_by_default(home: Model, cls: Class) -> Given:
    """The parameters of the constructor that are 0 unless it is told otherwise, of an object whose making is not in
    sight: `dropout=0.0`."""
    builder = cls.method("__init__")
    if builder is None or builder.module != home.name:
        return {}
    defaults = ((name, default_of(builder, name, home)) for name in builder.params)
    return {name: value for name, value in defaults if value is not None and _is_zero(value)}


def given_where_made(model: Model, node: cst.CSTNode) -> Given:
    """What the parameters hold of the function in which a network is made: all its callers agree upon it, or one of
    them leaves something out by a 0. Of a function that nobody calls here, what it holds by default."""
    function = model.function(node)
    if not function.callers:
        defaults = ((name, default_of(function, name, model)) for name in function.params)
        return {name: value for name, value in defaults if value is not None and _is_known(value)}
    given = [parameters_of(model, call, model, function, {}) for call in function.callers]
    found: Given = {}
    for name in {name for each in given for name in each}:
        values = [each.get(name, UNKNOWN) for each in given]
        zero = next(filter(_is_zero, values), None)
        agreed = all(_is_known(value) and value.constant == values[0].constant for value in values)
        if zero is not None or agreed:
            found[name] = zero or values[0]
    return found


def option(model: Model, call: Call, name: str, position: int | None, given: Given) -> Value:
    """What an argument of a call holds that stands in a function with these parameters."""
    argument = call.argument(name, position)
    return _value(model, argument.node, given) if argument.node is not None else argument.value


def _is_zero(value: Value) -> bool:
    return value.constant == 0 and not isinstance(value.constant, bool)


def can_run(model: Model, call: Call, given: Given, where: cst.CSTNode | None = None) -> bool:
    """Whether a constructor comes to one of its calls, or comes to it once it comes to `where`. A choice that is not
    known may leave it out."""
    if is_ruled_out(model, call, given):
        return False
    passed = [guard.node for guard in model.guards(where)] if where is not None else []
    tests = [guard.test for guard in model.guards(call.node) if guard.test is not None and guard.node not in passed]
    return not any(_truth(model, test, given) is None and _is_choice(model, test, call.function) for test in tests)


def is_ruled_out(model: Model, call: Call, given: Given) -> bool:
    """Whether a function does not come to one of its calls with what it is given."""
    guards = [(guard.test, guard.branch == "body") for guard in model.guards(call.node) if guard.test is not None]
    return any(_truth(model, test, given) is (not branch) for test, branch in guards)


def _is_choice(model: Model, test: cst.BaseExpression, builder: Function) -> bool:
    """`norm == "batch"` or `use_norm` of a parameter, unlike `dropout > 0`: of numbers the usual one is not nothing."""
    if isinstance(test, cst.Comparison) and not isinstance(test.comparisons[0].operator, _CHOOSING):
        return False
    bindings = (model.binding(node) for node in walk(test) if isinstance(node, cst.Name))
    return any(
        binding is not None and binding.is_parameter and binding.scope_function is builder for binding in bindings
    )


def _is_known(value: Value) -> bool:
    return value.kind is Kind.NONE or value.constant is not None


def _value(model: Model, expression: cst.BaseExpression, given: Given) -> Value:
    binding = model.binding(expression)
    if binding is None or not binding.is_parameter:
        return model.value(expression)
    written = any(write.kind != "parameter" for write in binding.writes)
    return UNKNOWN if written else given.get(binding.name, UNKNOWN)


def _truth(model: Model, test: cst.BaseExpression, given: Given) -> bool | None:
    """Whether a test holds; None where that is not known."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            holds = _truth(model, inner, given)
            return None if holds is None else not holds
        case cst.BooleanOperation(left=left, operator=operator, right=right):
            decides = isinstance(operator, cst.Or)
            sides = {_truth(model, side, given) for side in (left, right)}
            return decides if decides in sides else (None if None in sides else not decides)
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=other)]):
            a, b = _value(model, left, given), _value(model, other, given)
            if not _is_known(a) or not _is_known(b):
                return None
            if isinstance(operator, (cst.Equal, cst.Is)):
                return bool(a.constant == b.constant)
            if isinstance(operator, (cst.NotEqual, cst.IsNot)):
                return bool(a.constant != b.constant)
            compare = _ORDER.get(type(operator))
            if compare is not None and isinstance(a.constant, (int, float)) and isinstance(b.constant, (int, float)):
                return bool(compare(a.constant, b.constant))
            return None
    value = _value(model, test, given)
    return bool(value.constant) if _is_known(value) else None
