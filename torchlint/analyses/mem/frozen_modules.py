"""Modules whose parameters take no gradients: frozen ones, and teachers that no optimizer has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.callers_by_name import calls_in_other_files
from torchlint.analyses.lifetime import root
from torchlint.analyses.modules.frozen_classes import switches_itself_off
from torchlint.analyses.modules.parameter_free import class_of_module, module_of, trains_nothing
from torchlint.analyses.once import once_for_each
from torchlint.semantics.dataflow import parameter_of_function, text, upstream
from torchlint.semantics.tree import last_name
from torchlint.semantics.values import Grad, Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Class, Function, Write
    from torchlint.semantics.model import Model

_FREEZING = re.compile(r"\.requires_grad(_\(False\)|\s*=\s*False)")
_FROZEN_PART = re.compile(
    r"for (?:\w+, )?(\w+) in self\.(?P<part>\w+)\.(?:named_)?parameters\(\):\s+\1\.requires_grad\s*=\s*False"
    r"|self\.(?P<module>\w+)\.requires_grad_\(False\)"
)
# Methods that return the module itself.
_CHAINED = ("eval", "to", "cuda", "cpu", "half", "float", "double")
# Methods of a module that switch off all its parameters: `freeze_encoder` does some.
_FREEZING_METHODS = re.compile(r"(?i)freeze(_(all|self|model|network|weights|param\w*))?|(\w+_)?(disable|stop)_grad\w*")
_FREEZERS = re.compile(r"(?i)freeze|requires_?grad|(toggle|set|switch)_?grad")


def is_frozen(model: Model, call: Call) -> bool:
    """Whether all parameters of the called module are switched off, in the file or by all who hand it in."""
    if model.value(module_of(call)).grad is Grad.DETACHED:
        return True
    module = root(model, call.node.func)
    if module is not None and _is_switched_off(model, module, text(module_of(call))):
        return True
    if any(_is_left_out(model, outer, call) for outer in model.ancestors(call.node) if isinstance(outer, cst.With)):
        return True
    behind = class_of_module(model, call)
    return behind is not None and behind[0].once(_frozen_classes) >= {behind[1].name}


def _is_left_out(model: Model, block: cst.With, call: Call) -> bool:
    """`with RequiresGrad(self.critic): self.target(x)`, of a manager that switches parameters off when it ends: all
    networks are off that none of them has."""
    for item in block.items:
        made = model.call(item.item) if isinstance(item.item, cst.Call) else None
        behind = model.class_behind(made.callee) if made is not None and made.callee is not None else None
        leave = behind[1].method("__exit__") if behind is not None else None
        if made is None or leave is None or not any(map(_switches_off, leave.calls)):
            continue
        called, switched = text(module_of(call)), [text(arg.value) for arg in made.arguments]
        if not any(f"{called}.".startswith(f"{network}.") for network in switched):
            return True
    return False


def _switches_off(call: Call) -> bool:
    return call.method == "requires_grad_" and call.argument("requires_grad", 0).value.constant is False


def switches_parameters_off(model: Model, call: Call) -> bool:
    """Whether the function of a call has switched off parameters, of whichever modules, before it gets there."""
    source = model.source.text
    if call.function.is_module or _FREEZING.search(source) is None:
        return False
    return _FREEZING.search(source, model.span(call.function.node)[0], model.span(call.node)[0]) is not None


def _is_switched_off(model: Model, module: Binding, called: str, seen: tuple[Binding, ...] = ()) -> bool:
    if _is_switched_off_where_read(model, (module, called)):
        return True
    if called != module.name or module in seen:
        return False
    if not module.is_parameter:
        return bool(module.writes) and all(
            _is_handed_back_frozen(model, write, (*seen, module)) for write in module.writes
        )
    function = module.scope_function
    callers = [*((model, call) for call in function.callers), *calls_in_other_files(model, function)]
    return bool(callers) and all(_hands_in_frozen(home, call, function, module, seen) for home, call in callers)


@once_for_each
def _is_switched_off_where_read(model: Model, named: tuple[Binding, str]) -> bool:
    module, called = named
    return any(_freezes(model, read, called) or _is_left_frozen(model, read) for read in module.reads)


def _is_handed_back_frozen(model: Model, write: Write, seen: tuple[Binding, ...]) -> bool:
    """Whether the function of the project that makes a network for a variable has switched it off."""
    call = model.call(write.value) if isinstance(write.value, cst.Call) else None
    while call is not None and call.method in _CHAINED and isinstance(call.receiver, cst.Call):
        call = model.call(call.receiver)
    entered = (model, call.target) if call is not None and call.target is not None else None
    entered = model.elsewhere(call) if entered is None and call is not None else entered
    if entered is None or not entered[1].returns:
        return False
    home, function = entered
    networks = [_part(model, write, returned.value) for returned in function.returns]
    made = [root(home, node) if node is not None else None for node in networks]
    return all(
        binding is not None and node is not None and _is_switched_off(home, binding, text(node), seen)
        for node, binding in zip(networks, made)
    )


def _part(model: Model, write: Write, returned: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """What a write takes of what is returned: one of the elements that an assignment unpacks, or all of it."""
    if not write.unpacked:
        return returned
    element = model.parent(write.target)
    targets = model.parent(element) if isinstance(element, cst.Element) else None
    if not isinstance(targets, cst.Tuple) or not isinstance(returned, cst.Tuple):
        return None
    same = len(targets.elements) == len(returned.elements)
    return returned.elements[targets.elements.index(element)].value if same else None


def _hands_in_frozen(model: Model, call: Call, function: Function, module: Binding, seen: tuple[Binding, ...]) -> bool:
    is_bound = function.cls is not None and not function.is_static
    given = call.argument(module.name, list(function.params).index(module.name) - is_bound)
    if given.node is None or (handed := root(model, given.node)) is None:
        return False
    return _is_switched_off(model, handed, text(given.node), (*seen, module))


def _freezes(model: Model, read: cst.CSTNode, called: str) -> bool:
    """`module.requires_grad_(False)`, a loop over its parameters, or a method or helper that is named for that; each
    may stand behind `.eval()`."""
    node = read
    while isinstance(parent := model.parent(node), cst.Attribute) and called.startswith(text(parent)):
        node = parent
    while isinstance(parent, cst.Attribute) and parent.attr.value in _CHAINED:
        call = model.parent(parent)
        parent = model.parent(call) if isinstance(call, cst.Call) else None
    if isinstance(parent, cst.Attribute) and parent.attr.value == "requires_grad_":
        return True
    if isinstance(parent, cst.Attribute) and _FREEZING_METHODS.fullmatch(parent.attr.value):
        return True
    if isinstance(parent, cst.Attribute) and parent.attr.value in ("parameters", "named_parameters"):
        loop = model.statement(read)
        always = loop.body.body if isinstance(loop, cst.For) else ()
        return any(not isinstance(line, cst.BaseCompoundStatement) and _FREEZING.search(text(line)) for line in always)
    call = model.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(call, cst.Call) and _FREEZERS.search(last_name(call.func)) is not None


def _is_left_frozen(model: Model, read: cst.CSTNode) -> bool:
    """Whether a function of the project that is handed the module, as one for an epoch, ends by switching it off."""
    arg = model.parent(read)
    site = model.parent(arg) if isinstance(arg, cst.Arg) else None
    call = model.call(site) if isinstance(site, cst.Call) else None
    if call is None or not isinstance(arg, cst.Arg):
        return False
    entered = (model, call.target) if call.target is not None else model.elsewhere(call)
    handed = parameter_of_function(call, entered[1], arg) if entered is not None else None
    if entered is None or handed is None:
        return False
    home, function = entered
    switches = [home.statement(each) for each in handed.reads if _freezes(home, each, handed.name)]
    last = max(switches, key=lambda statement: home.span(statement)[0], default=None)
    if last is None or home.parent(last) is not function.node.body:
        return False
    return re.search(r"\bFalse\b", text(last)) is not None


def _frozen_classes(model: Model) -> set[str]:
    """The classes of a file that switch off the gradients of all their parameters."""
    switches_parts = _FROZEN_PART.search(model.source.text) is not None
    return {
        cls.name
        for cls in model.classes
        if switches_itself_off(cls, model) or (switches_parts and _switches_parts_off(cls, model))
    }


def _switches_parts_off(cls: Class, model: Model) -> bool:
    """Whether a class switches off each of its parts that has parameters."""
    parts = {found["part"] or found["module"] for found in _FROZEN_PART.finditer(text(cls.node))}
    return bool(parts) and cls.bases == ["torch.nn.Module"] and trains_nothing(cls, model, but=parts)


def is_teacher(model: Model, call: Call) -> bool:
    """Whether a network in evaluation mode, whose parameters no optimizer of this file has, gets plain data."""
    module = root(model, call.node.func)
    if module is None or module.is_parameter or "eval" not in module.methods:
        return False
    if module.methods & {"train", "parameters", "named_parameters"}:
        return False
    if not all(_is_plain(model, arg.value) for arg in call.node.args):
        return False
    holders = model.once(_optimized)
    return bool(holders) and module not in holders and not _is_handed_out(model, module)


def _is_plain(model: Model, argument: cst.BaseExpression) -> bool:
    value = model.value(argument)
    return value.is_(Kind.TENSOR, Kind.BATCH) and value.grad is Grad.DETACHED


def _optimized(model: Model) -> set[Binding]:
    """Everything that the arguments of an optimizer are computed from."""
    found: set[Binding] = set()
    for call in model.calls:
        if call.value.is_(Kind.OPTIMIZER) and call.node in call.value.origins:
            for arg in call.node.args:
                found |= upstream(model, arg.value)
    return found


def _is_handed_out(model: Model, module: Binding) -> bool:
    """Whether the module goes anywhere but into calls of itself and of its methods."""
    for read in module.reads:
        parent = model.parent(read)
        called = isinstance(parent, cst.Call) and parent.func is read
        if not called and not isinstance(parent, cst.Attribute):
            return True
    return False
