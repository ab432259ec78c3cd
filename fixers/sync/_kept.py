"""Sums and lists of numbers that stay on the device, where the step has nothing else to wait for."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers._together import places_of

from torchlint.analyses.single_tensor import is_what_trains
from torchlint.analyses.sync.accumulators import host_sum, stops_a_clock
from torchlint.analyses.sync.number_lists import bare_tensor, listed_in
from torchlint.analyses.sync.readback import reads
from torchlint.analyses.sync.repeated_reads import numbers
from torchlint.finding import Fix
from torchlint.rule import NoFixError
from torchlint.semantics.values import Kind

from ._lists import kept_in_list
from ._meters import kept_in_meter, metered
from ._sums import detaching, kept_in_double, kept_on_device
from ._waits import waits_beside

if TYPE_CHECKING:
    from torchlint.analyses.sync.readback import Readback
    from torchlint.finding import Places
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model


def kept_number(model: Model, read: Readback) -> Fix:
    """Raises NoFixError where the sum or list has to stay on the host, or nothing would be saved."""
    made = _kept(model, read)
    if waits_beside(model, read.step, model.once(_may_move)):
        raise NoFixError("something else in the same step waits for the device anyway")
    known = model.once(_alike)
    total = _total(model, read.node)
    keys = (read.step, model.code(model.small_statement(read.node) or read.node), total)
    return replace(made, goes_with=tuple(known[key] for key in keys if key in known))


def _alike(model: Model) -> dict[object, Places]:
    """The reads that a step would still wait for, those in statements in the same words, `total += loss.item()` of
    another loop, and those that are added to the same variable."""
    found: defaultdict[object, list[cst.CSTNode]] = defaultdict(list)
    movable = model.once(_may_move)
    for read in numbers(model).single:
        if read.node in movable:
            found[read.step].append(read.node)
    for call in model.calls_to(".item"):
        statement = model.small_statement(call.node)
        if isinstance(statement, (cst.AugAssign, cst.Expr)):
            found[model.code(statement)].append(call.node)
    for node, _, _ in reads(model):
        if (total := _total(model, node)) is not None:
            found[total].append(node)
    return {key: places_of(nodes, model) for key, nodes in found.items()}


def _total(model: Model, node: cst.CSTNode) -> Binding | None:
    """The variable that a number is added to, or the meter that it is given to."""
    match model.small_statement(node):
        case cst.AugAssign(target=target) | cst.Expr(value=cst.Call(func=cst.Attribute(value=target))):
            return model.binding(target)
    return None


def _kept(model: Model, read: Readback) -> Fix:
    if read.loop is not None and stops_a_clock(model, read.node, read.loop):
        raise NoFixError("a clock is stopped below, which would no longer measure what the device does")
    if listed_in(model, read.node) is not None:
        return kept_in_list(model, read)
    number = _number(model, read)
    if (found := metered(model, number.node)) is not None:
        _check_real(model, number)
        return kept_in_meter(model, number, found)
    return _count(model, number) if read.is_count else _loss(model, number)


def _number(model: Model, read: Readback) -> Readback:
    """The number that is read from a copy, `loss.detach().cpu().item()`, as one that is read from the tensor itself."""
    node: cst.CSTNode = read.node
    while read.how == "cpu" and isinstance(method := model.parent(node), cst.Attribute):
        call = model.parent(method)
        if not isinstance(call, cst.Call) or call.func is not method or call.args:
            break
        if method.attr.value == "item":
            return replace(read, node=call, how="item")
        if method.attr.value not in ("detach", "cpu"):
            break
        node = call
    return read


def _may_move(model: Model) -> frozenset[cst.CSTNode]:
    """The reads that a fix could keep on the device, each for itself."""
    return frozenset(read.node for read in numbers(model).single if _moves(model, read))


def _moves(model: Model, read: Readback) -> bool:
    try:
        _kept(model, read)
    except NoFixError:
        return False
    return True


def _loss(model: Model, read: Readback) -> Fix:
    total = host_sum(model, read)
    _check_real(model, read)
    return kept_in_double(model, read, total, detaching(model, read) + ".double()")


def _check_real(model: Model, read: Readback) -> None:
    """Raises NoFixError."""
    if not _is_real(model, read):
        raise NoFixError(f"`{model.code(read.tensor)}` is not known to be a tensor of real numbers")


def _is_real(model: Model, read: Readback) -> bool:
    """A tensor of real floating point numbers, such as what a backward pass starts from."""
    tensor = bare_tensor(read.tensor)
    value, binding = read.value, model.binding(tensor)
    if is_what_trains(model, tensor):
        return True
    if value.kind is not Kind.TENSOR or (value.optional and read.how != "item"):
        return False
    return value.dtype == "float" or (
        model.value(tensor).carries and binding is not None and "backward" in binding.methods
    )


def _count(model: Model, read: Readback) -> Fix:
    total = host_sum(model, read)
    if not _is_count(model, read):
        raise NoFixError(f"`{model.code(read.tensor)}` is not known to be a sum of integers")
    if total.is_integer:
        if total.term is not read.node:
            raise NoFixError("the count is multiplied or divided before it is added")
        return kept_on_device(model, read, total, "", "int")
    return kept_in_double(model, read, total, ".double()")


def _is_count(model: Model, read: Readback) -> bool:
    """A sum of integers or booleans: what `sum()` returns for these is a 64-bit integer."""
    if read.is_tally:
        return True
    call = model.call(read.tensor) if isinstance(read.tensor, cst.Call) else None
    is_sum = call is not None and call.callee in ("torch.sum", "torch.Tensor.sum") and call.argument("dtype").absent
    return is_sum and read.value.kind is Kind.TENSOR and not read.value.optional
