"""What the code after a loop reads of it: the lists it filled, and names that keep a value of the last iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize import layout, stacking
from torchlint.analyses.vectorize.operation import Operation
from torchlint.analyses.vectorize.reaching import Reaching
from torchlint.analyses.vectorize.shapes import ATOM, Lifted, RefusedError

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter
    from torchlint.semantics.entities import Binding, Write
    from torchlint.semantics.model import Model

_LOOPS = (cst.For, cst.While)


@dataclass(frozen=True, slots=True)
class Consumer:
    """`torch.stack(rows)` after a loop: what takes its place, in terms of the list's name or of its elements.

    `inlined` is None where the list has other uses.
    """

    call: cst.Call
    name: str
    creation: cst.CSTNode
    by_name: Lifted
    inlined: Lifted | None


def grown(lifter: Lifter, reaching: Reaching, root: cst.For, receiver: cst.Name) -> Write:
    """Where a list that a loop appends to was made. Refuses one that may hold something already."""
    binding = lifter.model.binding(receiver)
    creation = reaching.reaching(binding, root) if binding is not None else None
    if binding is None or creation is None or binding.shared or not _is_empty_list(creation.value):
        raise RefusedError(f"`{receiver.value}` is not known to be empty before the loop")
    if reaching.block(creation.statement) is not reaching.block(root):
        raise RefusedError(f"`{receiver.value}` grows over more than this loop")
    return creation


def made(lifter: Lifter, root: cst.ListComp) -> tuple[cst.Name, Write]:
    """The name that a comprehension is assigned to."""
    target = lifter.model.small_statement(root)
    name = target.targets[0].target if isinstance(target, cst.Assign) and target.value is root else None
    binding = lifter.model.binding(name) if isinstance(name, cst.Name) else None
    creation = next((write for write in binding.writes if write.target is name), None) if binding is not None else None
    if not isinstance(name, cst.Name) or binding is None or creation is None or binding.shared:
        raise RefusedError("what becomes of the list is not in sight")
    return name, creation


def consumers(
    lifter: Lifter, reaching: Reaching, root: cst.For | cst.ListComp, name: cst.Name, creation: Write, element: Lifted
) -> list[Consumer]:
    """The calls of stack and cat that use a list. Refuses a list that is used in any other way."""
    binding = lifter.model.binding(name)
    if binding is None or not _creates_nothing_else(lifter.model, creation):
        raise RefusedError(f"`{name.value}` may have another name")
    found = []
    measured = False
    for read in binding.reads:
        if read is name:
            continue
        if root in lifter.model.ancestors(read):
            raise RefusedError(f"`{name.value}` is read while it grows")
        write = reaching.reaching(binding, read)
        if write is not None and write is not creation:
            continue
        if write is None or reaching.order(read) < reaching.order(root):
            raise RefusedError(f"`{name.value}` is used as a list")
        if not _is_measured(lifter, read):
            found.append(_consumer(lifter, name.value, creation, read, element))
        else:
            measured = True
    if measured:
        found = [replace(consumer, inlined=None) for consumer in found]
    if not found:
        raise RefusedError(f"`{name.value}` is never stacked")
    return found


def _consumer(lifter: Lifter, name: str, creation: Write, read: cst.CSTNode, element: Lifted) -> Consumer:
    argument = lifter.model.parent(read)
    call = lifter.model.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or call.args[0] is not argument:
        raise RefusedError(f"`{name}` is used as a list")
    operation = Operation.read(lifter, call)
    if operation.name not in stacking.RULES or operation.function is None or not operation.only("dim"):
        raise RefusedError(f"`{name}` is used as a list")
    dim = operation.argument("dim", 1)
    place = 0 if dim is None else layout.integer(lifter, dim)
    adds = lifter.adds
    named = element.but(text=name, level=ATOM, shares=False)
    joined = stacking.join(lifter, named, operation.name, place, element.count)
    before = dict(lifter.doubts)
    whole = stacking.join(lifter, element, operation.name, place, element.count)
    inlined = stacking.of_its_own(whole) if lifter.doubts == before else None
    lifter.doubts, lifter.adds = before, adds or (lifter.adds and not _divides_by_length(lifter, call, name))
    return Consumer(call, name, creation.statement, joined, inlined)


def _divides_by_length(lifter: Lifter, call: cst.Call, name: str) -> bool:
    """`sum(rows) / len(rows)`, which has no value for no rows."""
    quotient = lifter.model.parent(call)
    if not isinstance(quotient, cst.BinaryOperation) or not isinstance(quotient.operator, cst.Divide):
        return False
    measured = quotient.right
    return isinstance(measured, cst.Call) and lifter.code(measured) == f"len({name})"


def _creates_nothing_else(model: Model, creation: Write) -> bool:
    """Whether the list is the value of one name alone, and of a statement that makes nothing else."""
    parent = model.parent(creation.target)
    if isinstance(parent, cst.AnnAssign):
        return True
    assignment = model.parent(parent) if isinstance(parent, cst.AssignTarget) else None
    return isinstance(assignment, cst.Assign) and len(assignment.targets) == 1


def _is_measured(lifter: Lifter, read: cst.CSTNode) -> bool:
    """`len(rows)`, which is the same of the tensor of all rows."""
    argument = lifter.model.parent(read)
    call = lifter.model.parent(argument) if isinstance(argument, cst.Arg) else None
    return isinstance(call, cst.Call) and lifter.model.qualified(call.func) == "builtins.len"


def _is_empty_list(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.List) and not node.elements


def read_afterwards(model: Model, reaching: Reaching, root: cst.For, lifter: Lifter) -> Iterator[str]:
    """Names that the loop assigns in passing, and whose value of the last iteration is read outside it."""
    for name in lifter.written - lifter.totals:
        binding = model.scope(root).bindings.get(name)
        if binding is None:
            continue
        deleted = any(write.kind == "delete" for write in binding.writes)
        if deleted or any(_sees_loop(model, reaching, root, binding, read) for read in binding.reads):
            yield name


def _sees_loop(model: Model, reaching: Reaching, root: cst.For, binding: Binding, read: cst.CSTNode) -> bool:
    around = list(model.ancestors(read))
    if root in around:
        return False
    if model.function(read) is not model.function(root):
        return True
    start, at = reaching.order(root), reaching.order(read)
    common = next((node for node in model.ancestors(root) if isinstance(node, _LOOPS) and node in around), None)
    if at < start and common is None:
        return False
    for write in reversed(binding.writes):  # of many loops over one name, each read is after the write of its own
        is_between = start < reaching.order(write.target) < at or (
            at < start and common is not None and common in model.ancestors(write.target)
        )
        if is_between and root not in model.ancestors(write.target) and reaching.runs_before(write, read):
            return False
    return True
