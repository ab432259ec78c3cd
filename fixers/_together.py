"""What a fix goes with: places that say the same, of which either all change or none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.finding import Places
    from torchlint.semantics.model import Model


def places_of(nodes: Iterable[cst.CSTNode], model: Model) -> Places:
    """Of each what tells whether it has changed: of a method call the method and what it is given, of another call what
    is called, of an attribute or a function its name. What never runs is no finding, and stays."""
    return tuple(_telling(node, model) for node in nodes if not model.never_runs(node))


def _telling(node: cst.CSTNode, model: Model) -> tuple[int, int]:
    match node:
        case cst.Call(func=cst.Attribute(value=owner)):
            return model.span(owner)[1], model.span(node)[1]
        case cst.Call(func=called):
            return model.span(called)
        case cst.Attribute(attr=name) | cst.FunctionDef(name=name):
            return model.span(name)
    return model.span(node)
