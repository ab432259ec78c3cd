"""Branches that end the loop or the program: what they do is done once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.vocabulary import EXITS

if TYPE_CHECKING:
    from torchlint.semantics.entities import Guard, Loop
    from torchlint.semantics.model import Model


def ends_program(model: Model, guard: Guard) -> bool:
    """`if not isfinite(loss): print(loss); exit(1)`, from which no iteration comes back."""
    match _last(guard):
        case cst.Raise():
            return True
        case cst.Expr(value=cst.Call() as call):
            return model.call(call).callee in EXITS
    return False


def leaves(model: Model, node: cst.CSTNode, loop: Loop) -> bool:
    """Whether a node stands in `if step > last: save(); break`, or `return`: the last thing that a loop does."""
    for guard in model.guards(node, inside=loop):
        last = _last(guard)
        if isinstance(last, cst.Return) or (isinstance(last, cst.Break) and model.loop(last) is loop):
            return True
    return False


def _last(guard: Guard) -> cst.CSTNode | None:
    """The last statement of the branch that a guard stands for."""
    if not isinstance(guard.node, cst.If):
        return None
    branch = guard.node.body if guard.branch == "body" else getattr(guard.node.orelse, "body", None)
    last = branch.body[-1] if isinstance(branch, cst.IndentedBlock) and branch.body else None
    return last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
