"""What a function does only where a call asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import parameter_of_function
from torchlint.semantics.guards import conjuncts
from torchlint.semantics.signatures import Signature

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function, Loop
    from torchlint.semantics.model import Model


def is_option(model: Model, node: cst.CSTNode, function: Function) -> bool:
    """Whether calls in other files alone say if a function comes to a node: `if debug:`, `if mode == "peak":`."""
    if function.callers or function.foreign_callers or function.is_step:
        return False
    if function.cls is not None or not any(True for _ in model.calls_elsewhere(function)):
        return False
    for guard in model.guards(node):
        for part in conjuncts(guard.test) if guard.test is not None else ():
            match part:
                case cst.Name() | cst.UnaryOperation(operator=cst.Not(), expression=cst.Name()):
                    asked = part if isinstance(part, cst.Name) else part.expression
                case cst.Comparison(left=cst.Name() as asked, comparisons=[target]) if isinstance(
                    target.comparator, cst.SimpleString
                ):
                    pass
                case _:
                    continue
            binding = model.binding(asked)
            if binding is not None and binding.is_parameter and binding.scope_function is function:
                return True
    return False


def is_left_off(model: Model, asked: cst.BaseExpression) -> bool:
    """`flag` of `if flag:`, a parameter that is False where no call gives it: the calls in sight, some of them in other
    files, leave it so, or ask for it in their first round only."""
    parameter = model.binding(asked) if isinstance(asked, cst.Name) else None
    if parameter is None or not parameter.is_parameter or len(parameter.writes) > 1:
        return False
    function = parameter.scope_function
    if not _is(Signature.of(function).defaults.get(parameter.name), "False"):
        return False
    if function.passed_around or any(call.target is not function for call in function.callers):
        return False
    elsewhere = list(model.calls_elsewhere(function))
    if len(elsewhere) < len(function.foreign_callers):
        return False
    calls = [*((model, call) for call in function.callers), *elsewhere]
    return bool(calls) and all(_leaves_off(home, call, parameter) for home, call in calls)


def _leaves_off(home: Model, call: Call, parameter: Binding) -> bool:
    function = parameter.scope_function
    given = [arg.value for arg in call.node.args if parameter_of_function(call, function, arg) is parameter]
    is_open = any(arg.star for arg in call.arguments)
    return not is_open and all(_is(value, "False") or _is_soon_off(home, call, value) for value in given)


def _is_soon_off(home: Model, call: Call, given: cst.BaseExpression) -> bool:
    """`first` where `first = True` stands before the loop around a call, and `first = False` in it."""
    binding = home.binding(given) if isinstance(given, cst.Name) else None
    loop = call.loop
    if binding is None or loop is None or binding.shared:
        return False
    known = all(write.kind == "assign" and not write.unpacked for write in binding.writes)
    inside = [write for write in binding.writes if write.loop is not None and loop in write.loop.around()]
    return (
        known
        and any(_ends_round(home, loop, write.target) for write in inside)
        and all(_is(write.value, "False" if write in inside else "True") for write in binding.writes)
    )


def _ends_round(home: Model, loop: Loop, target: cst.CSTNode) -> bool:
    """Whether an assignment runs in every round."""
    return home.loop(target) is loop and not home.guards(target, inside=loop)


def _is(value: cst.BaseExpression | None, constant: str) -> bool:
    return isinstance(value, cst.Name) and value.value == constant
