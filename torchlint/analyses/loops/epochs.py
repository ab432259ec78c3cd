"""Samplers that shuffle by epoch, the epoch loops that consume them, and whether anybody tells them the epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loading.samplers import SAMPLER, Told, lent_samplers, makes_loader, own_samplers, shuffles
from torchlint.analyses.loops.endless import endless_draws
from torchlint.analyses.loops.extent import rounds
from torchlint.analyses.loops.handed_on import HARMLESS, HandedOn, comes_from, handed_on
from torchlint.semantics.dataflow import text
from torchlint.semantics.entities import Call, Loop, Role
from torchlint.semantics.frameworks import SET_EPOCH
from torchlint.semantics.tree import is_name, walk
from torchlint.semantics.values import Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Function
    from torchlint.semantics.model import Model
    from torchlint.source import Source

_BATCH_SAMPLER = "torch.utils.data.BatchSampler"
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class StaleSampler:
    """A shuffling sampler whose batches are trained on in every iteration of `epochs`, always in the same order.

    `drawn_from` is what the steps iterate over, or what is handed to the function of another file that holds them.
    `home` is the model of the file in which the epochs are, where that is another one, and `kept` the variable in which
    that file keeps the loader, which may be another one unless it is the `only` one. `built`: the call that gives the
    sampler to a loader, where that is not the one that makes it, but is in the constructor of its class.
    """

    sampler: Call
    loader: Call
    drawn_from: cst.BaseExpression
    epochs: Loop
    home: Model | None = None
    kept: Binding | None = None
    only: bool = True
    built: Call | None = None


def stale_samplers(model: Model) -> Iterator[StaleSampler]:
    """Samplers that nobody tells the epoch, as far as this file can know, in source order."""
    if model.frameworks & SET_EPOCH:
        return
    for sampler in model.calls_to(SAMPLER):
        for loader in model.calls:
            if makes_loader(loader, model) and _takes(loader, sampler, model):
                found = _epochs_in_sight(sampler, loader, model) if shuffles(sampler) else None
                if found is None:
                    found = _epochs_of_callers(sampler, loader, model)
                elif _may_be_told((sampler, loader), model):
                    continue
                if found is not None:
                    yield found
                    break
    for sampler, loader in lent_samplers(model):
        found = _epochs_in_sight(sampler, loader, model)
        if found is not None and not _may_be_told((sampler, loader), model):
            yield found
    for sampler, built in own_samplers(model):
        found = next(_epochs_of_own(sampler, built, model), None)
        if found is not None:
            yield found


def _epochs_of_own(sampler: Call, built: Call, model: Model) -> Iterator[StaleSampler]:
    """The epochs over loaders of a class that makes their sampler, in this file or in another that makes one."""
    for loader in built.function.callers:
        if _is_told_to_shuffle(sampler, loader, model, built.function, model):
            found = _epochs_in_sight(sampler, loader, model)
            if found is not None and not _may_be_told((sampler, loader, built), model):
                yield replace(found, built=built)
    if any(map(_sets_epochs, (model.source, *model.users()))):
        return
    for home, loader in model.calls_elsewhere(built.function):
        if _is_told_to_shuffle(sampler, loader, home, built.function, model):
            found = _epochs_with(sampler, loader, loader, -1, home, model)
            if found is not None and not any(map(_sets_epochs, (home.source, *home.neighbours()))):
                yield replace(found, built=built)


def _is_told_to_shuffle(sampler: Call, call: Call, home: Model, function: Function, model: Model) -> bool:
    told = Told(call, home, function, model)
    return told.shuffles(sampler) and told.may_reach(sampler.node)


def _takes(loader: Call, sampler: Call, model: Model) -> bool:
    """Whether a loader draws from the sampler, directly or in batches."""
    for name, position in (("sampler", 3), ("batch_sampler", 4)):
        argument = loader.argument(name, position)
        if argument.given and _made_by(argument.value, sampler, model):
            return True
    return False


def _made_by(value: Value, call: Call, model: Model, depth: int = 0) -> bool:
    """Whether a value may be what the call returns, or a batch sampler or loader around it."""
    if call.node in value.origins:
        return True
    if depth == _DEPTH:
        return False
    makers = [model.call(origin) for origin in value.origins if isinstance(origin, cst.Call)]
    return any(
        maker.callee == _BATCH_SAMPLER or makes_loader(maker, model)
        for maker in makers
        if any(_made_by(model.value(arg.value), call, model, depth + 1) for arg in maker.arguments)
    )


# -- epochs over a loader


def _epochs_in_sight(sampler: Call, loader: Call, model: Model) -> StaleSampler | None:
    return (
        _epochs_over(sampler, loader, model)
        or _epochs_without_end(sampler, loader, model)
        or _epochs_of_objects(sampler, loader, model)
    )


def _epochs_over(sampler: Call, loader: Call, model: Model) -> StaleSampler | None:
    """The training loop over a loader and the epoch loop around it, if loader and sampler outlive an epoch."""
    for drawn_from, around in _passes(loader, model):
        for epochs in around:
            if _is_of_epochs(epochs, model) and not _made_again(sampler, loader, epochs, model):
                return StaleSampler(sampler, loader, drawn_from, epochs)
    return None


def _epochs_without_end(sampler: Call, loader: Call, model: Model) -> StaleSampler | None:
    """The rounds of a generator that begins the loader again and again, where the steps draw from it."""
    for call in model.calls:
        for drawn in endless_draws(model, call):
            if not _holds_any((loader,), model, model.value(drawn.given)) or "set_epoch" in drawn.home.source.text:
                continue
            if _is_trained_on(call, model):
                home = drawn.home if drawn.home is not model else None
                return StaleSampler(sampler, loader, drawn.read, drawn.rounds, home)
    return None


def _epochs_of_objects(sampler: Call, loader: Call, model: Model) -> StaleSampler | None:
    """The epochs of a class or function of another file that gets the loader; no file around sets any epoch."""
    for call in model.calls:
        for found in handed_on(call, lambda node: _holds_any((loader,), model, model.value(node)), model):
            if any(map(_sets_epochs, (found.home.source, *model.neighbours()))):
                continue
            for epochs in _epochs_here(found, model):
                if not _made_again(sampler, loader, epochs, model):
                    return StaleSampler(sampler, loader, found.given, epochs)
            for drawn_from, epochs in _epochs_there(found):
                if any(_enters(call, epochs.function) for call in model.calls):
                    return StaleSampler(sampler, loader, drawn_from, epochs, found.home, found.kept, only=False)
    return None


def _epochs_there(found: HandedOn) -> Iterator[tuple[cst.BaseExpression, Loop]]:
    """The epochs of another file around its steps over a loader that it got, and what the steps iterate over."""
    for steps in found.drawn_by():
        if _trains(steps, found.home):
            assert steps.iterable is not None
            around = (loop for loop in outer_loops(steps, found.home) if _is_of_epochs(loop, found.home))
            yield from ((steps.iterable, epochs) for epochs in around)


def _epochs_here(found: HandedOn, model: Model) -> Iterator[Loop]:
    """The epochs of this file around the calls of the function or method of another that holds the steps."""
    for steps in found.drawn_by():
        if _trains(steps, found.home):
            yield from (loop for loop in _rounds_around(steps.function, model) if _is_of_epochs(loop, model))


def _is_of_epochs(loop: Loop, model: Model) -> bool:
    return loop.role is Role.EPOCHS and rounds(model, loop) != 1


def _rounds_around(function: Function, model: Model) -> Iterator[Loop]:
    """The loops of this file around the calls of a method of another file, also through others of its class."""
    for call in model.calls:
        if _enters(call, function):
            yield from chain(call.loops(), loops_around_calls(call.function, model))


def _enters(call: Call, function: Function) -> bool:
    """Whether a call runs a function of another file, or one there that calls it."""
    return call.foreign is not None and call.foreign in (function, *(caller.function for caller in function.callers))


def _is_trained_on(batches: Call, model: Model) -> bool:
    """Whether training steps take what a call gives, be it under a name, one after another."""
    places: list[cst.CSTNode] = [batches.node]
    match model.small_statement(batches.node):
        case cst.Assign(targets=[cst.AssignTarget(target=target)], value=value) if value is batches.node:
            binding = model.binding(target)
            places += binding.reads if binding is not None else []
    for steps in model.loops:
        if _trains(steps, model) and steps.iterable and not set(walk(steps.iterable)).isdisjoint(places):
            return True
    return any(
        any(arg.value in places for arg in drawn.arguments)
        and any(_trains(loop, model) for loop in chain(drawn.loops(), loops_around_calls(drawn.function, model)))
        for drawn in model.calls_to("builtins.next")
    )


def _passes(loader: Call, model: Model) -> Iterator[tuple[cst.BaseExpression, Iterator[Loop]]]:
    """Where the batches of a loader are trained on, here or in a function of another file, and the loops around it."""
    for steps in model.loops:
        if _trains(steps, model) and _iterates(steps, loader, model):
            assert steps.iterable is not None
            yield steps.iterable, outer_loops(steps, model)
    for drawn in model.calls_to("builtins.next"):
        inner = drawn.loop
        if inner is not None and drawn.arguments and _trains(inner, model) and _is_iterator(drawn, loader, model):
            source = drawn.arguments[0].value
            around = [loop for loop in outer_loops(inner, model) if _begins_again(source, loop, inner, model)]
            yield source, iter(around)
    for call in model.calls:
        for handed in handed_on(call, lambda node: _holds_any((loader,), model, model.value(node)), model):
            if handed.is_of_function and any(_trains(steps, handed.home) for steps in handed.drawn_by()):
                yield handed.given, chain(call.loops(), loops_around_calls(call.function, model))


def _trains(loop: Loop, model: Model) -> bool:
    if loop.role is not Role.STEPS:
        return False
    effects = model.effects(loop)
    return bool(effects.optimizer_steps) or "optimizer_steps" in effects.elsewhere


def _iterates(loop: Loop, loader: Call, model: Model) -> bool:
    iterable = loop.iterable
    if iterable is None:
        return False
    return loader.node in loop.iterates.origins or any(
        loader.node in value.origins and value.kind in (Kind.LOADER, Kind.ITERATOR)
        for node in walk(iterable)
        if isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
        for value in [model.value(node)]
    )


def _is_iterator(drawn: Call, loader: Call, model: Model) -> bool:
    """Whether `next()` draws from an iterator over a loader."""
    value = model.value(drawn.arguments[0].value)
    return value.kind is Kind.ITERATOR and loader.node in value.origins


def _begins_again(iterator: cst.BaseExpression, epochs: Loop, steps: Loop, model: Model) -> bool:
    """Whether an iterator that the steps draw from is made in a loop around them, or in the function that it calls."""
    binding = model.binding(iterator)
    if binding is None or binding.cls is not None or binding.scope_function is not steps.function:
        return False
    made_in = (write.loop for write in binding.writes)
    return epochs.function is not steps.function or any(loop and epochs in loop.around() for loop in made_in)


def outer_loops(loop: Loop, model: Model) -> Iterator[Loop]:
    """The loops around a loop, in its function and around the calls of that function."""
    yield from list(loop.around())[1:]
    yield from loops_around_calls(loop.function, model)


def loops_around_calls(function: Function, model: Model, depth: int = 0) -> Iterator[Loop]:
    """The loops around the calls of a function, and around the calls of the functions that make them."""
    if depth < _DEPTH and not function.is_module:
        for caller in function.callers:
            yield from caller.loops()
            yield from loops_around_calls(caller.function, model, depth + 1)


def _made_again(sampler: Call, loader: Call, epochs: Loop, model: Model) -> bool:
    """Whether each epoch builds its own loader or sampler, with a seed that may follow the epoch."""
    return any(
        epochs in call.loops() or epochs in loops_around_calls(call.function, model) for call in (sampler, loader)
    )


# -- epochs of callers


def _epochs_of_callers(sampler: Call, loader: Call, model: Model) -> StaleSampler | None:
    """The epochs of a file that gets the loader from a function of this one, or of this file, where a call says whether
    to shuffle; nowhere there does anybody set any epoch."""
    function = loader.function
    if not _is_made_for(sampler, function) or function.is_module or function.cls is not None:
        return None
    if shuffles(sampler) and function.callers:
        return None
    returned = [value for s in function.returns if (value := s.value) is not None and not is_name(value, "None")]
    if any(map(_sets_epochs, (model.source, *model.users()))):
        return None
    for home, call in chain(((model, call) for call in function.callers), model.calls_elsewhere(function)):
        told = Told(call, home, function, model)
        if not told.shuffles(sampler) or not told.may_reach(loader.node):
            continue
        reached = [value for value in returned if told.may_reach(value)]
        places = [_place_of(loader, value, model) for value in reached]
        if None in places or len(set(places)) != 1:
            continue
        found = _epochs_with(sampler, loader, call, places[0], home, model)
        if found is not None and not any(map(_sets_epochs, (home.source, *home.neighbours()))):
            made = {node for value in reached for node in model.value(_part(value, places[0])).origins}
            return replace(found, only=all(node is loader.node or not told.may_reach(node) for node in made))
    return None


def _is_made_for(sampler: Call, function: Function) -> bool:
    """Whether a function makes a sampler, or is the only one that calls a helper which does nothing else."""
    maker = sampler.function
    only = {caller.function for caller in maker.callers} == {function} and not maker.foreign_callers
    return maker is function or (only and maker.cls is None and not sampler.loops())


def _sets_epochs(source: Source) -> bool:
    return "set_epoch" in source.text


def _place_of(loader: Call, returned: cst.BaseExpression | None, model: Model) -> int | None:
    """At which place of what is returned a loader is: -1 where it is returned by itself, None where it is not."""
    parts = [element.value for element in returned.elements] if isinstance(returned, cst.Tuple) else [returned]
    found = [place for place, part in enumerate(parts) if part is not None and _is_loader(part, loader, model)]
    if len(found) != 1:
        return None
    return found[0] if isinstance(returned, cst.Tuple) else -1


def _part(returned: cst.BaseExpression, place: int | None) -> cst.BaseExpression:
    return returned.elements[place].value if isinstance(returned, cst.Tuple) and place is not None else returned


def _is_loader(node: cst.BaseExpression, loader: Call, model: Model) -> bool:
    value = model.value(node)
    return value.kind is Kind.LOADER and loader.node in value.origins


def _epochs_with(
    sampler: Call, loader: Call, call: Call, place: int | None, home: Model, model: Model
) -> StaleSampler | None:
    kept = _kept_in(call, place, home)
    if kept is None or home.frameworks & SET_EPOCH:
        return None
    for drawn_from, around in chain(_drawn_in(home, kept), _handed_from(home, kept)):
        for epochs in around:
            again = epochs in call.loops() or epochs in loops_around_calls(call.function, home)
            if (epochs.role is Role.EPOCHS or _says_epochs(epochs)) and not again:
                return StaleSampler(sampler, loader, drawn_from, epochs, home if home is not model else None, kept)
    return None


def _says_epochs(loop: Loop) -> bool:
    """`for epoch in range(epochs)`, in a file that was read without a look at the steps in another."""
    header = [loop.target, loop.iterable]
    return isinstance(loop.node, cst.For) and any("epoch" in text(part).lower() for part in header if part)


def _drawn_in(home: Model, kept: Binding) -> Iterator[tuple[cst.BaseExpression, Iterator[Loop]]]:
    for steps in home.loops:
        if _trains(steps, home) and steps.iterable and comes_from(steps.iterable, kept, home, wrapped=True):
            yield steps.iterable, outer_loops(steps, home)


def _handed_from(home: Model, kept: Binding) -> Iterator[tuple[cst.BaseExpression, Iterator[Loop]]]:
    """Where a function of a third file trains on it."""
    for call in home.calls:
        for handed in handed_on(call, lambda node: comes_from(node, kept, home, wrapped=True), home):
            if handed.is_of_function and any(_trains(steps, handed.home) for steps in handed.drawn_by()):
                yield handed.given, chain(call.loops(), loops_around_calls(call.function, home))


def _kept_in(call: Call, place: int | None, home: Model) -> Binding | None:
    """The variable in which a caller keeps the loader, and nothing else."""
    target: cst.CSTNode | None = None
    match home.parent(call.node), place:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=elements))]), int(index) if index >= 0:
            plain = index < len(elements) and all(isinstance(element, cst.Element) for element in elements)
            target = elements[index].value if plain else None
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() | cst.Attribute() as single)]), -1:
            target = single
    binding = home.binding(target) if target is not None else None
    return binding if binding is not None and (len(binding.writes) == 1 or _is_always_made(binding)) else None


def _is_always_made(binding: Binding) -> bool:
    """Whether all that a variable holds is what one call or another returns, in one and the same loop or outside."""
    same_place = len({write.loop for write in binding.writes}) == 1
    return same_place and all(write.kind == "assign" and isinstance(write.value, cst.Call) for write in binding.writes)


# -- who may set the epoch


def _may_be_told(kept: tuple[Call, ...], model: Model) -> bool:
    """Whether `set_epoch` may reach a sampler, or the loader that has it: here, through an alias, or in code that gets
    hold of either."""
    for call in model.calls:
        if call.method == "set_epoch" or _writes_attribute(call):
            if not _is_other_sampler(call, kept, model):
                return True
        elif call.target is None and _is_handed(call, kept, model) and not _keeps_hands_off(call, kept, model):
            return True
    return "set_epoch" in _strings(model) or any(_leaves_file(made, model) for made in kept)


def _writes_attribute(call: Call) -> bool:
    """`sampler.__setattr__(name, epoch)`, where the name may be that of the epoch."""
    return call.method == "__setattr__" and call.argument("name", 0).value.constant in (None, "epoch")


def _is_other_sampler(call: Call, kept: tuple[Call, ...], model: Model) -> bool:
    """The receiver of `set_epoch` is known, and is something else."""
    receiver = call.receiver
    while isinstance(receiver, cst.Attribute) and receiver.attr.value in ("sampler", "batch_sampler", "dataset"):
        receiver = receiver.value
    origins = model.value(receiver).origins if receiver is not None else frozenset()
    made_by = [model.call(origin) for origin in origins if isinstance(origin, cst.Call)]
    is_known = all(maker.callee == SAMPLER or makes_loader(maker, model) for maker in made_by)
    known = is_known and len(made_by) == len(origins)
    return bool(origins) and known and not any(_made_by(model.value(receiver), made, model) for made in kept)  # type: ignore[arg-type]


def _keeps_hands_off(call: Call, kept: tuple[Call, ...], model: Model) -> bool:
    name = call.callee or ""
    if call in kept or call.is_forward or name == _BATCH_SAMPLER or HARMLESS.match(name) or makes_loader(call, model):
        return True
    handed = list(handed_on(call, lambda node: _holds_any(kept, model, model.value(node)), model))
    return bool(handed) and all(found.is_only_drawn_from() for found in handed)


def _is_handed(call: Call, kept: tuple[Call, ...], model: Model) -> bool:
    return any(
        _holds_any(kept, model, model.value(arg.value)) or _is_owner(arg.value, call, kept, model)
        for arg in call.arguments
    )


def _is_owner(given: cst.BaseExpression, call: Call, kept: tuple[Call, ...], model: Model) -> bool:
    """Whether a method hands over its object, which has the sampler or the loader in an attribute, as to a hook."""
    method = call.function
    if method.cls is None or method.own_name is None or not is_name(given, method.own_name):
        return False
    written = (write.target for held in method.cls.attributes.values() for write in held.writes)
    return any(_holds_any(kept, model, model.value(target)) for target in written)


def _holds_any(kept: tuple[Call, ...], model: Model, value: Value) -> bool:
    return any(_contains(value, made, model) for made in kept)


def _strings(model: Model) -> str:
    """All string literals, where `getattr(sampler, "set_epoch")` would show."""
    return " ".join(node.value for node in walk(model.module) if isinstance(node, cst.SimpleString))


def _leaves_file(made: Call, model: Model) -> bool:
    """Whether the function that builds it is called from elsewhere, or hands it to a caller out of sight."""
    for function in model.functions:
        if function.callers and not function.passed_around:
            continue
        for returned in function.returns:
            if returned.value is not None and _contains(model.value(returned.value), made, model):
                return True
    return False


def _contains(value: Value, made: Call, model: Model, depth: int = 0) -> bool:
    """Whether a value is, or holds, what a call made; the batches of a loader are not the loader."""
    if depth == _DEPTH:
        return False
    if value.kind not in (Kind.TENSOR, Kind.BATCH, Kind.ITERATOR) and _made_by(value, made, model):
        return True
    parts = [*(value.items or ()), *(part for _, part in value.known_fields)]
    if value.element is not None and value.is_container:
        parts.append(value.element)
    return any(_contains(part, made, model, depth + 1) for part in parts)


# -- naming it
