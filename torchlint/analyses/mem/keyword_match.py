"""Methods of objects out of sight, found by their names and by the keywords that a call gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.signatures import Signature
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import module_method

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model

_USUAL = 2


def methods_meant(model: Model, call: Call) -> list[tuple[Model, Function]]:
    """The methods in other files of the project that have the name and all the keywords of a call, and their models."""
    keywords = {arg.keyword.value for arg in call.arguments if arg.keyword is not None}
    if not keywords or call.target is not None or call.foreign is not None:
        return []
    name = "forward" if call.method is None or _runs_module(call) else call.method
    return list(methods_elsewhere(model, name, keywords))


def _runs_module(call: Call) -> bool:
    """`net(x)`, `self.net(x)`, `net.forward(x)`."""
    return call.is_forward and "forward_" not in (call.method or "")


def passes_that_fit(model: Model, call: Call, telling: re.Pattern[str]) -> Iterator[tuple[Model, Function]]:
    """The forward passes in other files, whose text has what is looked for, that can take the arguments of a call of a
    module out of sight, where those are more than the usual one or two."""
    given = len(call.arguments)
    if _runs_module(call) and given > _USUAL and call.target is None and call.foreign is None:
        for home, function in methods_elsewhere(model, "forward", set(), telling):
            signature = Signature.of(function)
            taken = signature.positional[1:]
            if given <= len(taken) and signature.defaults.keys() >= {*taken[given:]}:
                yield home, function


def namesakes(model: Model, call: Call) -> list[tuple[Model, Function]]:
    """The methods that have the name of a method out of sight, and their models: of a network, those of networks where
    there are any, and those of the file before others."""
    if call.method is None or call.target is not None or call.foreign is not None or module_method(call.method):
        return []
    own = [(model, function) for function in model.functions if function.cls and function.name == call.method]
    found = _only_done(own)
    if call.receiver_value.kind is not Kind.MODULE:
        return found or _only_done(methods_elsewhere(model, call.method, set()))
    if of_networks := _only_networks(model, found):
        return of_networks
    found += _only_done(methods_elsewhere(model, call.method, set()))
    return _only_networks(model, found) or found


def _only_done(methods: Iterable[tuple[Model, Function]]) -> list[tuple[Model, Function]]:
    return [(home, method) for home, method in methods if not _is_only_declared(method)]


def _only_networks(model: Model, methods: list[tuple[Model, Function]]) -> list[tuple[Model, Function]]:
    return [(home, method) for home, method in methods if is_of_network(model, home, method)]


def _is_only_declared(method: Function) -> bool:
    """Whether a method of an interface leaves it to others what it does."""
    body = method.node.body.body if isinstance(method.node, cst.FunctionDef) else ()
    smalls = [small for line in body for small in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])]
    return all(
        isinstance(small, (cst.Pass, cst.Raise))
        or (isinstance(small, cst.Expr) and isinstance(small.value, (cst.Ellipsis, cst.BaseString)))
        for small in smalls
    )


def is_of_network(model: Model, home: Model, method: Function) -> bool:
    cls = method.cls
    return cls is not None and (cls.is_module or model.is_module_class(home.source, cls.qualname))


def methods_named(model: Model, call: Call, telling: re.Pattern[str]) -> Iterator[tuple[Model, Function]]:
    """The methods that a call like `net.forward_adapted(x)` may reach by its name, in those other files of the project
    whose text has what is looked for in them."""
    name = call.method or ""
    if "forward" in name and name != "forward" and call.target is None and call.foreign is None:
        yield from methods_elsewhere(model, name, set(), telling)


def methods_elsewhere(
    model: Model, name: str, keywords: set[str], telling: re.Pattern[str] | None = None
) -> Iterator[tuple[Model, Function]]:
    """The methods in other files of the project of that name which take these keywords, and their models."""
    for source, defined in model.classes_beside({name}):
        if not all(keyword in source.text for keyword in keywords) or (telling and not telling.search(source.text)):
            continue
        home = model.model_of(source)
        for cls in home.classes if home is not None else ():
            method = cls.methods.get(name) if cls.qualname == defined else None
            if method is not None and home is not None and keywords <= set(method.params):
                yield home, method
