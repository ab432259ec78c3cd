"""Modules that compute something else in training than in evaluation: dropout, batch norm, and what is made of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from torchlint.analyses.modules.constructor_options import (
    Given,
    arguments_of,
    can_run,
    given_where_made,
    option,
    zeros_by_default,
)
from torchlint.analyses.order import in_order
from torchlint.semantics.tree import is_name, walk
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
_NO_CLASSES_OF_PROJECTS = ("torch.", "builtins.", "numpy.")


def mode_layer(model: Model, value: Value) -> str | None:
    """The layer for which it makes a difference whether a module is in training; None where none is in sight."""
    known, key = model.once(_known_layers), (value.kind, value.ref, value.origins)
    if key not in known:
        known[key] = _Search().run(model, value)
    return known[key]


def _known_layers(_: Model) -> dict[tuple[Kind, str | None, frozenset[cst.CSTNode]], str | None]:
    """What has been found for the modules of a file: many reads ask for each."""
    return {}


_ClassAsMade: TypeAlias = tuple["Class", frozenset[tuple[str, Kind, object]]]  # and what its constructor is given


def _without_layer(_: Model) -> set[_ClassAsMade]:
    """The classes of a file in which none has been found: all files of the project that use them ask for it."""
    return set()


class _Search:
    def __init__(self) -> None:
        self._seen: set[object] = set()
        self._entered: list[tuple[set[_ClassAsMade], _ClassAsMade]] = []
        self._passed_over = False  # a layer, of which only what lies before it is used

    def run(self, model: Model, value: Value) -> str | None:
        found = self.of_value(model, value)
        if found is None and not self._passed_over:  # so there is nothing in any class that was entered on the way
            for known, key in self._entered:
                known.add(key)
        return found

    def of_value(self, model: Model, value: Value) -> str | None:
        if value.is_(Kind.LIST, Kind.TUPLE):  # `Sequential(*layers)`
            parts = value.items if value.element is None else (value.element,)
            return next(filter(None, (self._of_part(model, part) for part in parts or ())), None)
        if value.kind is not Kind.MODULE:
            return None
        found = None
        if value.ref is not None and not any(_makes(model, origin, value.ref) for origin in value.origins):
            found = self._of_class(model, value.ref, None, {})
        for origin in in_order(model, value.origins):
            found = found or self._of_expression(model, origin, given_where_made(model, origin))
        return found

    def _of_part(self, model: Model, value: Value) -> str | None:
        """What goes into a list under a condition that is not known may not be there."""
        made = [node for node in value.origins if isinstance(node, cst.Call)]
        sure = (node for node in made if can_run(model, model.call(node), given_where_made(model, node)))
        return self.of_value(model, value.but(origins=frozenset(sure)))

    def _of_expression(self, model: Model, made: cst.CSTNode, given: Given) -> str | None:
        """The layer in what an expression builds, as `Sequential(Linear(8, 8), Dropout())`, or is given."""
        if made in self._seen:
            return None
        self._seen.add(made)
        is_part = any(_takes_part(node) for node in walk(made))
        for node in walk(made):
            if isinstance(node, cst.Call):
                call = model.call(node)
                found = self._of_call(model, call, given) if can_run(model, call, given, made) else None
            else:
                found = self.of_value(model, model.value(node)) if isinstance(node, (cst.Name, cst.Attribute)) else None
            if found is not None:
                if not (is_part and _PLAIN_FEATURES.fullmatch(found)):
                    return found
                self._passed_over = True
        return None

    def _of_call(self, model: Model, call: Call, given: Given) -> str | None:
        """given: what the parameters of the function hold in which the call stands, as far as that is known."""
        if call.callee is None or _runs_what_is_made_here(model, call):
            return None
        if depends_on_mode(model, call, given):
            return call.callee
        return self._of_class(model, call.callee, call, given)

    def _of_class(self, model: Model, dotted: str, made: Call | None, given: Given) -> str | None:
        found = model.class_behind(dotted) if not dotted.startswith(_NO_CLASSES_OF_PROJECTS) else None
        if found is None:
            return None
        home, cls = found
        if _switches_by_itself(home, cls):
            return None
        own = arguments_of(model, made, home, cls, given) if made is not None else zeros_by_default(home, cls)
        key = cls, frozenset((name, value.kind, value.constant) for name, value in own.items())
        known = home.once(_without_layer)
        if key in known or key in self._seen:
            return None
        self._seen.add(key)
        self._entered.append((known, key))
        return self._of_methods(home, cls, own)

    def _of_methods(self, model: Model, cls: Class, given: Given) -> str | None:
        builder = cls.method("__init__")
        for part in cls.lineage():
            for method in part.methods.values():
                known = given if method is builder else {}
                for call in method.calls:
                    may_run = method is not builder or can_run(model, call, known)
                    may_run = may_run and not (part.bases == ["torch.nn.Module"] and _is_left_out(model, call))
                    layer = self._of_call(model, call, known) if may_run else None
                    if layer is not None:
                        return layer
            for base in part.bases:
                layer = self._of_class(model, base, None, {}) if base is not None else None
                if layer is not None:
                    return layer
        return None


def _switches_by_itself(model: Model, cls: Class) -> bool:
    """Whether a network goes into a mode by itself in every pass, `def forward(self, x, testing): if testing:
    self.eval() ...`: the one that it is in before makes no difference."""
    forward = cls.method("forward")
    if forward is None or forward.module != model.name:
        return False
    calls = [call for call in forward.calls if is_name(call.receiver, forward.own_name)]
    switches = [call for call in calls if call.method in ("eval", "train")]
    return len({call.method for call in switches}) > 1 or any(not model.guards(call.node) for call in switches)


def _runs_what_is_made_here(model: Model, call: Call) -> bool:
    """`self.drop(x)` of a layer that the class makes itself: what it is made with tells more."""
    binding = model.binding(call.node.func)
    writes = binding.writes if binding is not None and binding.cls is not None else []
    return bool(writes) and all(write.function.name == "__init__" and _is_made(write.value) for write in writes)


def _is_made(value: cst.BaseExpression | None) -> bool:
    """Made, or left out: `Dropout(p) if p > 0 else None`."""
    if isinstance(value, cst.IfExp):
        return _is_made(value.body) and _is_made(value.orelse)
    return isinstance(value, (cst.Call, cst.Tuple)) or is_name(value, "None")


def _is_left_out(model: Model, call: Call) -> bool:
    """Whether a layer is put into an attribute that nobody reads: it is never applied."""
    statement = model.small_statement(call.node)
    if not isinstance(statement, cst.Assign) or statement.value is not call.node or len(statement.targets) > 1:
        return False
    binding = model.binding(statement.targets[0].target)
    return binding is not None and binding.cls is not None and not binding.reads


def _takes_part(node: cst.CSTNode) -> bool:
    """`net.features`, `list(net.children())[:9]`"""
    return isinstance(node, cst.Subscript) or (isinstance(node, cst.Attribute) and node.attr.value == "features")


def _makes(model: Model, origin: cst.CSTNode, dotted: str) -> bool:
    return isinstance(origin, cst.Call) and model.call(origin).callee == dotted


def _is_told(model: Model, call: Call) -> bool:
    """Whether `F.dropout(x, p, training)` gets a parameter of its function, which nobody fills with the mode."""
    told = call.argument("training", 2).node
    binding = model.binding(told) if told is not None else None
    if binding is None or not binding.is_parameter or binding.name not in call.function.params:
        return False
    is_bound = call.function.cls is not None and not call.function.is_static
    place = call.function.params.index(binding.name) - is_bound
    filled = (caller.argument(binding.name, place).node for caller in call.function.callers)
    return not any(isinstance(node, cst.Attribute) and node.attr.value == "training" for node in filled)


def depends_on_mode(model: Model, call: Call, given: Given) -> bool:
    """Whether a call makes such a layer, or is one, as `F.dropout(x, training=self.training)`."""
    name = call.callee or ""
    if _NORMS.fullmatch(name):
        tracked = call.argument("track_running_stats")
        return not (tracked.given and tracked.value.constant is False)
    if _DROPOUTS.fullmatch(name):
        if ".functional." in name and _is_told(model, call):
            return False
        return option(model, call, "p", 1 if ".functional." in name else 0, given).constant != 0
    dropout = option(model, call, "dropout", None, given).constant
    if _RECURRENT.fullmatch(name):
        layers = call.argument("num_layers", 2)  # dropout is between them
        is_one = layers.absent or option(model, call, "num_layers", 2, given).constant == 1
        return call.argument("dropout").given and dropout != 0 and not is_one
    if name == "torch.nn.MultiheadAttention":
        given_dropout = call.argument("dropout", 2)
        return given_dropout.given and option(model, call, "dropout", 2, given).constant != 0
    if _TRANSFORMERS.fullmatch(name):
        return dropout != 0
    return _NETWORKS.fullmatch(name) is not None
