"""Data loaders that start over: their workers in every epoch, themselves in every iteration of a loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.data.own_process import classes_of
from torchlint.analyses.loading.counted_epochs import counts_epochs
from torchlint.analyses.loading.datasets import Memory, leaves
from torchlint.analyses.loading.feeding import reach
from torchlint.analyses.loading.loaders import Loader, loaders
from torchlint.analyses.loading.many_loaders import lives_beside_many
from torchlint.analyses.loops.epochs import loops_around_calls
from torchlint.analyses.loops.handed_on import handed_on
from torchlint.analyses.once import once
from torchlint.semantics.dataflow import text, unfilled_default
from torchlint.semantics.entities import Call, Loop, Role
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Function
    from torchlint.semantics.model import Model

_DEPTH = 4
_CHANGING = frozenset({"set_epoch", "set_mode", "shuffle", "resample"})
_CHANGING_LISTS = frozenset("append extend insert remove pop clear update setdefault sort reverse".split())
_RESAMPLED = ("sampler", "batch_sampler", "worker_init_fn", "generator")


# -- workers that are started again


@dataclass(frozen=True, slots=True)
class Respawning:
    """A loader whose workers end with each iteration of `epochs`, which trains on what `drawn_from` yields."""

    loader: Loader
    drawn_from: cst.BaseExpression
    epochs: Loop


@once
def respawning_loaders(model: Model) -> Iterator[Respawning]:
    """Loaders whose workers are started again in every epoch of a training, in source order."""
    for loader in loaders(model):
        if not _may_have_workers(loader) or _is_persistent(loader) or loader.keeps_iterator:
            continue
        if loader.memory() is Memory.STREAM or lives_beside_many(loader):
            continue
        found = next((found for found in _passes(loader) if not _is_made_in(loader, found.epochs)), None)
        if found is not None and reach(loader) is not None and not _changes_dataset(loader, found.epochs):
            yield found


def respawning_beside(found: Respawning) -> Iterator[Loader]:
    """Other loaders of the same function whose workers end with each of the epochs too, as those for validation."""
    model = found.loader.model
    if model.loop_of(found.epochs.node) is not found.epochs:
        return
    called = (loop for loop in model.loops if found.epochs in loops_around_calls(loop.function, model))
    drawn = [
        value for node in (found.epochs.node, *(loop.iterable for loop in called)) for value in _values(node, model)
    ]
    for other in loaders(model):
        if other.site.node is found.loader.site.node or other.site.function is not found.loader.site.function:
            continue
        if not _may_have_workers(other) or other.keeps_iterator or not other.option("persistent_workers").absent:
            continue
        is_kept = other.memory() is not Memory.STREAM and not _is_made_in(other, found.epochs)
        if is_kept and any(_is_loader(other, value) for value in drawn) and not _changes_dataset(other, found.epochs):
            yield other


def _may_have_workers(loader: Loader) -> bool:
    option = loader.option("num_workers")
    if not option.given or loader.workers == 0:
        return False
    default = unfilled_default(loader.model, option.node)
    return default is None or loader.model.value(default).constant != 0


def _is_persistent(loader: Loader) -> bool:
    """Whether it is, or may be for all that is in sight."""
    option = loader.option("persistent_workers")
    return not (option.absent or (option.given and option.value.constant is False))


def _passes(loader: Loader) -> Iterator[Respawning]:
    """The epochs that train on all batches of the loader, here or in a function of another file."""
    for source, around, function in _trained_on(loader):
        for loop in _loops_around(source, around, function, loader):
            if counts_epochs(loop, loader.model) and not _is_replaced(loader, source, loop):
                yield Respawning(loader, source, loop)


def _is_replaced(loader: Loader, source: cst.BaseExpression, epochs: Loop) -> bool:
    """Whether an epoch puts another loader into the variable that it draws from, so that this one is for the first."""
    reads = (node for node in walk(source) if isinstance(node, (cst.Name, cst.Attribute)))
    bindings = (binding for node in reads if (binding := loader.model.binding(node)) is not None)
    writes = (write for binding in bindings for write in binding.writes if write.loop is not None)
    return any(
        epochs in write.loop.around()
        and loader.model.value(write.target).kind is Kind.LOADER
        and not _is_loader(loader, loader.model.value(write.target))
        for write in writes
        if write.loop is not None
    )


def _trained_on(loader: Loader) -> Iterator[tuple[cst.BaseExpression, list[Loop], Function]]:
    """What steps draw their batches from, or what is handed to a function of another file that holds the steps."""
    model = loader.model
    for steps in model.loops:
        if steps.iterable is not None and _trains(steps, model) and _draws(steps, loader):
            yield steps.iterable, list(steps.around())[1:], steps.function
    for call in model.calls:
        for handed in handed_on(call, lambda node: _is_loader(loader, model.value(node)), model):
            if handed.is_of_function and any(_trains(loop, handed.home) for loop in handed.drawn_by()):
                yield handed.given, list(call.loops()), call.function


def _trains(loop: Loop, model: Model) -> bool:
    effects = model.effects(loop)
    trains = loop.role is Role.STEPS or effects.has("optimizer_steps") or effects.has("zero_grads")
    return trains and not loop.is_comprehension


def _draws(loop: Loop, loader: Loader) -> bool:
    if loop.iterates.is_(Kind.LOADER, Kind.ITERATOR) and loop.iterates.origins & loader.built:
        return True
    return any(_is_loader(loader, value) for value in _values(loop.iterable, loader.model))


def _is_loader(loader: Loader, value: Value) -> bool:
    return value.kind is Kind.LOADER and bool(value.origins & loader.built)


def _values(expression: cst.CSTNode | None, model: Model) -> Iterator[Value]:
    for node in walk(expression) if expression is not None else ():
        if isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
            yield model.value(node)


def _loops_around(
    source: cst.BaseExpression, around: list[Loop], function: Function, loader: Loader, depth: int = 0
) -> Iterator[Loop]:
    """The loops that a pass runs in: in its function, and around the calls of it that mean this loader.

    A function that is given its loader runs through others in other calls.
    """
    yield from around
    if depth == _DEPTH or function.is_module:
        return
    is_given = _comes_in(source, loader.model)
    for call in function.callers:
        if not is_given:
            yield from chain(call.loops(), loops_around_calls(call.function, loader.model, depth + 1))
        for arg in call.arguments if is_given else ():
            if _is_loader(loader, loader.model.value(arg.value)):
                yield from _loops_around(arg.value, list(call.loops()), call.function, loader, depth + 1)


def _comes_in(source: cst.BaseExpression, model: Model, depth: int = 0) -> bool:
    """Whether what is iterated over is a parameter of the function, or made of one there."""
    for node in walk(source):
        binding = model.binding(node) if isinstance(node, cst.Name) else None
        if binding is None or not model.value(node).is_(Kind.LOADER, Kind.ITERATOR):
            continue
        made = [write.value for write in binding.writes if write.value is not None]
        if binding.is_parameter or (depth < _DEPTH and any(_comes_in(value, model, depth + 1) for value in made)):
            return True
    return False


def _is_made_in(loader: Loader, loop: Loop) -> bool:
    site, model = loader.site, loader.model
    return loop in site.loops() or loop in loops_around_calls(site.function, model)


def _changes_dataset(loader: Loader, epochs: Loop) -> bool:
    """Whether something is done to the dataset meanwhile, which workers that live on would not see."""
    dataset, model = loader.dataset().node, loader.model
    held = model.binding(dataset) if dataset is not None else None
    commands = (call for call in model.calls if _is_command(call, epochs, model))
    if any(not call.receiver_value.is_(Kind.SAMPLER) and _is_dataset(call.receiver, held, model) for call in commands):
        return True
    written = list(_written_attributes(epochs, model))
    if any(_is_dataset(node.value, held, model) for node in written):
        return True
    return _reads_any(loader, written) or any(_is_changed(node, epochs, model) for node in _made_of(loader))


def _reads_any(loader: Loader, written: list[cst.Attribute]) -> bool:
    """Whether the class of the dataset reads a setting that the loop changes: `config.scale = epoch`."""
    settings = {text(node) for node in written if isinstance(node.value, cst.Name) and node.value.value != "self"}
    if not settings:
        return False
    methods = (method for _, cls in classes_of(loader) for part in cls.lineage() for method in part.methods.values())
    return any(isinstance(n, cst.Attribute) and text(n) in settings for method in methods for n in walk(method.node))


def _made_of(loader: Loader) -> Iterator[cst.BaseExpression]:
    """What the dataset is given when it is made."""
    dataset = loader.dataset().node
    for source in leaves(dataset, loader.model) if dataset is not None else ():
        if isinstance(source, cst.Call) and loader.model.value(source).kind is Kind.DATASET:
            yield from (arg.value for arg in source.args)


def _is_changed(given: cst.BaseExpression, epochs: Loop, model: Model) -> bool:
    """A network that the epochs run, or a list that they add to or take from."""
    binding = model.binding(given)
    if binding is None:
        return False
    calls = [call for call in model.calls if epochs in call.loops()]
    if model.value(given).kind is Kind.MODULE:
        return any(model.binding(call.node.func) is binding for call in calls)
    changes = (call.receiver for call in calls if call.method in _CHANGING_LISTS)
    return any(changed is not None and model.binding(changed) is binding for changed in changes)


def _is_command(call: Call, epochs: Loop, model: Model) -> bool:
    """A method that is called for what it does, in a function that the epochs may call or between two of them."""
    is_told = call.method in _CHANGING or isinstance(model.parent(call.node), cst.Expr)
    return call.method is not None and is_told and (call.function is not epochs.function or call.loop is not None)


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


@once
def remade_loaders(model: Model) -> Iterator[Remade]:
    """Making a loader costs nothing but its workers, and only those that are to stay would not be started anyway."""
    for loader in loaders(model):
        loop = loader.site.loop
        if loop is None or loop.role is not Role.EPOCHS or loop.is_comprehension:
            continue
        if _may_have_workers(loader) and _is_persistent(loader) and _is_same(loader, loop):
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
    if source is None or loop is None or loop.is_comprehension or loop.role not in (Role.STEPS, Role.EVALUATION):
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
