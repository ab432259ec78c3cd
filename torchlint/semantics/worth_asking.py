"""Of which functions it is worth asking what the calls of other files hand them: for that, their files are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.arguments import string_value
from torchlint.semantics.signatures import Signature

if TYPE_CHECKING:
    from torchlint.semantics.entities import Function

_WORK = frozenset({"backward", "step", "zero_grad", "eval", "train", "item", "cpu", "numpy", "to", "cuda", "append"})


def is_worth_asking(function: Function) -> bool:
    """Whether callers could change what is found in the function: it loops over something, or trains. What they give
    the constructor of an object, its methods work with."""
    if function.is_module or not function.params or function.callers or isinstance(function.node, cst.Lambda):
        return False
    if function.parent is not None and not function.parent.is_module:
        return False
    if function.cls is not None and function.cls.is_module and not function.cls.is_lightning:
        by_default = function.name == "__init__" and _is_on_host_by_default(function)
        return by_default or (function.name == "forward" and _reads_in_loop(function))
    if _works(function):
        return True
    cls = function.cls if function.name == "__init__" else None
    return cls is not None and any(map(_works, cls.methods.values()))


def _is_on_host_by_default(function: Function) -> bool:
    """`device="cpu"`, `device=torch.device("cpu")`"""
    defaults = Signature.of(function).defaults.values()
    named = (node.args[0].value if isinstance(node, cst.Call) and node.args else node for node in defaults)
    return any((string_value(node) or "").startswith("cpu") for node in named)


def _reads_in_loop(function: Function) -> bool:
    """`labels[i].item()`, of a loss which walks through what it is given."""
    return any(
        call.method == "item" and isinstance(call.receiver, cst.Subscript) and call.loop for call in function.calls
    )


def _works(function: Function) -> bool:
    statement_loops = any(not loop.is_comprehension for loop in function.loops)
    return statement_loops or any(call.method in _WORK for call in function.calls)
