"""`net.eval()` before an evaluation and `net.train()` behind it, or `net.train()` at the beginning of each epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Fix
from torchlint.rewrite import Rewriter
from torchlint.semantics.entities import Role
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.finding import Edit
    from torchlint.rule import Report
    from torchlint.semantics.evaluation_mode import Toggle
    from torchlint.semantics.model import Model

_WHY = "Results change: dropout and batch norm work as they should."


def fix(report: Report, model: Model) -> Fix | None:
    toggle: Toggle = report.facts
    edits = _edits(toggle, model)
    return Fix(tuple(edits), Applicability.UNSAFE, _WHY) if edits else None


def _edits(toggle: Toggle, model: Model) -> list[Edit]:
    module, rewriter = model.code(toggle.module), Rewriter(model)
    if toggle.epochs is not None:
        loop = toggle.epochs.node
        named = _has_name(toggle, loop, model) and isinstance(loop, (cst.For, cst.While))
        return [rewriter.prepend_to_body(loop, f"{module}.train()")] if named else []  # type: ignore[arg-type]
    statement = model.statement(toggle.node)
    plain = isinstance(toggle.node, cst.For) or isinstance(statement, cst.SimpleStatementLine)
    if not plain or not _has_name(toggle, statement, model) or _would_switch_in_a_loop(toggle, model):
        return []
    before = rewriter.insert_before(statement, f"{module}.eval()")
    if not toggle.trains:
        return [before]
    return [] if _leaves(statement) else [before, rewriter.insert_after(statement, f"{module}.train()")]


def _would_switch_in_a_loop(toggle: Toggle, model: Model) -> bool:
    """A mode that is switched there and back around each of many calls is no code that anybody wants."""
    around = (loop for loop in model.loops_around(toggle.node) if loop.node is not toggle.node)
    loop = next((loop for loop in around if not loop.is_comprehension), None)
    return isinstance(toggle.node, cst.Call) and loop is not None and loop.role in (Role.PLAIN, Role.ELEMENTS)


def _has_name(toggle: Toggle, place: cst.CSTNode, model: Model) -> bool:
    """Whether what the network is called where it runs means the same at a place: a global, or an attribute of self."""
    if not all(isinstance(node, (cst.Name, cst.Attribute)) for node in walk(toggle.module)):
        return False
    here, there = model.function(toggle.module), model.function(place)
    if here is there:
        return True
    first = toggle.module
    while isinstance(first, cst.Attribute):
        first = first.value
    assert isinstance(first, cst.Name)
    binding = model.binding(first)
    if first is not toggle.module and here.cls is not None and here.cls is there.cls:
        return [first.value] == here.params[:1] == there.params[:1]
    return binding is not None and binding.is_global


def _leaves(statement: cst.CSTNode) -> bool:
    """Whether control may leave the statement past what stands behind it."""
    return any(isinstance(node, (cst.Return, cst.Raise)) for node in walk(statement))
