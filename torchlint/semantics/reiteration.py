"""Data loaders that start over: their workers in every epoch, themselves in every iteration of a loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.datasets import Memory
from torchlint.semantics.entities import Call, Loop, Role
from torchlint.semantics.epochs import loops_around_calls, outer_loops
from torchlint.semantics.loaders import Loader, loaders
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_RESAMPLED = ("sampler", "batch_sampler", "worker_init_fn", "generator")


# -- workers that are started again


@dataclass(frozen=True, slots=True)
class Respawning:
    """A loader whose workers end with each iteration of `epochs`."""

    loader: Loader
    epochs: Loop


def respawning_loaders(model: Model) -> Iterator[Respawning]:
    for loader in loaders(model):
        if not _may_have_workers(loader) or _is_persistent(loader) or loader.memory() is Memory.STREAM:
            continue
        epochs = next((loop for loop in _epochs_over(loader) if not _is_made_in(loader, loop)), None)
        if epochs is not None and not _changes_dataset(loader, epochs):
            yield Respawning(loader, epochs)


def _may_have_workers(loader: Loader) -> bool:
    return loader.option("num_workers").given and loader.workers != 0


def _is_persistent(loader: Loader) -> bool:
    """Whether it is, or may be for all that is in sight."""
    option = loader.option("persistent_workers")
    return not (option.absent or (option.given and option.value.constant is False))


def _epochs_over(loader: Loader) -> Iterator[Loop]:
    """Loops of epochs in each iteration of which the loader is run through, here or in a function of another file."""
    for loop in loader.model.loops:
        if not loop.is_comprehension and loop.iterates.origins & loader.built:
            yield from (outer for outer in outer_loops(loop, loader.model) if outer.role is Role.EPOCHS)
    for call in loader.model.calls:
        if call.foreign is not None and call.foreign.is_pass and _is_given(call, loader):
            yield from (loop for loop in call.loops() if loop.role is Role.EPOCHS)


def _is_given(call: Call, loader: Loader) -> bool:
    values = (loader.model.value(arg.value) for arg in call.arguments)
    return any(value.kind is Kind.LOADER and value.origins & loader.built for value in values)


def _is_made_in(loader: Loader, loop: Loop) -> bool:
    site, model = loader.site, loader.model
    return loop in site.loops() or loop in loops_around_calls(site.function, model, 0)


def _changes_dataset(loader: Loader, epochs: Loop) -> bool:
    """Whether something is done to the dataset meanwhile, which workers that live on would not see."""
    dataset, model = loader.dataset().node, loader.model
    held = model.binding(dataset) if dataset is not None else None
    calls = (call for name in ("set_epoch", "set_mode", "shuffle", "resample") for call in model.calls_to(f".{name}"))
    if any(not call.receiver_value.is_(Kind.SAMPLER) and _is_dataset(call.receiver, held, model) for call in calls):
        return True
    return any(_is_dataset(node.value, held, model) for node in _written_attributes(epochs, model))


def _written_attributes(loop: Loop, model: Model) -> Iterator[cst.Attribute]:
    for node in model.nodes_of(cst.Attribute):
        is_written = isinstance(node, cst.Attribute) and isinstance(model.parent(node), cst.AssignTarget)
        if is_written and loop in model.loops_around(node):
            yield node  # type: ignore[misc]


def _is_dataset(node: cst.CSTNode | None, held: Binding | None, model: Model) -> bool:
    if isinstance(node, cst.Attribute) and node.attr.value == "dataset":
        return True
    return node is not None and held is not None and model.binding(node) is held


# -- loaders and iterators that are made again


@dataclass(frozen=True, slots=True)
class Remade:
    """A loader that each iteration of a loop makes anew of the same parts, or runs for a single batch."""

    call: Call
    loop: Loop
    loader: Loader | None = None  # where it is the loader itself that is made


def remade_loaders(model: Model) -> Iterator[Remade]:
    for loader in loaders(model):
        loop = loader.site.loop
        if loop is not None and loop.role is Role.EPOCHS and not loop.is_comprehension and _is_same(loader, loop):
            yield Remade(loader.site, loop, loader)
    for call in model.calls_to("builtins.iter"):
        loop = _loop_of_single_batches(model, call)
        if loop is not None:
            yield Remade(call, loop)


def _is_same(loader: Loader, loop: Loop) -> bool:
    """Whether a loader is made of what no iteration of the loop changes."""
    model = loader.model
    if any(not loader.option(name).absent for name in _RESAMPLED) or _changes_dataset(loader, loop):
        return False
    arguments = [arg for call in loader.calls for arg in call.arguments]
    if any(arg.star for arg in arguments) or model.guards(loader.site.node, loop):
        return False
    return all(_is_constant_in(arg.value, loop, model) for arg in arguments)


def _is_constant_in(argument: cst.BaseExpression, loop: Loop, model: Model) -> bool:
    for node in walk(argument):
        if isinstance(node, (cst.Call, cst.Subscript, cst.Lambda, cst.BaseComp)):
            return False
        binding = model.binding(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
        if binding is not None and (
            any(write.loop is not None and loop in write.loop.around() for write in binding.writes)
            or binding.methods & {"update", "resample", "set_epoch", "shuffle", "append", "extend"}
        ):
            return False
    return True


def _loop_of_single_batches(model: Model, call: Call) -> Loop | None:
    """The loop of `next(iter(loader))`, if it is one of steps and not of epochs."""
    above = model.parent(call.node)
    outer = model.parent(above) if isinstance(above, cst.Arg) else None
    source = call.arguments[0].value if call.arguments else None
    loop = call.loop
    if source is None or loop is None or loop.is_comprehension or loop.role is Role.EPOCHS:
        return None
    if not isinstance(outer, cst.Call) or model.call(outer).callee != "builtins.next" or outer.args[0] is not above:
        return None
    value = model.value(source)
    made = [model.call(origin) for origin in value.origins if isinstance(origin, cst.Call)]
    if value.kind is not Kind.LOADER or not made or any(loop in call.loops() for call in made):
        return None
    return None if model.is_log_gated(call.node) or _runs_out(call, loop, model) else loop


def _runs_out(call: Call, loop: Loop, model: Model) -> bool:
    """Whether the loop is left behind the call, or runs over loaders, one batch of each."""
    binding = model.binding(call.arguments[0].value)
    if binding is None or any(write.loop is not None and loop in write.loop.around() for write in binding.writes):
        return True
    return any(isinstance(node, (cst.Break, cst.Return)) for line in loop.body for node in walk(line))
