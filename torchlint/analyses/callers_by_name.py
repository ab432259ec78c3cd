"""Calls in other files that the model cannot resolve, such as `trainer.val(...)` of an object that a factory made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Class, Function
    from torchlint.semantics.model import Model
    from torchlint.source import Source

_CALL = re.compile(r"\b(?P<name>\w+)\s*\((?P<closed>\s*\))?")
_METHOD = re.compile(r"\.(?P<name>\w+)\s*\(")
_OFF = re.compile(r"\b(no_grad|inference_mode|set_grad_enabled\(\s*False)")


def calls_in_other_files(model: Model, function: Function) -> list[tuple[Model, Call]]:
    """The calls of a function in other files that the model can resolve, with the models of those files."""
    if function.foreign_callers:
        return [found for call in function.foreign_callers if (found := model.caller(call)) is not None]
    return list(model.calls_elsewhere(function))


def may_run_without_gradients(model: Model, function: Function) -> bool:
    """Whether no call of a function is resolved, and a file that uses this one calls its name with autograd off, or
    that of a base of its class does, as a trainer calls the steps of those who derive from it."""
    if function.callers or function.foreign_callers or function.is_module:
        return False
    return model.once(_called_by_users).has(function) or any(
        home.once_of(home.source, _called_under_switch).has(function) for home in _files_of_bases(model, function)
    )


def is_run_by_forward_of_base(model: Model, function: Function) -> bool:
    """Whether the `forward` of a base in another file runs a method, or one of its class that calls it."""
    methods = [function]
    for method in methods:  # it grows while the loop runs
        methods.extend({call.function: None for call in method.callers if call.function not in methods})
    names = {method.name for method in methods if method.cls is function.cls}
    passes = (cls.method("forward") for _, cls in bases_abroad(model, function))
    return any(call.method in names for forward in passes if forward is not None for call in forward.calls)


def _files_of_bases(model: Model, function: Function) -> Iterator[Model]:
    return (home for home, _ in bases_abroad(model, function))


def bases_abroad(model: Model, function: Function) -> Iterator[tuple[Model, Class]]:
    """The bases of a method's class that are in other files than those who derive from them."""
    classes = [(model, function.cls)] if function.cls is not None else []
    for home, cls in classes:  # it grows while the loop runs
        names = (base for ancestor in cls.lineage() for base in ancestor.bases)
        behind = [home.class_behind(base) for base in names if base is not None]
        abroad = [found for found in behind if found is not None and found[0] is not home and found not in classes]
        classes.extend(abroad)
        yield from abroad


def is_called_only_with_gradients(model: Model, function: Function) -> bool:
    """Whether the project calls a method by its name, through whatever object, and nowhere with autograd off."""
    sources = [source for source in model.files_beside() if f".{function.name}" in source.text]
    return bool(sources) and not any(model.once_of(source, _called_under_switch).has(function) for source in sources)


def may_be_trained_through(model: Model, method: Function) -> bool:
    """Whether another file calls a method of this name, of whatever object, in a function that takes gradients, or
    for a loss."""
    return _is_called_in(model, method, _called_beside_backward) or may_be_called_for_loss(model, method)


def may_be_called_for_loss(model: Model, method: Function) -> bool:
    """Whether another file calls a method of this name, of whatever object, in a function that is named for a loss."""
    return _is_called_in(model, method, _called_for_loss)


def _is_called_in(model: Model, method: Function, called: Callable[[Source], frozenset[str]]) -> bool:
    return any(
        f".{method.name}(" in source.text and method.name in model.once_of(source, called)
        for source in model.files_beside()
    )


def _called_beside_backward(source: Source) -> frozenset[str]:
    """The names of methods that functions of a file call beside a backward pass, with autograd on."""
    return _called_by(source, re.compile(r"backward\("))


def _called_for_loss(source: Source) -> frozenset[str]:
    """Likewise, of functions that are named for the loss that they make."""
    return _called_by(source, re.compile(r"^\s*(async )?def \w*loss\w*\(", re.MULTILINE))


def _called_by(source: Source, telling: re.Pattern[str]) -> frozenset[str]:
    lines = source.text.splitlines() if telling.search(source.text) is not None else []
    switched = set(_lines_under_switch(lines))
    found: set[str] = set()
    for head, block in _functions_of(lines):
        if any(telling.search(line) is not None for line in (head, *block)):
            found.update(call["name"] for line in block if line not in switched for call in _METHOD.finditer(line))
    return frozenset(found)


def _functions_of(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The outermost functions of classes and of the file: the line that each begins with, and those below."""
    block: list[str] = []
    head, depth = "", -1
    for line in lines:
        code = line.lstrip()
        indentation = len(line) - len(code)
        if code and depth >= 0 and indentation <= depth and not code.startswith((")", "#")):
            yield head, block
            depth, block = -1, []
        if depth < 0 and code.startswith(("def ", "async def ")):
            head, depth = code, indentation
        elif depth >= 0:
            block.append(line)
    if depth >= 0:
        yield head, block


@dataclass(frozen=True, slots=True)
class _Called:
    """Names that are called with autograd off, and those of them that are called with arguments."""

    names: frozenset[str] = frozenset()
    with_arguments: frozenset[str] = frozenset()

    def has(self, function: Function) -> bool:
        return function.name in (self.with_arguments if function.required > 0 else self.names)


def _called_by_users(model: Model) -> _Called:
    called = [model.once_of(source, _called_under_switch) for source in model.users()]
    return _Called(
        frozenset().union(*(one.names for one in called)), frozenset().union(*(one.with_arguments for one in called))
    )


def _called_under_switch(source: Source) -> _Called:
    if not _OFF.search(source.text):
        return _Called()
    calls = [
        call
        for line in _lines_under_switch(source.text.splitlines())
        if not line.lstrip().startswith(("def ", "#"))
        for call in _CALL.finditer(line)
    ]
    with_arguments = (call["name"] for call in calls if call["closed"] is None)
    return _Called(frozenset(call["name"] for call in calls), frozenset(with_arguments))


def _lines_under_switch(lines: Iterable[str]) -> Iterator[str]:
    """The lines that are indented under one that switches autograd off, or under a function whose decorator does."""
    headers: list[tuple[int, bool]] = []  # the lines that the last one is indented under, and itself: their indentation
    decorators = (0, False)
    for line in lines:
        code = line.lstrip()
        if not code or code.startswith((")", "]", "}")):
            continue  # the end of a header over several lines
        indentation = len(line) - len(code)
        while headers and headers[-1][0] >= indentation:
            headers.pop()
        if any(is_off for _, is_off in headers):
            yield line
        is_off = _OFF.search(line) is not None
        depth, is_decorated = decorators
        if code.startswith("@"):
            decorators = indentation, is_off or (is_decorated and depth == indentation)
        elif indentation <= depth:
            is_off = is_off or (is_decorated and depth == indentation and code.startswith(("def ", "async def ")))
            decorators = indentation, False
        headers.append((indentation, is_off))
