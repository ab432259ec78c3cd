"""Whether a value was computed by a model: a walk backwards from an expression to what it is made of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.once import once_for_each
from torchlint.semantics.dataflow import given_to
from torchlint.semantics.tree import children
from torchlint.semantics.values import Kind, Place
from torchlint.semantics.vocabulary import is_loss_module, module_method

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function
    from torchlint.semantics.model import Model

_LEAVING = frozenset(["item", "cpu", "numpy", "tolist", "size", "dim", "numel"])
_METADATA = frozenset(["shape", "dtype", "device", "ndim"])
_OBJECTS = (Kind.MODULE, Kind.OPTIMIZER, Kind.INSTANCE, Kind.SCHEDULER, Kind.LOADER)
_ADDING = frozenset(["append", "extend", "insert", "appendleft"])
_NUMPY = re.compile(r"(?i)numpy|numpif|ndarray")
_LIMIT = 400


@once_for_each
def calls_behind(model: Model, node: cst.CSTNode) -> Sequence[Call]:
    """The calls that a value is computed by, on its way through the variables of its function and those of its callers.

    What a forward pass is given counts no more, and copies to the host end the way.
    """
    found: list[Call] = []
    seen: set[cst.CSTNode] = set()
    followed: set[tuple[Binding, Function]] = set()
    work = [node]
    while work and len(seen) < _LIMIT:
        at = work.pop()
        if at in seen:
            continue
        seen.add(at)
        call = model.call(at) if isinstance(at, cst.Call) else None
        if _is_on_host(model, at, call):
            continue
        if call is not None:
            found.append(call)
        if call is None or not runs_model(model, call):
            binding = model.binding(at)
            read = (binding, model.function(at)) if binding is not None else None
            if read not in followed:
                work.extend(_sources(model, at))
            if read is not None:
                followed.add(read)
    return found


def parameters_behind(model: Model, node: cst.CSTNode) -> list[Binding]:
    """Parameters of functions that this file does not call itself, whose elements a value is computed from."""
    found: list[Binding] = []
    seen: set[cst.CSTNode] = set()
    work = [node]
    while work and len(seen) < _LIMIT:
        at = work.pop()
        if at in seen or (isinstance(at, cst.Attribute) and at.attr.value in _METADATA):
            continue
        seen.add(at)
        call = model.call(at) if isinstance(at, cst.Call) else None
        if _is_on_host(model, at, call) or (call is not None and runs_model(model, call)):
            continue
        binding = model.binding(at)
        if binding is not None and binding.is_parameter and not binding.scope_function.callers:
            found.append(binding)
        work.extend(_sources(model, at))
    return found


def is_computed_from_parameters(model: Model, node: cst.CSTNode) -> bool:
    """Whether a value is computed from a parameter of its function, by way of what may be a tensor."""
    seen: set[cst.CSTNode] = set()
    work = [node]
    while work and len(seen) < _LIMIT:
        at = work.pop()
        if at in seen:
            continue
        seen.add(at)
        binding = model.binding(at)
        if binding is not None and binding.is_parameter and isinstance(at, cst.Name):
            return True
        if binding is None:
            work.extend(children(at))
        elif model.value(at).is_(Kind.TENSOR, Kind.UNKNOWN) and model.value(at).place is not Place.HOST:
            work.extend(write.value for write in binding.writes if write.value is not None)
    return False


def runs_model(model: Model, call: Call, *, whole: bool = True) -> bool:
    """A forward pass, a method of a model that is not one of every module, or a function that is given a model.

    Not `whole`: the function counts not, for it may well be given all batches too.
    """
    if call.is_forward:
        return True
    if call.receiver_value.kind is Kind.MODULE:
        return module_method(call.method or "") is None
    made = model.value(call.node)
    entered = (function for function in _entered(call) if not function.is_pass)
    if any(function.is_step or model.effects(function).forwards for function in entered):
        return True
    if not whole or (call.callee or "").partition(".")[0] in ("torch", "builtins") or made.kind in _OBJECTS:
        return False
    return any(model.value(arg.value).kind is Kind.MODULE and not _is_loss(model, arg.value) for arg in call.arguments)


def is_given_moved(model: Model, call: Call) -> bool:
    """`network.batch_loss(x, y)` of an object out of sight, with what was moved to a device: what comes of it is there,
    if it is a tensor."""
    if call.receiver is None or call.target is not None or call.foreign is not None or call.alternatives:
        return False
    if not call.receiver_value.is_(Kind.UNKNOWN, Kind.INSTANCE) or _is_on_host(model, call.node, call):
        return False
    given = [model.value(arg.value) for arg in call.arguments]
    return any(value.is_(Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN) and value.place is Place.ACCELERATOR for value in given)


def _entered(call: Call) -> list[Function]:
    """The functions of this file of which the call runs one."""
    return [call.target] if call.target is not None else call.alternatives


def _is_loss(model: Model, node: cst.CSTNode) -> bool:
    return is_loss_module(model.value(node).ref or "")


def _is_on_host(model: Model, node: cst.CSTNode, call: Call | None) -> bool:
    if call is not None and (call.method in _LEAVING or _makes_arrays(model, call)):
        return True
    if isinstance(node, cst.IfExp) and Kind.ARRAY in (model.value(node.body).kind, model.value(node.orelse).kind):
        return True
    value = model.value(node)
    return value.is_(Kind.NUMBER, Kind.ARRAY, Kind.STRING) or value.place is Place.HOST


def _makes_arrays(model: Model, call: Call) -> bool:
    """Whether a function out of sight says by its name that it copies to the host: `nested_numpify(losses)`."""
    if call.target is not None or call.foreign is not None or model.value(call.node).kind is not Kind.UNKNOWN:
        return False
    return _NUMPY.search((call.callee or call.method or "").rpartition(".")[2]) is not None


def _sources(model: Model, node: cst.CSTNode) -> list[cst.CSTNode]:
    binding = model.binding(node)
    if binding is None:
        return children(node)
    if binding.is_parameter:
        return [given for call in binding.scope_function.callers for given in given_to(call, binding)]
    function = model.function(node)
    writes = [write for write in binding.writes if write.function is function]
    if not writes and binding.cls is not None and not binding.is_parameter:
        writes = binding.writes
    written = [write.value for write in writes if write.value is not None]
    added = (_added(model, read) for read in binding.reads if model.function(read) is function)
    return [*written, *chain.from_iterable(added)]


def _added(model: Model, read: cst.CSTNode) -> list[cst.CSTNode]:
    """What a list gets where it is read: `losses.append(loss)`, `losses[i] = loss`."""
    method = model.parent(read)
    target = model.parent(method) if type(method) is cst.Subscript and method.value is read else None
    stored = model.parent(target) if type(target) is cst.AssignTarget else None
    if type(stored) is cst.Assign:
        return [stored.value]
    site = model.parent(method) if type(method) is cst.Attribute and method.attr.value in _ADDING else None
    return [arg.value for arg in site.args] if type(site) is cst.Call and site.func is method else []


def is_handed_in(model: Model, module: cst.BaseExpression) -> bool:
    """Whether other files alone say what the module is and where it lives: an argument of a function that this file
    does not call, or an attribute that holds such an argument."""
    binding = model.binding(module)
    if binding is None:
        return is_handed_in(model, module.value) if isinstance(module, cst.Attribute) else False
    if binding.is_parameter:
        function = binding.scope_function
        if function.cls is not None and function.name == "__init__":
            return not any(call.targets_class is function.cls for call in model.calls)
        return not function.callers and not function.passed_around
    values = [write.value for write in binding.writes]
    return (
        binding.cls is not None
        and bool(values)
        and all(isinstance(value, cst.Name) and is_handed_in(model, value) for value in values)
    )
