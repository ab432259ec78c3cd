"""Calls of methods of objects that one file makes and another is given: `main.py` gives the meters of `metrics.py` to
`train.py`, which imports neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.calls_between import NamesThere
from torchlint.semantics.dataflow import parameter_at, parameter_of
from torchlint.semantics.heirs import class_of_receiver
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call
    from torchlint.semantics.model import Model

_WALKING = frozenset(["builtins.enumerate", "builtins.zip", "builtins.reversed", "builtins.list", "builtins.tuple"])
_ENTRIES = frozenset(["items", "values"])
_MOST_USES = 200
_MOST_HOPS = 2  # files that hand an object on


def calls_on_handed(model: Model, there: NamesThere) -> Iterator[tuple[str, Model, Call]]:
    """The calls that other files make of objects which a file hands to them, and its own calls of what a function of
    the file that defines the classes has made; with the names that the methods have there, and the models of the files
    that call."""
    for call in model.calls:
        if call.target is not None:
            continue
        made = there.made(call.callee)
        if made.owners:
            yield from _named(_Uses(model, call.node, made.is_listed), made.owners, there)
        for arg in call.arguments:
            held = there.held(model, model.value(arg.value))
            parameter = _parameter(model, call, arg) if held.owners else None
            if parameter is not None:
                yield from _named(_Uses(*parameter, held.is_listed), held.owners, there)


def _named(uses: _Uses, owners: Sequence[str], there: NamesThere) -> Iterator[tuple[str, Model, Call]]:
    for method, home, use in uses:
        yield from ((there.method(owner, method), home, use) for owner in owners)


def _parameter(model: Model, call: Call, arg: cst.Arg) -> tuple[Model, Binding] | None:
    """The parameter of a function of another file that an argument fills."""
    if call.callee is not None:
        plain = model.function_behind(Value(Kind.FUNCTION, ref=call.callee))
        if plain is not None and plain[1].cls is None:
            found = parameter_at(call, plain[1], plain[1].params, arg)
            return (plain[0], found) if found is not None else None
        name, method = call.callee, "__init__"
    elif call.method is not None:
        name, method = class_of_receiver(model, call) or "", call.method
    else:
        return None
    behind = model.class_behind(name) if name else None
    function = behind[1].method(method) if behind is not None and behind[0] is not model else None
    if behind is None or function is None:
        return None
    found = parameter_at(call, function, function.params if function.is_static else function.params[1:], arg)
    return (behind[0], found) if found is not None else None


class _Place(NamedTuple):
    home: Model
    node: cst.CSTNode
    is_listed: bool  # the objects are in a list or a dict
    hops: int


class _Uses:
    """The calls of an object, or of each of those in a list or a dict, with the names of the methods."""

    def __init__(self, home: Model, source: Binding | cst.CSTNode, is_listed: bool) -> None:
        self._seen: set[Binding] = set()
        self._work: list[_Place] = []
        if isinstance(source, cst.CSTNode):
            self._work.append(_Place(home, source, is_listed, 0))
        else:
            self._follow(home, source, is_listed, 0)

    def __iter__(self) -> Iterator[tuple[str, Model, Call]]:
        for place in self._work:  # it grows while the loop runs
            if len(self._work) > _MOST_USES:
                return
            found = self._use(place)
            if found is not None:
                yield found[0], place.home, found[1]

    def _follow(self, home: Model, binding: Binding | None, is_listed: bool, hops: int) -> None:
        if binding is not None and binding not in self._seen:
            self._seen.add(binding)
            self._work.extend(_Place(home, read, is_listed, hops) for read in binding.reads)

    def _use(self, place: _Place) -> tuple[str, Call] | None:
        home, node, is_listed, hops = place
        match home.parent(node):
            case cst.Attribute(value=value, attr=attr) as method if value is node:
                site = home.parent(method)
                if isinstance(site, cst.Call) and site.func is method:
                    if not is_listed:
                        return attr.value, home.call(site)
                    if attr.value in _ENTRIES:
                        self._work.append(place._replace(node=site))
            case cst.Call(func=func) as site if func is node and not is_listed:
                return "__call__", home.call(site)
            case cst.Subscript(value=value) as part if value is node and is_listed:
                self._work.append(place._replace(node=part, is_listed=False))
            case cst.For(target=target) | cst.CompFor(target=target) if is_listed:
                for name in walk(target):
                    self._follow(home, home.binding(name) if isinstance(name, cst.Name) else None, False, hops)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() | cst.Attribute() as target)]):
                binding = home.binding(target)
                self._follow(home, binding if binding is not None and len(binding.writes) == 1 else None, *place[2:])
            case cst.Arg() as arg:
                self._hand_on(place, arg)
        return None

    def _hand_on(self, place: _Place, arg: cst.Arg) -> None:
        home, site = place.home, place.home.parent(arg)
        if not isinstance(site, cst.Call):
            return
        call = home.call(site)
        if place.is_listed and call.callee in _WALKING:
            self._work.append(place._replace(node=site))
        elif call.target is not None:
            self._follow(home, parameter_of(call, arg), *place[2:])
        elif place.hops < _MOST_HOPS and (parameter := _parameter(home, call, arg)) is not None:
            self._follow(*parameter, place.is_listed, place.hops + 1)
