"""Code that belongs to a network: its constructor, and classes that are networks without `nn.Module`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Class, Function
    from torchlint.semantics.model import Model

_PART_OF_CONSTRUCTOR = re.compile(r"__init\w+__")  # `__initv2__`, which `__init__` hands its work to


def has_own_layers(cls: Class, model: Model) -> bool:
    """Whether a class with a `__call__` makes layers of torch itself: whoever calls it may train it."""
    if cls.is_module or "__call__" not in cls.methods:
        return False
    made = (write.value for binding in cls.attributes.values() for write in binding.writes)
    calls = (model.call(value) for value in made if isinstance(value, cst.Call))
    return any((call.callee or "").startswith("torch.nn.") and call.value.kind is Kind.MODULE for call in calls)


def is_in_constructor(function: Function) -> bool:
    """Whether a method is a part of a constructor, or runs once for that of a module, which asks what shapes its layers
    return."""
    if _PART_OF_CONSTRUCTOR.fullmatch(function.name):
        return True
    callers = [] if function.foreign_callers or function.passed_around else function.callers
    return bool(callers) and all(
        call.function.name == "__init__" and call.function.cls is not None and call.function.cls.is_module
        for call in callers
    )
