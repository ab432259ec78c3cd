"""What a network is called: behind what wraps it, and by who calls a function that it is given to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import parameter_of_function

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function
    from torchlint.semantics.model import Model

_WRAPPERS = frozenset({"module", "_orig_mod"})


def unwrapped(node: cst.CSTNode) -> cst.CSTNode:
    """`model` of `model.module`, where that is what wraps a network for several devices."""
    while isinstance(node, cst.Attribute) and node.attr.value in _WRAPPERS:
        node = node.value
    return node


def name_outside(model: Model, call: Call, function: Function, network: Binding, *, is_abroad: bool) -> Binding | None:
    """What a caller calls the network; None where it has no name there, as a variable of the other file has none."""
    if network.cls is not None or (network.scope_function is not function and not is_abroad):
        return network
    for arg in call.arguments:
        if parameter_of_function(call, function, arg) is network:
            return model.binding(unwrapped(arg.value))
    return None


def asked_for_mode(value: cst.CSTNode) -> cst.BaseExpression | None:
    """`net` of `net.training`."""
    return value.value if isinstance(value, cst.Attribute) and value.attr.value == "training" else None
