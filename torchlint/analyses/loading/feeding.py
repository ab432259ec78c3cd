"""Whether the batches of a data loader reach a GPU, one after the other, and how sure that is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.moves import (
    copies_conversion,
    is_accelerator,
    moves_of_unknown_origin,
    moves_to_accelerator,
)
from torchlint.analyses.lifetime import root
from torchlint.analyses.loading.loaders import CLASSES, Loader
from torchlint.analyses.loading.taken_elsewhere import (
    are_moved_elsewhere,
    copies_batches,
    copies_batches_of,
    is_taken_elsewhere,
)
from torchlint.analyses.loops.first_iteration import ends_at_once
from torchlint.analyses.loops.steps import runs_few_times
from torchlint.analyses.loops.trial_loops import is_trial
from torchlint.files.test_code import is_test_code
from torchlint.finding import Confidence
from torchlint.semantics.class_bodies import is_placeholder
from torchlint.semantics.dataflow import parameter_of_function, writes_reaching
from torchlint.semantics.tree import arms, is_name, last_name, walk
from torchlint.semantics.values import Kind, Place, Value
from torchlint.semantics.vocabulary import makes_pipeline

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function, Loop
    from torchlint.semantics.model import Model

_HARMLESS = re.compile(r"(builtins|tqdm|numpy|time|torch(?!\.nn\.Module\.)|wandb|matplotlib|logging|itertools|copy)\b")
_MOVERS = re.compile(r"(^|_)(to|move|send|copy|put)(_\w+)?_(device|gpu|cuda)$|^(to|move)(Device|Gpu|GPU|Cuda)$|^cuda$")
_TRAINERS = re.compile(r"(pytorch_lightning|lightning(\.pytorch)?)\.Trainer")
_HOOKS = frozenset({"train_dataloader", "val_dataloader", "test_dataloader", "predict_dataloader"})
_DEPTH = 4


def reach(loader: Loader) -> Confidence | None:
    """How sure it is that the batches of a loader go to a GPU, one after the other; None when it is not known."""
    if _is_only_tried(loader):
        return None
    if any(repeats(move.call) for move in loader.moves) and _is_iterated(loader):
        return Confidence.CERTAIN
    if _feeds_lightning(loader) or _is_prepared(loader):
        return Confidence.LIKELY
    if any(repeats(call) or _takes_loader(call, loader) for call in _handed_to(loader)):
        return None if _may_hold_device_tensors(loader) else Confidence.LIKELY
    if (_is_returned(loader) or _is_kept_for_others(loader)) and _are_copied_by_others(loader.model):
        return None if _is_dropped(loader) else Confidence.LIKELY
    return Confidence.LIKELY if is_taken_elsewhere(loader) else None


def _may_hold_device_tensors(loader: Loader) -> bool:
    """Whether the samples are rows of tensors out of sight, which may be on the GPU all along: of a replay buffer."""
    model, given = loader.model, loader.dataset().node
    binding = model.binding(given) if given is not None else None
    made = [write.value for write in binding.writes] if binding is not None else [given]
    calls = [model.call(node) for node in made if isinstance(node, cst.Call)]
    return any(
        call.callee == "torch.utils.data.TensorDataset"
        and any(_may_be_anywhere(model.value(arg.value)) for arg in call.arguments if not arg.star)
        for call in calls
    )


def _may_be_anywhere(value: Value) -> bool:
    return value.is_(Kind.UNKNOWN, Kind.TENSOR) and value.place is Place.UNKNOWN


def _are_copied_by_others(model: Model) -> bool:
    """Whether other files copy batches, or functions of this file do that others give a loader."""
    return model.once(are_moved_elsewhere) or model.once(_copies_given_batches)


def _copies_given_batches(model: Model) -> bool:
    """Whether the file copies batches, and other files give its functions something to draw from."""
    entered = (loop for loop in model.loops if loop.function.foreign_callers and _draws_from_parameter(loop, model))
    return copies_batches(model.source, model) and any(entered)


def _draws_from_parameter(loop: Loop, model: Model) -> bool:
    names = (node for node in walk(loop.iterable) if isinstance(node, cst.Name)) if loop.iterable is not None else ()
    bindings = map(model.binding, names)
    return any(binding is not None and binding.is_parameter for binding in bindings)


def _is_only_tried(loader: Loader) -> bool:
    """Whether all that is done with a loader in its file is to try it out, with nobody else to get it."""
    model = loader.model
    drawn = [loop for loop in _loops_from(loader) if _draws_batches(loop, loader)]
    if not drawn or not all(is_trial(loop, model) for loop in drawn) or _is_handed_out(loader) or _is_asked(loader):
        return False
    return not any(_takes_loader(call, loader) for call in _handed_to(loader))


def _draws_batches(loop: Loop, loader: Loader) -> bool:
    """Whether a loop goes over the batches, and not over the parts of one."""
    element = loop.iterates.element
    is_part = element is not None and element.kind is Kind.TUPLE
    return _yields_from(loop.iterates, loader) and (loop.iterates.kind is Kind.LOADER or not is_part)


def _is_handed_out(loader: Loader) -> bool:
    given = (node.value for node in loader.site.function.returns)
    return any(node is not None and _holds(loader.model.value(node), loader) for node in given)


def _is_prepared(loader: Loader) -> bool:
    """Whether a loop draws from what accelerate or Fabric made of the loader, which copies every batch, and does more
    than to hand texts of it to a pipeline."""
    prepared = (loop for loop in _loops_from(loader) if loop.iterates.place is Place.ACCELERATOR)
    return any(_draws(loop, loader) and not _only_asks_pipelines(loop, loader.model) for loop in prepared)


def _only_asks_pipelines(loop: Loop, model: Model) -> bool:
    asks = any(makes_pipeline(model.value(call.node.func).ref or "") for call in loop.calls)
    return asks and not model.effects(loop).has("forwards")


def _is_returned(loader: Loader) -> bool:
    """Whether a function returns the loader that it builds, and nothing in this file draws from it but what others hand
    it to, beside other things to draw from."""
    model, function = loader.model, loader.site.function
    drawn = (loop for loop in _loops_from(loader) if _draws(loop, loader))
    if function.is_module or not all(map(_may_draw_from_another, drawn)) or not _is_used(function, model):
        return False
    drawn_from = (node.value.item for node in function.yields if isinstance(node.value, cst.From))
    handed_out = (*(node.value for node in function.returns), *drawn_from)
    return any(node is not None and _holds(model.value(node), loader) for node in handed_out)


def _may_draw_from_another(loop: Loop) -> bool:
    """Whether a loop goes over what the calls of other files give its function, which is not known to be a loader."""
    return bool(loop.function.foreign_callers) and loop.iterates.kind is not Kind.LOADER and not loop.is_comprehension


def _is_dropped(loader: Loader) -> bool:
    """Whether all files that get the loader as one of several, from the function that builds it, never name it again:
    `train, test, rest = get_loaders()`. One that gets more or fewer means another function of that name."""
    model, function = loader.model, loader.site.function
    returned = function.returns[0].value if len(function.returns) == 1 else None
    if not isinstance(returned, cst.Tuple) or function.callers or function.cls is not None:
        return False
    places = [at for at, part in enumerate(returned.elements) if _holds(model.value(part.value), loader)]
    calls = re.compile(rf"(?<!def )\b{function.name}\(")
    texts = [source.text for source in model.companions() if calls.search(source.text)]
    taken = [(text, _taken_apart(text, function.name), len(calls.findall(text))) for text in texts]
    meant = [each for each in taken if len(each[1]) < each[2] or {*map(len, each[1])} == {len(returned.elements)}]
    return (
        len(places) == 1
        and bool(meant)
        and all(len(parts) == count and _are_named_once(text, parts, *places) for text, parts, count in meant)
    )


def _taken_apart(text: str, function: str) -> list[list[str]]:
    """The names that code gives the parts of what each call of a function returns."""
    unpacked = rf"^[ \t]*(\w+(?:[ \t]*,[ \t]*\w+)+)[ \t]*=[ \t]*(?:\w+\.)?{function}\("
    return [re.split(r"[ \t]*,[ \t]*", names) for names in re.findall(unpacked, text, re.MULTILINE)]


def _are_named_once(text: str, parts: list[list[str]], place: int) -> bool:
    return all(len(re.findall(rf"\b{names[place]}\b", text)) == len(parts) for names in parts)


def _is_kept_for_others(loader: Loader) -> bool:
    """Whether an object keeps the loader as an attribute that others get: from a method, or by its name."""
    model, function = loader.model, loader.site.function
    if function.cls is None or any(_draws(loop, loader) for loop in _loops_from(loader)):
        return False
    given = (node.value for method in function.cls.methods.values() for node in method.returns)
    return any(node is not None and _holds(model.value(node), loader) for node in given)


def _is_used(function: Function, model: Model) -> bool:
    """Whether a function is named in this file or in those that may get something from it."""
    if (
        function.callers
        or function.passed_around
        or function.cls is not None
        or function.parent is not model.functions[0]
    ):
        return True
    return any(function.name in source.text for source in model.companions())


def _draws(loop: Loop, loader: Loader) -> bool:
    return bool(loop.iterates.origins & loader.built)


def _holds(value: Value, loader: Loader) -> bool:
    parts = [*(value.items or ()), *(part for _, part in value.known_fields)]
    if value.element is not None and value.is_(Kind.LIST, Kind.DICT):
        parts.append(value.element)
    return _is_loader(value, loader) or any(_holds(part, loader) for part in parts)


def route(loader: Loader) -> Iterator[tuple[cst.CSTNode, str]]:
    """The places on the way of the batches to the GPU: what draws them, and what copies them."""
    drawn = (loop for loop in loader.model.loops if loop.iterates.is_(Kind.LOADER, Kind.ITERATOR))
    loop = next((loop for loop in drawn if loop.iterable is not None and loop.iterates.origins & loader.built), None)
    if loop is not None and loop.iterable is not None:
        yield loop.iterable, "Its batches are drawn here, one after the other"
    move = next((move for move in loader.moves if repeats(move.call)), None)
    if move is not None:
        yield move.call.node, f"`{loader.model.code(move.source)}` is copied to the GPU"
    elif (handed := next(_handed_to(loader), None)) is not None:
        yield handed.node, "They go to code out of sight, together with what is on the GPU"


def repeats(call: Call, depth: int = 0) -> bool:
    """Whether a call runs once per batch: in a loop, or in a function of this file that is called in one.

    A comprehension counts where it draws batches, or does the same again and again; most go through the parts of one. A
    loop that ends with its first batch, to look at that, does not.
    """
    if any(_counts(loop) if loop.is_comprehension else not ends_at_once(loop) for loop in call.loops()):
        return True
    function = call.function
    around = function.parent.calls if function.parent is not None else []
    callers = [*function.callers, *(caller for caller in around if function in caller.passes)]
    return depth < _DEPTH and any(repeats(caller, depth + 1) for caller in callers)


def _counts(loop: Loop) -> bool:
    draws_batches = bool(loop.iterates.origins) and loop.iterates.is_(Kind.LOADER, Kind.ITERATOR)
    does_the_same_again = isinstance(loop.target, cst.Name) and loop.target.value == "_" and not runs_few_times(loop)
    return draws_batches or does_the_same_again


def _is_iterated(loader: Loader) -> bool:
    """Whether more than one batch is taken: by a loop, or by `next` in one. `next(iter(loader))` takes the first."""
    return any(_yields_from(loop.iterates, loader) for loop in _loops_from(loader)) or _is_asked(loader)


def _is_asked(loader: Loader) -> bool:
    """Whether `next` takes one batch of a loader after the other."""
    model = loader.model
    for call in model.calls_to("builtins.next", ".next", ".__next__"):
        source = call.receiver if call.receiver is not None else call.node.args[0].value
        if _yields_from(model.value(source), loader):
            fresh = isinstance(source, cst.Call) and model.call(source).callee == "builtins.iter"
            if call.loop is not None if fresh else repeats(call) and not _is_asked_once(call, source, loader):
                return True
    return False


def _is_asked_once(call: Call, source: cst.BaseExpression, loader: Loader) -> bool:
    """Whether the loops around `next` make the loader anew, or go from one iterator of a list to the next."""
    made = set(loader.site.loops())
    again = [loop for loop in call.loops() if loop not in made]
    if isinstance(source, cst.Subscript):
        places = [part.slice.value for part in source.slice if isinstance(part.slice, cst.Index)]
        counted = {loader.model.binding(place) for place in places if isinstance(place, cst.Name)}
        again = [loop for loop in again if loop.target is None or loader.model.binding(loop.target) not in counted]
    return bool(call.loops()) and not again


def _yields_from(value: Value, loader: Loader) -> bool:
    """Whether a value is the loader, or an iterator over its batches, as a generator that goes round and round."""
    if value.origins & loader.built:
        return True
    return any(part.kind is Kind.BATCH and part.origins & loader.built for part in _yielded(value))


def _yielded(value: Value) -> tuple[Value, ...]:
    element = value.element if value.kind is Kind.ITERATOR else None
    return (element, *(element.items or ())) if element is not None else ()


def _loops_from(loader: Loader) -> list[Loop]:
    """The loops over what comes from the loader, in the order of the file."""
    known = loader.model.once(_loops_by_origin)
    found = {place: loop for origin in loader.built for place, loop in known.get(origin, ())}
    return [found[place] for place in sorted(found)]


def _loops_by_origin(model: Model) -> dict[cst.CSTNode, list[tuple[int, Loop]]]:
    found: dict[cst.CSTNode, list[tuple[int, Loop]]] = {}
    for place, loop in enumerate(model.loops):
        for origin in {*loop.iterates.origins, *(node for part in _yielded(loop.iterates) for node in part.origins)}:
            found.setdefault(origin, []).append((place, loop))
    return found


# -- code that the file does not show --------------------------------------------------------------------------------


def _handed_to(loader: Loader) -> Iterator[Call]:
    """Calls of code from elsewhere that get the loader or its batches together with something on an accelerator."""
    model = loader.model
    for call in model.once(_calls_from_elsewhere):
        if call.node in loader.built:
            continue
        values = [model.value(arg.value) for arg in call.arguments]
        is_given = any(_comes_from(loader, value) or _is_made_with(loader, value) for value in values)
        if is_given and (
            _is_accelerated(call, model)
            or _is_copied_elsewhere(call, model)
            or _is_copied_by_heirs(call, model)
            or _is_drawn_beside(call, loader)
        ):
            yield call


def _calls_from_elsewhere(model: Model) -> list[Call]:
    """Calls of code that this file does not show, and that is not known to leave data where it is."""
    found = []
    for call in model.calls:
        is_known = call.target is not None and not is_placeholder(call.target)
        is_harmless = call.callee is not None and (_HARMLESS.match(call.callee) or call.callee in CLASSES)
        if not is_known and not call.is_forward and not is_harmless:
            found.append(call)
    return found


def _is_copied_elsewhere(call: Call, model: Model) -> bool:
    """Whether a function of another file copies the batches of a loader that it is given, or its helpers there do."""
    entered = model.elsewhere(call)
    if entered is None:
        return False
    home, function = entered
    given = [parameter_of_function(call, function, arg) for arg in call.arguments]
    return (
        any(moves_of_unknown_origin(function.calls, home))
        or any(_copies_one_of(given, inner, home) for inner in function.calls)
        or copies_batches(home.source, model)
    )


def _copies_one_of(given: Sequence[Binding | None], call: Call, model: Model) -> bool:
    """Whether a call copies to an accelerator what a function was given, or a view of it: `x.t().cuda()`."""
    copied = root(model, call.receiver) if call.receiver is not None and moves_to_accelerator(call, model) else None
    return copied is not None and copied in given


def _is_copied_by_heirs(call: Call, model: Model) -> bool:
    """Whether a method that a class leaves to those that derive from it in other files copies what it is given."""
    cls = call.function.cls
    if cls is None or not is_name(call.receiver, call.function.own_name):
        return False
    heirs = re.compile(rf"^class \w+\(.*\b{cls.name}\b", re.MULTILINE)
    taken = re.compile(rf"^[ \t]+def {call.method}\(\s*self\s*,\s*(\w+)", re.MULTILINE)
    return any(
        copies_batches(source, model, drawn={match[1] for match in taken.finditer(source.text)})
        for source in model.users()
        if heirs.search(source.text) and taken.search(source.text)
    )


def _is_drawn_beside(call: Call, loader: Loader) -> bool:
    """Whether an object of another file keeps the loader under a name, by which further files draw from it and copy
    what they get: `for x, y in trainer.train_loader: x = x.to(trainer.device)`."""
    model, entered = loader.model, loader.model.elsewhere(call)
    if entered is None or entered[1].name != "__init__":
        return False
    home, init = entered
    given = [arg for arg in call.arguments if _is_loader(model.value(arg.value), loader)]
    parameters = filter(None, (parameter_of_function(call, init, arg) for arg in given))
    names = {name for parameter in parameters for read in parameter.reads for name in _kept_under(read, home)}
    return any(
        copies_batches_of(source, home, name)
        for source in home.files_beside()
        for name in names
        if f".{name}" in source.text
    )


def _kept_under(value: cst.CSTNode, model: Model) -> Iterator[str]:
    """`train_loader` of `self.train_loader = value`."""
    statement = model.parent(value)
    for target in statement.targets if isinstance(statement, cst.Assign) else ():
        if isinstance(target.target, cst.Attribute):
            yield target.target.attr.value


def holds_arrays(loader: Loader) -> bool:
    """Whether code of another file makes tensors of all that it copies of the batches: pinning leaves arrays alone."""
    model = loader.model
    entered = [found for call in _handed_to(loader) if (found := model.elsewhere(call)) is not None]
    copies = [(call, home) for home, function in entered for call in function.calls if moves_to_accelerator(call, home)]
    return bool(copies) and all(copies_conversion(call, home) for call, home in copies)


def _comes_from(loader: Loader, value: Value) -> bool:
    """Whether a value, or a part of a tuple or list, is the loader or of its batches, and on the host."""
    if value.origins & loader.built and value.place is not Place.ACCELERATOR:
        return True
    return any(_comes_from(loader, part) for part in value.items or ())


def _takes_loader(call: Call, loader: Loader) -> bool:
    """Whether a call is given the loader, or an object that was made with it."""
    values = [loader.model.value(arg.value) for arg in call.arguments]
    return any(_is_loader(value, loader) or _is_made_with(loader, value) for value in values)


def _is_loader(value: Value, loader: Loader) -> bool:
    return value.kind is Kind.LOADER and bool(value.origins & loader.built)


def _is_made_with(loader: Loader, value: Value) -> bool:
    if not value.is_(Kind.INSTANCE, Kind.MODULE):
        return False
    makers = (loader.model.call(origin) for origin in value.origins if isinstance(origin, cst.Call))
    given = (loader.model.value(arg.value) for maker in makers for arg in maker.arguments)
    return any(_is_loader(argument, loader) for argument in given)


def _is_accelerated(call: Call, model: Model, depth: int = 0) -> bool:
    """A call that is given, or is a method of what was given, a device or something on it, or is named for a move."""
    for arg in call.arguments:
        value = model.value(arg.value)
        is_device = value.kind is not Kind.NUMBER and is_accelerator(arg.value, model)
        if value.place is Place.ACCELERATOR or is_device:
            return True
    if _MOVERS.search(last_name(call.node.func)):
        return True
    if any(_copies_what_it_gets(function, model) for function in call.passes):
        return True
    if call.receiver is None or depth > _DEPTH:
        return False
    receiver = model.value(call.receiver)
    if receiver.place is Place.ACCELERATOR or (receiver.kind is Kind.MODULE and _moves_a_model(model)):
        return True
    makers = [model.call(origin) for origin in receiver.origins if isinstance(origin, cst.Call)]
    return any(_is_gpu_trainer(maker, model) or _is_accelerated(maker, model, depth + 1) for maker in makers)


def _copies_what_it_gets(function: Function, model: Model) -> bool:
    """Whether a function that is handed to code out of sight, as the step of an engine, copies data to a GPU."""
    return any(
        moves_to_accelerator(call, model) and not call.receiver_value.is_(Kind.MODULE) for call in function.calls
    )


def _moves_a_model(model: Model) -> bool:
    moved = (call for call in model.calls_to(".cuda", ".to") if call.receiver_value.is_(Kind.MODULE, Kind.INSTANCE))
    return any(moves_to_accelerator(call, model) for call in moved)


# -- Lightning -------------------------------------------------------------------------------------------------------


def _feeds_lightning(loader: Loader) -> bool:
    """Built in a hook of a Lightning module, in a file whose trainer uses GPUs, or that such a file gets it from."""
    function = loader.site.function
    cls = function.cls
    if cls is None or not cls.is_lightning or function.name not in _HOOKS:
        return False
    return any(_is_gpu_trainer(call, home) for home in _where_trained(loader.model) for call in home.calls)


def _where_trained(model: Model) -> Iterator[Model]:
    """The file, and those that use it and have a trainer, but for the tests of the project."""
    yield model
    for source in model.users():
        has_trainer = "Trainer(" in source.text and not is_test_code(source.path, source.text)
        home = model.model_of(source) if has_trainer else None
        if home is not None:
            yield home


def _is_gpu_trainer(call: Call, model: Model) -> bool:
    if call.callee is None or not _TRAINERS.fullmatch(call.callee):
        return False
    accelerator, gpus = call.argument("accelerator"), call.argument("gpus")
    if gpus.given and gpus.value.kind is not Kind.NONE:
        return gpus.value.constant != 0
    choices = _written(model, accelerator.node) if accelerator.node is not None else ()
    return any(model.value(choice).constant in ("gpu", "cuda", "auto") for node in choices for choice in arms(node))


def _written(model: Model, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What is written to a variable in one branch or another, before it is read."""
    binding = model.binding(node) if isinstance(node, cst.Name) else None
    written = writes_reaching(model, binding, node) if binding is not None else []
    values = [write.value for write in written if write.kind == "assign" and not write.unpacked]
    return [value for value in values if value is not None] or [node]
