"""Whether a tensor of a step may be on an accelerator, so that the host waits when it looks at it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.callers_by_name import bases_abroad, is_run_by_forward_of_base
from torchlint.analyses.compatibility import is_of_another_library
from torchlint.analyses.devices.meetings import meets_host_tensor
from torchlint.analyses.devices.moves import moves_something, moves_to_accelerator, places_itself
from torchlint.analyses.devices.provenance import (
    calls_behind,
    is_computed_from_parameters,
    is_given_moved,
    is_handed_in,
    parameters_behind,
    runs_model,
)
from torchlint.analyses.fate import is_in_loss
from torchlint.analyses.loops.steps import Step, called_per_step, calls_abroad, is_forward, step_of
from torchlint.analyses.order import is_before
from torchlint.analyses.rowwise.evidence import is_tensor_by_use
from torchlint.semantics.dataflow import parameter_of_function, upstream
from torchlint.semantics.entities import Function, Role
from torchlint.semantics.frameworks import PLACE
from torchlint.semantics.transfer import place_named
from torchlint.semantics.tree import arms, is_name, walk
from torchlint.semantics.values import Kind, Place, Value
from torchlint.semantics.vocabulary import GRADIENT_NORMS, LOADING, is_loss_function, is_reduction, module_method

if TYPE_CHECKING:
    from torchlint.semantics.entities import Argument, Binding, Call, Loop
    from torchlint.semantics.model import Model

_MOVING = re.compile(r"(?i)cuda|gpu|\bmps\b|xpu|device|accelerat|prepare|\.to\(|set_default")
_SHAPE = ("shape", "size", "dim", "ndim", "dtype", "device")
_PARAMETER = "torch.nn.Parameter"
_MEASURED = (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN)
_MAY_BE_TENSORS = (Kind.UNKNOWN, Kind.DICT, Kind.LIST, Kind.TUPLE)
_ACCELERATORS = re.compile(r"(?i)cuda|gpu|\bmps\b|xpu|rank|accelerat|data_?parallel")
# What a trainer of Lightning is told, and those of libraries on top of it; and what Ray is asked for.
_TOLD_HOST = re.compile(r"accelerator(?<=\baccelerator)\s*=\s*[\"']cpu[\"']|gpus?[\"']?\s*[:=]\s*0(?![\d.])")
_ASKING = re.compile(r"torch(?<=\btorch)\.cuda\.(is_available|device_count|get_device_name)\b")


class Residence:
    """Answers for the tensors of one file."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.has_accelerator = _has_accelerator(model)
        self._on_host: dict[Loop, bool] = {}
        self._lent: dict[Function, bool] = {}
        names = _names_devices(model)
        self._only_follows = not self.has_accelerator and names is None and _follows_tensors(model)
        names_none = names is None and model.uses_accelerator and not self._only_follows
        self._names_hosts_only = not self.has_accelerator and (names is False or names_none)

    def may_be_device(self, tensor: cst.BaseExpression, step: Step, *, is_tensor: bool = False) -> bool:
        """Whether the tensor may be on a GPU, and is computed by the step at all.

        `is_tensor`: what is done with it can be done to a tensor only, be the value known, or a container in another
        case.
        """
        value = self._model.value(tensor)
        known = value.is_(Kind.TENSOR, Kind.BATCH)
        if value.place is Place.HOST or not (known or (value.is_(*_MAY_BE_TENSORS) and is_tensor)):
            return False
        if self._is_made_of_host_tensors(tensor) or meets_host_tensor(self._model, tensor):
            return False
        if step.loop is not None and (self._makes_its_models(step.loop) or self._stays_on_host(step.loop)):
            return False
        if self._loads_its_models(step, tensor):
            return False
        moved = value.place is Place.ACCELERATOR and self._is_moved_on(self._model.function(tensor))
        if step.loop is None or step.role in (Role.STEPS, Role.EVALUATION):
            return (
                moved or (value.kind is not Kind.BATCH and self._is_computed(tensor, step)) or self._is_lent_by(tensor)
            )
        if self._is_computed_by_loop(tensor, step.loop, moved, is_tensor):
            return True
        is_of_part = self._is_measure_of_part(tensor, step.loop) or self._is_apart_from_rows(tensor, step.loop)
        if step.role is not Role.PLAIN and not is_of_part:
            return False
        outer = self._around(step.loop)
        return outer is not None and self.may_be_device(tensor, outer, is_tensor=is_tensor)

    def _is_moved_on(self, function: Function) -> bool:
        """Whether there is a GPU to go to, for what goes to a device in a function."""
        return not (self._names_hosts_only or self._only_follows) or self._is_lent(function)

    def _around(self, loop: Loop) -> Step | None:
        """The training step or the evaluation batch that a loop is a part of."""
        outer = next((outer for outer in loop.around() if outer.role in (Role.STEPS, Role.EVALUATION)), None)
        if outer is not None:
            return Step(outer, outer.role)
        role = called_per_step(self._model, loop.function)
        return Step(None, role) if role is not None else None

    def _is_made_of_host_tensors(self, tensor: cst.BaseExpression) -> bool:
        """Whether a call makes the tensor of tensors that were copied to the host for it, or that it copies there."""
        binding = self._model.binding(tensor)
        made = [tensor] if binding is None else [write.value for write in binding.writes]
        return bool(made) and all(isinstance(node, cst.Call) and self._is_given_copies(node) for node in made)

    def _is_given_copies(self, node: cst.Call) -> bool:
        call = self._model.call(node)
        given = [value for arg in call.arguments if (value := self._model.value(arg.value)).kind is not Kind.NUMBER]
        is_method = call.receiver_value.is_(Kind.TENSOR, Kind.BATCH)
        if self._copies_to_host(call):
            return True
        return bool(given) and not is_method and all(v.kind is Kind.TENSOR and v.place is Place.HOST for v in given)

    def _copies_to_host(self, call: Call) -> bool:
        """Whether a function of the project does nothing with the tensors that it is given but to copy them."""
        function = call.target or call.foreign
        home = self._model if call.target is not None else self._model.home(call)
        if function is None or home is None:
            return False
        tensors = [arg for arg in call.arguments if self._model.value(arg.value).is_(Kind.TENSOR, Kind.BATCH)]
        given = [parameter_of_function(call, function, arg) for arg in tensors]
        return bool(given) and all(parameter is not None and _is_only_copied(home, parameter) for parameter in given)

    def is_made_on_device(self, tensor: cst.BaseExpression, step: Step) -> bool:
        """Whether a loop that runs no model computes the tensor anew, from what this file has moved to a device."""
        if step.loop is None or is_forward_pass(self._model, step.loop.function):
            return False
        if self._loads_its_models(step, tensor):
            return False
        if not self._is_moved_on(step.loop.function) or self._stays_on_host(step.loop):
            return False
        value = self._model.value(tensor)
        if value.kind is not Kind.TENSOR or value.place is not Place.ACCELERATOR:
            return False
        if self._is_made_of_host_tensors(tensor) or meets_host_tensor(self._model, tensor):
            return False
        return any(step.loop in call.loops() and call.node is not tensor for call in calls_behind(self._model, tensor))

    def _is_computed_by_loop(self, tensor: cst.BaseExpression, loop: Loop, moved: bool, is_tensor: bool) -> bool:
        """Of a loop that is not known to be one over batches: whether it runs a model for the tensor."""
        if is_forward_pass(self._model, loop.function):
            return False
        calls = [call for call in calls_behind(self._model, tensor) if loop in call.loops()]
        forwards = [call for call in calls if runs_model(self._model, call, whole=False) or self._is_given_batch(call)]
        if is_tensor and moves_something(self._model, loop):
            forwards += [call for call in calls if is_given_moved(self._model, call)]
        return bool(forwards) and (moved or self.has_accelerator or self._is_lent(loop.function))

    def _is_measure_of_part(self, tensor: cst.BaseExpression, loop: Loop) -> bool:
        """Whether a loop over samples computes one number of each; a number that is there before is only picked."""
        value = self._model.value(tensor)
        calls = [call for call in calls_behind(self._model, tensor) if loop in call.loops()]
        if value.is_tensor and value.rank == 0 and any(_measures(call) or self._is_number(call) for call in calls):
            return True
        return any(call.node is tensor and self._compares(call) for call in calls)

    def _compares(self, call: Call) -> bool:
        """`metric(guess[:, t], truth).item()`: what is made of several things, and asked for its number, is one."""
        asking = self._model.parent(call.node)
        if not isinstance(asking, cst.Attribute) or asking.attr.value != "item" or call.receiver_value.is_tensor:
            return False
        given = [v for arg in call.arguments if (v := self._model.value(arg.value)).is_(*_MEASURED)]
        return len(given) > 1 and any(value.place is Place.ACCELERATOR for value in given)

    def _is_apart_from_rows(self, tensor: cst.BaseExpression, loop: Loop) -> bool:
        """Whether a loop over something else computes the tensor anew, or has got it as one of a list of losses; each
        row of a tensor is the matter of other rules."""
        if loop.target is None:
            return False
        counted = [self._model.binding(name) for name in walk(loop.target) if isinstance(name, cst.Name)]
        if self._model.binding(tensor) in counted:
            return self._model.value(tensor).rank == 0 and self._model.value(_listed(self._model, loop)).is_container
        made = [part for part in walk(tensor) if isinstance(part, (cst.BinaryOperation, cst.Comparison, cst.Call))]
        if not any(self._model.value(part).is_tensor for part in made):
            return False
        parts = [part for part in walk(loop.node) if isinstance(part, cst.Subscript)]
        rows = [part for part in parts if not self._model.value(part.value).is_container]
        names = [name for part in rows for name in walk(part) if isinstance(name, cst.Name)]
        return not any(self._model.binding(name) in counted for name in names)

    def _is_number(self, call: Call) -> bool:
        """Whether a function of the project gives a single number."""
        return (call.target or call.foreign) is not None and self._model.value(call.node).rank == 0

    def _is_given_batch(self, call: Call) -> bool:
        """Whether a call that is given a model is given one batch besides, and not all of them."""
        given = [self._model.value(arg.value) for arg in call.arguments]
        is_moved = any(v.place is Place.ACCELERATOR and v.is_(Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN) for v in given)
        return is_moved and runs_model(self._model, call)

    def _is_computed(self, tensor: cst.BaseExpression, step: Step) -> bool:
        """Whether a model computed the tensor, on whatever device it is, and that device may be a GPU."""
        if self._is_noted_by_model(tensor, step):
            return self.may_run_on_device(self._model.function(tensor))
        calls = calls_behind(self._model, tensor)
        if self._is_of_parameter(tensor, step):
            return self.may_run_on_device(self._model.function(tensor))
        if step.is_hook:
            return bool(calls)
        forwards = [call for call in calls if runs_model(self._model, call) or call.callee in GRADIENT_NORMS]
        binding = self._model.binding(_whole(tensor))
        is_training = step.role is Role.STEPS
        is_trained = is_training and binding is not None and is_in_loss(self._model, binding)
        if self.has_accelerator:
            is_input = step.loop is None and bool(calls) and self._is_of_input(tensor)
            return is_trained or bool(forwards) or is_input
        if self._names_hosts_only:
            return False
        is_lent = (forwards or is_trained) and self._is_lent(self._model.function(tensor))
        if is_lent or any(places_itself(self._model, call) for call in forwards):
            return True
        if not is_training or step.loop is None or not self._brings_its_data(step.loop):
            return False
        if forwards:
            return all(is_handed_in(self._model, call.receiver or call.node.func) for call in forwards)
        return is_trained and any(
            call.receiver is not None and is_handed_in(self._model, call.receiver) for call in calls
        )

    def _is_lent_by(self, tensor: cst.BaseExpression) -> bool:
        """Whether it is computed from what a step of another file gives to a function, and may have on the device."""
        return any(
            parameter_of_function(call, parameter.scope_function, arg) is parameter
            and (around := step_of(home, call.node)) is not None
            and home.once(Residence).may_be_device(
                arg.value, around, is_tensor=is_tensor and home.value(arg.value).kind is Kind.UNKNOWN
            )
            for parameter in parameters_behind(self._model, tensor)
            for is_tensor in (is_tensor_by_use(self._model, parameter),)
            for home, call in calls_abroad(self._model, parameter.scope_function)
            for arg in call.arguments
        )

    def _is_noted_by_model(self, tensor: cst.BaseExpression, step: Step) -> bool:
        """`model.criterion.penalty`: what a model that the step runs keeps of its forward pass."""
        owners = []
        binding = self._model.binding(tensor) if isinstance(tensor, cst.Name) else None
        if binding is not None and len(binding.writes) == 1 and not binding.writes[0].unpacked:
            tensor = binding.writes[0].value or tensor
        while isinstance(tensor, cst.Attribute):
            tensor = tensor.value
            owners.append(tensor)
        if not owners:
            return False
        around = step.loop if step.loop is not None else self._model.function(tensor)
        calls = self._model.effects(around).forwards
        run = [call.receiver if call.method == "forward" else call.node.func for call in calls]
        if run:
            run += [call.receiver for call in around.calls if _is_own_method(call)]
        owners += [arm for owner in owners for arm in self._unwrapped(owner)]
        return any(
            type(owner) is type(model) and owner.deep_equals(model) for owner in owners for model in run if model
        )

    def _unwrapped(self, owner: cst.BaseExpression) -> list[cst.BaseExpression]:
        """`model` of `raw_model = model.module if distributed else model`."""
        binding = self._model.binding(owner) if isinstance(owner, cst.Name) else None
        made = binding.writes[0].value if binding is not None and len(binding.writes) == 1 else None
        found = arms(made) if made is not None else []
        return [arm.value if isinstance(arm, cst.Attribute) and arm.attr.value == "module" else arm for arm in found]

    def _is_of_parameter(self, tensor: cst.BaseExpression, step: Step) -> bool:
        """Whether it is computed from a parameter, or its gradient, that a loop over those of a model gives: `largest`
        of `largest = p.grad.abs().max()`."""
        loops = [loop for loop in self._model.loops_around(tensor) if loop.role is Role.MODULES]
        if not loops or loops[0] is step.loop:
            return False
        sources = upstream(self._model, tensor, loops[0])
        return any(
            write.loop is loops[0] and write.kind == "for" and self._model.value(write.target).ref == _PARAMETER
            for binding in sources
            for write in binding.writes
        )

    def _is_of_input(self, tensor: cst.BaseExpression) -> bool:
        """Whether it is computed from what a forward pass is given, be it by the base of its class; a list made of that
        may be anywhere."""
        function = self._model.function(tensor)
        is_pass = is_forward(function) or is_run_by_forward_of_base(self._model, function)
        return is_pass and is_computed_from_parameters(self._model, tensor)

    def may_run_on_device(self, function: Function) -> bool:
        """Whether the models that a function runs may be on a GPU, as this file or another says."""
        return self.has_accelerator or self._is_lent(function)

    def _is_lent(self, function: Function) -> bool:
        """Whether a file that can run on a GPU gives the function, or the object that it is a method of, a model or
        what is on the device, or holds the class that this one derives from."""
        if function not in self._lent:
            self._lent[function] = False
            self._lent[function] = self._derives(function) or any(
                self._gives_model(home, call) for home, call in self._calls_of(function)
            )
        return self._lent[function]

    def _derives(self, function: Function) -> bool:
        return any(home.once(Residence).has_accelerator for home, _ in bases_abroad(self._model, function))

    def _calls_of(self, function: Function) -> Iterator[tuple[Model, Call]]:
        """Calls of a function, and those that make the object that it is a method of."""
        init = function.cls.method("__init__") if function.cls is not None else None
        for entered in (function, init):
            if entered is not None:
                yield from ((self._model, call) for call in entered.callers)
                yield from self._model.calls_elsewhere(entered)

    def _gives_model(self, home: Model, call: Call) -> bool:
        if home is self._model:
            return self._is_lent(call.function)
        given = (home.value(arg.value) for arg in call.arguments)
        has_model = any(v.is_(Kind.MODULE, Kind.UNKNOWN, Kind.INSTANCE) or v.place is Place.ACCELERATOR for v in given)
        return has_model and home.once(Residence).has_accelerator

    def _makes_its_models(self, loop: Loop) -> bool:
        """Whether each iteration makes all the models that it runs: then it is an experiment, and no batch."""
        modules = [
            call.receiver or call.node.func for call in self._model.effects(loop).forwards if loop in call.loops()
        ]
        return bool(modules) and all(
            any(isinstance(made, cst.Call) and loop in self._model.call(made).loops() for made in value.origins)
            for value in map(self._model.value, modules)
        )

    def _loads_its_models(self, step: Step, tensor: cst.BaseExpression) -> bool:
        """Whether a step begins with another network, which it loads: what it computes of that is computed once."""
        calls = step.loop.calls if step.loop is not None else self._model.function(tensor).calls
        return any(call.method in LOADING and call.loop is step.loop for call in calls)

    def _stays_on_host(self, loop: Loop) -> bool:
        """Whether the function of a loop makes the models that it runs, and neither it nor they say a word of a device,
        or whether it moves them to the host first."""
        if loop not in self._on_host:
            self._on_host[loop] = self._has_host_models(loop.function) or self._runs_what_is_moved_to_host(loop)
        return self._on_host[loop]

    def _runs_what_is_moved_to_host(self, loop: Loop) -> bool:
        """`net.cpu()` before the loop, and nothing in the function that goes to a device."""
        model, calls = self._model, loop.function.calls
        run = [call for call in model.effects(loop.node).forwards if call.function is loop.function]
        if not run or any(moves_to_accelerator(call, model) for call in calls):
            return False
        moved = {
            model.binding(call.receiver)
            for call in calls
            if call.method in ("cpu", "to") and call.receiver is not None and call.receiver_value.kind is Kind.MODULE
            if call.value.place is Place.HOST and not model.guards(call.node) and is_before(model, call.node, loop.node)
        }
        return all((owner := model.binding(call.receiver or call.node.func)) and owner in moved for call in run)

    def _has_host_models(self, function: Function) -> bool:
        model = self._model
        forwards = [call for call in model.effects(function).forwards if call.function is function]
        modules = {
            value for call in forwards if (value := model.value(call.receiver or call.node.func)).ref is not None
        }
        made = [node for value in modules for node in value.origins]
        if function.is_module or not made or not all(value.origins for value in modules):
            return False
        return (
            all(model.function(node) is function for node in made)
            and "set_default" not in model.source.text
            and not _mentions_device(model, function.node)
            and all(self._is_silent_class(value.ref) for value in modules)
        )

    def _is_silent_class(self, name: str | None) -> bool:
        behind = self._model.class_behind(name) if name is not None else None
        return behind is not None and not _mentions_device(behind[0], behind[1].node)

    def _brings_its_data(self, loop: Loop) -> bool:
        """Whether the batches come from an object that may keep them on the device, and not from a loader as is."""
        if isinstance(loop.iterable, cst.Call):
            return self._model.call(loop.iterable).receiver is not None
        binding = self._model.binding(loop.iterable) if loop.iterable is not None else None
        writes = binding.writes if binding is not None and not binding.is_parameter else []
        return bool(writes) and all(
            isinstance(write.value, cst.Call) and self._model.call(write.value).receiver is not None for write in writes
        )


def _listed(model: Model, loop: Loop) -> cst.BaseExpression:
    """`losses` of `for loss in losses` and `for i, loss in enumerate(losses)`."""
    over = loop.iterable
    assert over is not None
    is_counted = isinstance(over, cst.Call) and model.call(over).callee == "builtins.enumerate" and over.args
    return over.args[0].value if is_counted and isinstance(over, cst.Call) else over


def _whole(tensor: cst.BaseExpression) -> cst.BaseExpression:
    """`loss` of `loss.data` and `loss.detach()`."""
    while True:
        match tensor:
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="detach"))):
                tensor = inner
            case cst.Attribute(value=inner, attr=cst.Name(value="data")):
                tensor = inner
            case _:
                return tensor


def _is_own_method(call: Call) -> bool:
    """`model.compute_loss(...)`, which not every module has."""
    return call.receiver_value.kind is Kind.MODULE and module_method(call.method or "") is None


def _is_only_copied(home: Model, parameter: Binding) -> bool:
    """Whether a function reads a parameter to take its shape and a copy of it on the host, and nothing else."""
    methods = [home.parent(read) for read in parameter.reads]
    names = [method for method in methods if isinstance(method, cst.Attribute)]
    used = [home.parent(name) for name in names if name.attr.value not in _SHAPE]
    is_copied = all(isinstance(call, cst.Call) and home.value(call).place is Place.HOST for call in used)
    return bool(used) and len(names) == len(methods) and is_copied


def _measures(call: Call) -> bool:
    """A mean, a sum, a loss."""
    name = call.callee or ""
    return is_reduction(call.method or name.rpartition(".")[2]) or is_loss_function(name)


def _mentions_device(model: Model, node: cst.CSTNode) -> bool:
    start, end = model.span(node)
    return _MOVING.search(model.source.text[start:end]) is not None


def is_forward_pass(model: Model, function: Function) -> bool:
    """A method of a model, other than one that trains it or switches its mode, as what runs all of an evaluation."""
    if function.cls is None or not function.cls.is_module or function.cls.is_lightning:
        return False
    return not model.effects(function).optimizer_steps and not any(
        call.method in ("eval", "train") and is_name(call.receiver, function.own_name) for call in function.calls
    )


def _has_accelerator(model: Model) -> bool:
    """Whether the file can run on a GPU, and does not say of every device it names that it is the host."""
    if model.frameworks & PLACE:
        return True
    if not model.uses_accelerator or is_of_another_library(model):
        return False
    text = _ASKING.sub("", model.code_text)
    others = _TOLD_HOST.sub("", text)
    if _ACCELERATORS.search(others):
        return True
    if others != text:
        return False
    return _names_devices(model) is True


def _names_devices(model: Model) -> bool | None:
    """Whether a device that the file names in an argument may be another one than the host; None if it names none, or
    only those of tensors that it has."""
    named = [device for device in _devices(model) if not _is_of_tensor(model, device.node)]
    return any(_may_name_device(model, device.node, device.value) for device in named) if named else None


def _devices(model: Model) -> list[Argument]:
    arguments = (call.argument("device", 0 if call.method == "to" else None) for call in model.calls)
    return [a for a in arguments if a.given and not a.value.is_(Kind.DTYPE, Kind.TENSOR)]


def _follows_tensors(model: Model) -> bool:
    """Whether the file puts things where its tensors are."""
    return any(_is_of_tensor(model, device.node) for device in _devices(model))


def _is_of_tensor(model: Model, node: cst.BaseExpression | None) -> bool:
    """`x.device`, or a name for it: the device on which a tensor is anyway."""
    binding = model.binding(node) if isinstance(node, cst.Name) else None
    if binding is not None and len(binding.writes) == 1:
        node = binding.writes[0].value
    return (
        isinstance(node, cst.Attribute) and node.attr.value == "device" and model.value(node.value).kind is Kind.TENSOR
    )


def _may_name_device(model: Model, node: cst.BaseExpression | None, value: Value) -> bool:
    if value.is_(Kind.DTYPE, Kind.TENSOR) or value.place is Place.HOST:
        return False
    if value.constant is not None:
        return place_named(str(value.constant)) is not Place.HOST
    owner = _owner_of_device(model, node) if value.kind is Kind.DEVICE and value.place is Place.UNKNOWN else None
    return owner is None or is_handed_in(model, owner)


def _owner_of_device(model: Model, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """The model in `next(model.parameters()).device`, which may stand behind a name or an attribute."""
    binding = model.binding(node) if node is not None else None
    if binding is not None and len(binding.writes) == 1:
        node = binding.writes[0].value
    match node:
        case cst.Attribute(value=cst.Call(args=[cst.Arg(value=cst.Call() as source)]), attr=cst.Name(value="device")):
            call = model.call(source)
            return call.receiver if call.method in ("parameters", "buffers") else None
    return None
