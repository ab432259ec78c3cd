"""`x.to(device)` becomes `x.to(device, non_blocking=True)`."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers._pinning import pinning
from torchlint.fixers._together import places_of

from torchlint.analyses.devices.moves import moves_to_accelerator
from torchlint.analyses.sync.round_trips import round_trips
from torchlint.analyses.xfer.copies import blocking_copies
from torchlint.analyses.xfer.waiting import flag_of
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, FileEdits, Fix
from torchlint.rule import NoFixError
from torchlint.semantics import torch_api
from torchlint.semantics.arguments import string_value
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.analyses.xfer.copies import Copy
    from torchlint.finding import Edit, Places
    from torchlint.rule import Report
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

_ARGUMENT = "non_blocking=True"
_MAY_BE_APPLE = re.compile(r"\bmps\b|\bcurrent_accelerator\b")
_OF_TENSORS = frozenset("to cuda cpu data shape device dtype ndim T mT grad requires_grad is_cuda layout".split())
_SURENESS = (Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY)


def fix(report: Report, model: Model) -> Fix:
    made = _asynchronous(report.facts, model)
    if (other := _waits_beside(report.facts, made.applicability, model)) is not None:
        raise NoFixError(f"`{model.code(other)}` beside it waits all the same")
    return replace(made, goes_with=(model.once(_written_alike)[_written(report.facts, model)],))


def _written_alike(model: Model) -> dict[str, Places]:
    """Copies of batches by how they are written, but for those that the host reads back at once."""
    found: defaultdict[str, list[cst.CSTNode]] = defaultdict(list)
    for copy in blocking_copies(model):
        if not _is_only_read_back(copy, model):
            found[_written(copy, model)].append(copy.call.node)
    return {written: places_of(nodes, model) for written, nodes in found.items()}


def _written(copy: Copy, model: Model) -> str:
    """`.to(device)`, whatever it copies: a file that says it in two ways, here and there, helps nobody."""
    method = cst.ensure_type(copy.call.node.func, cst.Attribute)
    return model.code(copy.call.node).removeprefix(model.code(method.value))


def _asynchronous(copy: Copy, model: Model) -> Fix:
    if copy.is_written(model):
        raise NoFixError("the host writes to the batch while the copy may still be under way")
    if _is_only_read_back(copy, model):
        raise NoFixError("the host reads it back at once (SYNC03), and needs no copy on the device")
    rewriter = Rewriter(model)
    flag = copy.flag
    if flag.arg is not None:
        edits = [rewriter.replace_argument(flag.arg, "True")]
    elif flag.given:
        raise NoFixError("`non_blocking` is set where the arguments are made")
    else:
        edits = [rewriter.add_argument(copy.call.node, _ARGUMENT), *_one_a_line(copy, rewriter, model)]
    pins = _pins(copy)
    edits += pins.pop(model, [])
    elsewhere = tuple(FileEdits(other.source, tuple(made)) for other, made in pins.items())
    applicability, why = _doubt(copy, model)
    why = why or "Kernels that read the copy are queued behind it."
    needed = max((owner.needs_torch for owner in copy.owners), default="")
    return Fix(tuple(edits), applicability, why, elsewhere=elsewhere, needs_torch=needed)


def _waits_beside(copy: Copy, applicability: Applicability, model: Model) -> cst.Call | None:
    """Another copy to the device in the same block or iteration that goes on waiting, so that little is gained."""
    place, found = _iteration(copy.call, model), {each.call: each for each in blocking_copies(model)}
    for call in model.calls_to(".to", ".cuda"):
        if call is copy.call or _iteration(call, model) is not place:
            continue
        if call in found and _is_only_read_back(found[call], model):
            continue
        if call in found:
            try:
                other = _asynchronous(found[call], model).applicability
            except NoFixError:
                return call.node
            if other is Applicability.DISPLAY is not applicability:
                return call.node
        elif _waits(call, model):
            return call.node
    return None


def _iteration(call: Call, model: Model) -> cst.CSTNode | None:
    """The loop that a call is made in each iteration of; outside of loops, the block that it stands in."""
    loops = (loop.node for loop in call.loops() if not loop.is_comprehension)
    return next(loops, None) or model.parent(model.statement(call.node))


def _waits(call: Call, model: Model) -> bool:
    """Whether a call copies a tensor of the host to the device, and does not ask to go on meanwhile."""
    value = call.receiver_value
    is_moved = value.is_(Kind.TENSOR, Kind.BATCH) and value.place is not Place.ACCELERATOR
    return is_moved and moves_to_accelerator(call, model) and not flag_of(call).given


def _pins(copy: Copy) -> dict[Model, list[Edit]]:
    """What pins the batches, by file: out of pageable memory, a copy waits whatever it is asked."""
    edits: dict[Model, dict[Edit, None]] = {}
    for owner in () if copy.is_pinned else copy.owners:
        edits.setdefault(owner.model, {}).update(dict.fromkeys(pinning(owner).edits))
    return {model: list(made) for model, made in edits.items()}


def _doubt(copy: Copy, model: Model) -> tuple[Applicability, str | None]:
    """The least sure of what the copy and the pinning of its batches are, and why."""
    doubts: list[tuple[Applicability, str | None]] = [(Applicability.SAFE, None)]
    if _MAY_BE_APPLE.search(model.source.text):
        why = "Copies to Apple's GPU are not ordered with the host: there, a batch may be freed or written too early."
        doubts.append((Applicability.DISPLAY, why))
    if not copy.is_tensor:
        why = "The collate function may make objects of a class whose `to` does not take `non_blocking`."
        is_far = any(owner.model is not model for owner in copy.owners)  # so that what it collates is out of sight
        shown = is_far or _has_parts(copy, model)
        doubts.append((Applicability.DISPLAY if shown else Applicability.UNSAFE, why))
    pins = [] if copy.is_pinned else map(pinning, copy.owners)
    doubts += [(pin.applicability, pin.doubt) for pin in pins]
    return max(doubts, key=lambda doubt: _SURENESS.index(doubt[0]))


def _has_parts(copy: Copy, model: Model) -> bool:
    """Whether what is copied, or the copy, is used as an object or a dict: `batch.labels`, `batch["labels"]`,
    `net(**batch)`."""
    statement = model.small_statement(copy.call.node)
    is_all = isinstance(statement, cst.Assign) and statement.value is copy.call.node
    targets = [target.target for target in statement.targets] if isinstance(statement, cst.Assign) and is_all else []
    bindings = {model.binding(node) for node in (copy.call.receiver, *targets) if node is not None} - {None}
    return any(_takes_part(read, model) for binding in bindings if binding is not None for read in binding.reads)


def _takes_part(read: cst.CSTNode, model: Model) -> bool:
    match model.parent(read):
        case cst.Attribute(attr=cst.Name(value=name)):
            return torch_api.method(name) is None and name not in _OF_TENSORS
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
            return string_value(key) is not None
        case cst.Arg(star=star):
            return star == "**"
    return False


def _is_only_read_back(copy: Copy, model: Model) -> bool:
    """Whether the batch comes back to the host at once, and nothing else is done with it on the device."""
    ways = [trip.node for trip in round_trips(model) if trip.other is copy.call]
    statement = model.small_statement(copy.call.node)
    if not ways or not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return bool(ways) and any(copy.call.node in walk(way) for way in ways)
    target = statement.targets[0].target
    binding = model.binding(target)
    return binding is not None and all(
        any(read in walk(way) for way in ways) for read in binding.reads if reaches(model, binding, target, read)
    )


def _one_a_line(copy: Copy, rewriter: Rewriter, model: Model) -> list[Edit]:
    """`x, y = x.to(device), y.to(device)` as an assignment each, where the line would get too long for them all."""
    statement = model.small_statement(copy.call.node)
    if not isinstance(statement, cst.Assign) or not isinstance(statement.value, cst.Tuple):
        return []
    elements = [node for element in statement.value.elements for node in (element.value, *_given(element.value))]
    if copy.call.node not in elements:
        return []
    lacking = [
        node
        for node in elements
        if isinstance(node, cst.Call)
        and model.call(node).method in ("to", "cuda")
        and not model.call(node).argument("non_blocking").given
    ]
    length = len(rewriter.indentation(statement)) + len(model.code(statement)) + len(lacking) * len(f", {_ARGUMENT}")
    return rewriter.assign_apart(statement) or [] if length > model.line_length else []


def _given(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """`x.cuda()` of `Variable(x.cuda())`"""
    return [arg.value for arg in node.args] if isinstance(node, cst.Call) else []
