"""What training frameworks do by themselves: which of their hooks they call for every batch, what they move, wrap and
reset, and what their objects return.

Sources: the reference pages of Lightning 2, Accelerate 1, transformers 4, Ignite 0.5 and DeepSpeed 0.16.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.entities import Call, Class, Function, Role
from torchlint.semantics.transfer import Arguments
from torchlint.semantics.values import NONE, UNKNOWN, Grad, Kind, Place, Value

# -- duties that a script hands over -----------------------------------------------------------------------------------

# Their own `step` leaves no gradients behind.
RESET_GRADIENTS = frozenset({"deepspeed", "fastai", "mmengine", "composer", "catalyst"})
# They tell samplers the epoch, or put samplers of their own in place.
SET_EPOCH = frozenset(
    {"lightning", "fabric", "accelerate", "ignite", "deepspeed", "fastai", "mmengine", "composer", "catalyst"}
)
# They scale losses for half precision, and unscale gradients before they clip them, or clip in their own way.
SCALE_LOSS = frozenset({"accelerate", "deepspeed", "fabric", "lightning", "fastai", "composer", "mmengine"})
# They run on an accelerator where there is one, without code that says so.
PLACE = frozenset({"accelerate", "fabric", "deepspeed"})

# Subclasses give a formula for their gradients.
_AUTOGRAD_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})

# -- hooks -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hook:
    """A function that a framework calls once for every batch."""

    role: Role
    batch: int | None = None  # position, after self, of the parameter that gets the batch
    on_device: bool = True  # the batch and the model
    is_engine: bool = False  # what the function returns is its caller's output, for the metrics that somebody attaches
    returns_metrics: bool = False  # in a dict beside the loss, to be logged or kept until the epoch ends


_TRAINING, _EVALUATION = (Hook(role, 0, returns_metrics=True) for role in (Role.STEPS, Role.EVALUATION))
_LIGHTNING = {
    "training_step": _TRAINING,
    "validation_step": _EVALUATION,
    "test_step": _EVALUATION,
    "predict_step": Hook(Role.EVALUATION, 0),
}
_ENDING = re.compile(r"on_(train|validation|test|predict|fit)_(epoch_)?(start|end)")
_EVALUATING = re.compile(r"(on_)?(validation|test|predict)_((batch|epoch)_)?(step|start|end)")
_TRANSFORMERS = {
    "training_step": Hook(Role.STEPS),  # gets the batch as the loader yields it
    "compute_loss": Hook(Role.STEPS, 1),
    "prediction_step": Hook(Role.EVALUATION),
}
_OPTIMIZER = {"step": Hook(Role.STEPS, on_device=False)}  # of one of the project's own, which training loops call
_TRAINER = re.compile(r"(transformers|trl|sentence_transformers|setfit)\.(\w+\.)*\w*Trainer")
_METRIC = re.compile(r"(torchmetrics|ignite\.metrics)\.(\w+\.)*Metric")
_ENGINES = ("ignite.engine.Engine", "ignite.engine.engine.Engine")


def note_methods(classes: Iterable[Class]) -> None:
    """Methods that a framework calls for every batch, by the bases of their classes."""
    for cls in classes:
        for name, hook in _hooks(cls).items():
            if name in cls.methods:
                cls.methods[name].hook = hook


def _hooks(cls: Class) -> dict[str, Hook]:
    if cls.is_lightning:
        return _LIGHTNING
    if any(map(_TRAINER.fullmatch, cls.ancestry)):
        return _TRANSFORMERS
    if any(base.startswith("torch.optim.") for base in cls.ancestry):
        return _OPTIMIZER
    return {"update": Hook(Role.EVALUATION, 0)} if any(map(_METRIC.fullmatch, cls.ancestry)) else {}


def note_functions(calls: Iterable[Call]) -> None:
    """Functions that are handed to an engine that calls them for every batch."""
    for call in calls:
        if call.callee in _ENGINES:
            for function in call.passes:
                function.hook = Hook(
                    Role.STEPS if function.is_step else Role.EVALUATION, on_device=False, is_engine=True
                )


def is_metric_update(function: Function) -> bool:
    """The `update` of a metric of torchmetrics, which runs it without gradients when it is called on its own."""
    return function.name == "update" and any(base.startswith("torchmetrics.") for base in _bases(function))


def is_evaluation(function: Function) -> bool:
    """A method that Lightning calls while it validates, tests or predicts, with autograd off."""
    return function.cls is not None and function.cls.is_lightning and _EVALUATING.fullmatch(function.name) is not None


def goes_back_from(function: Function) -> bool:
    """A method that returns a loss to a framework, which runs the backward pass from it."""
    if function.cls is None:
        return False
    if function.cls.is_lightning:
        return function.name == "training_step"
    return function.name == "compute_loss" and any(map(_TRAINER.fullmatch, function.cls.ancestry))


def is_of_epoch(function: Function) -> bool:
    """A method that Lightning calls once an epoch, or once for all of them, and gives nothing."""
    return function.cls is not None and function.cls.is_lightning and _ENDING.fullmatch(function.name) is not None


def is_formula(function: Function) -> bool:
    """The `forward` or `backward` of a torch.autograd.Function, in which autograd records nothing, but for a backward
    pass of which a graph is made."""
    is_named = function.name in ("forward", "backward")
    return is_named and any(base in _AUTOGRAD_FUNCTIONS for base in _bases(function))


def _bases(function: Function) -> tuple[str, ...]:
    return function.cls.ancestry if function.cls is not None else ()


def parameter(function: Function, name: str) -> Value | None:
    """What a framework passes as a parameter of a hook, and autograd to the `backward` of a function."""
    if function.name == "backward" and name != function.params[0] and is_formula(function):
        return Value(Kind.TENSOR)
    hook = function.hook
    if hook is None or hook.batch is None or function.params[hook.batch + 1 : hook.batch + 2] != [name]:
        return None
    if is_metric_update(function) and _is_walked(function, name):
        return None  # a list of what was generated, on the host perhaps
    return Value(Kind.BATCH, Grad.DETACHED, Place.ACCELERATOR if hook.on_device else Place.UNKNOWN)


def _is_walked(function: Function, name: str) -> bool:
    """Whether a loop takes what a parameter holds one by one."""
    return any(isinstance(loop.iterable, cst.Name) and loop.iterable.value == name for loop in function.loops)


# -- objects -----------------------------------------------------------------------------------------------------------

FABRIC = ("lightning.Fabric", "lightning.fabric.Fabric", "lightning.fabric.fabric.Fabric", "lightning_fabric.Fabric")
_OWNERS = frozenset({"accelerate.Accelerator", "accelerate.accelerator.Accelerator", *FABRIC})
ENGINE = "deepspeed.DeepSpeedEngine"
_DEVICE = Value(Kind.DEVICE, place=Place.ACCELERATOR)
_PREPARING = frozenset({"prepare", "setup", "setup_dataloaders", "setup_optimizers", "setup_module", "prepare_model",
                        "prepare_data_loader", "prepare_optimizer", "prepare_scheduler"})  # fmt: skip
_HANDING_BACK = frozenset({"gather", "gather_for_metrics", "reduce", "all_gather", "all_reduce", "to_device",
                           "pad_across_processes", "broadcast"})  # fmt: skip


def is_owner(name: str | None) -> bool:
    """Whether objects of the class own model, optimizer and loaders of a script: an Accelerator, a Fabric."""
    return name in _OWNERS


def attribute(owner: str, name: str) -> Value | None:
    """What an attribute of an object of a framework is; None where nothing is known of it."""
    return _DEVICE if owner in _OWNERS and name == "device" else None


def method(owner: str, name: str, given: Arguments) -> Value | None:
    """What a method of an object of a framework returns; None where nothing is known of it."""
    if owner not in _OWNERS:
        return None
    if name in _PREPARING and not given.open:
        prepared = [_placed(value) for value in given.positional]
        return prepared[0] if len(prepared) == 1 else Value(Kind.TUPLE, items=tuple(prepared))
    first = given.positional[0] if given.positional else UNKNOWN
    if name == "unwrap_model":
        return first
    if name in _HANDING_BACK:
        return _placed(first).but(grad=Grad.UNKNOWN) if first.is_tensor else UNKNOWN
    return NONE if name in ("backward", "print", "log", "wait_for_everyone") else None


def _placed(value: Value) -> Value:
    is_placed = value.kind in (Kind.MODULE, Kind.LOADER, Kind.TENSOR, Kind.BATCH)
    return value.but(place=Place.ACCELERATOR) if is_placed else value


def function(name: str, given: Arguments) -> Value | None:
    """What a function of a framework returns; None where nothing is known of it."""
    if name != "deepspeed.initialize":
        return None
    loader = Value(Kind.LOADER) if given.get("training_data", 4) is not None else NONE
    engine = Value(Kind.MODULE, place=Place.ACCELERATOR, ref=ENGINE)
    return Value(Kind.TUPLE, items=(engine, Value(Kind.OPTIMIZER), loader, Value(Kind.SCHEDULER)))


def packages(imported: Sequence[str], callees: Iterable[str | None], known: dict[str, str]) -> set[str]:
    """The frameworks that imports and calls name; `known` has them by package."""
    found = {known[package] for name in imported if (package := name.partition(".")[0]) in known}
    if any(name in FABRIC for name in (*imported, *callees)):
        found.add("fabric")
    return found
