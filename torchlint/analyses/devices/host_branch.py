"""Code that only runs where there is no accelerator, by the conditions around it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import conditions

if TYPE_CHECKING:
    from torchlint.semantics.entities import Function
    from torchlint.semantics.model import Model

_HAS_GPU = re.compile(
    r"([\w.]+\.)?((use_|has_|is_)?(cuda|gpu)|(cuda|gpu)(_is)?_available|cuda\.is_available)(\(\))?", re.IGNORECASE
)
_IS_HOST = re.compile(r"""[\w.]+ == (["'])cpu\1|(["'])cpu\2 == [\w.]+""")
_IS_GPU = re.compile(
    r"""[\w.]+ == (["'])(cuda|gpu)\1|(["'])(cuda|gpu)\3 (==|in) ([\w.]+|str\([\w.]+\))|[\w.]+\.is_cuda"""
    r"""|([\w.]+|str\([\w.]+\))\.startswith\((["'])(cuda|gpu)\8\)"""
)
_DEPTH = 4


def is_for_host(node: cst.CSTNode, model: Model) -> bool:
    """In the other branch of `if torch.cuda.is_available():` or `if device.type == "cuda":`, or in that of `if device
    == "cpu":`."""
    return any(
        _IS_HOST.fullmatch(test) if holds else _HAS_GPU.fullmatch(test) or _IS_GPU.fullmatch(test)
        for test, holds in conditions(model, node).items()
    )


def runs_on_host(node: cst.CSTNode, model: Model, depth: int = 0) -> bool:
    """The same, also where every use of the function around a node is in such a branch."""
    if is_for_host(node, model):
        return True
    function = model.function(node)
    uses = _uses(function)
    return depth < _DEPTH and bool(uses) and all(runs_on_host(use, model, depth + 1) for use in uses)


def _uses(function: Function) -> list[cst.Name | cst.Attribute]:
    """Where a function of a module or of a function is named; of a method, and where others call it, nothing."""
    home = function.parent
    if home is None or function.cls is not None or function.foreign_callers:
        return []
    binding = home.scope.bindings.get(function.name)
    return binding.reads if binding is not None and len(binding.writes) == 1 else []
