"""`volatile=True` asked for what `torch.no_grad()` does, of everything that is computed with such a variable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.fate import Fate, Tracer
from torchlint.analyses.mem.step_parts import all_evaluations
from torchlint.analyses.single_tensor import is_graphless
from torchlint.analyses.variable_wrapper import VARIABLE, Wrapper, questions, wrapper_of
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Fix
from torchlint.semantics.dataflow import sources
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model

_DECORATOR = "0.4.1"  # the first release in which `no_grad` decorates functions
_TRAINING = ("backward", "gradients", "optimizer_steps")
_LAYERS = ("forward", "__init__", "__call__")
_WHY = "The function was to record no graph, and records none then; a caller that takes gradients of it fails."


def switched_off(wrapper: Wrapper, model: Model) -> Fix | None:
    """The decorator for a function of which every variable is volatile, where nothing else says what evaluates in it;
    what is left of the variables is for the next pass."""
    function = model.function(wrapper.call.node)
    node = function.node
    if not wrapper.never_has_graph or not isinstance(node, cst.FunctionDef) or not _is_whole(function, model):
        return None
    rewriter = Rewriter(model)
    name, edits = rewriter.name_for("torch.no_grad", node)
    fix = (*edits, rewriter.decorate(node, f"@{name}()"))
    return Fix(fix, Applicability.UNSAFE, _WHY, needs_torch=_DECORATOR, comes_first=True)


def stays_volatile(node: cst.CSTNode, model: Model) -> bool:
    """Whether the function around a node makes a variable volatile where autograd is on."""
    function = model.function(node)
    made = (wrapper_of(call) for call in model.calls_to(VARIABLE) if call.function is function)
    return any(each.asks_for_no_graph and model.grad_enabled(each.call.node) is not False for each in made)


def _is_whole(function: Function, model: Model) -> bool:
    """Whether a function computes with nothing but volatile variables, and takes no gradients."""
    node = function.node
    if not isinstance(node, cst.FunctionDef) or node.asynchronous is not None or function.is_generator:
        return False
    if function.name in _LAYERS or model.once(questions):
        return False
    made = [wrapper_of(call) for call in model.calls_to(VARIABLE) if call.function is function]
    if any(map(model.effects(function).has, _TRAINING)) or not all(each.never_has_graph for each in made):
        return False
    if any(model.grad_enabled(each.call.node) is False for each in made):
        return False
    if any(isinstance(part, (cst.With, cst.FunctionDef, cst.Lambda)) for part in walk(node.body)):
        return False
    if any(found.forward.function is function for found in model.once(all_evaluations)):
        return False
    tracer = Tracer(model)
    others = _computed_beside([each.call for each in made], function, model)
    if others and tracer.of_expression(*others) & (Fate.BACKWARD | Fate.ESCAPES):
        return False
    return Fate.BACKWARD not in tracer.of_expression(*(each.call.node for each in made))


def _computed_beside(made: list[Call], function: Function, model: Model) -> list[cst.CSTNode]:
    """What a function computes neither of its volatile variables nor for them, and may have a graph: the values of the
    states, beside those of the states that follow."""
    variables = {call.node for call in made}
    nodes = (call.node for call in function.calls if call.node not in variables and not is_graphless(call.value))
    for_them = {part for node in variables for expression in _computed_from(node, model) for part in walk(expression)}
    return [
        node
        for node in nodes
        if node not in for_them
        and not any(part in variables for expression in _computed_from(node, model) for part in walk(expression))
    ]


def _computed_from(node: cst.CSTNode, model: Model) -> list[cst.CSTNode]:
    """An expression, and what is assigned to the variables that it is computed from."""
    bindings = {binding for read in sources(model, node) if (binding := model.binding(read)) is not None}
    function = model.function(node)
    writes = (write for binding in bindings for write in binding.writes if write.function is function)
    return [node, *(write.value for write in writes if write.value is not None)]
