"""What a step waits for in every case: to read less of the device beside that would save nothing."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.data_attribute.reads import Use, data_reads
from torchlint.analyses.loops.steps import Step, step_of
from torchlint.analyses.sync.branching import tensors_asked
from torchlint.analyses.sync.readback import counted_places, reads, reads_by_calls
from torchlint.analyses.sync.residence import Residence
from torchlint.analyses.sync.shown import shown_tensors
from torchlint.semantics.entities import Role
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Place

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model


def waits_beside(model: Model, step: Step, moved: Collection[cst.CSTNode]) -> bool:
    """Whether a step reads the device in every case, as by `total += loss.item()`, `if accuracy > best:` or an
    assertion, but for what stands in one of the nodes that a fix moves."""
    residence = model.once(Residence)
    asked = (
        (node, leaf)
        for node in model.nodes_of(cst.If, cst.Assert)
        if isinstance(node, (cst.If, cst.Assert)) and not model.guards(node, step.loop)
        for leaf in tensors_asked(model, node.test)
    )
    copied = [(node, tensor) for node, tensor, how in reads(model) if how in ("item", "cpu")]
    read = ((node, tensor) for node, tensor, _ in chain(reads(model), counted_places(model)))
    return (
        any(
            not _is_in(node, moved, model)
            and step_of(model, node) == step
            and (
                residence.may_be_device(tensor, step, is_tensor=(node, tensor) in copied)
                or residence.is_made_on_device(tensor, step)
            )
            for node, tensor in chain(asked, read, model.once(_first_elements), model.once(_chosen_rows))
        )
        or _shows_each_batch(model, step, moved)
        or any(
            _returns_number_read(call, step, moved, model)
            if call.target is not None
            else _reads_elsewhere(call, step, model)
            for call in (step.loop.calls if step.loop is not None else model.calls)
            if not _is_in(call.node, moved, model) and step_of(model, call.node) == step
        )
    )


def _shows_each_batch(model: Model, step: Step, moved: Collection[cst.CSTNode]) -> bool:
    """Whether an evaluation shows a tensor of each batch, which is its result and stays."""
    shown = (each for each in shown_tensors(model) if each.step == step and not _is_in(each.node, moved, model))
    return step.loop is not None and step.loop.role is Role.EVALUATION and any(shown)


def _returns_number_read(call: Call, step: Step, moved: Collection[cst.CSTNode], model: Model) -> bool:
    """`accuracy(out, y)` of a step, where the function of the file returns `correct.item()` of what it is given there,
    be it beside a loss: it reads in every case, and no fix moves that."""
    function = call.target
    if function is None:
        return False
    residence = model.once(Residence)
    given = any(residence.may_be_device(arg.value, step) for arg in call.arguments)
    numbers = {node: tensor for node, tensor, how in reads(model) if how in ("item", "cpu")}
    waiting = {node for node, tensor in numbers.items() if model.value(tensor).place is not Place.HOST} - {*moved}
    return given and any(node.value is not None and _is_read(node.value, waiting, model) for node in function.returns)


def _is_read(value: cst.BaseExpression, waiting: Collection[cst.CSTNode], model: Model) -> bool:
    """Whether a value, or a part of a tuple, is a number that is read, on whatever way a variable gets it."""
    if isinstance(value, cst.Tuple):
        return any(_is_read(element.value, waiting, model) for element in value.elements)
    binding = model.binding(value) if isinstance(value, cst.Name) else None
    made = [write.value for write in binding.writes] if binding is not None else [value]
    return bool(made) and all(each is not None and any(node in waiting for node in walk(each)) for each in made)


def _reads_elsewhere(call: Call, step: Step, model: Model) -> bool:
    """The same of a function of another file."""
    residence = model.once(Residence)
    return any(
        residence.may_be_device(arg.node, step, is_tensor=arg.is_tensor)
        for inside in model.once(reads_by_calls)
        if inside.call is call
        for arg in inside.given
    )


def _is_in(node: cst.CSTNode, outer: Collection[cst.CSTNode], model: Model) -> bool:
    return node in outer or any(above in outer for above in model.ancestors(node))


def _chosen_rows(model: Model) -> list[tuple[cst.CSTNode, cst.BaseExpression]]:
    """`x[mask]`: the device has to say how many rows that are."""
    found: list[tuple[cst.CSTNode, cst.BaseExpression]] = []
    for node in model.nodes_of(cst.Subscript):
        match node:
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=mask))]):
                if model.value(mask).is_tensor and model.value(mask).dtype == "bool":
                    found.append((node, mask))
    return found


def _first_elements(model: Model) -> list[tuple[cst.CSTNode, cst.BaseExpression]]:
    """`loss.data[0]`, the old way to write `loss.item()`."""
    return [(read.node, read.owner) for read in data_reads(model) if read.use is Use.ELEMENT]
