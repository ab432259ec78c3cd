"""Loops that try a loader out: they end with the first batch, or only show what the batches look like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.first_iteration import ends_at_once
from torchlint.semantics import torch_api
from torchlint.semantics.tree import walk
from torchlint.semantics.vocabulary import module_method

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function, Loop
    from torchlint.semantics.model import Model

_TRIALS = re.compile(r"(?i)_*(test|debug|demo|try|check|sanity)(_|$)")
_SHOWING = re.compile(r"(builtins|time|math|numpy|torch(?!\.(save|optim|Tensor\.backward))|tqdm|matplotlib|pprint)\b")
_LEARNING = ("backward", "gradients", "optimizer_steps")


def is_trial(loop: Loop, model: Model) -> bool:
    """Whether nothing comes of the batches but what is printed, where a file or a function is there to be tried out."""
    if not _is_for_trials(loop.function, model) or len(tuple(loop.around())) > 1:
        return False
    return ends_at_once(loop) or not any(_matters(loop, model))


def _is_for_trials(function: Function, model: Model) -> bool:
    """`def test_loader():`, or the end of a file that defines a class for others to use."""
    if not function.is_module:
        return _TRIALS.match(function.name) is not None
    return "__main__" in model.source.text and any(cls.parent.is_module for cls in model.classes)


def _matters(loop: Loop, model: Model) -> Iterator[bool]:
    """What a loop does beyond showing its batches, if anything."""
    effects = model.effects(loop)
    yield any(map(effects.has, _LEARNING))
    for node in (part for statement in loop.body for part in walk(statement)):
        match node:
            case cst.AugAssign():
                yield not isinstance(node.value, cst.BaseNumber)  # a counter
            case cst.Call():
                yield not _only_shows(model.call(node))
            case cst.Assign():
                yield any(_is_kept(target.target, loop, model) for target in node.targets)
            case cst.Return() | cst.Yield():
                yield True


def _only_shows(call: Call) -> bool:
    if call.is_forward:
        return True
    if call.method is not None and (torch_api.method(call.method) or module_method(call.method)) is not None:
        return call.method != "backward"
    return _SHOWING.match(call.callee or "") is not None


def _is_kept(target: cst.BaseExpression, loop: Loop, model: Model) -> bool:
    """Whether something is stored where others find it, or read behind the loop."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return any(_is_kept(element.value, loop, model) for element in target.elements)
    binding = model.binding(target)
    if binding is None or not isinstance(target, cst.Name):
        return True
    return any(loop not in model.loops_around(read) for read in binding.reads)
