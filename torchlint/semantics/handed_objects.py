"""Calls of methods of objects that one file makes and another is given: `main.py` gives the meters of `metrics.py` to
`train.py`, which imports neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.calls_between import NamesThere, classes_of
from torchlint.semantics.dataflow import parameter_at, parameter_of
from torchlint.semantics.heirs import class_of_receiver
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function
    from torchlint.semantics.model import Model

_CONTAINERS = (Kind.LIST, Kind.TUPLE, Kind.DICT, Kind.SET)
_WALKING = frozenset(["builtins.enumerate", "builtins.zip", "builtins.reversed", "builtins.list", "builtins.tuple"])
_ENTRIES = frozenset(["items", "values"])
_MOST_USES = 200


def calls_on_handed(model: Model, there: NamesThere) -> Iterator[tuple[str, Model, Call]]:
    """The calls that other files make of objects which a file hands to them, with the names that the methods have in
    the file that defines the classes, and the models of those that call."""
    for call in model.calls:
        if call.target is not None or not call.arguments:
            continue
        for arg in call.arguments:
            owners, is_listed = _owners(model, model.value(arg.value), there)
            entered = _entered(model, call) if owners else None
            if entered is None:
                continue
            home, function, params = entered
            parameter = parameter_at(call, function, params, arg)
            if parameter is None:
                continue
            for method, use in _uses(home, parameter, is_listed):
                yield from ((there.method(owner, method), home, use) for owner in owners)


def _owners(model: Model, value: Value, there: NamesThere) -> tuple[list[str], bool]:
    """The classes of an object, or of those in a list or a dict, by the names that they have in their file."""
    is_listed = value.is_(*_CONTAINERS)
    parts = [value.element, *(value.items or ()), *(part for _, part in value.known_fields)] if is_listed else [value]
    objects = (part for part in parts if part is not None and part.kind is Kind.INSTANCE)
    names = (there.of(name) for part in objects for name in classes_of(model, part))
    return sorted({name for name in names if name is not None}), is_listed


def _entered(model: Model, call: Call) -> tuple[Model, Function, Sequence[str]] | None:
    """The function of another file that a call runs, and the parameters that its arguments fill."""
    if call.callee is not None:
        plain = model.function_behind(Value(Kind.FUNCTION, ref=call.callee))
        if plain is not None and plain[1].cls is None:
            return *plain, plain[1].params
        name, method = call.callee, "__init__"
    elif call.method is not None:
        name, method = class_of_receiver(model, call) or "", call.method
    else:
        return None
    behind = model.class_behind(name) if name else None
    function = behind[1].method(method) if behind is not None and behind[0] is not model else None
    if behind is None or function is None:
        return None
    return behind[0], function, function.params if function.is_static else function.params[1:]


def _uses(home: Model, parameter: Binding, is_listed: bool) -> Iterator[tuple[str, Call]]:
    """The calls of what a parameter holds, or of each of the objects in it, with the names of the methods."""
    seen: set[Binding] = set()
    work: list[tuple[cst.CSTNode, bool]] = []

    def follow(binding: Binding | None, listed: bool) -> None:
        if binding is not None and binding not in seen:
            seen.add(binding)
            work.extend((read, listed) for read in binding.reads)

    follow(parameter, is_listed)
    for node, listed in work:  # it grows while the loop runs
        if len(work) > _MOST_USES:
            return
        match home.parent(node):
            case cst.Attribute(value=value, attr=attr) as method if value is node:
                site = home.parent(method)
                if isinstance(site, cst.Call) and site.func is method:
                    if not listed:
                        yield attr.value, home.call(site)
                    elif attr.value in _ENTRIES:
                        work.append((site, True))
            case cst.Call(func=func) as site if func is node and not listed:
                yield "__call__", home.call(site)
            case cst.Subscript(value=value) as part if value is node and listed:
                work.append((part, False))
            case cst.For(iter=iterable, target=target) | cst.CompFor(iter=iterable, target=target) if (
                iterable is node and listed
            ):
                for name in walk(target):
                    follow(home.binding(name) if isinstance(name, cst.Name) else None, False)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() | cst.Attribute() as target)], value=value) if (
                value is node
            ):
                binding = home.binding(target)
                follow(binding if binding is not None and len(binding.writes) == 1 else None, listed)
            case cst.Arg() as arg:
                above = home.parent(arg)
                if isinstance(above, cst.Call) and listed and home.call(above).callee in _WALKING:
                    work.append((above, True))
                elif isinstance(above, cst.Call):
                    follow(parameter_of(home.call(above), arg), listed)
