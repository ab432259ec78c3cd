"""Why the model believes what it believes, in words: what a value is, how it came about, how often a place runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Fact
from torchlint.semantics.entities import Role
from torchlint.semantics.numbering import Numbering
from torchlint.semantics.tree import children
from torchlint.semantics.values import Grad, Kind, Place, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Function, Loop, Write
    from torchlint.semantics.model import Model

MOST_FACTS = 4
_DEPTH = 3
_NESTING = 3
_NOUNS = {
    Kind.NONE: "None",
    Kind.NUMBER: "a number",
    Kind.STRING: "a string",
    Kind.TENSOR: "a tensor",
    Kind.BATCH: "a batch, or a part of one,",
    Kind.MODULE: "a module",
    Kind.PARAMETERS: "parameters of a module",
    Kind.OPTIMIZER: "an optimizer",
    Kind.SCHEDULER: "a learning rate scheduler",
    Kind.SCALER: "a gradient scaler",
    Kind.LOADER: "a data loader",
    Kind.SAMPLER: "a sampler",
    Kind.DATASET: "a dataset",
    Kind.DEVICE: "a device that may be a GPU",
    Kind.DTYPE: "a dtype",
    Kind.ARRAY: "a NumPy array",
    Kind.LIST: "a list",
    Kind.TUPLE: "a tuple",
    Kind.DICT: "a dict",
    Kind.SET: "a set",
    Kind.ITERATOR: "an iterator",
    Kind.INSTANCE: "an object",
    Kind.FUNCTION: "a function",
    Kind.PARTIAL: "a call that functools.partial prepares",
    Kind.CLASS: "a class",
    Kind.NAMESPACE: "a module of Python",
}
_PLACES = {Place.HOST: " on the host", Place.ACCELERATOR: " on the device"}
_GRADS = {Grad.CARRIES: ", carries a graph", Grad.DETACHED: ", carries no graph"}
_ROLES = {
    Role.EPOCHS: "each iteration is a pass over the data",
    Role.STEPS: "each iteration is a training step",
    Role.EVALUATION: "each iteration runs a model on one batch, and nothing runs backward",
    Role.MODULES: "it iterates over modules, parameters or optimizers",
    Role.ELEMENTS: "it iterates over an index range, or the rows of a tensor",
}
_SCENERY = (Kind.UNKNOWN, Kind.FUNCTION, Kind.CLASS, Kind.NAMESPACE, Kind.STRING, Kind.NUMBER, Kind.NONE)
_NUMBERS = {"int": "integers", "bool": "truth values", "complex": "complex numbers"}
_TOOLS = (Kind.MODULE, Kind.DEVICE, Kind.DTYPE)


def describe(value: Value, nesting: int = 0) -> str:
    """What a value is, as the end of a sentence that begins with its name and `is`."""
    text = _noun(value, nesting)
    if value.is_tensor:
        text += f" of {_NUMBERS.get(value.dtype, f'{value.dtype}s')}" if value.dtype is not None else ""
        text += (
            f" with {value.rank} {'dimension' if value.rank == 1 else 'dimensions'}" if value.rank is not None else ""
        )
    if value.is_tensor or value.kind is Kind.MODULE:
        text += " in pinned memory" if value.pinned else _PLACES.get(value.place, "")
    if value.is_tensor:
        text += _GRADS.get(value.grad, "")
    elif value.pinned:
        text += " that pins its batches"
    if value.optional:
        text += " (or None, or a number)" if value.is_tensor else " (or None)"
    return text


def _noun(value: Value, nesting: int) -> str:
    if value.kind is Kind.UNKNOWN:
        return "not known"
    if value.constant is not None:
        return f"{value.constant!r}"
    if value.kind is Kind.DEVICE and value.place is Place.HOST:
        return "the CPU"
    noun = _NOUNS[value.kind]
    if value.ref is not None:
        return f"{noun}, `{value.ref}`" if value.kind is not Kind.MODULE else f"a module of class `{value.ref}`"
    if nesting >= _NESTING:
        return noun
    if value.items:
        return f"{noun} of ({'; '.join(describe(item, nesting + 1) for item in value.items)})"
    if value.fields:
        entries = (f"{key!r}: {describe(item, nesting + 1)}" for key, item in value.fields)
        return f"{noun} with {'; '.join(entries)}"
    if value.element is not None and value.element.kind is not Kind.UNKNOWN:
        return f"{noun} that yields {describe(value.element, nesting + 1)}"
    return noun


def chain(model: Model, node: cst.CSTNode) -> tuple[Fact, ...]:
    """The facts behind a finding at a node, in the order of the text: how often it runs, and how its values came about.

    Empty where the place says all there is to know.
    """
    rhythm = how_often(model, node)
    facts = [rhythm] if rhythm is not None and rhythm.node is not node else []
    facts += islice(history(model, subjects(model, node)), MOST_FACTS - len(facts))
    return tuple(sorted(facts, key=lambda fact: model.span(fact.node)))


# -- how often ---------------------------------------------------------------------------------------------------------


def how_often(model: Model, node: cst.CSTNode) -> Fact | None:
    """The loop, of this function or of a caller, that runs the node again and again."""
    own = model.loop_of(node)
    around = [loop for loop in model.loops_around(node) if not loop.is_comprehension]
    loop = next((loop for loop in around if loop.role is not Role.PLAIN), around[-1] if around else None)
    if loop is None and own is not None and not own.is_comprehension:
        loop = own
    if loop is not None:
        return Fact(loop.node, _sentence(of_loop(model, loop)))
    return _from_caller(model.function(node))


def of_loop(model: Model, loop: Loop) -> str:
    """What a loop is for, and what that is read off."""
    text = _ROLES.get(loop.role, "the loop repeats what it holds")
    if loop.role is Role.STEPS and (backward := model.effects(loop).backward):
        text += f", since it runs `{model.code(backward[0].node)}` ({model.place(backward[0].node)})"
    if loop.iterates.kind is Kind.LOADER and loop.role in (Role.STEPS, Role.EVALUATION):
        text += ", over a data loader"
    return text


def _from_caller(function: Function) -> Fact | None:
    if function.is_module:
        return None
    for call in function.callers:
        looping = [loop for loop in call.loops() if not loop.is_comprehension]
        if looping:
            what = _ROLES.get(looping[0].role, "it is called in a loop")
            return Fact(call.node, f"`{function.name}` is called in a loop here: {what}.")
    for foreign in function.foreign_callers:
        if foreign.in_loop:
            return Fact(function.node, f"`{function.name}` is called in a loop, in {foreign.file_name}.")
    return None


# -- values ------------------------------------------------------------------------------------------------------------


def subjects(model: Model, node: cst.CSTNode) -> list[cst.CSTNode]:
    """The variables, and attributes of self, in an expression or the header of a statement of which a kind is known."""
    found: dict[Binding, cst.CSTNode] = {}
    work: list[cst.CSTNode] = [node.params] if isinstance(node, cst.FunctionDef) else [node]
    while work:
        at = work.pop()
        binding = model.binding(at)
        if binding is not None:
            if _is_telling(model.value(at)):
                found.setdefault(binding, at)
        elif isinstance(at, cst.Attribute):
            work.append(at.value)
        elif not isinstance(at, (cst.BaseSuite, cst.Lambda)):
            work.extend(reversed(children(at)))
    return list(found.values())


def history(model: Model, nodes: Iterable[cst.CSTNode]) -> Iterator[Fact]:
    """How variables came to be what they are: the assignments that they come from, then what went into those."""
    seen: set[Binding] = set()
    work = [(node, 0) for node in nodes]
    for at, depth in work:
        binding = model.binding(at)
        write = _origin(model, binding, at) if binding is not None and binding not in seen else None
        if binding is None or write is None:
            continue
        seen.add(binding)
        value = _value_of(model, write)
        if _is_telling(value) and (depth == 0 or value.kind not in _TOOLS):
            name = f"self.{binding.name}" if binding.cls is not None else binding.name
            yield Fact(write.target, f"`{name}` is {describe(value)}{_cause(model, write)}.")
        if depth < _DEPTH and write.value is not None and write.kind in ("assign", "augmented", "for"):
            work += [(subject, depth + 1) for subject in subjects(model, write.value)]


def _origin(model: Model, binding: Binding, node: cst.CSTNode) -> Write | None:
    """The write in the text before the node; of a variable of another function, and in a loop, the last there is."""
    function, first = model.function(node), model.once(Numbering).first
    here = first[model.statement(node)]
    writes = [write for write in binding.writes if write.function is function] or binding.writes
    before = [w for w in writes if w.function is not function or w.kind == "parameter" or first[w.target] < here]
    return (before or writes)[-1] if writes else None


def _value_of(model: Model, write: Write) -> Value:
    value = model.value(write.target)
    if value.kind is Kind.UNKNOWN and write.value is not None and not write.unpacked and write.kind != "for":
        return model.value(write.value)
    return value


def _is_telling(value: Value) -> bool:
    """Whether a reader learns something from what the value is."""
    if value.kind is Kind.TUPLE and value.items:
        return any(map(_is_telling, value.items))
    return value.kind not in _SCENERY


def _cause(model: Model, write: Write) -> str:
    if write.kind == "parameter":
        return _handed_in(model, write)
    if write.kind == "for":
        return ""
    call = model.call(write.value) if isinstance(write.value, cst.Call) else None
    if call is None:
        return ""
    where = ""
    if call.foreign is not None:
        where = f" of `{call.foreign.module}`"
    elif call.target is not None:
        where = f" ({model.place(call.target.node)})"
    return f": what `{_short(model, call.node.func)}`{where} {'computes' if call.is_forward else 'returns'}"


def _handed_in(model: Model, write: Write) -> str:
    function = write.function
    if function.callers:
        return f": {model.place(function.callers[0].node)} hands it in"
    if function.foreign_callers:
        return f": {function.foreign_callers[0].file_name} hands it in"
    return ", by the way it is used or annotated"


def _short(model: Model, node: cst.CSTNode) -> str:
    text = " ".join(model.code(node).split())
    return text if len(text) <= 40 else text[:37] + "..."


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
