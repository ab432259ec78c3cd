"""Loops that run once for a module, when it is built, or read a few numbers of the host: nothing waits for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.steps import is_forward
from torchlint.semantics.guards import conjuncts
from torchlint.semantics.values import Place
from torchlint.semantics.vocabulary import makes_tensor

if TYPE_CHECKING:
    from torchlint.semantics.entities import Function, Loop
    from torchlint.semantics.model import Model

_DEPTH = 4
_INITIALISES = re.compile(r"_*(init|initiali[sz]e|reset)_(weights?|param\w*)_*")
_PARAMETER = "torch.nn.Parameter"


def only_sets_up(model: Model, loop: Loop) -> bool:
    """Whether a loop without another in it or around it, but for comprehensions, runs in a constructor, in a method
    that initialises weights or that only constructors call, or until an attribute is there. Loops in loops, over all
    elements of a table, take their time all the same."""
    if loop.is_comprehension and loop.parent is not None:
        return only_sets_up(model, loop.parent)
    if loop.parent is not None or loop in model.once(_with_loops_inside):
        return False
    return (
        _makes_what_is_missing(model, loop.node)
        or builds(model, loop.function)
        or _makes_object(loop.function)
        or _puts_weights(model, loop.function)
    )


def _with_loops_inside(model: Model) -> set[Loop | None]:
    return {loop.parent for loop in model.loops if not loop.is_comprehension}


def builds(model: Model, function: Function) -> bool:
    """Whether a function runs once for a module: it is its constructor, initialises its weights, or only constructors
    call it."""
    return _builds(model, function, _DEPTH)


def lists_numbers(model: Model, loop: Loop) -> bool:
    """`[x.item() for x in torch.linspace(0, rate, depth)]`, which is a list of numbers spelled like this in every
    network with stochastic depth."""
    comprehension = model.parent(loop.node)
    made, each = loop.iterable, loop.target
    if not isinstance(comprehension, (cst.ListComp, cst.GeneratorExp)) or not isinstance(made, cst.Call):
        return False
    if not makes_tensor(model.call(made).callee or "") or model.value(made).place is not Place.HOST:
        return False
    if not isinstance(each, cst.Name):
        return False
    match comprehension.elt:
        case cst.Call(func=cst.Attribute(value=read, attr=cst.Name(value="item"))):
            return model.binding(read) is model.binding(each)
    return False


def _builds(model: Model, function: Function, depth: int) -> bool:
    if function.cls is None or not function.cls.is_module or not depth:
        return False
    if function.name == "__init__" or _INITIALISES.fullmatch(function.name):
        return True
    if any((call.callee or "").startswith("torch.nn.init.") for call in function.calls):
        return True
    if not function.callers or function.foreign_callers or any(True for _ in model.calls_elsewhere(function)):
        return False
    return all(_builds(model, call.function, depth - 1) and not call.loops() for call in function.callers)


def _makes_object(function: Function) -> bool:
    """Whether it is the constructor of anything but a dataset, which may go through all its samples."""
    return function.cls is not None and function.name == "__init__" and "__getitem__" not in function.cls.methods


def _puts_weights(model: Model, function: Function) -> bool:
    """`layer.weight = nn.Parameter(weight)`: the function makes another layer of one, and is no pass through it."""
    if is_forward(function):
        return False
    made = (model.parent(call.node) for call in function.calls if call.callee == _PARAMETER and not call.loops())
    return any(isinstance(put, cst.Assign) and isinstance(put.targets[0].target, cst.Attribute) for put in made)


def _makes_what_is_missing(model: Model, node: cst.CSTNode) -> bool:
    """`if not hasattr(self, "identity"): ...`"""
    return any(
        isinstance(part, cst.UnaryOperation)
        and isinstance(part.operator, cst.Not)
        and isinstance(part.expression, cst.Call)
        and model.call(part.expression).callee == "builtins.hasattr"
        for guard in model.guards(node)
        if guard.test is not None and guard.branch == "body"
        for part in conjuncts(guard.test)
    )
