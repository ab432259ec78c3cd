"""`net.eval()` before an evaluation and `net.train()` behind it, or `net.train()` at the beginning of each epoch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.train.evaluation_mode import missing_toggles
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.entities import Role
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.analyses.train.evaluation_mode import Toggle
    from torchlint.finding import Edit
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_COMMENTED_OUT = re.compile(r"#.*\b(?:eval\(\)|train\((?:False)?\))")
_WHY = "Results change: dropout and batch norm work as they should."


def fix(report: Report, model: Model) -> Fix:
    toggle: Toggle = report.facts
    if _COMMENTED_OUT.search(model.code(model.function(toggle.node).node)) is not None:
        raise NoFixError("the mode is switched in a comment, as by something that was taken out")
    edits = _edits(toggle, model)
    for other in _beside(toggle, model):
        _edits(other, model)
    return Fix(tuple(edits), Applicability.UNSAFE, _WHY)


def _beside(toggle: Toggle, model: Model) -> list[Toggle]:
    """The other networks of the same function: one that is switched beside one that cannot be helps nobody."""
    function = model.function(toggle.node)
    return [other for other in missing_toggles(model) if model.function(other.node) is function]


def _edits(toggle: Toggle, model: Model) -> list[Edit]:
    module, rewriter = model.code(toggle.module), Rewriter(model)
    if toggle.epochs is not None:
        loop = toggle.epochs.node
        _check_name(toggle, loop, model)
        if not isinstance(loop, (cst.For, cst.While)):
            raise NoFixError("the epochs are counted by a comprehension, where no statement can stand")
        moved = _above(loop, f"{module}.train()", model)
        removed = rewriter.remove_statement(moved) if moved is not None else None
        return [*([removed] if removed is not None else []), rewriter.prepend_to_body(loop, f"{module}.train()")]
    statement = model.statement(toggle.node)
    if not isinstance(toggle.node, cst.For) and not isinstance(statement, cst.SimpleStatementLine):
        raise NoFixError("the network runs in the head of a statement")
    _check_name(toggle, statement, model)
    if _trains_beside(toggle, statement, model):
        raise NoFixError("the same statement trains the network, too")
    if _is_switched_to_training(toggle, model):
        raise NoFixError(f"the loop itself calls `{module}.train()`")
    if _would_switch_in_a_loop(toggle, model):
        raise NoFixError("the mode would be switched there and back around each of many calls")
    first = _first_pass(toggle, model)
    if _is_made_inside(first, toggle, model):
        raise NoFixError(f"`{module}` is made inside of the loop, in front of which it would be switched")
    before = rewriter.insert_before(first, f"{module}.eval()")
    if not toggle.trains:
        return [before]
    if _leaves(statement):
        raise NoFixError("a `return` or `raise` would leave before the mode is switched back")
    return [before, rewriter.insert_after(statement, f"{module}.train()")]


def _trains_beside(toggle: Toggle, statement: cst.CSTNode, model: Model) -> bool:
    """`trained, tested = run(net, batches, True), run(net, others, False)`"""
    evaluating = {other.node for other in missing_toggles(model)}
    beside = (call for call in model.calls_in(statement) if toggle.node not in (call.node, *model.ancestors(call.node)))
    entered = (call.target for call in beside if call.target is not None and call.node not in evaluating)
    return not isinstance(toggle.node, cst.For) and any(
        model.effects(function).has(kind) for function in entered for kind in ("backward", "optimizer_steps")
    )


def _is_made_inside(place: cst.CSTNode, toggle: Toggle, model: Model) -> bool:
    """Whether a statement assigns the network that it runs: in front of it, the name means another one, or nothing."""
    network = model.binding(toggle.module)
    targets = [write.target for write in network.writes] if network is not None else []
    return any(place in model.ancestors(target) for target in targets)


def _above(loop: cst.CSTNode, code: str, model: Model) -> cst.SimpleStatementLine | None:
    """The statement right above a loop, if it is this one, alone on its line: it moves into the loop."""
    siblings = list(getattr(model.parent(loop), "body", ()))
    index = siblings.index(loop) if loop in siblings else 0
    above = siblings[index - 1] if index else None
    if not isinstance(above, cst.SimpleStatementLine) or len(above.body) != 1 or model.code(above.body[0]) != code:
        return None
    return above if all(line.comment is None for line in above.leading_lines) else None


def _check_name(toggle: Toggle, place: cst.CSTNode, model: Model) -> None:
    if not _has_name(toggle, place, model):
        raise NoFixError(f"`{model.code(toggle.module)}` is not known to mean the network where the mode would be set")


def _would_switch_in_a_loop(toggle: Toggle, model: Model) -> bool:
    """A mode that is switched there and back around each of many calls is no code that anybody wants."""
    around = (loop for loop in model.loops_around(toggle.node) if loop.node is not toggle.node)
    loop = next((loop for loop in around if not loop.is_comprehension), None)
    return isinstance(toggle.node, cst.Call) and loop is not None and loop.role in (Role.PLAIN, Role.ELEMENTS)


def _is_switched_to_training(toggle: Toggle, model: Model) -> bool:
    """Whether what runs the network sets it to training mode again, so that `eval()` in front of it does nothing."""
    network = model.binding(toggle.module)
    calls = (model.call(node) for node in walk(toggle.node) if isinstance(node, cst.Call))
    switched = (call.receiver for call in calls if call.method == "train" and not call.arguments)
    return network is not None and any(node is not None and model.binding(node) is network for node in switched)


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


def _first_pass(toggle: Toggle, model: Model) -> cst.CSTNode:
    """The first of the loops that run the network one after the other and train nothing: what is made of the one is
    compared with what is made of the other, as features of training and test data are."""
    first: cst.CSTNode = model.statement(toggle.node)
    place, conditional = first, False
    marked = {model.statement(other.node) for other in missing_toggles(model)}
    for above in model.ancestors(place):
        body = getattr(above, "body", ())
        siblings = list(body) if isinstance(body, (list, tuple)) and place in body else [place]
        for before in reversed(siblings[: siblings.index(place)]):
            if _changes_network(before, toggle, model) or not marked.isdisjoint(walk(before)):
                return first
            if isinstance(before, (cst.For, cst.While, cst.With)) and _runs_network(before, toggle, model):
                if conditional:
                    raise NoFixError("another pass over data, which comes first, would stay in training mode")
                first = before
        if isinstance(above, (cst.For, cst.While, cst.FunctionDef)):
            return first
        if isinstance(above, cst.BaseStatement):
            place, conditional = above, conditional or not isinstance(above, cst.With)
    return first


def _changes_network(statement: cst.CSTNode, toggle: Toggle, model: Model) -> bool:
    """Whether a statement trains something, switches the mode, or sets the variable of the network."""
    effects, binding = model.effects(statement), model.binding(toggle.module)
    if any(effects.has(kind) for kind in ("backward", "gradients", "optimizer_steps")):
        return True
    if any(call.method in ("train", "eval") for call in model.calls_in(statement)):
        return True
    written = {write.target for write in binding.writes} if binding is not None else set()
    return not written.isdisjoint(walk(statement))


def _runs_network(statement: cst.CSTNode, toggle: Toggle, model: Model) -> bool:
    """Whether a statement uses what the network gives: where nobody does, batch norm is to learn."""
    return any(
        call.is_forward
        and model.code(call.node.func) == model.code(toggle.module)
        and not isinstance(model.parent(call.node), cst.Expr)
        for call in model.calls_in(statement)
    )


def _leaves(statement: cst.CSTNode) -> bool:
    """Whether control may leave the statement past what stands behind it."""
    return any(isinstance(node, (cst.Return, cst.Raise)) for node in walk(statement))
