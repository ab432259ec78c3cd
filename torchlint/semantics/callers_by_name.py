"""Calls in other files that the model cannot resolve, such as `trainer.val(...)` of an object that a factory made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlint.semantics.entities import Function
    from torchlint.semantics.model import Model

_OFF = re.compile(r"\b(no_grad|inference_mode|set_grad_enabled\(\s*False)")


def may_run_without_gradients(model: Model, function: Function) -> bool:
    """Whether no call of a function is resolved, and a file that uses this one calls its name with autograd off."""
    if function.callers or function.foreign_callers or function.is_module:
        return False
    call = re.compile(rf"\b{re.escape(function.name)}\s*\(")
    return any(_calls_under_switch(source.text, call) for source in model.users() if function.name in source.text)


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
