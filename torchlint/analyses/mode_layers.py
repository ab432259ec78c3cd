"""Modules that compute something else in training than in evaluation: dropout, batch norm, and what is made of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Class
    from torchlint.semantics.model import Model
    from torchlint.semantics.values import Value

_NORMS = re.compile(r"torch\.nn\.(Lazy)?(Batch|SyncBatch)Norm\w*")
_DROPOUTS = re.compile(r"torch\.nn\.(functional\.)?\w*[dD]ropout\w*")
_RECURRENT = re.compile(r"torch\.nn\.(LSTM|GRU|RNN)")
_TRANSFORMERS = re.compile(r"torch\.nn\.Transformer(EncoderLayer|DecoderLayer)?")
_NETWORKS = re.compile(r"torchvision\.models\.(\w+\.)*(alexnet|vgg|resnet|resnext|wide_resnet|densenet|googlenet"
                       r"|inception|mobilenet|mnasnet|shufflenet|squeezenet|efficientnet|regnet)\w*")  # fmt: skip

# Only behind the features of these is a dropout.
_PLAIN_FEATURES = re.compile(r"torchvision\.models\.(\w+\.)*(alexnet|vgg\d+|squeezenet\w*)")


def mode_layer(model: Model, value: Value) -> str | None:
    """The layer for which it makes a difference whether a module is in training; None where none is in sight."""
    return _Search().of_value(model, value)


class _Search:
    def __init__(self) -> None:
        self._seen: set[object] = set()

    def of_value(self, model: Model, value: Value) -> str | None:
        if value.kind is not Kind.MODULE:
            return None
        found = self._of_class(model, value.ref) if value.ref is not None else None
        for origin in value.origins:
            found = found or self._of_expression(model, origin)
        return found

    def _of_expression(self, model: Model, made: cst.CSTNode) -> str | None:
        """The layer in what an expression builds, as `Sequential(Linear(8, 8), Dropout())`, or is given."""
        if made in self._seen:
            return None
        self._seen.add(made)
        is_part = any(_takes_part(node) for node in walk(made))
        for node in walk(made):
            if isinstance(node, cst.Call):
                found = self._of_call(model, model.call(node))
            else:
                found = self.of_value(model, model.value(node)) if isinstance(node, (cst.Name, cst.Attribute)) else None
            if found is not None and not (is_part and _PLAIN_FEATURES.fullmatch(found)):
                return found
        return None

    def _of_call(self, model: Model, call: Call) -> str | None:
        if call.callee is None:
            return None
        return call.callee if _depends_on_mode(call) else self._of_class(model, call.callee)

    def _of_class(self, model: Model, dotted: str) -> str | None:
        found = model.class_behind(dotted)
        if found is None or found[1] in self._seen:
            return None
        self._seen.add(found[1])
        return self._of_methods(*found)

    def _of_methods(self, model: Model, cls: Class) -> str | None:
        for part in cls.lineage():
            calls = (call for method in part.methods.values() for call in method.calls)
            layer = next((found for call in calls if (found := self._of_call(model, call)) is not None), None)
            bases = (found for base in part.bases if base is not None and (found := self._of_class(model, base)))
            layer = layer or next(bases, None)
            if layer is not None:
                return layer
        return None


def _takes_part(node: cst.CSTNode) -> bool:
    """`net.features`, `list(net.children())[:9]`"""
    return isinstance(node, cst.Subscript) or (isinstance(node, cst.Attribute) and node.attr.value == "features")


def _depends_on_mode(call: Call) -> bool:
    name = call.callee or ""
    if _NORMS.fullmatch(name):
        tracked = call.argument("track_running_stats")
        return not (tracked.given and tracked.value.constant is False)
    if _DROPOUTS.fullmatch(name):
        return call.argument("p", 1 if ".functional." in name else 0).value.constant not in (0, 0.0)
    if _RECURRENT.fullmatch(name):
        layers, dropout = call.argument("num_layers", 2), call.argument("dropout")
        return dropout.given and dropout.value.constant not in (0, 0.0) and not layers.absent
    if _TRANSFORMERS.fullmatch(name):
        return call.argument("dropout").value.constant not in (0, 0.0)
    return _NETWORKS.fullmatch(name) is not None
