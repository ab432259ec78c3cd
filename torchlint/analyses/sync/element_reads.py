"""Loops that read a tensor from the device number by number, or row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.devices.host_calls import HOST_TENSORS
from torchlint.analyses.loading.collated import is_collated_as_list
from torchlint.analyses.loops.steps import Step, step_around
from torchlint.analyses.once import once_for_each
from torchlint.analyses.rowwise.evidence import Evidence, evidence
from torchlint.analyses.sync.branching import tensors_asked, waiting_step
from torchlint.analyses.sync.readback import reads
from torchlint.analyses.sync.residence import Residence
from torchlint.analyses.sync.shown import written_texts
from torchlint.analyses.tensor_writes import Written, mentions, written_at
from torchlint.analyses.texts import becomes_text
from torchlint.semantics.dataflow import is_changed, writes_reaching
from torchlint.semantics.entities import Role
from torchlint.semantics.parallel_assignment import assigned_pairs
from torchlint.semantics.tree import walk, without_subscripts
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Loop
    from torchlint.semantics.model import Model

_WHOLE = ("cpu", "tolist")
_BARE = (*_WHOLE, "index")
_COMPARING = ("builtins.max", "builtins.min", "builtins.any", "builtins.all")
_PICKING = ("argmax", "argmin")
_REDUCING = (*_PICKING, "max", "min", "sum", "mean", "any", "all", "norm")
_SAME = frozenset(["detach", "clone", "data", "squeeze", "float", "contiguous", "numpy", "long", "int"])


@dataclass(eq=False, slots=True)
class ElementReads:
    """All reads of the elements of one tensor by one loop, none of which writes the tensor.

    `of_rows`: some of them copy a whole row, or show what may be one, or are numbers of a row that the loop is at.
    `asked`: of some, Python asks the truth, or how they compare, or which element of another they stand for.
    `held`: some have a name of their own, or are put into a new tensor as they are.
    `answers`: some are what a row is reduced to, or the place of something in it.
    """

    tensor: cst.BaseExpression
    loop: Loop
    step: Step
    is_iterated: bool  # the loop runs over the tensor itself, and not over its indices
    of_rows: bool = False
    asked: bool = False
    held: bool = False
    answers: bool = False
    nodes: list[cst.BaseExpression] = field(default_factory=list)


def element_reads(model: Model) -> list[ElementReads]:
    """Loops that read a tensor on the device number by number, each with all of these reads."""
    found: dict[tuple[Loop, Binding | cst.BaseExpression], ElementReads] = {}
    for node, read, how in chain(reads(model), _asked(model), _indices(model), _put_together(model), _written(model)):
        if not model.loops_around(node) or how.startswith("math."):
            continue
        named = _bare(model, read) if how in _BARE else read
        element = _bare(model, _named(model, named)) if how in _WHOLE else _named(model, named)
        row = _reduced(model, element, how)
        element = row or element
        of_row = how in _WHOLE or row is not None
        if how in _WHOLE and _is_cut_out(element):
            continue
        for loop, tensor, is_iterated in _sources(model, element, rows=of_row):
            if how != "index" and not (model.value(tensor).is_tensor or (how == "item" and _is_moved(model, tensor))):
                continue
            if how in _WHOLE and model.guards(node, inside=loop):
                continue
            if how == "text" and _is_chosen(model, node, loop):
                continue
            binding = model.binding(tensor)
            if binding is not None and (
                _is_written(model, binding, loop) or (how == "index" and _may_be_list(model, tensor, binding))
            ):
                continue
            known = found.get((loop, binding or tensor))
            if known is None:
                step = step_around(model, node)
                if step is None or not _waits(model, step, loop, tensor, how):
                    continue
                if step.role not in (Role.STEPS, Role.EVALUATION) and may_be_list(model, tensor):
                    continue
                if is_collated_as_list(model, tensor):
                    continue
                known = found[loop, binding or tensor] = ElementReads(tensor, loop, step, is_iterated)
            known.of_rows |= of_row or how == "text" or (is_iterated and isinstance(element, cst.Subscript))
            known.answers |= row is not None
            known.asked |= how in ("truth", "index")
            known.held |= how == "tensor" or element is not named
            known.nodes.append(node)
    return list(found.values())


def _waits(model: Model, step: Step, loop: Loop, tensor: cst.BaseExpression, how: str) -> bool:
    """Whether a loop that reads a tensor waits for the device each time. Where it is the loop over the steps itself, it
    may as well have read all numbers that are there before, such as the times of a sampler."""
    residence = model.once(Residence)
    if step.loop is not loop or how == "truth":
        return residence.may_be_device(tensor, step, is_tensor=True)
    value = model.value(tensor)
    is_there = value.kind is Kind.TENSOR and value.place is Place.ACCELERATOR and value.rank == 1 and not value.carries
    return is_there and how == "item" and residence.may_run_on_device(loop.function)


def waits_anyway(model: Model, found: ElementReads) -> bool:
    """Whether each iteration waits for the device all the same, to read what is no element of a tensor."""
    residence = model.once(Residence)
    return any(
        residence.may_be_device(tensor, found.step, is_tensor=how in ("item", "cpu"))
        for tensor, how in reads_beside(model, found)
        if not _is_element(model, tensor) and not _is_picked_from(model, tensor)
    )


def compares_tensors(model: Model, node: cst.BaseExpression) -> bool:
    """`predicted[i] == labels[i]`, of which both may be on the device."""
    if not isinstance(node, cst.Comparison):
        return False
    sides = [node.left, *(target.comparator for target in node.comparisons)]
    return not any(model.value(side).kind is Kind.NUMBER for side in sides)


def may_be_list(model: Model, tensor: cst.BaseExpression) -> bool:
    """Whether it is one of several things that code out of sight returns, such as a loss, and so maybe a list; or all
    that a network out of sight returns, and nothing shows that it has a shape; or a test asks whether there is
    something in it, which a tensor of several numbers refuses to say."""
    binding = model.binding(tensor)
    if binding is None or model.value(tensor).rank is not None:
        return False
    if any(guard.test is not None and model.binding(guard.test) is binding for guard in model.guards(tensor)):
        return True
    writes = [(write.unpacked, write.value) for write in binding.writes if write.kind == "assign"]
    made = [(is_part, without_subscripts(value)) for is_part, value in writes if value is not None]
    calls = [(is_part, model.call(node)) for is_part, node in made if isinstance(node, cst.Call)]
    unseen = [part for part in calls if part[1].target is None and not (part[1].callee or "").startswith("torch.")]
    if any(is_part for is_part, _ in unseen):
        return True
    return any(call.is_forward for _, call in unseen) and Evidence.ARRAY not in evidence(model, binding.reads)


def _is_element(model: Model, node: cst.BaseExpression) -> bool:
    """Whether it is at hand by an index that counts, or by a loop that goes through several things at a time."""
    indices, base = _indexed(node, rows=False)
    targets = (loop.target for loop in model.loops_around(node) if loop.target is not None)
    counted = {model.binding(part) for target in targets for part in walk(target) if isinstance(part, cst.Name)}
    return any(model.binding(part) in counted for part in (base, *indices))


def _is_picked_from(model: Model, tensor: cst.BaseExpression) -> bool:
    """`labels` of `labels.cpu().numpy()[i]`, which the loop does not change: all of them are copied for each."""
    binding, loop = model.binding(_bare(model, tensor)), model.loop(tensor)
    return binding is not None and loop is not None and not _is_written(model, binding, loop)


def reads_beside(model: Model, found: ElementReads) -> Iterator[tuple[cst.BaseExpression, str]]:
    """What else each iteration reads from a tensor, or from what may be one, and how."""
    own = {part for each in model.once(element_reads) for node in each.nodes for part in walk(node)}
    loops = {model.loop(node) for node in found.nodes}
    for node, tensor, how in reads(model):
        loop = model.loop(node)
        if loop is not None and loop in loops and node not in own and not model.guards(node, inside=loop):
            yield tensor, how


def _is_cut_out(row: cst.BaseExpression) -> bool:
    """`x[i, :, :, k]`: one slice of a volume, and the whole is far more than what the loop copies."""
    if not isinstance(row, cst.Subscript):
        return False
    kinds = [isinstance(part.slice, cst.Slice) for part in row.slice]
    return kinds.count(True) > 1 and any(before and not after for before, after in pairwise(kinds))


class Reduction(NamedTuple):
    """`max(lengths)`, for which Python compares the elements of a tensor one by one."""

    node: cst.Call
    tensor: cst.BaseExpression
    name: str
    step: Step


def python_reductions(model: Model) -> Iterator[Reduction]:
    """Python's `sum`, `max` and the like, which take a tensor on the device apart."""
    residence = model.once(Residence)
    for call in model.calls_to(*_COMPARING):
        step = waiting_step(model, call.node) if len(call.arguments) == 1 and not call.arguments[0].star else None
        tensor = call.arguments[0].value if step is not None else None
        if step is None or tensor is None or model.value(tensor).kind is not Kind.TENSOR:
            continue
        if model.value(tensor).rank != 0 and residence.may_be_device(tensor, step):
            yield Reduction(call.node, tensor, (call.callee or "").rpartition(".")[2], step)


def _asked(model: Model) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, str]]:
    """`if guess[i] == truth[i]`, `1 if mask[i] else 0`: what may be elements, of which Python asks the truth."""
    for node in model.nodes_of(cst.If, cst.IfExp, cst.CompIf):
        assert isinstance(node, (cst.If, cst.IfExp, cst.CompIf))
        for asked in tensors_asked(model, node.test) if model.loops_around(node.test) else ():
            sides = [] if isinstance(model.parent(asked), cst.Attribute) else [asked]  # `.item()` is a read of its own
            if isinstance(asked, cst.Comparison):
                sides = [asked.left, *(target.comparator for target in asked.comparisons)]
            for side in sides:
                if isinstance(side, (cst.Name, cst.Subscript)) or _reduced(model, side, "truth") is not None:
                    yield asked, side, "truth"


def _reduced(model: Model, node: cst.BaseExpression, how: str) -> cst.BaseExpression | None:
    """The row in `row.max() > 3`, `row.argmax().item()` and `(row == wanted).nonzero()`: what all rows could be asked
    at once."""
    call = model.call(node) if isinstance(node, cst.Call) else None
    names = _PICKING if how != "truth" else _REDUCING
    if call is None or how in _WHOLE:
        return None
    if call.method == "nonzero" and isinstance(call.receiver, cst.Comparison):
        return call.receiver.left
    if call.method in names and not call.arguments:
        return call.receiver
    is_function = (call.callee or "").removeprefix("torch.") in names and len(call.arguments) == 1
    return call.arguments[0].value if is_function else None


def _indices(model: Model) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, str]]:
    """`hits[label]` of a list or an array, `row[:length]` of whatever it is: what may be elements, which the host must
    know to find the place."""
    for node in model.nodes_of(cst.Subscript):
        assert isinstance(node, cst.Subscript)
        if model.loop(node) is None:
            continue
        whole = model.value(node.value)
        is_of_host = whole.is_(Kind.LIST, Kind.ARRAY) or (whole.kind is Kind.UNKNOWN and becomes_text(model, node))
        for part in node.slice:
            for place in _places(part.slice, is_of_host):
                element = _shifted(model, place)
                if _may_be_tensor(model, element):
                    yield place, element, "index"


def _put_together(model: Model) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, str]]:
    """`torch.LongTensor([best[i][0] for i in range(n)])`: the new tensor is on the host."""
    for call in model.calls_to(*HOST_TENSORS):
        held = call.arguments[0].value if len(call.arguments) == 1 else None
        while isinstance(held, (cst.List, cst.Tuple)) and len(held.elements) == 1:
            held = held.elements[0].value
        if isinstance(held, cst.ListComp) and isinstance(held.elt, (cst.Name, cst.Subscript)):
            yield held.elt, held.elt, "tensor"


def _written(model: Model) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, str]]:
    """`file.write(f"{scores[i]}")`: what may be elements, of which a text is made."""
    for _, tensors in written_texts(model):
        for tensor in tensors:
            if isinstance(tensor, (cst.Name, cst.Subscript)):
                yield tensor, tensor, "text"


def _is_chosen(model: Model, node: cst.BaseExpression, loop: Loop) -> bool:
    """Whether a condition that changes in a loop, or one of a log, picks the iterations that reach a node."""
    for guard in model.guards(node, inside=loop):
        if guard.kind != "other" or guard.test is None:
            return True
        bindings = (model.binding(part) for part in walk(guard.test) if isinstance(part, (cst.Name, cst.Attribute)))
        writes = (write.loop for binding in bindings if binding is not None for write in binding.writes)
        if any(place is not None and loop in place.around() for place in writes):
            return True
    return False


def _places(part: cst.BaseSlice, is_of_host: bool) -> list[cst.BaseExpression]:
    """The index, of what is on the host, or the bounds of a slice."""
    if isinstance(part, cst.Slice):
        return [bound for bound in (part.lower, part.upper) if bound is not None]
    return [part.value] if isinstance(part, cst.Index) and is_of_host else []


def _is_moved(model: Model, node: cst.BaseExpression) -> bool:
    """Whether it is what `.to(device)` has given back, of whatever: no list can do that."""
    binding = model.binding(node)
    writes = writes_reaching(model, binding, node) if binding is not None else []
    pairs = [(w.target, assigned_pairs(model.small_statement(w.target))) for w in writes]
    given = [next((value for target, value in found if target is written), None) for written, found in pairs]
    return bool(given) and all(isinstance(value, cst.Call) and model.call(value).method == "to" for value in given)


def _shifted(model: Model, place: cst.BaseExpression) -> cst.BaseExpression:
    """`lengths[i]` of `lengths[i] - 1`, which Python's numbers count from as well."""
    match place:
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract(), right=right):
            if model.value(right).kind is Kind.NUMBER:
                return left
    return place


def _may_be_tensor(model: Model, node: cst.BaseExpression) -> bool:
    """Whether it is one for sure, or something unknown that was moved to a device, and so no list of them."""
    value = model.value(node)
    return value.is_tensor or (value.kind is Kind.UNKNOWN and value.place is Place.ACCELERATOR)


def _may_be_list(model: Model, tensor: cst.BaseExpression, binding: Binding) -> bool:
    """Of several things that a call returns, one that nothing is done to but what lists take, too: of a network out of
    sight, or of a function in sight that does not show that it is a tensor."""
    given = [write.value for write in binding.writes if write.unpacked and isinstance(write.value, cst.Call)]
    passes = [node for node in given if not model.call(node).receiver_value.is_tensor]  # the rows of `x.argmax(-1)`
    is_seen = any(model.call(node).target or model.call(node).foreign for node in passes)
    if not passes or (is_seen and model.value(tensor).is_tensor):
        return False
    return Evidence.TORCH not in evidence(model, binding.reads)


def _named(model: Model, node: cst.BaseExpression) -> cst.BaseExpression:
    """`labels[i]` of `label`, to which the same loop gives that name, and which it does not change."""
    binding = model.binding(node) if isinstance(node, cst.Name) else None
    writes = binding.writes if binding is not None else []
    if len(writes) > 1 and binding is not None:
        writes = writes_reaching(model, binding, node)
    if binding is None or len(writes) != 1:
        return node
    write = writes[0]
    is_plain = write.kind == "assign" and not write.unpacked and write.loop is model.loop(node)
    if write.value is None or not is_plain or _is_ever_changed(model, binding):
        return node
    return write.value


@once_for_each
def _is_ever_changed(model: Model, binding: Binding) -> bool:
    return any(is_changed(model, read) for read in binding.reads)


def _bare(model: Model, node: cst.BaseExpression) -> cst.BaseExpression:
    """`out[i]` of `out[i].detach()`."""
    while True:
        match node:
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name)), args=()) if name in _SAME:
                node = inner
            case cst.Attribute(value=inner, attr=cst.Name(value="data")) if model.binding(node) is None:
                node = inner
            case _:
                return node


def _sources(
    model: Model, element: cst.BaseExpression, *, rows: bool
) -> Iterator[tuple[Loop, cst.BaseExpression, bool]]:
    """The tensor that the expression is one element of, and the loop over it or over its indices."""
    indices, base = _indexed(element, rows)
    base = _bare(model, base) if indices else base
    if isinstance(base, cst.Name) and all(isinstance(model.value(index).constant, int) for index in indices):
        binding = model.binding(base)
        for loop in model.loops_around(element):
            tensor = _iterated(model, loop, binding) if binding is not None and not _is_rebound(binding, loop) else None
            if tensor is not None and _may_be_tensor(model, tensor):
                yield loop, tensor, True
    if not indices or model.binding(base) is None or not _may_be_tensor(model, base):
        return
    bindings = {model.binding(_near(index)) for index in indices} - {None}
    counting = [loop for loop in model.loops_around(element) if _counter(model, loop) in bindings]
    if counting and all(model.value(index).kind is Kind.NUMBER for index in indices):
        yield counting[-1], base, False


def _near(index: cst.BaseExpression) -> cst.BaseExpression:
    """`i` of `i + 1`."""
    match index:
        case cst.BinaryOperation(left=cst.Name() as name, operator=cst.Add() | cst.Subtract(), right=cst.Integer()):
            return name
    return index


def _iterated(model: Model, loop: Loop, binding: Binding) -> cst.BaseExpression | None:
    """What of `for x in t`, `for i, x in enumerate(t)` and `for x, y in zip(t, u.unbind())` is t for the variable x."""
    if loop.target is None or loop.iterable is None:
        return None
    if model.binding(loop.target) is binding:
        return _of_unbound(model, loop.iterable)
    call = model.call(loop.iterable) if isinstance(loop.iterable, cst.Call) else None
    if call is None or not isinstance(loop.target, cst.Tuple):
        return None
    offset = {"builtins.zip": 0, "builtins.enumerate": 1}.get(call.callee or "")
    for position, target in enumerate(loop.target.elements):
        if (
            offset is not None
            and model.binding(target.value) is binding
            and position - offset in range(len(call.arguments))
        ):
            return _of_unbound(model, call.arguments[position - offset].value)
    return None


def _of_unbound(model: Model, node: cst.BaseExpression) -> cst.BaseExpression:
    """`t` of `t.unbind(dim=0)`, which holds the rows of t."""
    call = model.call(node) if isinstance(node, cst.Call) else None
    if call is None or call.method != "unbind" or call.receiver is None or len(call.arguments) > 1:
        return node
    axis = call.argument("dim", 0)
    return call.receiver if not axis.given or axis.value.constant == 0 else node


def _counter(model: Model, loop: Loop) -> Binding | None:
    """`i` of `for i in range(n)` and `for i, name in enumerate(names)`."""
    match loop.target, loop.iterable:
        case cst.Name() as counter, _ if loop.iterates.ref == "builtins.range":
            return model.binding(counter)
        case cst.Tuple(elements=[cst.Element(value=counter), *_]), cst.Call() as call:
            return model.binding(counter) if model.call(call).callee == "builtins.enumerate" else None
    return None


def _indexed(node: cst.BaseExpression, rows: bool) -> tuple[list[cst.BaseExpression], cst.BaseExpression]:
    """The plain indices of `t[i][j]` or `t[i, j]`, and t; `rows`: those of `t[i, :]` too; none beside other slices."""
    indices: list[cst.BaseExpression] = []
    while isinstance(node, cst.Subscript):
        for element in node.slice:
            match element.slice:
                case cst.Index(value=index):
                    indices.append(index)
                case cst.Slice(lower=None, upper=None, step=None) if rows:
                    pass
                case _:
                    return [], node
        node = node.value
    return indices, node


def _is_rebound(binding: Binding, loop: Loop) -> bool:
    """Whether the loop gives its own variable another value."""
    writes = (write for write in binding.writes if write.kind != "for" or write.loop is not loop)
    return any(write.loop is not None and loop in write.loop.around() for write in writes)


def _is_written(model: Model, binding: Binding, loop: Loop) -> bool:
    """Whether the loop binds the variable anew, or writes to what it holds."""
    if any(loop in (write.loop.around() if write.loop is not None else ()) for write in binding.writes):
        return True
    inside = (node for node in mentions(model, binding) if loop in model.loops_around(node))
    return any(written_at(model, node) is Written.SURELY for node in inside)
