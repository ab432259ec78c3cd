"""Blocking copies of batches to an accelerator, and what stands against making them asynchronous."""

from __future__ import annotations

import os
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.moves import Move, moves_of_unknown_origin, moves_to_accelerator
from torchlint.analyses.loading.feeding import reach, repeats
from torchlint.analyses.loading.loaders import Loader, loaders
from torchlint.analyses.loading.pinnable import are_left_alone
from torchlint.analyses.once import once
from torchlint.analyses.tensor_writes import Written, written_at
from torchlint.analyses.xfer.waiting import flag_of
from torchlint.finding import Confidence
from torchlint.semantics.dataflow import parameter_of_function, unfilled_default, writes_reaching
from torchlint.semantics.handed import made_elsewhere
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.semantics.entities import Argument, Binding, Call, Function
    from torchlint.semantics.model import Model
    from torchlint.semantics.values import Value

_STRIDING = frozenset({"permute", "transpose", "swapaxes", "swapdims", "movedim", "moveaxis", "t", "expand"})
_CASTS = frozenset({"float", "double", "half", "bfloat16", "int", "short", "byte", "char", "bool", "clone"})
_VIEWS = frozenset({"view", "reshape", "flatten", "squeeze", "unsqueeze", "contiguous"})
_PASSING_ON = _VIEWS | _CASTS | {"long", "detach"}
_CLOCKS = frozenset(
    {"time.time", "time.perf_counter", "time.monotonic", "time.process_time", "time.time_ns", "time.perf_counter_ns"}
)


@dataclass(frozen=True, slots=True)
class Copy:
    """A call that copies a batch, or a part of one, to an accelerator while the host waits."""

    call: Call
    source: cst.BaseExpression
    owners: tuple[Loader, ...]
    is_pinned: bool
    confidence: Confidence

    @property
    def flag(self) -> Argument:
        return flag_of(self.call)

    def is_written(self, model: Model) -> bool:
        """Whether the host writes to the batch after the copy began, in the same iteration."""
        origins = frozenset(origin for owner in self.owners for origin in owner.built)
        return any(_writes(node, origins, self, model) for node in _later(self.call, model))

    @property
    def is_tensor(self) -> bool:
        """Whether `to` is that of a tensor for sure, or of a class that takes the argument."""
        if not self.owners:  # which are out of sight
            return self.call.receiver_value.kind is Kind.TENSOR
        return all(owner.is_graphs or owner.makes_tensors for owner in self.owners)


@once
def blocking_copies(model: Model) -> Iterator[Copy]:
    """Copies of batches to the GPU that the host waits for, in source order."""
    found = loaders(model)
    moves = dict.fromkeys(move for loader in found for move in loader.moves)
    for move in moves:
        owners = tuple(loader for loader in found if loader.built & move.origins)
        copy = _copy(move, owners, model)
        if copy is not None:
            yield copy
    yield from _of_pinned_tensors(model, {move.call for move in moves})
    told = {move.call for move in moves}
    for function in model.functions:
        for copy in _of_loaders_from_elsewhere(function, model):
            told.add(copy.call)
            yield copy
    yield from _of_pinned_loaders_made_elsewhere(model, told)


def _of_pinned_tensors(model: Model, of_batches: set[Call]) -> Iterator[Copy]:
    """`x.pin_memory().to(device)`: of a tensor that has a name, the host may write to the memory again."""
    for call in model.calls_to(".to", ".cuda"):
        source = call.receiver
        if not isinstance(source, cst.Call) or not model.value(source).pinned or call in of_batches:
            continue
        moved = moves_to_accelerator(call, model) and repeats(call)
        if moved and _waits(call, model) and not _is_strided(source, model):
            yield Copy(call, source, (), True, Confidence.CERTAIN)


def _of_loaders_from_elsewhere(function: Function, model: Model) -> Iterator[Copy]:
    """Copies in a function that other files give a loader, which they build themselves."""
    given = [name for name in function.params if function.parameter(name).kind is Kind.LOADER]
    if len(given) != 1 or not function.foreign_callers or function.callers:
        return
    calls = list(moves_of_unknown_origin(function.calls, model))
    owners = _owners_elsewhere(function, function.scope.bindings[given[0]], model) if calls else ()
    origins = frozenset(origin for owner in owners for origin in owner.built)
    for call in calls:
        copy = _copy(Move(call, call.receiver, origins, True), owners, model) if owners and call.receiver else None
        if copy is not None:
            yield replace(copy, confidence=Confidence.LIKELY)


def _of_pinned_loaders_made_elsewhere(model: Model, told: Set[Call]) -> Iterator[Copy]:
    """Copies of batches that a loader pins which functions of other files return to this one."""
    makers = dict.fromkeys(model.home(call) for call in model.calls if call.foreign and _has_loader(call.value))
    owners = tuple(owner for home in makers if home is not None for owner in loaders(home) if owner.is_pinned)
    if not owners or any(map(are_left_alone, owners)):
        return
    for call in model.calls_to(".to", ".cuda"):
        value = call.receiver_value
        is_batch = value.kind is Kind.BATCH and value.pinned and value.place is Place.HOST and not value.origins
        if call in told or call.receiver is None or not is_batch:
            continue
        if moves_to_accelerator(call, model):
            copy = _copy(Move(call, call.receiver, frozenset(), True), owners, model)
            if copy is not None:
                yield replace(copy, confidence=Confidence.LIKELY)


def _has_loader(value: Value) -> bool:
    """Whether a function returns a loader, or several things of which one is."""
    parts = (value, *(value.items or ()), *(part for _, part in value.known_fields))
    return any(part.kind is Kind.LOADER for part in parts)


def _owners_elsewhere(function: Function, parameter: Binding, model: Model) -> tuple[Loader, ...]:
    """The loaders that other files pass as a parameter; none where one of them is not known."""
    found: list[Loader] = []
    file = os.path.abspath(model.source.path)
    for foreign in function.foreign_callers:
        home, call = model.caller(foreign) or (model, None)
        args = call.node.args if call is not None else ()
        given = [arg.value for arg in args if parameter_of_function(call, function, arg) is parameter]  # type: ignore[arg-type]
        origins = home.value(given[0]).origins if given else frozenset()
        if given and not origins and (made := made_elsewhere(home, given[0], file)) is not None:
            home, origins = made[0], made[1].origins
        owners = [loader for loader in loaders(home) if loader.built & origins]
        if not origins or not origins <= frozenset().union(*(owner.built for owner in owners)):
            return ()
        found += owners
    return tuple(dict.fromkeys(found))


def _copy(move: Move, owners: tuple[Loader, ...], model: Model) -> Copy | None:
    if not move.is_batch or move.call.method not in ("to", "cuda") or not repeats(move.call):
        return None
    if not move.origins <= frozenset().union(*(owner.built for owner in owners)):
        return None
    if not _waits(move.call, model) or _is_strided(move.source, model) or _is_cast(move.source, model):
        return None
    if any(map(are_left_alone, owners)):
        return None  # such a batch is never pinned, and its `to` takes what its class says
    value = model.value(move.source)
    if value.place is Place.ACCELERATOR:
        return None
    if value.pinned or any(owner.is_pinned for owner in owners):
        unchanged = value.pinned or value.kind is Kind.BATCH  # a cast may have made a copy, which is not pinned
        return Copy(move.call, move.source, owners, True, Confidence.CERTAIN if unchanged else Confidence.LIKELY)
    if any(map(_may_be_pinned, owners)):
        return Copy(move.call, move.source, owners, True, Confidence.LIKELY)
    if all(owner.is_pinned is False and reach(owner) is not None for owner in owners):
        return Copy(move.call, move.source, owners, False, Confidence.LIKELY)
    return None


def _may_be_pinned(loader: Loader) -> bool:
    """Whether an option decides about it, and not a parameter that is false where nobody gives it."""
    option = loader.option("pin_memory")
    if not option.given or option.value.constant is not None:
        return False
    default = unfilled_default(loader.model, option.node)
    return default is None or loader.model.value(default).constant is not False


def _is_strided(source: cst.BaseExpression, model: Model) -> bool:
    """`x[:, 0]`, `x[places]`, `x.permute(0, 2, 1)`, `x.expand(4, -1)`, or a name of that: before it is copied to a GPU,
    it is laid out anew in memory that is not pinned."""
    match source:
        case cst.Name():
            views = _held(source, model)
            return bool(views) and all(_is_strided(view, model) for view in views)
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=place))]):
            return model.value(place).is_(Kind.TENSOR, Kind.ARRAY, Kind.LIST)
        case cst.Subscript():
            return len(source.slice) > 1
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))):
            return method in _STRIDING or (method in _PASSING_ON and _is_strided(receiver, model))
    return False


def _is_cast(source: cst.BaseExpression, model: Model) -> bool:
    """`x.float()`, `x.clone()`, or a name of that: what is cast or cloned is copied, to memory that is not pinned.

    Not so `y.long()`, which most write to be sure: whole numbers are collated as such.
    """
    match source:
        case cst.Name():
            made = _held(source, model)
            return bool(made) and all(_is_cast(value, model) for value in made)
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))):
            return method in _CASTS or (method in _VIEWS and _is_cast(receiver, model))
    return False


def _held(name: cst.Name, model: Model) -> list[cst.BaseExpression]:
    """What a variable holds where it is read, if all of that is made by subscripts and calls."""
    binding = model.binding(name)
    made = writes_reaching(model, binding, name) if binding is not None else []
    parts: list[cst.BaseExpression] = [
        write.value for write in made if isinstance(write.value, (cst.Subscript, cst.Call)) and not write.unpacked
    ]
    return parts if len(parts) == len(made) else []


def _waits(call: Call, model: Model) -> bool:
    """Whether a copy is not asked to go on in the background, and is not what the program measures."""
    flag = flag_of(call)
    return not (flag.hidden or (flag.given and flag.value.constant is not False) or _is_timed(call, model))


# -- writes on the host ----------------------------------------------------------------------------------------------


def _later(call: Call, model: Model) -> Iterator[cst.CSTNode]:
    """What runs after a call in the same iteration, or, outside of a loop, in the same function."""
    loops = [loop for loop in call.loops() if not loop.is_comprehension]
    root = loops[0].node.body if loops and not isinstance(loops[0].node, cst.CompFor) else call.function.node
    end = model.span(call.node)[1]
    for node in walk(root):
        if isinstance(node, (cst.AugAssign, cst.AssignTarget, cst.Call)) and model.span(node)[1] > end:
            yield node


def _writes(node: cst.CSTNode, origins: frozenset[cst.CSTNode], copy: Copy, model: Model) -> bool:
    match node:
        case cst.AugAssign(target=cst.Name() as target):
            same = model.binding(target) is model.binding(_root(copy.source))
            return same and model.value(target).place is not Place.ACCELERATOR
        case cst.AugAssign(target=cst.Subscript(value=base)):
            return _is_host_batch(base, origins, model)
        case cst.Call(func=function, args=args):
            given = [arg.value for arg in args] + ([function.value] if isinstance(function, cst.Attribute) else [])
            batches = (part for part in given if _is_host_batch(part, origins, model))
            return any(written_at(model, part) is Written.SURELY for part in batches)
        case cst.AssignTarget(target=cst.Subscript(value=base)):
            if any(part is copy.call.node for part in walk(model.parent(node) or node)):
                return False
            return _is_host_batch(base, origins, model) or _is_view(base, origins, model)
    return False


def _root(node: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return node


def _is_host_batch(node: cst.CSTNode, origins: frozenset[cst.CSTNode], model: Model) -> bool:
    value = model.value(node)
    may_be_it = bool(value.origins & origins) or (value.kind is Kind.BATCH and not value.origins)
    return value.is_tensor and value.place is not Place.ACCELERATOR and may_be_it


def _is_view(node: cst.CSTNode, origins: frozenset[cst.CSTNode], model: Model) -> bool:
    """An array that shares its memory with a batch: `pixels = x.numpy()`."""
    binding = model.binding(node)
    for write in binding.writes if binding is not None else ():
        match write.value:
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value="numpy"))):
                if _is_host_batch(receiver, origins, model):
                    return True
    return False


def _is_timed(call: Call, model: Model) -> bool:
    """Whether the copy stands alone, or beside other copies, between two readings of a clock, or in front of one that
    starts when it has arrived."""
    statement = model.statement(call.node)
    block = model.parent(statement)
    if not isinstance(block, cst.IndentedBlock):
        return False
    body: list[cst.CSTNode] = [*block.body]
    place = body.index(statement)
    before = next((node for node in reversed(body[:place]) if not _is_copy(node, model)), None)
    after = next((node for node in body[place + 1 :] if not _is_copy(node, model)), None)
    if after is None or not _reads_clock(after, model):
        return False
    return _starts_clock(after, model) or (before is not None and _reads_clock(before, model))


def _starts_clock(statement: cst.CSTNode, model: Model) -> bool:
    """`start = time.time()`."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assign(value=cst.Call() as call)]):
            return model.call(call).callee in _CLOCKS
    return False


def _is_copy(statement: cst.CSTNode, model: Model) -> bool:
    calls = [node for node in walk(statement) if isinstance(node, cst.Call)]
    return bool(calls) and all(model.call(node).method in ("to", "cuda", "synchronize") for node in calls)


def _reads_clock(statement: cst.CSTNode, model: Model) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    return any(isinstance(node, cst.Call) and model.call(node).callee in _CLOCKS for node in walk(statement))
