"""Models of small programs, and what they believe of the variables."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import libcst as cst

from torchlint.semantics.entities import Call, Function
from torchlint.semantics.model import Model
from torchlint.semantics.values import Value
from torchlint.source import Source


def model_of(code: str) -> Model:
    source = Source.from_text(dedent(code).lstrip("\n"), Path("module.py"))
    return Model.build(source, cst.parse_module(source.text))


def value_of(model: Model, name: str, function: str = "") -> Value:
    """Value of a variable after its last write."""
    return model.value(function_of(model, function).scope.bindings[name].writes[-1].target)


def function_of(model: Model, qualname: str) -> Function:
    return next(function for function in model.functions if function.qualname == qualname)


def call_on(model: Model, text: str) -> Call:
    """The call that is written like this."""
    return next(call for call in model.calls if model.code(call.node) == text)
