"""Tensors that are made on the host and then copied to an accelerator, which could have made them itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import are_alternatives
from torchlint.analyses.devices.moves import moves_to_accelerator, names_cuda_type
from torchlint.analyses.exceptions import is_on_trial
from torchlint.analyses.loops.steps import runs_few_times
from torchlint.analyses.once import once
from torchlint.analyses.order import is_before
from torchlint.analyses.xfer.agreement import Agreement
from torchlint.analyses.xfer.host_tensors import Made, brings_numbers, is_host_copy, made
from torchlint.analyses.xfer.numbers import equal_numbers, looks_like_number, may_hold_numbers, numbers_given
from torchlint.analyses.xfer.sizes import HOST_CLASSES, SIZED_CLASSES
from torchlint.semantics.dataflow import reaches, text
from torchlint.semantics.transfer import element_of
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Place, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Write
    from torchlint.semantics.model import Model

_COPIES = re.compile(r"\.cuda\(|\.to\(\s*[\w.]*(device|gpu|cuda)", re.IGNORECASE)
_TRAINER = re.compile(r"\b(pytorch_lightning|lightning|accelerate)\b[\s\S]*\b(Trainer|Accelerator)\b")
_INDEX = re.compile(r"(?i)rank|gpu|dev|cuda|(^|_)(id|idx|index|i|n)$")  # of a device, by which a tensor may be divided
_JOINING = ("torch.cat", "torch.concat", "torch.stack")
_QUESTIONS = frozenset(
    "shape dtype device is_cuda ndim size dim numel nelement is_contiguous get_device element_size".split()
)


@dataclass(slots=True)
class Uses:
    """What reads the variables that a tensor is in on its way to the copy."""

    copies: set[cst.CSTNode] = field(default_factory=set)  # it is for the copy, or another that goes to the same place
    fills: list[cst.CSTNode] = field(default_factory=list)  # a statement that changes it in place before the copy
    others: set[cst.CSTNode] = field(default_factory=set)  # for something else that is computed on the host


@dataclass(frozen=True, slots=True)
class Creation:
    """A call that copies to an accelerator what `factories` made on the host."""

    move: Call
    source: cst.BaseExpression
    made: Made
    uses: Uses

    @property
    def factory(self) -> Call:
        return self.made.factories[0]

    @property
    def is_by_helper(self) -> bool:
        """Whether a function of the project makes the tensor."""
        return _is_helper(self.factory)

    @property
    def is_all_in_sight(self) -> bool:
        """Whether all of it is made here, and of nothing that only looks like a number."""
        return not self.made.is_guessed and not any(map(_is_helper, self.made.factories))

    def is_of_numbers(self, model: Model) -> bool:
        """Whether numbers are written out that the tensor is made of."""
        return numbers_given(self.factory, model) is not None

    def is_list(self, model: Model) -> bool:
        """Whether these are several, which have to be copied to the device in any case."""
        given = numbers_given(self.factory, model)
        return given is not None and equal_numbers(given) is None

    @property
    def is_by_distribution(self) -> bool:
        """Whether an object of torch.distributions draws the tensor, which it does where its parameters are."""
        return (self.factory.callee or "").startswith("torch.distributions.")

    @property
    def is_by_class(self) -> bool:
        """Whether a class of tensors is called, `torch.FloatTensor(n)`, which takes no other device than its own."""
        return self.factory.callee in SIZED_CLASSES

    @property
    def is_random(self) -> bool:
        return self.made.agreement is Agreement.RANDOM


def _is_helper(factory: Call) -> bool:
    return factory.target is not None or factory.foreign is not None


@once
def creations(model: Model) -> Iterator[Creation]:
    """Copies to an accelerator of tensors that are made of sizes and numbers and used for nothing else before."""
    if not (model.uses_accelerator or _is_used_on_accelerator(model)):
        return
    has_other_default = model.once(_has_other_default)
    traced = {function for call in model.calls_to("torch.jit.trace") for function in call.passes}
    moves = (move for move in model.calls_to(".to", ".cuda", ".type", ".type_as") if move.function not in traced)
    found = [_creation(move, model) for move in moves]  # a trace runs once, and is of interest for its graph
    known: set[cst.CSTNode] = set()
    for creation in _for_copies_alone([creation for creation in found if creation is not None]):
        for each in _alternatives(creation) if not is_on_trial(creation.move.node, model) else ():
            if has_other_default and each.factory.callee not in HOST_CLASSES:
                continue
            if each.factory.node not in known and not _has_default_device(each.factory, model):
                known.add(each.factory.node)
                yield each


def _alternatives(creation: Creation) -> Iterator[Creation]:
    """The creation, and those of the other branches that put a tensor into the variable which is copied."""
    found = creation.made
    yield creation
    firsts = {_first_within(write.value, found) for read, write in found.writes if read is creation.source}
    for factory in found.factories[1:]:
        if factory in firsts:
            others = (other for other in found.factories if other is not factory)
            yield replace(creation, made=replace(found, factories=(factory, *others)))


def _first_within(node: cst.CSTNode | None, found: Made) -> Call | None:
    inside = set(walk(node)) if node is not None else set()
    return next((factory for factory in found.factories if factory.node in inside), None)


def _is_used_on_accelerator(model: Model) -> bool:
    """Whether `type_as` and its like may copy to a device that this file does not name: those name it that use what is
    in it, or any other where it is for users outside of the project, or they train it by a framework that does."""
    if not any(goes_with_tensor(call, model) for call in model.calls_to(".type_as", ".type", ".to")):
        return False
    sources = model.users() or model.files_beside()
    return any(_COPIES.search(source.text) or _TRAINER.search(source.text) for source in sources)


def _for_copies_alone(candidates: list[Creation]) -> list[Creation]:
    """Those whose variables nothing reads but copies, and what is computed from them for copies alone."""
    while True:
        copied = {read for creation in candidates for read in (*creation.uses.copies, *_models_of(creation))}
        left = [creation for creation in candidates if creation.uses.others <= copied]
        if len(left) == len(candidates):
            return left
        candidates = left


def _models_of(creation: Creation) -> Iterator[cst.CSTNode]:
    """`x` of `torch.ones_like(x)`, which is made wherever `x` is."""
    for factory in creation.made.factories:
        first = factory.argument("input", 0).node
        if first is not None and (factory.callee or "").endswith("_like"):
            yield first


def _has_other_default(model: Model) -> bool:
    """Whether tensors may be made on an accelerator without an argument that says so."""
    if model.calls_to("torch.set_default_device"):
        return True
    kinds = (call.argument("t", 0) for call in model.calls_to("torch.set_default_tensor_type"))
    return not all(kind.given and _is_host_class(kind.node, kind.value, model) for kind in kinds)


def _is_host_class(node: cst.BaseExpression | None, value: Value, model: Model) -> bool:
    name = value.constant if isinstance(value.constant, str) else model.qualified(node)
    return name is not None and name.startswith("torch.") and not name.startswith("torch.cuda.")


def _creation(move: Call, model: Model) -> Creation | None:
    source = move.receiver
    if source is None or model.value(source).is_(Kind.MODULE, Kind.NAMESPACE):
        return None
    if not _moves(move, model):
        return None
    found = made(source, model)
    guessed = [each for each in found.factories if may_hold_numbers(each, model)] if found is not None else []
    if found is None or len(guessed) == len(found.factories):
        return None  # such a list may be data, unless something else is made beside it
    if guessed:
        found = replace(found, factories=(*(each for each in found.factories if each not in guessed), *guessed))
    uses = Uses()
    for read, write in found.writes:
        _sort(read, write, move, uses, model)
    return Creation(move, source, found, uses)


def _moves(call: Call, model: Model) -> bool:
    if call.method == "type" and names_cuda_type(call.argument("dtype", 0).node, model):
        return True
    return moves_to_accelerator(call, model) or goes_with_tensor(call, model) is not None


def goes_with_tensor(move: Call, model: Model) -> cst.BaseExpression | None:
    """`x` of `.type_as(x)`, `.type(x.type())` and `.to(x)`, if that is a tensor that may be on an accelerator."""
    first = move.arguments[0].value if len(move.arguments) == 1 else None
    match move.method, first:
        case "type", cst.Call(func=cst.Attribute(value=node, attr=cst.Name(value="type")), args=[]):
            pass
        case "type_as" | "to", cst.BaseExpression() as node:
            pass
        case _:
            return None
    value = model.value(node)
    is_tensor = move.method != "to" or value.is_tensor or _is_joined_with_tensors(node, model)
    return node if is_tensor and value.place is not Place.HOST else None


def _is_joined_with_tensors(node: cst.BaseExpression, model: Model) -> bool:
    """Whether a variable of which nothing else is known is a part of a `torch.cat` or `torch.stack`, or is computed
    with a tensor, as no device is."""
    binding = model.binding(node) if model.value(node).kind is Kind.UNKNOWN else None
    if binding is None:
        return False
    is_index = _INDEX.search(binding.name) is not None
    return any(_is_joined(read, model) or (not is_index and _is_operand(read, model)) for read in binding.reads)


def _is_operand(read: cst.CSTNode, model: Model) -> bool:
    """`pitch` of `pitch * torch.arange(8)`."""
    operation = model.parent(read)
    if not isinstance(operation, cst.BinaryOperation):
        return False
    other = operation.right if read is operation.left else operation.left
    return model.value(other).kind is Kind.TENSOR


def _is_joined(read: cst.CSTNode, model: Model) -> bool:
    element = model.parent(read)
    parts = model.parent(element) if isinstance(element, cst.Element) else None
    argument = model.parent(parts) if isinstance(parts, (cst.List, cst.Tuple)) else None
    call = model.parent(argument) if isinstance(argument, cst.Arg) else None
    return isinstance(call, cst.Call) and model.call(call).callee in _JOINING


def _has_default_device(factory: Call, model: Model) -> bool:
    """Whether a `with torch.device(...)` around a factory says where it makes its tensors."""
    blocks = (node for node in model.ancestors(factory.node) if isinstance(node, cst.With))
    return any(model.value(item.item).kind is Kind.DEVICE for block in blocks for item in block.items)


# -- what else happens to a variable


def _sort(read: cst.CSTNode, write: Write, move: Call, uses: Uses, model: Model) -> None:
    """What else reads what a write puts into a variable, which is read for a copy."""
    binding = model.binding(read)
    assert binding is not None
    above = set(model.ancestors(read))
    returns = _stores_into(binding, above)
    uses.copies.add(read)
    for other in binding.reads:
        if model.statement(other) not in above and not _sees(write, other, binding, model):
            continue
        if model.statement(other) in above or (returns and not is_before(model, other, read)):
            uses.copies.add(other)
        elif _is_filled(other, model) or _is_set_in_part(other, write, model):
            uses.fills.append(other)
        elif _asks(other, model) or _is_same_move(other, move, model) or are_alternatives(model, other, read):
            uses.copies.add(other)
        else:
            uses.others.add(other)


def _sees(write: Write, read: cst.CSTNode, binding: Binding, model: Model) -> bool:
    if binding.cls is None:
        return reaches(model, binding, write.target, read)
    return model.function(read) is not write.function or is_before(model, write.target, read)


def _stores_into(binding: Binding, above: set[cst.CSTNode]) -> bool:
    """Whether a statement puts what it reads back into the same variable."""
    return any(write.statement in above and write.kind == "assign" for write in binding.writes)


def _asks(read: cst.CSTNode, model: Model) -> bool:
    """`x.size()`, `x.is_cuda`: nothing that the host needs the numbers for."""
    parent = model.parent(read)
    return isinstance(parent, cst.Attribute) and parent.attr.value in _QUESTIONS


def _is_filled(read: cst.CSTNode, model: Model) -> bool:
    """`x.fill_(1)`, `_ = x.data.normal_()`, `nn.init.ones_(x)` as a statement: what a device does as well."""
    above = model.parent(read)
    if isinstance(above, cst.Attribute) and above.attr.value == "data":
        above = model.parent(above)
    node = model.parent(above) if above is not None else None
    if isinstance(node, cst.Call) and above is not node.func:
        return _is_statement(node, model) and (model.call(node).callee or "").startswith("torch.nn.init.")
    while isinstance(node, cst.Call) and _changes_in_place(model.call(node), model):
        if _is_statement(node, model):
            return True
        above = model.parent(node)
        node = model.parent(above) if isinstance(above, cst.Attribute) else None
    return False


def _changes_in_place(call: Call, model: Model) -> bool:
    copied = [arg.value for arg in call.arguments if is_host_copy(arg.value, model)]
    return (call.method or "").endswith("_") and brings_numbers(call, model, besides=copied)


def _is_statement(call: cst.Call, model: Model) -> bool:
    """Whether nobody takes what a call returns."""
    match model.parent(call):
        case cst.Expr() | cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value="_"))]):
            return True
    return False


def _is_set_in_part(read: cst.CSTNode, write: Write, model: Model) -> bool:
    """`x[:, 0] = 1`, `x[:, i] *= 2` as a statement, a few times for each tensor: a device does that as well."""
    place, places = read, []
    while isinstance(above := model.parent(place), cst.Subscript) and above.value is place:
        place = above
        places.append(above)
    if not places:
        return False
    statement = model.parent(above) if isinstance(above, cst.AssignTarget) else above
    if not isinstance(statement, (cst.Assign, cst.AugAssign)) or statement.value is place:
        return False
    if model.value(statement.value).place is Place.ACCELERATOR:
        return True
    outer = model.loops_around(write.statement)
    loops = [loop for loop in model.loops_around(statement) if loop not in outer]
    parts = [part.slice for place in places for part in place.slice]
    plain = all(_is_plain(part, model) for part in parts) and all(map(runs_few_times, loops))
    return plain and _is_number(statement.value, model)


def _is_number(node: cst.BaseExpression, model: Model) -> bool:
    """`2`, `low + 1`, `bounds[0][1] - bounds[0][0]`, but no variable or row of which nothing is known."""
    match node:
        case cst.BinaryOperation(left=left, right=right):
            return _is_number(left, model) and _is_number(right, model)
        case cst.Subscript():
            return looks_like_number(node, model)
    return model.value(node).kind is Kind.NUMBER


def _is_plain(part: cst.BaseSlice, model: Model) -> bool:
    """`:`, `2`, `self.index[WORD]`, `rows`: a place that is no tensor, or a list of such places."""
    match part:
        case cst.Slice():
            return True
        case cst.Index(value=cst.Subscript(value=table) as entry) if model.value(entry).kind is Kind.UNKNOWN:
            return model.value(table).is_(Kind.UNKNOWN, Kind.DICT)
        case cst.Index(value=node):
            value = model.value(node)
            is_list = value.kind is Kind.LIST and element_of(value).kind is Kind.NUMBER
            return is_list or value.is_(Kind.NUMBER, Kind.NONE)
    return False


def _is_same_move(read: cst.CSTNode, move: Call, model: Model) -> bool:
    """Another `x.to(device)` to the same place."""
    parent = model.parent(read)
    call = model.parent(parent) if isinstance(parent, cst.Attribute) else None
    if not isinstance(call, cst.Call) or call.func is not parent:
        return False
    return model.call(call).method == move.method and list(map(text, call.args)) == list(map(text, move.node.args))
