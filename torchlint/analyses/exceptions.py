"""Statements behind which a program may go on although an exception has ended them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_CATCHING = frozenset({"contextlib.suppress", "pytest.raises"})


def catches(node: cst.CSTNode, model: Model) -> TypeGuard[cst.Try | cst.TryStar | cst.With]:
    """Whether what follows a statement may run although an exception has ended its body."""
    if isinstance(node, cst.With):
        return any(
            model.qualified(item.item.func) in _CATCHING for item in node.items if isinstance(item.item, cst.Call)
        )
    return isinstance(node, (cst.Try, cst.TryStar))
