"""Variables that each iteration of a loop writes before it reads them: what the last one left tells it nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Loop, Write
    from torchlint.semantics.scopes import Scopes

_READING_WRITES = ("augmented", "delete")


def is_renewed(binding: Binding, loop: Loop, scopes: Scopes) -> bool:
    """Whether a loop reads a local variable only behind assignments of the same iteration."""
    if binding.shared:
        return False
    reads = [*binding.reads, *(write.target for write in binding.writes if write.kind in _READING_WRITES)]
    return all(_is_behind_write(read, binding.writes, loop, scopes) for read in reads)


def _is_behind_write(read: cst.CSTNode, writes: list[Write], loop: Loop, scopes: Scopes) -> bool:
    """Whether a read in the loop comes behind one of the writes whenever it is run; true of a read elsewhere."""
    context = scopes.contexts[read]
    around = [*context.loop.around()] if context.loop is not None else []
    if loop not in around:
        return True
    inner = around[: around.index(loop) + 1]
    if any(write.kind == "for" and write.loop in inner for write in writes):
        return True
    before = _run_before(read, loop.node, scopes)
    return any(write.kind == "assign" and write.value is not None and write.statement in before for write in writes)


def _run_before(node: cst.CSTNode, loop: cst.CSTNode, scopes: Scopes) -> set[cst.CSTNode]:
    """The lines that each iteration has run when it comes to a node."""
    found: set[cst.CSTNode] = set()
    while node is not loop:
        parent = scopes.parents[node]
        if isinstance(parent, cst.IndentedBlock):
            for statement in parent.body[: parent.body.index(node)]:
                found.update(_lines(statement))
        node = parent
    return found


def _lines(statement: cst.CSTNode) -> list[cst.CSTNode]:
    """The lines that a statement runs in any case: it is one, or a `with` around some."""
    if isinstance(statement, cst.With) and isinstance(statement.body, cst.IndentedBlock):
        return [line for inner in statement.body.body for line in _lines(inner)]
    return [statement] if isinstance(statement, cst.SimpleStatementLine) else []
