"""The variables on the two paths of a branch: what a test of a value's type says there, and what is left behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import vocabulary as words
from torchlint.semantics.arguments import string_value
from torchlint.semantics.values import Kind, Place, Value, join

if TYPE_CHECKING:
    from torchlint.semantics.lookup import Env
    from torchlint.semantics.model import Model
    from torchlint.semantics.names import Names
    from torchlint.semantics.scopes import Scopes

_TENSORS = frozenset({"torch.Tensor", "torch.autograd.Variable", "torch.nn.Parameter"})
_NUMBERS = frozenset({"builtins.int", "builtins.float", "builtins.bool", "numbers.Number", "numpy.floating"})


def merge(first: Env, second: Env) -> Env:
    """The variables of two paths that meet. A name that only one path binds keeps that value."""
    if first is second:
        return first
    merged = dict(first)
    for binding, value in second.items():
        known = merged.get(binding)
        if known is not value:
            merged[binding] = value if known is None else join(known, value)
    return merged


def brought_back(merged: Env, behind: Env) -> Env:
    """The variables behind a loop: one that every iteration leaves on the host is taken to be there, although it may
    have been elsewhere before and the loop may run zero times."""
    found = {
        binding: value.but(place=Place.HOST)
        for binding, value in merged.items()
        if value.place is Place.ACCELERATOR and behind[binding].place is Place.HOST
    }
    return {**merged, **found} if found else merged


def ruled_out(env: Env, test: cst.BaseExpression, holds: bool, scopes: Scopes, names: Names) -> Env:
    """What variables are that would be tensors, where a test says that they are none: numbers."""
    asked = (scopes.bindings.get(node) for node in no_tensors(test, holds, names))
    return {binding: Value(Kind.NUMBER) for binding in asked if binding in env and env[binding].is_tensor}


def left(before: Env, then: Env, otherwise: Env, known: tuple[Env, Env]) -> Env:
    """The variables behind a branch of which both paths come out. A variable of which `known` said something on one of
    them is again what it was before, unless a path binds it."""
    merged = merge(then, otherwise)
    for binding in {**known[0], **known[1]}:
        paths = zip((then, otherwise), known, strict=True)
        if all(env.get(binding) is said.get(binding, before[binding]) for env, said in paths):
            merged[binding] = before[binding]
    return merged


def no_tensors(test: cst.BaseExpression, holds: bool, names: Names | Model) -> Iterator[cst.BaseExpression]:
    """The expressions that are no tensors where the test holds, or where it does not."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            yield from no_tensors(inner, not holds, names)
        case cst.BooleanOperation(left=left, operator=operator, right=right):
            if holds == isinstance(operator, cst.And):
                yield from no_tensors(left, holds, names)
                yield from no_tensors(right, holds, names)
        case cst.Comparison(
            left=cst.Call(func=function, args=[cst.Arg(value=asked)]),
            comparisons=[cst.ComparisonTarget(operator=operator, comparator=kind)],
        ) if names.qualified(function) == "builtins.type":
            is_same = isinstance(operator, (cst.Is, cst.Equal))
            excluded = _NUMBERS if holds is is_same else _TENSORS
            if (is_same or isinstance(operator, (cst.IsNot, cst.NotEqual))) and names.qualified(kind) in excluded:
                yield asked
        case cst.Call(func=function, args=[cst.Arg(value=asked), *others]):
            name = names.qualified(function)
            if holds and name == "builtins.isinstance" and _types(others, names) <= _NUMBERS:
                yield asked
            elif not holds:
                yield from [asked] if _asks_for_tensor(name, others, names) else []


def _asks_for_tensor(name: str | None, others: list[cst.Arg], names: Names | Model) -> bool:
    """`torch.is_tensor(x)`, `isinstance(x, torch.Tensor)`, and `hasattr(x, "item")`, which a number has not."""
    if name == "builtins.hasattr" and len(others) == 1:
        attribute = string_value(others[0].value)
        return attribute is not None and words.is_tensor_method(attribute)
    return name == "torch.is_tensor" or (name == "builtins.isinstance" and bool(_types(others, names) & _TENSORS))


def _types(others: list[cst.Arg], names: Names | Model) -> frozenset[str | None]:
    match others:
        case [cst.Arg(value=cst.Tuple(elements=elements))]:
            return frozenset(names.qualified(element.value) for element in elements)
        case [cst.Arg(value=one)]:
            return frozenset([names.qualified(one)])
    return frozenset([None])
