"""Calls that train by their name, where nobody can see what they do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchlint.semantics.dataflow import text

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call

_TRAINING_CALLS = re.compile(r"(?i)(^|_)(train\w*|fit|learn|optimi[sz]e\w*|backward\w*|adapt|finetune|closure)(_|$)")


def is_training_call(call: Call) -> bool:
    """`trainer.fit(...)`, or `learner.adapt(loss)`, which takes the gradients of a loss by itself."""
    if call.target is not None or (call.callee or "").startswith(("torch.", "numpy.", "builtins.")):
        return False
    name = call.method or (call.callee or text(call.node.func)).rpartition(".")[2]
    return _TRAINING_CALLS.search(name) is not None and not (name == "train" and len(call.node.args) < 2)
