"""Casts of a tensor that is made elsewhere now, and which of them its new place can say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers.xfer._target import known

from torchlint.analyses.xfer.agreement import SHAPING
from torchlint.analyses.xfer.sizes import SIZED_CLASSES
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.xfer.creations import Creation
    from torchlint.edits.rewriter import Rewriter
    from torchlint.semantics.model import Model

_CASTS = {
    "long": "torch.long",
    "int": "torch.int",
    "short": "torch.short",
    "bool": "torch.bool",
    "byte": "torch.uint8",
    "char": "torch.int8",
    "float": "torch.float",
    "double": "torch.double",
    "half": "torch.half",
    "bfloat16": "torch.bfloat16",
}
_SAME = {
    "torch.float": "torch.float32",
    "torch.double": "torch.float64",
    "torch.half": "torch.float16",
    "torch.long": "torch.int64",
    "torch.int": "torch.int32",
    "torch.short": "torch.int16",
}


def call_on(node: cst.CSTNode, model: Model) -> cst.Call | None:
    """The call of a method on what an expression gives."""
    attribute = model.parent(node)
    call = model.parent(attribute) if isinstance(attribute, cst.Attribute) else None
    return call if isinstance(call, cst.Call) and call.func is attribute else None


def cast_type(call: cst.Call, rewriter: Rewriter, model: Model) -> str | None:
    method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    if method in ("type", "to"):
        only = call.args[0].value if len(call.args) == 1 and not call.args[0].star else None
        host_class = SIZED_CLASSES.get(model.qualified(only) or "") if only is not None and method == "type" else None
        if host_class is not None:
            return known(host_class, call, rewriter)
        return model.code(only) if only is not None and _is_type(only, method, model) else None
    return rewriter.known_name(_CASTS[method], call) if method in _CASTS and not call.args else None


def _is_type(node: cst.BaseExpression, method: str, model: Model) -> bool:
    """Whether an expression is a dtype, or the attribute of that name of something: `x.to(self.dtype)`. What is given
    to `type` may be a class of tensors, or the name of one."""
    is_called_one = isinstance(node, cst.Attribute) and node.attr.value == "dtype"
    value = model.value(node)
    return value.kind is Kind.DTYPE or (method == "to" and is_called_one and value.kind is Kind.UNKNOWN)


def is_cast_to_long(call: cst.Call, model: Model) -> bool:
    return model.code(call).endswith(".long()")


def cast_again(creation: Creation, model: Model) -> list[cst.Call]:
    """`.float()` of `torch.zeros(n, dtype=torch.float32).float()`: the type that the tensor is made in."""
    factory, move = creation.factory, creation.move.node
    cast = call_on(factory.node, model)
    cast = call_on(cast, model) if cast is move else cast
    dtype = factory.argument("dtype").node
    given = model.qualified(dtype) if dtype is not None else None
    return [cast] if cast is not None and given is not None and _type(cast, model) == _SAME.get(given, given) else []


def _type(cast: cst.Call, model: Model) -> str | None:
    """The name of the type that `x.float()`, `x.to(torch.float)` or `x.type(torch.float)` casts to."""
    method = cast.func.attr.value if isinstance(cast.func, cst.Attribute) else ""
    only = cast.args[0].value if len(cast.args) == 1 and not cast.args[0].star else None
    name = model.qualified(only) if only is not None and method in ("to", "type") else None
    name = _CASTS.get(method) if not cast.args else name
    return _SAME.get(name, name) if name is not None else None


def is_shaped_only(creation: Creation, model: Model) -> bool:
    """Whether nothing but its shape changes between the call that makes a tensor and the copy."""
    node: cst.CSTNode = creation.factory.node
    while (call := call_on(node, model)) is not None and model.call(call).method in SHAPING:
        node = call
    if call is creation.move.node:
        return not creation.made.writes
    return len(creation.made.writes) == 1 and creation.made.writes[0][1].value is node
