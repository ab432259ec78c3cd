"""Ways around what an nn.Module does for its user: its `__call__`, its `training` flag, the modules it knows of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.compatibility import has_other_autograd
from torchlint.analyses.exceptions import is_on_trial
from torchlint.semantics.dataflow import writes_reaching
from torchlint.semantics.tree import is_name, walk
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import is_parameter_free, module_method

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Class
    from torchlint.semantics.model import Model
    from torchlint.semantics.values import Value

_DROPOUTS = tuple(
    f"torch.nn.functional.{name}" for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout")
)
# Packages whose modules do more than run `forward` when they are called, or are no modules of torch.
_CALLED_OTHERWISE = re.compile(r"(gpytorch|botorch|linear_operator|pyro|keras|tensorflow|torch\.distributed)\.")
# What files mention that call the `forward` of an object elsewhere, or of a compiled extension.
_OTHER_FORWARDS = re.compile(r"torch\.distributed(\.| import )rpc\b|\bRemoteModule\b|\bcpp_extension\b")
_REGISTERING = frozenset({"add_module", "register_module", "parameters", "named_parameters", "_modules"})
_FLAGS = ("training", "is_training", "train")
# What tells of networks that are run many times over with other parts dropped, to see how much they differ.
_KEPT_ON = re.compile(
    r"(?i)(?<![a-z])mc_?d(o|rop(out)?)(?![a-z])|mc_?dropout|monte_?\s?carlo|bayes|uncertaint|stochastic_?forward"
)
_PLAIN_USES = frozenset({"append", "extend", "insert"})
_ANY = "torch.nn.Module"  # one of its classes, as in `getattr(nn, name)(...)`


# -- forward


def direct_forwards(model: Model) -> Iterator[Call]:
    """Calls of the `forward` of a module other than one's own or that of a base, where `__call__` is torch's."""
    for call in model.calls_to(".forward"):
        if call.receiver is None or _is_own(call) or _is_new(model, call) or is_on_trial(call.node, model):
            continue
        if has_other_autograd(model) and call.receiver_value.ref is None:
            continue
        if call.receiver_value.kind is Kind.MODULE:
            if not (_has_call_of_its_own(model, call) or _may_be_plain(model, call) or _is_of_no_module(model, call)):
                yield call
        elif _passes_for_module(model, call):
            yield call


def forwards_that_stay(model: Model) -> list[Call]:
    """Calls of the `forward` of what may be a module, and is not known to do no more when it is called."""
    found = {call.node for call in direct_forwards(model)}
    others = (call for call in model.calls_to(".forward") if call.receiver is not None and not _is_own(call))
    return [call for call in others if call.node not in found and not _is_of_no_module(model, call)]


def _is_of_no_module(model: Model, call: Call) -> bool:
    """Whether the class derives from nothing that is out of sight, nor from a module of torch."""
    behind = model.class_behind(call.receiver_value.ref or "")
    cls = behind[1] if behind is not None else None
    return cls is not None and None not in cls.bases and all(base == "builtins.object" for base in cls.ancestry)


def _is_own(call: Call) -> bool:
    """`self.forward(x)` and `super().forward(x)`"""
    if isinstance(call.receiver, cst.Call):
        return is_name(call.receiver.func, "super")
    return is_name(call.receiver, call.function.own_name)


def _is_new(model: Model, call: Call) -> bool:
    """`RoIAlign(7).forward(x)`: nobody has had the module in hand to give it a hook, or to wrap it."""
    if not isinstance(call.receiver, cst.Call) or call.receiver_value.kind is not Kind.MODULE:
        return False
    made = model.call(call.receiver)
    return made.targets_class is not None or made.callee == call.receiver_value.ref


def _has_call_of_its_own(model: Model, call: Call) -> bool:
    """Whether what the object does when it is called is more than torch's; of an unknown one, the class around says."""
    ref, around = call.receiver_value.ref, call.function.cls
    if ref is not None:
        return not _calls_like_a_module(model, ref)
    return around is not None and around.is_module and not _runs_forward(model, around)


def _may_be_plain(model: Model, call: Call) -> bool:
    """Whether an object whose class is out of sight may be of a class of the project that is no module: a controller
    with a `forward` of its own, and all the other methods that are called on it."""
    binding = model.binding(call.receiver) if call.receiver is not None else None
    if call.receiver_value.ref is not None or (binding is not None and _is_of_chosen_class(model, binding)):
        return False
    if binding is not None:
        methods = set(binding.methods)
    else:  # `net.model`, of an object of another file
        owner = _written(model, call)
        methods = {each.method for each in model.calls if each.method is not None and _written(model, each) == owner}
        if methods == {"forward"}:
            return False
    classes = model.classes_beside({"forward", *methods})
    return any(not model.is_module_class(source, name) for source, name in classes)


def _written(model: Model, call: Call) -> str:
    return model.code(call.receiver) if call.receiver is not None else ""


def _is_of_chosen_class(model: Model, binding: Binding) -> bool:
    """Whether a variable holds modules, of one class or another: `if small: make = SmallNet` and so on, and then
    `self.net = make()`."""
    makers = [write.value.func if isinstance(write.value, cst.Call) else None for write in binding.writes]
    names = [model.binding(maker) if isinstance(maker, cst.Name) else None for maker in makers]
    chosen = [write.value for name in names for write in (name.writes if name is not None else ())]
    return bool(chosen) and None not in names and all(_is_class_of_modules(model, value) for value in chosen)


def _is_class_of_modules(model: Model, node: cst.CSTNode | None) -> bool:
    dotted = model.qualified(node) if node is not None else None
    behind = model.class_behind(dotted) if dotted is not None else None
    return behind is not None and behind[1].is_module and _runs_forward(*behind)


def _calls_like_a_module(model: Model, dotted: str) -> bool:
    """Whether no class between that of this name and torch's has a `__call__`, as far as they are in sight."""
    behind = model.class_behind(dotted)
    if behind is None:
        return _CALLED_OTHERWISE.match(dotted) is None
    return _runs_forward(*behind) and not behind[1].is_no_module


def _runs_forward(model: Model, cls: Class) -> bool:
    for ancestor in cls.lineage():
        known = {base.qualname for base in ancestor.local_bases}
        if "__call__" in ancestor.methods or None in ancestor.bases:
            return False
        if not all(base in known or _calls_like_a_module(model, base) for base in ancestor.bases if base is not None):
            return False
    return True


def _passes_for_module(model: Model, call: Call) -> bool:
    """Whether what is out of sight is an attribute of a module, and used as its modules are and in no other way."""
    value, binding = call.receiver_value, model.binding(call.receiver) if call.receiver is not None else None
    if binding is None or binding.cls is None or not binding.cls.is_module or not call.arguments:
        return False
    if _may_be_no_module(model, value, binding):
        return False
    if not _runs_forward(model, binding.cls) or _OTHER_FORWARDS.search(model.source.text):
        return False
    if value.kind is not Kind.UNKNOWN and (value.kind is not Kind.INSTANCE or model.class_behind(value.ref or "")):
        return False
    if value.ref is not None and _CALLED_OTHERWISE.match(value.ref):
        return False
    return all(method == "forward" or module_method(method) is not None for method in binding.methods)


def _may_be_no_module(model: Model, value: Value, binding: Binding) -> bool:
    """Whether one of several objects that an attribute may hold is of a class of the project that is no module."""
    made = {model.value(origin).ref for origin in value.origins}
    made.update(ref for write in binding.writes for ref in _classes_called(model, write.value))
    behind = (model.class_behind(ref) for ref in made if ref is not None)
    return any(found is not None and not found[1].is_module for found in behind)


def _classes_called(model: Model, made: cst.BaseExpression | None) -> Iterator[str | None]:
    """`KINDS[kind](...)`, `(Small if small else Large)(...)`"""
    if isinstance(made, cst.Call):
        maker = model.value(made.func)
        listed = model.value(made.func.value).known_fields if isinstance(made.func, cst.Subscript) else ()
        yield from (each.ref for each in (maker, *(value for _, value in listed)))
        yield from (cls.ref for cls in model.classes if cls.node in maker.origins)


# -- dropout


def unconditional_dropouts(model: Model) -> Iterator[Call]:
    """Functional dropout in a method of a module that does not say whether the module is in training, unless it is to
    go on dropping."""
    if _KEPT_ON.search(" ".join((model.path.name, *(function.qualname for function in model.functions)))):
        return
    for call in model.calls_to(*_DROPOUTS):
        function = call.function
        if function.cls is None or not function.cls.is_module or not function.params:
            continue
        if _KEPT_ON.search(model.code(function.cls.node)):
            continue
        if not call.argument("training", 2).absent or model.grad_enabled(call.node) is False:
            continue  # what drops parts where nothing can be trained means to do so
        if _is_told_how_often(model, call.argument("p", 1).node):
            continue
        if not any(guard.test is not None and _asks_for_training(guard.test) for guard in model.guards(call.node)):
            yield call


def _is_told_how_often(model: Model, probability: cst.BaseExpression | None) -> bool:
    """`p = self.p if self.training else 0.0`, be it written as a branch, or in the call."""
    binding = model.binding(probability) if probability is not None else None
    writes = writes_reaching(model, binding, probability) if binding is not None and probability is not None else []
    tests = [guard.test for write in writes for guard in model.guards(write.target)]
    values = [part for part in (probability, *(write.value for write in writes)) if part is not None]
    tests += [node.test for part in values for node in walk(part) if isinstance(node, cst.IfExp)]
    factors = (node for part in values for node in walk(part) if isinstance(node, cst.Name))
    is_factor = any(node.value in _FLAGS for node in factors)
    return is_factor or any(test is not None and _asks_for_training(test) for test in tests)


def _asks_for_training(test: cst.BaseExpression) -> bool:
    return any(isinstance(node, cst.Name) and "train" in node.value.lower() for node in walk(test))


# -- lists of modules


def hidden_modules(model: Model) -> Iterator[tuple[Binding, cst.BaseExpression]]:
    """Attributes of modules that hold new modules in a list, where `parameters()` does not find them."""
    for cls in model.classes:
        if not cls.is_module or any(name in cls.methods for name in _REGISTERING):
            continue
        for binding in cls.attributes.values():
            if len(binding.writes) != 1 or binding.writes[0].kind != "assign":
                continue
            value = binding.writes[0].value
            if value is not None and _lists_modules(model, binding, value) and not _is_registered(model, binding):
                yield binding, value


def _lists_modules(model: Model, binding: Binding, value: cst.BaseExpression) -> bool:
    match value:
        case cst.List(elements=[]):
            return _appends_modules(model, binding)
        case cst.List():
            return len(value.elements) > 1 and all(_makes_module(model, element.value) for element in value.elements)
        case cst.ListComp():
            return _makes_module(model, value.elt)
    return False


def _appends_modules(model: Model, binding: Binding) -> bool:
    appended = [
        call for read in binding.reads if (call := _method_call(model, read)) is not None and call.method == "append"
    ]
    return bool(appended) and all(
        len(call.arguments) == 1 and _makes_module(model, call.arguments[0].value) and call.function.name == "__init__"
        for call in appended
    )


def _makes_module(model: Model, node: cst.BaseExpression) -> bool:
    """A call that makes a module which has something to train."""
    if not isinstance(node, cst.Call):
        return False
    value = model.value(node)
    if value.kind is not Kind.MODULE or value.ref in (None, _ANY) or value.origins != {node}:
        return False
    return not is_parameter_free(value.ref)


def _method_call(model: Model, read: cst.CSTNode) -> Call | None:
    attribute = model.parent(read)
    call = model.parent(attribute) if isinstance(attribute, cst.Attribute) and attribute.value is read else None
    return model.call(call) if isinstance(call, cst.Call) and call.func is attribute else None


def _is_registered(model: Model, binding: Binding) -> bool:
    """Whether the modules of the list may be made known in another way."""
    assert binding.cls is not None
    for function in binding.cls.methods.values():
        if any(call.method in _REGISTERING or call.callee == "builtins.setattr" for call in function.calls):
            return True
    return not all(_is_plain_use(model, read) for read in binding.reads)


def _is_plain_use(model: Model, read: cst.CSTNode) -> bool:
    """Iterating, indexing, measuring or growing the list, which leaves its modules as hidden as they are."""
    parent = model.parent(read)
    call = _method_call(model, read)
    if call is not None:
        return call.method in _PLAIN_USES
    if isinstance(parent, (cst.For, cst.CompFor)):
        return parent.iter is read
    if isinstance(parent, cst.Subscript):
        return parent.value is read
    above = model.parent(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(above, cst.Call):
        return model.call(above).callee in ("builtins.len", "builtins.enumerate", "builtins.zip", "builtins.reversed")
    return isinstance(parent, cst.AssignTarget)
