"""What resets gradients, and whose: `zero_grad` and its like, writes to `.grad`, and code out of sight that may."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import torch_api
from torchlint.semantics import vocabulary as words
from torchlint.semantics.dataflow import parameter_of_function, text
from torchlint.semantics.entities import Call, Function, Loop
from torchlint.semantics.hints import looks_like_optimizer
from torchlint.semantics.tree import children, last_name, walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_RESETTING_NAME = re.compile(
    r"(?i)(zero|reset|clear|clean|empty|null)_?\w*grad|grad\w*_?(zero|reset|clear)|set_to_none"
)
_GRADIENT = re.compile(r"\.\s*grad\b")
# Functions that are given a model or an optimizer and by their name do something else.
_HARMLESS_NAMES = re.compile(
    r"(?i)^assert|^(save|eval|valid|test|log|print|count|clip|scale_loss|accuracy|metric)|checkpoint|learning_rate"
    r"|(^|_)lr(_|$)|warm_?up|sched|(^|_)ema(_|$)|grad_norm|loss$|criterion|regulari[sz]"
    r"|^(un)?toggle_optimizer$|^optimizers$"
)
# Methods of an unknown object that may be the beginning of a step.
_SUSPICIOUS = re.compile(
    r"(?i)(reset|clear|zero|prepare|begin|start|before|after|pre_|post_|on_|train|learn|fit|optimi[sz])"
)
_INNOCENT = re.compile(
    r"(?i)env|meter|metric|timer|watch|buffer|memory|hidden|noise|state|bar|logger|writer|plt|fig|ax"
)
_HARMLESS_PARENTS = (cst.Comparison, cst.ComparisonTarget)
_SCALING = (cst.DivideAssign, cst.MultiplyAssign, cst.AddAssign)
_SCALING_METHODS = frozenset({"div_", "mul_", "add_", "clamp_", "nan_to_num_"})
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Made:
    """A module, by the call that made it, and by the call of the function of this file in which that happened, where
    it is known: two networks of one `build_mlp` are not the same."""

    origin: cst.CSTNode
    builder: cst.Call | None = None

    def may_be(self, other: Made) -> bool:
        is_known = self.builder is not None and other.builder is not None
        return self.origin is other.origin and (self.builder is other.builder or not is_known)


Modules = frozenset[Made]


@dataclass(frozen=True, slots=True)
class Reset:
    """A place that may reset gradients: those of `modules`, or of anything where that is not known."""

    node: cst.CSTNode
    modules: Modules | None = None

    def spares(self, modules: Modules | None) -> bool:
        """Whether it certainly leaves the gradients of these modules alone."""
        if not modules or not self.modules:
            return False
        return not any(mine.may_be(other) for mine in self.modules for other in modules)

    def is_periodic(self, loop: Loop, model: Model) -> bool:
        """Whether it runs in every n-th iteration of a loop only."""
        tests = [guard.test for guard in model.guards(self.node, loop) if guard.test is not None]
        return any(isinstance(node, cst.Modulo) for test in tests for node in walk(test))


def resets(model: Model) -> Iterator[Reset]:
    """Every place of the file that may reset gradients, by name or by a write to `.grad`."""
    for call in model.calls:
        name = last_name(call.node.func)
        keywords = [arg.keyword.value for arg in call.arguments if arg.keyword is not None]
        if call.is_zero_grad and call.receiver is not None and call.target is None:
            yield Reset(call.node, _modules_reset(call.receiver, model))
        elif call.is_zero_grad or any(_RESETTING_NAME.search(word) for word in [name, *keywords]):
            yield Reset(call.node)
    if _GRADIENT.search(model.source.text):
        for node in model.nodes_of(cst.Attribute):
            if isinstance(node, cst.Attribute) and node.attr.value == "grad" and not _only_read(node, model):
                of_tensor = _tensors_made(node.value, model) if isinstance(node.value, cst.Name) else set()
                yield Reset(node, frozenset(of_tensor) or None)


def _only_read(gradient: cst.Attribute, model: Model) -> bool:
    """`p.grad is None`, `p.grad.norm()`, what only scales it, and `torch.autograd.grad`, which is a function."""
    node: cst.CSTNode = gradient
    parent = model.parent(node)
    if isinstance(parent, cst.Call) and parent.func is gradient:
        return True
    while isinstance(parent, cst.Attribute):
        node, parent = parent, model.parent(parent)
    if isinstance(parent, _HARMLESS_PARENTS) or (isinstance(parent, cst.Arg) and _reads_only(parent, model)):
        return True
    match parent:
        case cst.AugAssign(target=target, operator=operator, value=factor) if target is node:
            return isinstance(operator, _SCALING) and not _is_zero(factor, model)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=method)) as func) if func is node and node is not gradient:
            return not method.endswith("_") or (method in _SCALING_METHODS and not _multiplies_by_zero(parent, model))
    return False


def _multiplies_by_zero(site: cst.Call, model: Model) -> bool:
    return not site.args or _is_zero(site.args[0].value, model)


def _is_zero(factor: cst.BaseExpression, model: Model) -> bool:
    """Whether it is zero, or may be meant to be."""
    constant = model.value(factor).constant
    return constant is not None and not constant


def _reads_only(argument: cst.Arg, model: Model) -> bool:
    """An argument of a function of torch or numpy that changes nothing."""
    call = model.parent(argument)
    callee = (model.call(call).callee or "") if isinstance(call, cst.Call) else ""
    return callee.startswith(("torch.", "numpy.")) and not callee.endswith("_")


# -- code out of sight


def may_reset(call: Call, model: Model) -> bool:
    """A call of code from elsewhere that has hold of the optimizer or the model."""
    if call.target is not None or call.targets_class is not None or call.is_backward or call.is_optimizer_step:
        return False
    is_handed = any(_holds_gradients(arg.value, model) for arg in call.arguments)
    if call.is_forward or _is_harmless(call):
        has_hold = is_handed or call.is_forward
        return has_hold and call.foreign is not None and _RESETTING_NAME.search(text(call.foreign.node)) is not None
    if is_handed:
        return not _leaves_gradients(call, model)
    if call.receiver is None or call.receiver_value.kind not in (Kind.UNKNOWN, Kind.INSTANCE):
        return False
    if _is_own(call.receiver, call.function):
        return model.binding(call.node.func) is None or not model.binding(call.node.func).writes  # type: ignore[union-attr]
    return bool(_SUSPICIOUS.match(call.method or "")) and not _INNOCENT.search(last_name(call.receiver))


def _leaves_gradients(call: Call, model: Model) -> bool:
    """Whether a call enters a function of another file, and nothing that gets hold there of what it is given, all of it
    in sight, resets gradients."""
    elsewhere = model.elsewhere(call)
    if elsewhere is None:
        return False
    home, function = elsewhere
    filled = _filled(call, function, [arg for arg in call.arguments if _holds_gradients(arg.value, model)])
    return filled is not None and _resets_nothing(function, filled, home, set())


def _resets_nothing(function: Function, given: frozenset[Binding], home: Model, seen: set[object]) -> bool:
    """`given`: the parameters with a network, its parameters or an optimizer, which the file itself may not tell."""
    code = text(function.node)
    if _RESETTING_NAME.search(code) or _GRADIENT.search(code):
        return False
    seen.add((function, given))
    for call in function.calls:
        handed = [arg for arg in call.arguments if home.binding(_holder(arg.value)) in given]
        if may_reset(call, home):
            return False
        entered = (home, call.target) if call.target is not None else None
        if entered is None and handed and not _is_harmless(call):
            entered = home.function_behind(home.value(call.node.func))
            if entered is None:
                return False
        if entered is None:
            continue
        filled = _filled(call, entered[1], handed)
        if filled is None:
            return False
        if (entered[1], filled) not in seen and not _resets_nothing(entered[1], filled, entered[0], seen):
            return False
    return True


def _filled(call: Call, function: Function, given: Iterable[cst.Arg]) -> frozenset[Binding] | None:
    """The parameters that arguments of a call arrive in; None if that is not plain."""
    found = [parameter_of_function(call, function, arg) for arg in given]
    filled = frozenset(binding for binding in found if binding is not None)
    return filled if None not in found else None


def _holder(node: cst.BaseExpression) -> cst.BaseExpression:
    """`model` of `model.module.parameters()`"""
    while True:
        match node:
            case cst.Attribute(value=inner) | cst.Subscript(value=inner):
                node = inner
            case cst.Call(func=cst.Attribute(value=inner), args=[]):
                node = inner
            case _:
                return node


def _is_harmless(call: Call) -> bool:
    callee = call.callee or ""
    packages = {name.partition(".")[0] for name in (callee, call.receiver_value.ref or "")}
    if not packages.isdisjoint(("torch", "torchvision", "accelerate", "apex", "higher", *words.HARMLESS_PACKAGES)):
        return True
    return _HARMLESS_NAMES.search(last_name(call.node.func)) is not None


def _holds_gradients(argument: cst.BaseExpression, model: Model) -> bool:
    """Whether an argument is an optimizer, a module or its parameters, or holds one."""
    value = model.value(argument)
    parts = [value, *(value.items or ()), *(part for _, part in value.known_fields)]
    if value.element is not None:
        parts.append(value.element)
    if any(part.kind in (Kind.OPTIMIZER, Kind.MODULE, Kind.PARAMETERS, Kind.SCALER) for part in parts):
        return True
    return value.kind in (Kind.UNKNOWN, Kind.INSTANCE) and looks_like_optimizer(last_name(argument))


def _is_own(receiver: cst.BaseExpression, function: Function) -> bool:
    """`self` in a method."""
    while function.cls is None and function.parent is not None:
        function = function.parent
    return isinstance(receiver, cst.Name) and bool(function.params) and receiver.value == function.params[0]


# -- whose gradients


def modules_of_optimizer(optimizer: cst.BaseExpression, model: Model) -> Modules | None:
    """The modules whose parameters an optimizer was given; None where that is not in sight."""
    found: set[Made] = set()
    for origin in model.value(optimizer).origins:
        if not isinstance(origin, cst.Call):
            return None
        given = model.call(origin).argument("params", 0)
        modules = _modules_in(given.node, model) if given.node is not None else None
        if not modules:
            return None
        found |= modules
    return frozenset(found) or None


def _modules_reset(receiver: cst.BaseExpression, model: Model) -> Modules | None:
    if model.value(receiver).kind is Kind.OPTIMIZER:
        return modules_of_optimizer(receiver, model)
    return _modules_at(receiver, model) if model.value(receiver).kind is Kind.MODULE else None


def _modules_in(parameters: cst.BaseExpression, model: Model) -> Modules | None:
    """The modules in `a.parameters()`, `list(a.parameters()) + list(b.parameters())` and the like; for a tensor that is
    trained by itself, what made it."""
    found: set[Made] = set()
    work: list[cst.CSTNode] = [parameters]
    while work:
        node = work.pop()
        if isinstance(node, cst.Call) and model.call(node).method in ("parameters", "named_parameters"):
            modules = _modules_at(node.func.value, model) if isinstance(node.func, cst.Attribute) else None
            if modules is None:
                return None
            found |= modules
        elif isinstance(node, cst.Name):
            made = _tensors_made(node, model)
            found |= made
            if not made and not (model.qualified(node) or "").startswith(("builtins.", "itertools.")):
                return None
        elif isinstance(node, cst.Attribute):
            made = _tensors_made(node, model)
            found |= made
            if not made:
                work.append(node.value)
        elif not isinstance(node, cst.Lambda):
            work.extend(children(node))
    return frozenset(found)


def _tensors_made(name: cst.Name | cst.Attribute, model: Model) -> set[Made]:
    """The calls that made a tensor of no module: `torch.zeros(1, requires_grad=True)`."""
    binding = model.binding(name)
    if binding is None or (binding.cls is not None and binding.cls.is_module):
        return set()
    writes = [write for write in binding.writes if not _is_made_of(write.value, binding, model)]
    made = {write.value for write in writes if write.kind == "assign" and not write.unpacked}
    if len(made) != len(writes) or not all(_is_new_tensor(value, model) for value in made):
        return set()
    return {Made(value) for value in made if value is not None}


def _is_made_of(value: cst.BaseExpression | None, binding: Binding, model: Model) -> bool:
    """`delta = delta.detach()`"""
    match value:
        case cst.Call(func=cst.Attribute(value=inner)):
            return model.binding(inner) is binding
    return False


def _is_new_tensor(value: cst.BaseExpression | None, model: Model) -> bool:
    while (
        isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and isinstance(value.func.value, cst.Call)
    ):
        value = value.func.value  # `torch.zeros_like(x).cuda()`
    callee = model.call(value).callee if isinstance(value, cst.Call) else None
    entry = torch_api.lookup(callee or "")
    return entry is not None and entry.kind == "factory"


def _modules_at(expression: cst.BaseExpression, model: Model, depth: int = 0) -> Modules | None:
    """The modules that an expression may be, those around it (`a` of `a.b`) and those they were made from."""
    found: set[Made] = set()
    node: cst.BaseExpression = expression
    while True:
        value = model.value(node)
        if value.kind is Kind.MODULE:
            found |= {Made(origin, _builder(node, origin, model)) for origin in value.origins}
        if not isinstance(node, cst.Attribute):
            break
        node = node.value
    if model.value(expression).kind is not Kind.MODULE or not found:
        return None
    if depth < _DEPTH:
        for made in [*found]:
            for arg in made.origin.args if isinstance(made.origin, cst.Call) else ():
                if model.value(arg.value).kind is Kind.MODULE:
                    found |= {_part(part, made, model) for part in _modules_at(arg.value, model, depth + 1) or ()}
    return frozenset(found)


def _part(part: Made, whole: Made, model: Model) -> Made:
    """A part that the same function made was made by the same call of it."""
    is_same = model.function(part.origin) is model.function(whole.origin)
    return Made(part.origin, whole.builder) if part.builder is None and is_same else part


def _builder(module: cst.BaseExpression, origin: cst.CSTNode, model: Model) -> cst.Call | None:
    """The call of a function of this file that made the module that a variable or attribute holds."""
    binding = model.binding(module)
    written = [write.value for write in binding.writes if not write.unpacked] if binding is not None else []
    sources = [value for value in written if value is not None and origin in model.value(value).origins]
    if binding is None or len(written) != len(binding.writes) or len(sources) != 1:
        return None
    made: cst.BaseExpression | None = sources[0]
    while isinstance(made, cst.Call):
        call = model.call(made)
        if call.target is not None:
            is_fresh = call.target is model.function(origin) and not call.target.decorators
            return made if is_fresh else None
        made = call.receiver if call.receiver_value.kind is Kind.MODULE else None
    return None
