"""Results that the program goes on to use as arrays of NumPy, or as texts: the call has brought them to the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import vocabulary as words
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call
    from torchlint.semantics.model import Model

_LAYERS = ("forward", "encode", "decode", "embed")  # methods that hand tensors on, as a call does
_OF_TEXTS = (("convert_to_tensor", False), ("convert_to_numpy", True), ("output_value", "sentence_embedding"))
_OF_ARRAYS = ("numpy.", "scipy.")
_OF_NO_TENSORS = frozenset("astype tobytes tofile strip lstrip rstrip lower upper startswith endswith".split())


def hands_back_arrays(model: Model, node: cst.CSTNode) -> bool:
    """NumPy and SciPy refuse tensors of an accelerator, so what they take lies on the host; so does a text that is
    stripped."""
    return any(
        _is_taken_for_array(model, mention)
        for binding, target in _results(model, node)
        for mention in _mentions(model, binding, target)
    )


def may_hand_back_arrays(model: Model, call: Call) -> bool:
    """Whether a pass is a method, `model.inference(...)`, that is out of sight, or calls what is: it may have waited
    for its result, to hand it over as an array, or have run nothing. `encode` of Sentence Transformers has waited
    where nobody asks for tensors."""
    method = call.method or ""
    if words.encodes_texts(call.receiver_value.ref, method):
        asked = ((call.argument(name), usual) for name, usual in _OF_TEXTS)
        return all(argument.absent or argument.value.constant == usual for argument, usual in asked)
    if call.target is not None or not method or method.startswith(_LAYERS) or call.value.kind is Kind.MODULE:
        return False
    if call.receiver_value.kind is not Kind.MODULE or model.value(call.node.func).kind is Kind.MODULE:
        return False
    found = model.elsewhere(call)
    return found is None or any(_is_untold(step) for step in found[1].calls)


def _is_untold(step: Call) -> bool:
    return step.target is None and step.value.kind is Kind.UNKNOWN and not (step.callee or "").startswith("torch.")


def _results(model: Model, node: cst.CSTNode) -> Iterator[tuple[Binding, cst.CSTNode]]:
    """The variables that what a call returns is assigned to."""
    statement = model.small_statement(node)
    if not isinstance(statement, cst.Assign) or statement.value is not node:
        return
    for target in (target.target for target in statement.targets):
        parts = [part.value for part in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
        for part in parts:
            binding = model.binding(part)
            if binding is not None:
                yield binding, part


def _mentions(model: Model, binding: Binding, written_at: cst.CSTNode) -> Iterator[cst.CSTNode]:
    changed = [write.target for write in binding.writes if write.kind == "augmented"]
    for node in (*binding.reads, *changed):
        if reaches(model, binding, written_at, node):
            yield node


def _is_taken_for_array(model: Model, node: cst.CSTNode) -> bool:
    parent = model.parent(node)
    match parent:
        case cst.Arg():
            call = model.parent(parent)
            callee = model.call(call).callee if isinstance(call, cst.Call) else None
            return callee is not None and callee.startswith(_OF_ARRAYS)
        case cst.Attribute():
            return parent.attr.value in _OF_NO_TENSORS
        case cst.AugAssign():
            return parent.target is node and model.value(parent.value).kind is Kind.ARRAY
        case cst.Subscript() | cst.ComparisonTarget() | cst.Comparison():
            return parent is not None and _is_taken_for_array(model, parent)
        case cst.BinaryOperation():
            other = parent.right if parent.left is node else parent.left
            return model.value(other).kind is Kind.ARRAY or _is_taken_for_array(model, parent)
    return False
