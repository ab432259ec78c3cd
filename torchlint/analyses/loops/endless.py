"""Generators without end, such as `while True: yield from loader`: each of their rounds is an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.dataflow import parameter_of_function
from torchlint.semantics.tree import is_name

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function, Loop
    from torchlint.semantics.model import Model


class Endless(NamedTuple):
    """A call of such a generator, and what it begins again in each round."""

    given: cst.BaseExpression
    read: cst.BaseExpression  # where the generator draws from what it is given
    rounds: Loop
    home: Model  # of the file of the generator


def endless_draws(model: Model, call: Call) -> Iterator[Endless]:
    """What a call gives to a generator without end."""
    elsewhere = model.elsewhere(call)
    home, function = (model, call.target) if call.target is not None else elsewhere or (model, None)
    if function is None or not function.is_generator or function.cls is not None:
        return
    for arg in call.arguments:
        parameter = parameter_of_function(call, function, arg)
        for read in parameter.reads if parameter is not None and len(parameter.writes) == 1 else ():
            rounds = _rounds(home, read, function)
            if rounds is not None and _begins(home, read):
                yield Endless(arg.value, read, rounds, home)
                break


def _rounds(home: Model, read: cst.CSTNode, function: Function) -> Loop | None:
    """The loop without end around a node."""
    loops = (loop for loop in home.loops_around(read) if loop.function is function)
    return next((loop for loop in loops if isinstance(loop.node, cst.While) and _is_true(loop.node.test)), None)


def _is_true(test: cst.BaseExpression) -> bool:
    return is_name(test, "True") or (isinstance(test, cst.Integer) and test.evaluated_value != 0)


def _begins(home: Model, read: cst.CSTNode) -> bool:
    """`for batch in loader`, `yield from loader`, `batches = iter(loader)`, `loader.__iter__()`."""
    match home.parent(read):
        case cst.For(iter=over):
            return over is read
        case cst.From():
            return True
        case cst.Attribute(attr=cst.Name(value="__iter__")):
            return True
        case cst.Arg() as arg:
            site = home.parent(arg)
            return isinstance(site, cst.Call) and home.call(site).callee == "builtins.iter"
    return False
