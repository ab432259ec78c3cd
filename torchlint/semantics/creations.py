"""Tensors that are made on the host and then copied to an accelerator, which could have made them itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import reaches, text
from torchlint.semantics.host_tensors import Agreement, Made, made
from torchlint.semantics.host_use import is_before
from torchlint.semantics.moves import moves_to_accelerator
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Write
    from torchlint.semantics.model import Model

_DEFAULT_DEVICES = ("torch.set_default_device", "torch.set_default_tensor_type")
_QUESTIONS = frozenset(
    "shape dtype device is_cuda ndim size dim numel nelement is_contiguous get_device element_size".split()
)
_FILLS = frozenset(
    "fill_ zero_ normal_ uniform_ random_ bernoulli_ exponential_ resize_ squeeze_ unsqueeze_ t_".split()
)


@dataclass(frozen=True, slots=True)
class Creation:
    """A call that copies to an accelerator what `factories` made on the host."""

    move: Call
    source: cst.BaseExpression
    made: Made
    fills: tuple[cst.CSTNode, ...]  # uses of a variable between the creation and the copy, which change it in place

    @property
    def factory(self) -> Call:
        return self.made.factories[0]

    @property
    def is_random(self) -> bool:
        return self.made.agreement is Agreement.RANDOM


def creations(model: Model) -> Iterator[Creation]:
    """Copies to an accelerator of tensors that are made of sizes and numbers and used for nothing else before."""
    if not model.uses_accelerator or model.calls_to(*_DEFAULT_DEVICES):
        return
    for move in model.calls_to(".to", ".cuda", ".type"):
        found = _creation(move, model)
        if found is not None and not _has_default_device(found.factory, model):
            yield found


def _creation(move: Call, model: Model) -> Creation | None:
    source = move.receiver
    if source is None or model.value(source).is_(Kind.MODULE, Kind.NAMESPACE):
        return None
    if not _moves(move, model):
        return None
    found = made(source, model)
    if found is None:
        return None
    fills: list[cst.CSTNode] = []
    for read, write in found.writes:
        uses = _uses(read, write, move, model)
        if uses is None:
            return None
        fills += uses
    return Creation(move, source, found, tuple(fills))


def _moves(call: Call, model: Model) -> bool:
    if call.method == "type":
        argument = call.argument("dtype", 0).node
        return argument is not None and (model.qualified(argument) or "").startswith("torch.cuda.")
    return moves_to_accelerator(call, model)


def _has_default_device(factory: Call, model: Model) -> bool:
    """Whether a `with torch.device(...)` around a factory says where it makes its tensors."""
    blocks = (node for node in model.ancestors(factory.node) if isinstance(node, cst.With))
    return any(model.value(item.item).kind is Kind.DEVICE for block in blocks for item in block.items)


# -- what else happens to a variable


def _uses(read: cst.CSTNode, write: Write, move: Call, model: Model) -> list[cst.CSTNode] | None:
    """Statements that fill what a write put into a variable, before it is read for the copy. None where the host needs
    the tensor for anything else."""
    binding = model.binding(read)
    if binding is None:
        return None
    above = set(model.ancestors(read))
    returns = _stores_into(binding, above, model)
    fills: list[cst.CSTNode] = []
    for other in binding.reads:
        if model.statement(other) in above or not _sees(write, other, binding, model):
            continue
        if returns and not is_before(model, other, read):
            continue
        if _is_filled(other, model):
            fills.append(other)
        elif not (_asks(other, model) or _is_same_move(other, move, model) or _excludes(other, read, model)):
            return None
    return fills


def _excludes(a: cst.CSTNode, b: cst.CSTNode, model: Model) -> bool:
    """Whether two nodes are in branches of one condition that exclude each other."""
    branches = {guard.node: guard.branch for guard in model.guards(a)}
    return any(branches.get(guard.node, guard.branch) != guard.branch for guard in model.guards(b))


def _sees(write: Write, read: cst.CSTNode, binding: Binding, model: Model) -> bool:
    if binding.cls is None:
        return reaches(model, binding, write.target, read)
    return model.function(read) is not write.function or is_before(model, write.target, read)


def _stores_into(binding: Binding, above: set[cst.CSTNode], model: Model) -> bool:
    """Whether a statement puts what it reads back into the same variable."""
    return any(write.statement in above and write.kind == "assign" for write in binding.writes)


def _asks(read: cst.CSTNode, model: Model) -> bool:
    """`x.size()`, `x.is_cuda`: nothing that the host needs the numbers for."""
    parent = model.parent(read)
    return isinstance(parent, cst.Attribute) and parent.attr.value in _QUESTIONS


def _is_filled(read: cst.CSTNode, model: Model) -> bool:
    """`x.fill_(1)` as a statement."""
    parent = model.parent(read)
    if not isinstance(parent, cst.Attribute) or parent.attr.value not in _FILLS:
        return False
    call = model.parent(parent)
    return isinstance(call, cst.Call) and isinstance(model.parent(call), cst.Expr)


def _is_same_move(read: cst.CSTNode, move: Call, model: Model) -> bool:
    """Another `x.to(device)` to the same place."""
    parent = model.parent(read)
    call = model.parent(parent) if isinstance(parent, cst.Attribute) else None
    if not isinstance(call, cst.Call) or call.func is not parent:
        return False
    return model.call(call).method == move.method and list(map(text, call.args)) == list(map(text, move.node.args))
