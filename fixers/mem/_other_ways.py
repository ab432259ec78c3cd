"""Methods and functions that are another way to do what one does: `decode_beam` beside `decode_greedy`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.evaluation_names import evaluates_by_name

from ._going_on import passes_of

if TYPE_CHECKING:
    from torchlint.analyses.mem.evaluation import Evaluation
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_TRAINED = re.compile(r"(?i)loss|train|forward|optimi[sz]e|update")


def passes_of_other_ways(found: Evaluation, model: Model) -> Iterator[Call]:
    """Forward passes with autograd on that others of the class, or of the file, make where they do the same in another
    way: of the same network where the name says that they evaluate, of any where only one word of it is another."""
    function = found.forward.function
    network = model.code(found.forward.node.func)
    for other in model.functions:
        if other is function or other.cls is not function.cls or not isinstance(other.node, cst.FunctionDef):
            continue
        if _TRAINED.search(other.name) or model.parent(other.node) is not model.parent(function.node):
            continue
        is_twin = _differ_in_a_word(function.name, other.name)
        for call in passes_of(model, other) if is_twin or evaluates_by_name(other) else ():
            if model.grad_enabled(call.node) is True and (is_twin or model.code(call.node.func) == network):
                yield call


def _differ_in_a_word(first: str, second: str) -> bool:
    """`embed_text`, `embed_image`"""
    ones, others = _WORD.findall(first), _WORD.findall(second)
    return len(ones) == len(others) > 1 and sum(one != other for one, other in zip(ones, others, strict=True)) == 1
