"""Functions that run a network with or without gradients, as an argument says: `score(net, x, grad=False)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.modules.constructor_options import is_ruled_out, parameters_of
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Write
    from torchlint.semantics.model import Model


def comes_without_graph(model: Model, graph: cst.BaseExpression) -> bool:
    """Whether all that a variable holds comes from calls that ask a function of the file for no gradients."""
    binding = model.binding(graph)
    if binding is None or binding.cls is not None:
        return False
    made = [write for write in binding.writes if not _is_part(model, write, binding)]
    return bool(made) and all(
        write.kind == "assign"
        and not write.unpacked
        and isinstance(write.value, cst.Call)
        and _asks_for_no_gradients(model, model.call(write.value))
        for write in made
    )


def _is_part(model: Model, write: Write, binding: Binding) -> bool:
    """`scores = scores[:, -n:]`"""
    if write.kind != "assign" or not isinstance(write.value, cst.Subscript):
        return False
    return model.binding(write.value.value) is binding


def _asks_for_no_gradients(model: Model, call: Call) -> bool:
    function = call.target
    if function is None or function.is_generator:
        return False
    passes = [inner for inner in function.calls if inner.is_forward]
    recorded = [inner for inner in passes if model.grad_enabled(inner.node) is not False]
    if not recorded or len(recorded) == len(passes):
        return False
    given = parameters_of(model, call, model, function, {})
    return all(is_ruled_out(model, inner, given) for inner in recorded) and not any(
        isinstance(node, cst.Attribute) and node.attr.value == "requires_grad_" for node in walk(function.node)
    )
