"""Forward passes that take gradients inside, as other files of the project show, and functions that let gradients
through."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.callers_by_name import may_be_called_for_loss, may_be_trained_through
from torchlint.analyses.fate import Fate, Tracer
from torchlint.analyses.mem.keyword_match import methods_elsewhere
from torchlint.analyses.mem.recorded_passes import takes_gradients
from torchlint.analyses.modules.parameter_free import module_of
from torchlint.analyses.single_tensor import carries, is_graphless
from torchlint.semantics import torch_api
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import module_method

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function, Loop
    from torchlint.semantics.model import Model


def is_trained_across(model: Model, tracer: Tracer, function: Function) -> bool:
    """Whether a backward pass goes through a function to what it is given, as where it copies features that are
    trained."""
    bindings = (function.scope.bindings.get(name) for name in function.params)
    reads = (read for binding in bindings if binding is not None for read in binding.reads)
    given = [read for read in reads if carries(model.value(read))]
    return bool(given) and Fate.BACKWARD in tracer.of_expression(*given)


def may_need_gradients(model: Model, call: Call, telling: re.Pattern[str]) -> bool:
    """Whether a pass enters a function that asks a module of another file for gradients, as a renderer asks a field
    for its normals, or runs a network chosen as the program runs, where one that fits takes gradients in its pass.
    `telling`: what the text of such a file has in it."""
    return any(
        takes_gradients(*method)
        for method in (*_asked_of_others(model, call, telling), *_chosen_networks(model, call, telling))
    )


def _asked_of_others(model: Model, call: Call, telling: re.Pattern[str]) -> Iterator[tuple[Model, Function]]:
    """The methods of modules that a function which a call enters may reach, by the names of those that it calls."""
    entered = (model, call.target) if call.target is not None else model.elsewhere(call)
    names = {inner.method for inner in reached(entered[1]) if _is_out_of_sight(inner)} if entered is not None else ()
    for name in sorted(filter(None, names)):
        for home, method in methods_elsewhere(model, name, set(), telling):
            if method.cls is not None and method.cls.is_module:
                yield home, method


def is_made_to_take_gradients(model: Model, call: Call) -> bool:
    """Whether the object that runs a network was made with a function that takes gradients of what that returns:
    `residual = Residual(laplacian, model=net)`."""
    holder = model.binding(module_of(call))
    made = [model.call(write.value) for write in holder.writes if isinstance(write.value, cst.Call)] if holder else []
    given = [function for maker in made for function in maker.passes]
    entered = (model.elsewhere(inner) for function in given for inner in reached(function))
    return any(takes_gradients(model, function) for function in given) or any(
        takes_gradients(*found) for found in entered if found is not None
    )


def reached(where: Function | Loop) -> Iterator[Call]:
    """The calls in a function or loop, and in the functions of its file that they call."""
    seen = [where]
    for entered in seen:  # it grows while the loop runs
        for call in entered.calls:
            yield call
            if call.target is not None and call.target not in seen:
                seen.append(call.target)


def _is_out_of_sight(call: Call) -> bool:
    """Whether a call is one of a method that is none of every tensor or module, of an object that is not known."""
    if call.method is None or call.target is not None or call.foreign is not None:
        return False
    is_known = (torch_api.method(call.method) or module_method(call.method)) is not None
    return not is_known and call.receiver_value.is_(Kind.UNKNOWN, Kind.MODULE)


def _chosen_networks(model: Model, call: Call, telling: re.Pattern[str]) -> Iterator[tuple[Model, Function]]:
    """The passes in other files that take the arguments of a call, where only a setting says which network it runs:
    `net = get_class(options.network)(options)`."""
    network = model.binding(module_of(call)) if call.target is None and call.foreign is None else None
    made = [write.value for write in network.writes] if network is not None else []
    if not any(isinstance(value, cst.Call) and isinstance(value.func, cst.Call) for value in made):
        return
    for home, function in methods_elsewhere(model, "forward", set(), telling):
        if function.required <= len(call.arguments) < len(function.params):
            yield home, function


def is_trained_by_name(model: Model, function: Function) -> bool:
    """Whether training in another file may go back through what a method returns."""
    if function.cls is None:
        return False
    returned = [node.value for node in function.returns if node.value is not None]
    has_graph = any(not is_graphless(model.value(value)) for value in returned)
    trained = may_be_trained_through if function.cls.is_module else may_be_called_for_loss
    return has_graph and trained(model, function)


def sends_back_for_others(model: Model, function: Function) -> bool:
    """Whether another method of the class sends backward what it is given: a wrapper for attacks, `get_gradient(loss)`,
    whose callers make the loss of what the other methods return."""
    others = function.cls.methods.values() if function.cls is not None else ()
    methods = [method for method in others if method is not function and not _is_for_own_use(method)]
    for call in (call for method in methods for call in method.calls if call.is_backward):
        loss = model.binding(call.receiver) if call.receiver is not None else None
        if loss is not None and loss.is_parameter and loss.scope_function is call.function:
            return True
    return False


def _is_for_own_use(method: Function) -> bool:
    """`update(loss)` of a trainer, which only its `fit` calls, with losses that are made there."""
    return (
        bool(method.callers)
        and not method.foreign_callers
        and all(c.function.cls is method.cls for c in method.callers)
    )
