"""Schedulers whose state, in a checkpoint, older releases of torch refuse to load with `weights_only=True`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.analyses.train.checkpoints import Load
    from torchlint.semantics.model import Model
    from torchlint.source import Source

_STATE = re.compile(r"(?i)sched\w*(\[[^\]\n]*\])?\.(load_)?state_dict\(")
# Milestones are a `collections.Counter`, the others keep a function: since then they are allowed, or plain values.
_ALLOWED_SINCE = {"2.4": re.compile(r"MultiStepLR|OneCycleLR|CyclicLR"), "2.10": re.compile(r"\bSWALR\b")}


def torch_for_schedulers(load: Load, model: Model) -> str:
    """The oldest torch that loads a checkpoint with the schedulers that the project saves the state of; empty where any
    does, or where the checkpoint can have none: the file is a single state dict."""
    if not isinstance(model.parent(load.use) if load.use is not None else None, (cst.Subscript, cst.Attribute)):
        return ""
    sources = [model.source, *model.files_beside()]
    if not any(model.once_of(source, _saves_state) for source in sources):
        return ""
    named = {release for source in sources for release in model.once_of(source, _releases)}
    return max(named, key=[*_ALLOWED_SINCE].index, default="")


def _saves_state(source: Source) -> bool:
    return _STATE.search(source.text) is not None


def _releases(source: Source) -> list[str]:
    return [release for release, names in _ALLOWED_SINCE.items() if names.search(source.text)]
