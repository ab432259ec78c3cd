"""Calls in other files that the model cannot resolve, such as `trainer.val(...)` of an object that a factory made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model
    from torchlint.source import Source

_OFF = re.compile(r"\b(no_grad|inference_mode|set_grad_enabled\(\s*False)")


def calls_in_other_files(model: Model, function: Function) -> list[tuple[Model, Call]]:
    """The calls of a function in other files that the model can resolve, with the models of those files."""
    if function.foreign_callers:
        return [found for call in function.foreign_callers if (found := model.caller(call)) is not None]
    return list(model.calls_elsewhere(function))


def may_run_without_gradients(model: Model, function: Function) -> bool:
    """Whether no call of a function is resolved, and a file that uses this one calls its name with autograd off."""
    if function.callers or function.foreign_callers or function.is_module:
        return False
    return _is_called_under_switch(function, model.users())


def is_called_only_with_gradients(model: Model, function: Function) -> bool:
    """Whether the project calls a method by its name, through whatever object, and nowhere with autograd off."""
    sources = [source for source in model.files_beside() if f".{function.name}" in source.text]
    return bool(sources) and not _is_called_under_switch(function, sources)


def _is_called_under_switch(function: Function, sources: Iterable[Source]) -> bool:
    given = r"(?!\s*\))" if _needs_arguments(function) else ""
    call = re.compile(rf"\b{re.escape(function.name)}\s*\({given}")
    return any(_calls_under_switch(source.text, call) for source in sources if function.name in source.text)


def _needs_arguments(function: Function) -> bool:
    """Whether a call without arguments, as `net.eval()`, means something else."""
    if not isinstance(function.node, cst.FunctionDef):
        return False
    params = function.node.params
    required = [param for param in (*params.posonly_params, *params.params) if param.default is None]
    return len(required) > (function.cls is not None)


def _calls_under_switch(text: str, call: re.Pattern[str]) -> bool:
    if not call.search(text) or not _OFF.search(text):
        return False
    lines = text.splitlines()
    return any(
        any(map(_OFF.search, _headers(lines, number)))
        for number, line in enumerate(lines)
        if call.search(line) and not line.lstrip().startswith(("def ", "#"))
    )


def _headers(lines: list[str], number: int) -> Iterator[str]:
    """The lines that a line is indented under, with the decorators of functions among them."""
    depth = _indentation(lines[number])
    decorated = False
    for line in reversed(lines[:number]):
        if not line.strip():
            continue
        indentation = _indentation(line)
        if indentation < depth:
            depth, decorated = indentation, line.lstrip().startswith(("def ", "async def "))
            yield line
        elif decorated and indentation == depth and line.lstrip().startswith("@"):
            yield line
        else:
            decorated = decorated and indentation > depth


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
