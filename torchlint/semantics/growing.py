"""Lists and sets that a loop does nothing with but add to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.method_calls import ADDING_METHODS

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Function
    from torchlint.semantics.scopes import Scopes


def additions(
    binding: Binding, loop: cst.For | cst.While, function: Function, scopes: Scopes
) -> list[cst.Name | cst.Attribute] | None:
    """Where a loop of a function adds to a variable; None if it also reads what is in it."""
    reads = [read for read in binding.reads if _is_in_loop(read, loop, function, scopes)]
    return reads if all(_is_added_to(read, scopes) for read in reads) else None


def _is_in_loop(node: cst.CSTNode, loop: cst.For | cst.While, function: Function, scopes: Scopes) -> bool:
    context = scopes.contexts[node]
    if context.function is not function:
        return True  # a lambda or an inner function may run at any time
    return context.loop is not None and any(around.node is loop for around in context.loop.around())


def _is_added_to(read: cst.CSTNode, scopes: Scopes) -> bool:
    """Whether a node is the list of a statement like `losses.append(loss)`."""
    method = scopes.parents[read]
    if not isinstance(method, cst.Attribute) or method.value is not read or method.attr.value not in ADDING_METHODS:
        return False
    call = scopes.parents[method]
    return isinstance(call, cst.Call) and call.func is method and isinstance(scopes.parents[call], cst.Expr)
