"""Classes of modules that have nothing to train: what they return carries no graph but that of their arguments."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import torch_api
from torchlint.semantics.class_bodies import is_placeholder
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import is_parameter_free

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Class
    from torchlint.semantics.model import Model

_AROUND = frozenset({"torch.jit.script", "torch.jit.trace", "torch.nn.Sequential"})
_PLAIN_BASES = ("torch.nn.Module", "abc.ABC", "builtins.object")
_DEPTH = 4
_REGISTERING = frozenset({"register_parameter", "register_module", "add_module", "__setattr__"})


def class_of_module(model: Model, forward: Call) -> tuple[Model, Class] | None:
    """The class of the module that a forward pass runs, where it is in sight, and the model of its file."""
    ref = model.value(module_of(forward)).ref
    return model.class_behind(ref) if ref else None


def module_of(forward: Call) -> cst.BaseExpression:
    """What a forward pass runs: `net` of `net(x)`, of `net.forward(x)` and of `net.predict(x)`."""
    entered = forward.target or forward.foreign
    is_method = entered is not None and entered.cls is not None and entered.name == forward.method
    if forward.receiver is not None and (is_method or forward.method == "forward"):
        return forward.receiver
    return forward.node.func


def is_parameter_free_pass(model: Model, call: Call) -> bool:
    """Whether a call runs a module, a transform of the data, that has nothing that a graph would lead to."""
    if not call.is_forward:
        return False
    if _only_runs_such(model, call):
        return True
    behind = class_of_module(model, call)
    if behind is not None:
        return has_no_parameters(behind[1], behind[0])
    made = model.value(module_of(call)).origins
    return bool(made) and all(_makes_nothing_to_train(model, origin) for origin in made)


def _only_runs_such(model: Model, call: Call) -> bool:
    """Whether a plain function of another file, which a call enters, runs no other modules: `pad(spectrum)`."""
    entered = model.elsewhere(call) if call.target is None else None
    if entered is None or entered[1].cls is not None:
        return False
    home, function = entered
    passes = home.effects(function).forwards
    return bool(passes) and all(inner.function is function and is_parameter_free_pass(home, inner) for inner in passes)


def _makes_nothing_to_train(model: Model, made: cst.CSTNode, depth: int = 4) -> bool:
    """`torch.jit.script(nn.Sequential(GaussianBlur(7)))`"""
    if not isinstance(made, cst.Call) or not depth:
        return False
    call = model.call(made)
    if call.callee not in _AROUND:
        return is_parameter_free(call.callee or "")
    parts = call.arguments if call.callee == "torch.nn.Sequential" else call.arguments[:1]
    inner = [_origins(model, arg) for arg in parts]
    return bool(inner) and all(
        bool(origins) and all(_makes_nothing_to_train(model, origin, depth - 1) for origin in origins)
        for origins in inner
    )


def _origins(model: Model, given: cst.Arg) -> list[cst.CSTNode]:
    if given.star:
        return []
    return [given.value] if isinstance(given.value, cst.Call) else [*model.value(given.value).origins]


def has_no_parameters(cls: Class, model: Model) -> bool:
    """Whether a class, whose file is that of the model, shows that its modules hold neither parameters nor layers. One
    that leaves its `forward` to those that derive from it leaves them its layers, too."""
    forward = cls.method("forward")
    return forward is not None and not is_placeholder(forward) and _holds_nothing(cls, model, _DEPTH)


def _holds_nothing(cls: Class, model: Model, depth: int) -> bool:
    """Whether neither a class nor what it derives from, in whatever file, makes a parameter or a layer."""
    for part in cls.lineage():
        calls = (call for method in part.methods.values() for call in method.calls)
        if any(map(_registers, calls)) or not trains_nothing(part, model):
            return False
        own = {base.qualname for base in part.local_bases}
        for base in (base for base in part.bases if base not in own and base not in _PLAIN_BASES):
            behind = model.class_behind(base) if base is not None and depth else None
            if behind is None or not _holds_nothing(behind[1], behind[0], depth - 1):
                return False
    return True


def trains_nothing(cls: Class, model: Model, but: Set[str] = frozenset()) -> bool:
    """Whether no attribute of a class may be a layer or a parameter, apart from some."""
    others = (binding for name, binding in cls.attributes.items() if name not in but)
    return not any(_may_train(binding, model) for binding in others)


def _registers(call: Call) -> bool:
    """A call that makes a parameter or a layer, or keeps one under a name that is not written out."""
    if call.method in _REGISTERING or call.callee in ("torch.nn.Parameter", "builtins.setattr"):
        return True
    value = call.value
    return call.node in value.origins and value.kind is Kind.MODULE and not is_parameter_free(value.ref or "")


def _may_train(attribute: Binding, model: Model) -> bool:
    return any(write.value is not None and _may_hold(write.value, attribute, model) for write in attribute.writes)


def _may_hold(value: cst.BaseExpression, attribute: Binding, model: Model) -> bool:
    """Whether an attribute may be a layer, or a parameter; a number that the constructor is given is not called."""
    known = model.value(value)
    if known.kind is Kind.UNKNOWN:
        others = [method for method in attribute.methods if torch_api.method(method) is None]  # none of a tensor's
        is_used = attribute.called or bool(others) or any(_is_handed_on(read, model) for read in attribute.reads)
        return isinstance(value, cst.Call) or is_used
    if known.kind is Kind.MODULE:
        return not is_parameter_free(known.ref or "")
    return known.ref == "torch.nn.Parameter" or known.kind in (Kind.PARAMETERS, Kind.INSTANCE)


def _is_handed_on(read: cst.CSTNode, model: Model) -> bool:
    """`self.net` of `self.run(self.net, x)`, where nothing is known of what is called."""
    argument = model.parent(read)
    site = model.parent(argument) if isinstance(argument, cst.Arg) else None
    call = model.call(site) if isinstance(site, cst.Call) else None
    return call is not None and call.callee is None and (call.target or call.foreign) is None
