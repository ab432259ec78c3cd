"""Which expressions copy a tensor from the device to the host in every step, and could do it once, later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.host_calls import HOST_TENSORS
from torchlint.analyses.devices.host_use import DEFERRABLE, KEPT, HostFlow, Use
from torchlint.analyses.loops.steps import Step, step_of
from torchlint.analyses.once import once
from torchlint.analyses.sync.branching import follows_answer
from torchlint.analyses.sync.foreign_reads import ForeignRead, foreign_reads
from torchlint.analyses.sync.residence import Residence
from torchlint.analyses.sync.tallies import is_tally
from torchlint.analyses.unread import is_never_read
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.entities import Call, Loop, Role
from torchlint.semantics.values import Kind, Place, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_COPIES = frozenset(["cpu", "tolist"])  # torch refuses `.numpy()` of a tensor on a device: where it runs, nothing waits
_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
_DEPTH = 3
_PLACES_BY_AXIS = ("torch.where",)
_PLACES = ("torch.nonzero", "torch.argwhere")
_KEEPING = _COPIES | {"detach", "clone", "float", "double", "squeeze"}
_TALLIES = frozenset(["sum", "count_nonzero", "nansum", "new_tensor", "tensor"])
STORED = ("cell", "tensor")
COUNTED = "len"
FOREIGN = "call"
_CONVERSIONS = {
    "builtins.float": "float",
    "builtins.int": "int",
    **{name: name for name in (f"math.{short}" for short in "sqrt log log2 log10 log1p exp expm1".split())},
}


@dataclass(frozen=True, slots=True)
class Readback:
    """One place where the host waits for the device, in a loop over training steps or evaluation batches."""

    node: cst.BaseExpression
    tensor: cst.BaseExpression
    value: Value  # of the tensor
    how: str  # item, float, int, cpu, tolist, math.log10 and the like, COUNTED, one of STORED, or FOREIGN
    is_number: bool  # a single number is read, not a whole tensor
    step: Step
    use: Use
    is_tally: bool = False  # a sum of truths, of whatever type the rest of the file is
    inside: ForeignRead | None = None  # of a function of another file, which the node calls

    @property
    def loop(self) -> Loop | None:
        return self.step.loop

    @property
    def rhythm(self) -> str:
        return self.step.rhythm

    @property
    def is_count(self) -> bool:
        """An integer that the loop adds up."""
        is_whole = self.is_tally or self.value.dtype in ("int", "bool")
        counts = is_whole and self.how in ("item", "int", COUNTED, *_COPIES)
        return self.is_number and counts and Use.ACCUMULATED in self.use


@once
def deferrable_readbacks(model: Model) -> Iterator[Readback]:
    """Readbacks that run in every step and whose result the step does not need."""
    residence = model.once(Residence)
    gathering: set[cst.CSTNode] = set()
    shown: list[Readback] = []
    for node, tensor, how in chain(reads(model), stored_numbers(model), counted_places(model)):
        step = step_of(model, node)
        if step is None:
            continue
        computed = residence.may_be_device(tensor, step, is_tensor=how in ("item", "cpu"))
        if not computed and not residence.is_made_on_device(tensor, step):
            continue
        if follows_answer(model, residence, node, step):
            continue
        is_number = how not in _COPIES or is_single_number(model, tensor) or _becomes_number(model, node)
        use = HostFlow(model, step.loop).of(node, is_number)
        counts = how == COUNTED or is_tally(model, tensor)
        read = Readback(node, tensor, model.value(tensor), how, is_number, step, use, counts)
        wanted = DEFERRABLE if computed else Use.ACCUMULATED | Use.COLLECTED
        if use & Use.GATHERED and not is_number:
            gathering.update(_steps(model, node))
        is_deferrable = use & wanted and not use & KEPT and not _is_answer(model, read)
        if is_deferrable and use is Use.LOGGED and not is_number:
            shown.append(read)
        elif is_deferrable or _is_forgotten(model, read):
            yield read
    # A loop that shows what it gathers on the host, sample by sample, is there for its results.
    yield from (read for read in shown if gathering.isdisjoint(_steps(model, read.node)))
    yield from _made_by_calls(model, residence)


def _steps(model: Model, node: cst.CSTNode) -> list[cst.CSTNode]:
    """The loops around a node that run a model again and again."""
    return [loop.node for loop in model.loops_around(node) if loop.role in (Role.STEPS, Role.EVALUATION)]


def _made_by_calls(model: Model, residence: Residence) -> Iterator[Readback]:
    """Those that a function of another file makes for the call: it returns the number."""
    for inside in model.once(reads_by_calls):
        call, home = inside.call, inside.home
        step = step_of(model, call.node)
        if step is None or follows_answer(model, residence, call.node, step):
            continue
        given = (arg.node for arg in inside.given if residence.may_be_device(arg.node, step, is_tensor=arg.is_tensor))
        tensor = next(given, None)
        if tensor is None:
            continue
        is_number = inside.how not in _COPIES or is_single_number(model, tensor) or _becomes_number(home, inside.node)
        use = HostFlow(model, step.loop).of(call.node, is_number, inside.position)
        value, tally = home.value(inside.tensor), is_tally(home, inside.tensor)
        there = Readback(inside.node, inside.tensor, value, inside.how, is_number, step, use, tally)
        if use & DEFERRABLE and not use & KEPT and not _is_answer(home, there):
            yield Readback(call.node, tensor, model.value(tensor), FOREIGN, is_number, step, use, inside=inside)


def reads_by_calls(model: Model) -> list[ForeignRead]:
    """Calls of functions of other files that read what they are given."""
    return list(foreign_reads(model, reads))


def _is_forgotten(model: Model, read: Readback) -> bool:
    """Whether what is read gets a name that nothing asks, be it the name of the tensor. One without a name may be there
    for the host to wait."""
    match model.small_statement(read.node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]) if read.use is Use.NONE:
            binding = model.binding(name)
            if binding is None or binding.is_global or name.value.startswith("_"):
                return False
            if binding.shared or model.binding(read.tensor) is not binding:
                return not binding.reads
            return not any(reaches(model, binding, name, node) for node in binding.reads)
        case cst.Expr(value=cst.Call() as site) if site is not read.node:
            filled = model.call(site).receiver
            return read.use is Use.NONE and filled is not None and is_never_read(model, filled)
        case cst.AugAssign(target=filled):
            return read.use is Use.NONE and is_never_read(model, filled)
    return False


def is_single_number(model: Model, tensor: cst.BaseExpression) -> bool:
    """Whether a tensor has one element: so has what `backward()` starts from."""
    if model.value(tensor).rank == 0:
        return True
    while isinstance(tensor, (cst.Call, cst.Attribute)) and model.binding(tensor) is None:
        if isinstance(tensor, cst.Attribute) and tensor.attr.value not in _KEEPING | {"data"}:
            return False
        tensor = tensor.func if isinstance(tensor, cst.Call) else tensor.value
    binding = model.binding(tensor)
    return binding is not None and _starts_backward(model, binding)


def _starts_backward(model: Model, binding: Binding, depth: int = _DEPTH) -> bool:
    """Whether `backward()` starts from a variable, or from a sum that it is a part of: each part of `loss = a + b / n`
    has one element if the loss has."""
    starts = (call.receiver for call in model.calls_to(".backward") if not call.arguments and call.receiver is not None)
    if any(model.binding(start) is binding for start in starts):
        return True
    if not depth or len(binding.writes) != 1:
        return False
    wholes = {model.binding(target) for read in binding.reads for target in _made_by_arithmetic(model, read)}
    return any(len(whole.writes) == 1 and _starts_backward(model, whole, depth - 1) for whole in wholes if whole)


def _made_by_arithmetic(model: Model, part: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """`loss` of `loss = part + 0.5 * other`."""
    whole, above = part, model.parent(part)
    while isinstance(above, cst.BinaryOperation) and isinstance(above.operator, _ARITHMETIC):
        whole, above = above, model.parent(above)
    if whole is not part and isinstance(above, cst.Assign):
        yield from (target.target for target in above.targets)


def _is_answer(model: Model, read: Readback) -> bool:
    """A class or a token: what the program is run for, and no measure of it."""
    if not read.is_number or read.value.dtype != "int" or Use.ACCUMULATED in read.use:
        return False
    binding = model.binding(read.tensor)
    made = [read.tensor] if binding is None else [write.value for write in binding.writes if not _is_zero(write.value)]
    return not made or not all(isinstance(node, cst.Call) and _last_name(model.call(node)) in _TALLIES for node in made)


def _is_zero(node: cst.BaseExpression | None) -> bool:
    """What a sum starts from."""
    return isinstance(node, cst.BaseNumber)


def _last_name(call: Call) -> str:
    return call.method or (call.callee or "").rpartition(".")[2]


def reads(model: Model) -> tuple[tuple[cst.Call, cst.BaseExpression, str], ...]:
    """Every expression that brings a tensor to the host, with the tensor and how it does so."""
    return model.once(_reads)


def _reads(model: Model) -> tuple[tuple[cst.Call, cst.BaseExpression, str], ...]:
    return tuple(_find_reads(model))


def _find_reads(model: Model) -> Iterator[tuple[cst.Call, cst.BaseExpression, str]]:
    for call in model.calls:
        if call.receiver is not None and (call.method == "item" or call.method in _COPIES):
            if not call.arguments:
                yield call.node, call.receiver, call.method
        elif call.method == "to" and call.receiver is not None and _names_host(call):
            yield call.node, call.receiver, "cpu"
        elif call.callee in _CONVERSIONS and len(call.arguments) == 1 and not call.arguments[0].star:
            yield call.node, call.arguments[0].value, _CONVERSIONS[call.callee]


def stored_numbers(model: Model) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, str]]:
    """Single numbers on the device that are stored where Python numbers are: in a cell of an array, in a new tensor."""
    for statement in model.nodes_of(cst.Assign, cst.AugAssign):
        assert isinstance(statement, (cst.Assign, cst.AugAssign))
        targets = [statement.target] if isinstance(statement, cst.AugAssign) else [t.target for t in statement.targets]
        is_cell = any(isinstance(t, cst.Subscript) and model.value(t.value).kind is Kind.ARRAY for t in targets)
        if is_cell and _is_single(model, statement.value):
            yield statement.value, statement.value, "cell"
    for call in model.calls_to(*HOST_TENSORS):
        match call.arguments:
            case [cst.Arg(value=cst.List() | cst.Tuple() as parts)]:
                yield from ((e.value, e.value, "tensor") for e in parts.elements if _is_single(model, e.value))


def counted_places(model: Model) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, str]]:
    """`len(torch.where(mask)[0])` and `len(mask.nonzero())`: the device must say how many places there are."""
    for call in model.calls_to("builtins.len"):
        places = call.arguments[0].value if len(call.arguments) == 1 else None
        is_part = isinstance(places, cst.Subscript)
        listed = places.value if isinstance(places, cst.Subscript) else places
        made = model.call(listed) if isinstance(listed, cst.Call) else None
        if made is None:
            continue
        if made.callee in (_PLACES_BY_AXIS if is_part else _PLACES) and len(made.arguments) == 1:
            yield call.node, made.arguments[0].value, COUNTED
        elif made.method == "nonzero" and made.receiver is not None and not (is_part or made.arguments):
            yield call.node, made.receiver, COUNTED


def _is_single(model: Model, node: cst.BaseExpression) -> bool:
    return model.value(node).kind is Kind.TENSOR and is_single_number(model, node)


def _names_host(call: Call) -> bool:
    """`x.to("cpu")`."""
    target = call.argument("device", 0).value
    return target.is_(Kind.STRING, Kind.DEVICE) and (target.place is Place.HOST or target.constant == "cpu")


def _is_unwrapped(node: cst.CSTNode | None) -> bool:
    """`array[()]`: the one number of an array without dimensions."""
    match node:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Tuple(elements=[])))]):
            return True
    return False


def _becomes_number(model: Model, node: cst.CSTNode) -> bool:
    """`loss.cpu().item()`, `float(loss.detach().cpu())`, `loss.cpu().numpy()[()]`."""
    parent = model.parent(node)
    while isinstance(parent, cst.Attribute):
        call = model.parent(parent)
        if not isinstance(call, cst.Call):
            node, parent = parent, call
        elif parent.attr.value in _KEEPING:
            node, parent = call, model.parent(call)
        else:
            return parent.attr.value == "item" or (parent.attr.value == "numpy" and _is_unwrapped(model.parent(call)))
    site = model.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(site, cst.Call) and model.call(site).callee in _CONVERSIONS
