"""Classes of modules that have nothing to train: what they return carries no graph but that of their arguments."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.graph_parts import is_leaf
from torchlint.analyses.loops.phases import default_of
from torchlint.analyses.modules.constructor_options import arguments_of
from torchlint.analyses.modules.frozen_classes import switches_itself_off
from torchlint.semantics import torch_api
from torchlint.semantics.class_bodies import is_placeholder
from torchlint.semantics.dataflow import text
from torchlint.semantics.values import Grad, Kind
from torchlint.semantics.vocabulary import is_parameter_free

if TYPE_CHECKING:
    from torchlint.analyses.modules.constructor_options import Given
    from torchlint.semantics.entities import Binding, Call, Class, Function
    from torchlint.semantics.model import Model
    from torchlint.semantics.values import Value

_AROUND = frozenset({"torch.jit.script", "torch.jit.trace", "torch.nn.Sequential", "torch.nn.DataParallel"})
_CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleList")
_PLAIN_BASES = ("torch.nn.Module", "abc.ABC", "builtins.object")
_SWITCHING_ON = re.compile(r"\.requires_grad(_\((?!(requires_grad=)?False)|\s*=(?!=|\s*False))")
_DEPTH = 4
_CHAIN = 9
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
    made = model.value(module_of(call)).origins
    if behind is not None:
        builders = [node.func for node in made if isinstance(node, cst.Call)]
        is_built = (
            bool(made) and len(builders) == len(made) and all(model.value(f).kind is Kind.CLASS for f in builders)
        )
        return has_no_parameters(behind[1], behind[0], call.method if is_built else None)
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
        is_class = model.value(call.node.func).kind is Kind.CLASS
        behind = model.class_behind(call.callee) if is_class and call.callee else None
        return has_no_parameters(behind[1], behind[0], None) if behind else is_parameter_free(call.callee or "")
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


def has_no_parameters(cls: Class, model: Model, run: str | None) -> bool:
    """Whether a class, whose file is that of the model, shows that its modules hold neither parameters nor layers. One
    that leaves its `forward` to those that derive from it leaves them its layers, too, except where an object of this
    very class is made to `run` by another method."""
    method = _method(cls, model, "forward", _DEPTH)
    if method is None and run is not None and cls.is_module:
        method = _method(cls, model, run, _DEPTH)
    return method is not None and not is_placeholder(method) and _holds_nothing(cls, model, {}, ())


def _method(cls: Class, model: Model, name: str, depth: int) -> Function | None:
    """A method of the class or of a base in whatever file."""
    if (own := cls.method(name)) is not None or not depth:
        return own
    behind = (model.class_behind(base) for part in cls.lineage() for base in part.bases if base is not None)
    found = (_method(base[1], base[0], name, depth - 1) for base in behind if base is not None)
    return next((method for method in found if method is not None), None)


def _holds_nothing(cls: Class, model: Model, given: Given, around: tuple[str, ...]) -> bool:
    """Whether neither a class nor what it derives from, in whatever file, makes a parameter or a layer that it does not
    switch off.

    given: what its constructor is told, as far as it is known. around: the classes that are asked for this one.
    """
    if cls.ref in around or switches_itself_off(cls, model):
        return True
    around = (*around, cls.ref)
    if len(around) > _CHAIN:
        return False
    calls = (call for method in cls.methods.values() for call in method.calls)
    if any(_registers(call, model, _given_in(call.function, cls, given), around) for call in calls):
        return False
    if any(_may_train(binding, model, cls, given, around) for binding in cls.attributes.values()):
        return False
    for base in (base for base in cls.bases if base not in _PLAIN_BASES):
        behind = model.class_behind(base) if base is not None else None
        if behind is None:
            return False
        home, found = behind
        if not _holds_nothing(found, home, _given_to_base(cls, model, found, home, given), around):
            return False
    return True


def _given_in(function: Function, cls: Class, given: Given) -> Given:
    return given if function is cls.methods.get("__init__") else {}


def _given_to_base(cls: Class, model: Model, base: Class, home: Model, given: Given) -> Given:
    """What the constructor of a base is told: by that of the class, or as that of the class."""
    builder = cls.methods.get("__init__")
    if builder is None:
        return given
    told = [call for call in builder.calls if call.method == "__init__" and isinstance(call.receiver, cst.Call)]
    return arguments_of(model, told[0], home, base, given) if len(told) == 1 else {}


def trains_nothing(cls: Class, model: Model, but: Set[str]) -> bool:
    """Whether no attribute of a class may be a layer or a parameter, apart from some."""
    others = (binding for name, binding in cls.attributes.items() if name not in but)
    return not any(_may_train(binding, model, cls, {}, (cls.ref,)) for binding in others)


def _registers(call: Call, model: Model, given: Given, around: tuple[str, ...]) -> bool:
    """A call that makes a parameter or a layer, or keeps one under a name that is not written out."""
    if call.method in _REGISTERING or call.callee == "builtins.setattr":
        return True
    if call.callee == "torch.nn.Parameter":
        return not _is_switched_off(call)
    value = call.value
    made = call.node in value.origins and value.kind is Kind.MODULE
    return made and not _is_free(call.node, value, model, given, around)


def _is_switched_off(call: Call) -> bool:
    """`nn.Parameter(grid, requires_grad=False)`"""
    flag = call.argument("requires_grad", 1)
    return flag.given and flag.value.constant is False


def _is_free(made: cst.BaseExpression, value: Value, model: Model, given: Given, around: tuple[str, ...]) -> bool:
    """Whether a module, which a call makes, has nothing to train, as `nn.Embedding.from_pretrained(table)` has."""
    if is_parameter_free(value.ref or "") or value.grad is Grad.DETACHED:
        return True
    if value.ref in _CONTAINERS and isinstance(made, cst.Call):
        parts = _parts(made)
        return bool(parts) and all(_is_free(part, model.value(part), model, given, around) for part in parts)
    behind = model.class_behind(value.ref) if value.ref else None
    if behind is None:
        return False
    home, cls = behind
    told = arguments_of(model, model.call(made), home, cls, given) if isinstance(made, cst.Call) else {}
    return _holds_nothing(cls, home, told, around)


def _parts(container: cst.Call) -> list[cst.BaseExpression]:
    """What `nn.Sequential(...)` and `nn.ModuleList([...])` hold, where all of it is written out; or none."""
    if any(arg.star for arg in container.args):
        return []
    match [arg.value for arg in container.args]:
        case [cst.List(elements=elements) | cst.Tuple(elements=elements)]:
            return [element.value for element in elements]
        case [cst.ListComp(elt=part) | cst.GeneratorExp(elt=part)]:
            return [part]
        case parts:
            return parts


def _may_train(attribute: Binding, model: Model, cls: Class, given: Given, around: tuple[str, ...]) -> bool:
    return any(
        write.value is not None
        and (write.kind != "buffer" or is_leaf(model, write.value))
        and _may_hold(write.value, attribute, model, _given_in(write.function, cls, given), around)
        for write in attribute.writes
    )


def _may_hold(
    value: cst.BaseExpression, attribute: Binding, model: Model, given: Given, around: tuple[str, ...]
) -> bool:
    """Whether an attribute may be a layer, or a parameter; a number that the constructor is given is not called."""
    known = model.value(value)
    if known.kind is Kind.UNKNOWN:
        told = model.binding(value) if isinstance(value, cst.Name) else None
        is_told = told is not None and told.is_parameter and len(told.writes) == 1
        if told is not None and is_told and (told.name in given or _is_function_by_default(told, model)):
            return False  # a number, a text or None, or `torch.tanh`
        others = [method for method in attribute.methods if torch_api.method(method) is None]  # none of a tensor's
        if isinstance(value, cst.Call):
            return not _is_handed_back_free(model.call(value), model, around)
        return attribute.called or bool(others) or any(_is_handed_on(read, model) for read in attribute.reads)
    if known.kind is Kind.MODULE:
        if known.grad is Grad.DETACHED and any(_is_switched_on(read, known, model) for read in attribute.reads):
            return True
        return not _is_free(value, known, model, given, around)
    if isinstance(value, cst.Call) and model.call(value).callee == "torch.nn.Parameter":
        return not _is_switched_off(model.call(value))
    if known.kind is Kind.INSTANCE and (behind := model.class_behind(known.ref or "")) is not None:
        return not behind[1].is_record  # the options of a network
    if known.kind is Kind.INSTANCE and (known.ref or "").startswith("torch.distributions."):
        return False
    return known.ref == "torch.nn.Parameter" or known.kind in (Kind.PARAMETERS, Kind.INSTANCE)


def _is_function_by_default(parameter: Binding, model: Model) -> bool:
    default = default_of(parameter.scope_function, parameter.name, model)
    return default is not None and default.kind is Kind.FUNCTION and (default.ref or "").startswith("torch.")


def _is_switched_on(read: cst.CSTNode, known: Value, model: Model) -> bool:
    """`self.table.weight.requires_grad = True`, `for p in self.table.parameters(): p.requires_grad_()`"""
    return model.value(read).grad is not known.grad or _SWITCHING_ON.search(text(model.statement(read))) is not None


def _is_handed_back_free(call: Call, model: Model, around: tuple[str, ...]) -> bool:
    """Whether a function of the project, which a call enters, returns one of several modules of this kind."""
    entered = (model, call.target) if call.target is not None else None
    home, function = entered or model.function_behind(model.value(call.node.func)) or (model, None)
    returned = [node.value for node in function.returns] if function is not None else []
    made = [(node, home.value(node)) for node in returned if node is not None]
    is_known = bool(made) and len(made) == len(returned) and all(value.kind is Kind.MODULE for _, value in made)
    return is_known and all(_is_free(node, value, home, {}, around) for node, value in made)


def _is_handed_on(read: cst.CSTNode, model: Model) -> bool:
    """`self.net` of `self.run(self.net, x)`, where nothing is known of what is called."""
    argument = model.parent(read)
    site = model.parent(argument) if isinstance(argument, cst.Arg) else None
    call = model.call(site) if isinstance(site, cst.Call) else None
    return call is not None and call.callee is None and (call.target or call.foreign) is None
