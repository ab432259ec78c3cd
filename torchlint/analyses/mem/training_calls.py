"""Calls that train by their name, where nobody can see what they do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchlint.semantics.dataflow import text
from torchlint.semantics.vocabulary import module_method

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call

_TRAINING_CALLS = re.compile(r"(?i)(^|_)(train\w*|fit|learn|optimi[sz]e\w*|backward\w*|adapt|finetune|closure)(_|$)")


def is_training_call(call: Call) -> bool:
    """`trainer.fit(...)`, or `learner.adapt(loss)`, which takes the gradients of a loss by itself."""
    if call.target is not None or _is_of_library(call):
        return False
    name = call.method or (call.callee or text(call.node.func)).rpartition(".")[2]
    return _TRAINING_CALLS.search(name) is not None and not (name == "train" and len(call.node.args) < 2)


def _is_of_library(call: Call) -> bool:
    """Whether torch, NumPy or Python have the function; a class that derives from Module may have more methods."""
    callee = call.callee or ""
    if callee.startswith("torch.nn.Module."):
        return module_method(callee.rpartition(".")[2]) is not None
    return callee.startswith(("torch.", "numpy.", "builtins."))
