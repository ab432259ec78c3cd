"""Where a program says which GPUs it sees, seen from another place of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.arguments import string_value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Function
    from torchlint.semantics.model import Model

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_NUMBERED = re.compile(r"(?:cuda:|\.cuda\()(\d+)\b")


def names_several_gpus(model: Model) -> bool:
    """Whether the file puts something on one GPU and something on another, by their numbers: `net.to("cuda:1")`."""
    return len(set(_NUMBERED.findall(model.source.text))) > 1


def chosen_later(model: Model, at: cst.CSTNode) -> bool:
    """Whether the file sets the variable behind a place: in the same function, or in ones that are called on the way.

    Some releases of torch read it when they are first asked whether there is a GPU, and then never again.
    """
    before = list(_reached_from(at, model))
    return any(
        model.function(place) is model.function(setting) and model.span(place)[0] < model.span(setting)[0]
        for target in model.once(_settings)
        for setting in _reached_from(target, model)
        for place in before
    )


def _settings(model: Model) -> list[cst.CSTNode]:
    """`os.environ["CUDA_VISIBLE_DEVICES"]` where it is assigned."""
    targets = (node.target for node in model.nodes_of(cst.AssignTarget) if isinstance(node, cst.AssignTarget))
    return [
        target
        for target in targets
        if isinstance(target, cst.Subscript)
        and model.qualified(target.value) == "os.environ"
        and isinstance(index := target.slice[0].slice, cst.Index)
        and string_value(index.value) == _VARIABLE
    ]


def _reached_from(node: cst.CSTNode, model: Model) -> Iterator[cst.CSTNode]:
    """The place itself, and the calls of this file that lead there."""
    seen: set[Function] = set()
    places = [node]
    while places:
        place = places.pop()
        yield place
        function = model.function(place)
        if function not in seen:
            seen.add(function)
            places += [call.node for call in function.callers]
