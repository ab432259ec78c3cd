"""Statements behind which a program may go on although an exception has ended them."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, TypeGuard

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_CATCHING = frozenset({"contextlib.suppress", "pytest.raises"})
_FEW = 2


def catches(node: cst.CSTNode, model: Model) -> TypeGuard[cst.Try | cst.TryStar | cst.With]:
    """Whether what follows a statement may run although an exception has ended its body."""
    if isinstance(node, cst.With):
        return any(
            model.qualified(item.item.func) in _CATCHING for item in node.items if isinstance(item.item, cst.Call)
        )
    return isinstance(node, (cst.Try, cst.TryStar))


def is_caught(node: cst.CSTNode, model: Model) -> bool:
    """Whether the function of a statement may go on although an exception has ended the block of it."""
    within = takewhile(lambda outer: not isinstance(outer, (cst.FunctionDef, cst.Lambda)), model.ancestors(node))
    return any(catches(outer, model) for outer in within)


def is_on_trial(node: cst.CSTNode, model: Model) -> bool:
    """Whether a call is made to see if it works: a test expects it to raise, or it ends a `try` that does nothing more
    than to get there, and nobody reads what it gives."""
    for outer in model.ancestors(node):
        if isinstance(outer, (cst.FunctionDef, cst.Lambda)):
            return False
        if catches(outer, model):
            return isinstance(outer, cst.With) or _only_gets_to(node, outer, model)
    return False


def _only_gets_to(node: cst.CSTNode, block: cst.Try | cst.TryStar | cst.With, model: Model) -> bool:
    line_of = model.small_statement if isinstance(block.body, cst.SimpleStatementSuite) else model.statement
    lines, last = block.body.body, line_of(node)
    if len(lines) > _FEW or lines[-1] is not last or not getattr(block, "handlers", ()):
        return False
    match model.small_statement(node):
        case cst.Expr(value=value):
            return value is node
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)], value=value) if value is node:
            binding = model.binding(name)
            return binding is not None and all(line_of(read) in lines for read in binding.reads)
    return False
