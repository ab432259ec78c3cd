"""Loops over a handful of things that the settings name, such as scales and frames: what they collect does not grow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import text
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Loop
    from torchlint.semantics.model import Model

_OF_SETTINGS = re.compile(r"(\w+\.)*(args|opts?|options|cfg|conf|config|hparams|params|settings)(\.\w+)+(\[[-\d:]*\])?")
_AROUND = ("enumerate", "list", "reversed", "sorted", "tuple", "numpy.array")


def is_over_handful(model: Model, loop: Loop) -> bool:
    """`for scale in self.opt.scales`, `for i, frame in enumerate(args.frames[1:])`, `for key in ("near", "far")`"""
    over = loop.iterable
    while over is not None and (inner := _behind(model, over)) is not None:
        over = inner
    if isinstance(over, (cst.Tuple, cst.List)):
        return all(isinstance(part.value, (cst.BaseString, cst.BaseNumber)) for part in over.elements)
    return over is not None and _OF_SETTINGS.fullmatch(text(over)) is not None


def _behind(model: Model, over: cst.BaseExpression) -> cst.BaseExpression | None:
    """What is copied, counted or named."""
    if isinstance(over, cst.Call):
        name = (model.call(over).callee or "").removeprefix("builtins.")
        return over.args[0].value if name in _AROUND and over.args else None
    binding = model.binding(over) if isinstance(over, cst.Name) else None
    write = binding.writes[0] if binding is not None and len(binding.writes) == 1 else None
    return write.value if write is not None and write.kind == "assign" and not write.unpacked else None


def has_handful_of_places(model: Model, target: cst.BaseExpression) -> bool:
    """Whether each name in the index of a place runs over a handful: `outputs["depth", frame]`."""
    names: list[cst.CSTNode] = []
    while isinstance(target, cst.Subscript):
        names += [node for element in target.slice for node in walk(element) if isinstance(node, cst.Name)]
        target = target.value
    written = [write for name in names if (binding := model.binding(name)) is not None for write in binding.writes]
    return bool(written) and all(
        write.kind == "for" and write.loop is not None and is_over_handful(model, write.loop) for write in written
    )
