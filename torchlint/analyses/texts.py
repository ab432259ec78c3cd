"""Strings, and expressions that turn other values into strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def is_text(model: Model, node: cst.CSTNode) -> bool:
    """Whether an expression makes a text of other values."""
    match node:
        case cst.FormattedString():
            return True
        case cst.BinaryOperation(left=left, operator=cst.Modulo()):
            return is_string(model, left)
        case cst.Call(func=cst.Attribute(value=text, attr=cst.Name(value="format"))):
            return is_string(model, text)
    return False


def is_string(model: Model, node: cst.CSTNode) -> bool:
    return model.value(node).kind is Kind.STRING


def becomes_text(model: Model, node: cst.CSTNode) -> bool:
    """Whether a value can only be a text: `words[i]` of `" ".join(words[i] for i in row)`, in one or several steps, and
    of `line += words[i]`."""
    above = model.parent(node)
    match above:
        case cst.BinaryOperation(operator=cst.Add(), left=left, right=right):
            return is_string(model, right if node is left else left) or becomes_text(model, above)
        case cst.AugAssign(operator=cst.AddAssign(), target=target):
            return is_string(model, target)
        case cst.ListComp() | cst.GeneratorExp():
            return above.elt is node and _is_joined(model, above)
        case cst.Arg():
            call = model.parent(above)
            added = model.call(call) if isinstance(call, cst.Call) else None
            held = added.receiver if added is not None and added.method == "append" else None
            binding = model.binding(held) if held is not None else None
            return binding is not None and any(_is_given_to_join(model, read) for read in binding.reads)
    return False


def _is_joined(model: Model, texts: cst.BaseExpression) -> bool:
    above = model.parent(texts)
    if not isinstance(above, cst.Assign):
        return _is_given_to_join(model, texts)
    bindings = [model.binding(target.target) for target in above.targets]
    return any(_is_given_to_join(model, read) for held in bindings if held is not None for read in held.reads)


def _is_given_to_join(model: Model, texts: cst.CSTNode) -> bool:
    """`" ".join(texts)`"""
    arg = model.parent(texts)
    site = model.parent(arg) if isinstance(arg, cst.Arg) else None
    call = model.call(site) if isinstance(site, cst.Call) else None
    return call is not None and call.method == "join" and call.receiver_value.kind is Kind.STRING
