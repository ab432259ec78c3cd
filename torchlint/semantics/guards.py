"""The conditions under which a statement runs: log intervals, phases, ranks, handlers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.entities import Guard, Loop
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.tree import walk

_LOG_NAMES = re.compile(
    r"(?i)(log(?!it|_?(alpha|prob|p\b|pi\b|std|sigma|var|ent|det|snr|softmax|scale|temp))|print|verbose|interval|freq"
    r"|every|displ|disp_|summar|report|debug|visual|plot|vis_|wandb|tensorboard"
    r"|writer|show|save|eval_step|last_)"
)
_RANK_NAMES = re.compile(r"(?i)(^|_)(rank|local_rank|global_rank|is_main|is_master|master|main_process|is_primary)")
_PHASE_NAMES = re.compile(r"(?i)^(is_)?(train|training|phase|mode|split|eval|evaluate|is_eval|backward|test|valid)\w*$")


def guards(scopes: Scopes, node: cst.CSTNode, inside: Loop | None) -> Iterator[Guard]:
    """Conditions around `node`, innermost first, up to the loop, or up to the function when `inside` is None."""
    stop = inside.node if inside is not None else scopes.contexts[node].function.node
    child, parent = node, scopes.parents.get(node)
    while parent is not None and child is not stop:
        if isinstance(parent, (cst.If, cst.IfExp)) and child is not parent.test:
            branch = "body" if child is parent.body else "else"
            yield Guard(parent, parent.test, kind_of(scopes, parent.test), branch)
        elif (
            isinstance(parent, cst.BooleanOperation) and child is parent.right and isinstance(parent.operator, cst.And)
        ):
            yield Guard(parent, parent.left, kind_of(scopes, parent.left), "body")
        elif isinstance(parent, (cst.ExceptHandler, cst.ExceptStarHandler)):
            yield Guard(parent, None, "handler", "body")
        elif isinstance(parent, (cst.IndentedBlock, cst.Module)) and not isinstance(child, cst.BaseSuite):
            yield from _skips(scopes, parent, child)
        child, parent = parent, scopes.parents.get(parent)


def _skips(scopes: Scopes, block: cst.IndentedBlock | cst.Module, child: cst.CSTNode) -> Iterator[Guard]:
    """`if step % 10: continue` above a statement guards it."""
    for statement in block.body:
        if statement is child:
            return
        if isinstance(statement, cst.If) and statement.orelse is None and _leaves(statement.body):
            yield Guard(statement, statement.test, kind_of(scopes, statement.test), "else")


def _leaves(suite: cst.BaseSuite) -> bool:
    last = suite.body[-1] if suite.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, (cst.Continue, cst.Return, cst.Break))


def kind_of(scopes: Scopes, test: cst.BaseExpression, depth: int = 0) -> str:
    """log, rank, phase, optional or other."""
    nodes = list(walk(test))
    names = [_identifier(node) for node in nodes if isinstance(node, (cst.Name, cst.Attribute))]
    if any(isinstance(node, cst.Modulo) for node in nodes):
        return "log"
    if any(_LOG_NAMES.search(name) for name in names):
        return "log"
    if depth < 2 and isinstance(test, (cst.Name, cst.Attribute)) and _assigned_gate(scopes, test, depth):
        return "log"
    if any(_RANK_NAMES.search(name) for name in names):
        return "rank"
    if _is_optional(test):
        return "optional"
    if any(_PHASE_NAMES.match(name) for name in names):
        return "phase"
    return "log" if _single_iteration(test) else "other"


def _identifier(node: cst.Name | cst.Attribute) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else node.value


def _assigned_gate(scopes: Scopes, test: cst.Name | cst.Attribute, depth: int) -> bool:
    binding = scopes.bindings.get(test)
    if binding is None or not binding.writes:
        return False
    values = [write.value for write in binding.writes if write.kind == "assign"]
    return any(value is not None and kind_of(scopes, value, depth + 1) == "log" for value in values)


def _is_optional(test: cst.BaseExpression) -> bool:
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot())]):
            return True
        case cst.Call(func=cst.Name(value="hasattr" | "isinstance" | "callable")):
            return True
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return _is_optional(inner)
    return False


def _single_iteration(test: cst.BaseExpression) -> bool:
    """`i == 0`, `step == len(loader) - 1`: true once."""
    match test:
        case cst.Comparison(left=cst.Name() | cst.BinaryOperation(), comparisons=[target]):
            if not isinstance(target.operator, cst.Equal):
                return False
            return isinstance(target.comparator, (cst.Integer, cst.BinaryOperation, cst.Call))
    return False
