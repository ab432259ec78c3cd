"""Code that belongs to a network: its constructor, and classes that are networks without `nn.Module`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.evaluation_names import is_over_data
from torchlint.analyses.rowwise.setting_up import builds
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Function
    from torchlint.semantics.model import Model

_PART_OF_CONSTRUCTOR = re.compile(r"__init\w+__")  # `__initv2__`, which `__init__` hands its work to


def is_network_by_hand(function: Function, model: Model) -> bool:
    """Whether a function is the `__call__` of a class that makes layers of torch itself, or runs for it: whoever calls
    such an object may train it."""
    cls = function.cls
    entry = cls.methods.get("__call__") if cls is not None else None
    if cls is None or cls.is_module or entry is None:
        return False
    if function is not entry and all(call.function is not entry for call in function.callers):
        return False
    made = (write.value for binding in cls.attributes.values() for write in binding.writes)
    calls = (model.call(value) for value in made if isinstance(value, cst.Call))
    return any((call.callee or "").startswith("torch.nn.") and call.value.kind is Kind.MODULE for call in calls)


def is_in_constructor(function: Function, model: Model) -> bool:
    """Whether a method is a part of a constructor, or runs for those of modules alone, which ask what shapes their
    layers return, or what their means are; so does a function, unless it goes through batches."""
    if function.cls is None:
        if any(map(is_over_data, function.loops)):
            return False
        asking = [call.function for call in function.callers]
        return bool(asking) and not function.foreign_callers and all(builds(model, each) for each in asking)
    return _PART_OF_CONSTRUCTOR.fullmatch(function.name) is not None or builds(model, function)
