"""Which activation a value went through last, and which losses do not want it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import writes_reaching
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function
    from torchlint.semantics.model import Model

SOFTMAX, LOG_SOFTMAX, SIGMOID = "softmax", "log_softmax", "sigmoid"
_ACTIVATIONS = {
    "torch.nn.functional.softmax": SOFTMAX,
    "torch.softmax": SOFTMAX,
    "torch.special.softmax": SOFTMAX,
    "torch.Tensor.softmax": SOFTMAX,
    "torch.nn.Softmax": SOFTMAX,
    "torch.nn.Softmax2d": SOFTMAX,
    "torch.nn.functional.log_softmax": LOG_SOFTMAX,
    "torch.log_softmax": LOG_SOFTMAX,
    "torch.Tensor.log_softmax": LOG_SOFTMAX,
    "torch.nn.LogSoftmax": LOG_SOFTMAX,
    "torch.nn.functional.sigmoid": SIGMOID,
    "torch.sigmoid": SIGMOID,
    "torch.Tensor.sigmoid": SIGMOID,
    "torch.nn.Sigmoid": SIGMOID,
}
# What leaves the values as they are, but for shape, place and precision.
_KEEPING = frozenset(
    """
    view reshape squeeze unsqueeze flatten permute transpose t contiguous float double to cuda cpu clone requires_grad_
    """.split()
)
_LOSSES = {
    "torch.nn.functional.cross_entropy": "cross_entropy",
    "torch.nn.CrossEntropyLoss": "cross_entropy",
    "torch.nn.functional.nll_loss": "nll_loss",
    "torch.nn.NLLLoss": "nll_loss",
    "torch.nn.functional.kl_div": "kl_div",
    "torch.nn.KLDivLoss": "kl_div",
    "torch.nn.functional.binary_cross_entropy_with_logits": "bce_with_logits",
    "torch.nn.BCEWithLogitsLoss": "bce_with_logits",
}
# The activations that a loss applies itself, or whose logarithm it wants.
_UNWANTED = {
    "cross_entropy": {SOFTMAX, SIGMOID},
    "nll_loss": {SOFTMAX, SIGMOID},
    "kl_div": {SOFTMAX},
    "bce_with_logits": {SIGMOID, SOFTMAX},
}
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Activation:
    """A call that applies an activation, and which one."""

    kind: str
    node: cst.CSTNode  # the call that applies it, or the layer that does
    model: Model  # of the file in which it stands


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A loss that does not want the activation of its input."""

    loss: Call
    loss_kind: str
    input: cst.BaseExpression
    activation: Activation

    @property
    def is_certain(self) -> bool:
        """A sigmoid before a cross entropy over classes may be meant to bound the logits."""
        return not (self.loss_kind == "cross_entropy" and self.activation.kind == SIGMOID)


def mismatches(model: Model) -> Iterator[Mismatch]:
    """Losses whose input went through an activation that they do not want; each activation once."""
    seen: set[cst.CSTNode] = set()
    for call in model.calls:
        kind = _loss_kind(model, call)
        given = call.argument("input", 0) if kind is not None else None
        if kind is None or given is None or given.node is None:
            continue
        found = _Finder(model).of(given.node)
        if found is not None and found.kind in _UNWANTED[kind] and found.node not in seen:
            seen.add(found.node)
            yield Mismatch(call, kind, given.node, found)


def _loss_kind(model: Model, call: Call) -> str | None:
    if call.callee in _LOSSES and call.callee.startswith("torch.nn.functional."):
        return _LOSSES[call.callee]
    function = model.value(call.node.func)
    return _LOSSES.get(function.ref or "") if function.kind is Kind.MODULE else None


class _Finder:
    """Walks from an expression back to the activation that it went through last; None where ways differ."""

    def __init__(self, model: Model, depth: int = 0) -> None:
        self._model = model
        self._depth = depth

    def of(self, node: cst.CSTNode, part: int | None = None) -> Activation | None:
        """The activation of an expression, or of one part of the tuple that it is."""
        if self._depth > _DEPTH:
            return None
        inner = _Finder(self._model, self._depth + 1)
        match node:
            case cst.Call():
                return inner._of_call(self._model.call(node), part)
            case cst.Name() | cst.Attribute():
                return inner._of_variable(node, part)
            case cst.Tuple() if part is not None:
                whole = part < len(node.elements) and isinstance(node.elements[part], cst.Element)
                return inner.of(node.elements[part].value) if whole else None
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value=index)))]):
                return inner.of(node.value, int(index))
            case cst.IfExp() if part is None:
                return _agreed([inner.of(node.body), inner.of(node.orelse)])
        return None

    def _of_variable(self, node: cst.Name | cst.Attribute, part: int | None) -> Activation | None:
        binding = self._model.binding(node)
        if binding is None or binding.is_parameter or binding.cls is not None:
            return None
        writes = writes_reaching(self._model, binding, node)
        found = []
        for write in writes:
            if write.kind != "assign" or write.value is None or (write.unpacked and part is not None):
                return None
            place = self._place_in_target(write.target, binding) if write.unpacked else part
            found.append(self.of(write.value, place) if not write.unpacked or place is not None else None)
        return _agreed(found)

    def _place_in_target(self, target: cst.CSTNode, binding: Binding) -> int | None:
        around = next((a for a in self._model.ancestors(target) if isinstance(a, (cst.Tuple, cst.List))), None)
        for place, element in enumerate(around.elements if around is not None else ()):
            if isinstance(element, cst.StarredElement):
                return None
            if self._model.binding(element.value) is binding:
                return place
        return None

    def _of_call(self, call: Call, part: int | None) -> Activation | None:
        name = call.callee or ""
        kind = _ACTIVATIONS.get(name)
        if name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper():
            kind = None  # the layer is made here, not applied
        function = self._model.value(call.node.func)
        if function.kind is Kind.MODULE:
            kind = _ACTIVATIONS.get(function.ref or "")
        if kind is not None:
            return Activation(kind, call.node, self._model) if part is None else None
        if call.method in _KEEPING and call.receiver is not None and function.kind is not Kind.MODULE:
            return self.of(call.receiver, part)
        if self._is_part_of_sequence(call.node.func):
            return None
        if function.kind is Kind.MODULE and function.ref == "torch.nn.Sequential":
            return self._of_sequence(function.origins, part)
        elsewhere = self._model.elsewhere(call)
        if elsewhere is not None:
            return _Finder(elsewhere[0], self._depth)._returned_by(elsewhere[1], part)
        return self._returned_by(call.target, part) if call.target is not None else None

    def _is_part_of_sequence(self, layer: cst.BaseExpression) -> bool:
        """`net[0]` and `net[:-1]` leave out what comes last, or may do so."""
        return isinstance(layer, cst.Subscript) and self._model.value(layer.value).ref == "torch.nn.Sequential"

    def _returned_by(self, function: Function, part: int | None) -> Activation | None:
        if function.is_generator or isinstance(function.node, cst.Module):
            return None
        if isinstance(function.node, cst.Lambda):
            return self.of(function.node.body, part)
        return _agreed([self.of(item.value, part) if item.value is not None else None for item in function.returns])

    def _of_sequence(self, origins: frozenset[cst.CSTNode], part: int | None) -> Activation | None:
        """The last layer of an `nn.Sequential` that is made of layers in sight."""
        made = next(iter(origins)) if len(origins) == 1 else None
        if not isinstance(made, cst.Call) or not made.args or part is not None:
            return None
        last = made.args[-1]
        if last.star:
            return None
        layer = self._model.value(last.value)
        if layer.kind is Kind.MODULE and layer.ref == "torch.nn.Sequential":
            return _Finder(self._model, self._depth + 1)._of_sequence(layer.origins, None)
        kind = _ACTIVATIONS.get(layer.ref or "") if layer.kind is Kind.MODULE else None
        return Activation(kind, last.value, self._model) if kind is not None else None


def _agreed(found: list[Activation | None]) -> Activation | None:
    """The activation on which all ways agree."""
    first = found[0] if found else None
    if first is None or any(other is None or other.kind != first.kind for other in found):
        return None
    return first
