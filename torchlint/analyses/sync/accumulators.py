"""Sums that a loop keeps on the host although they are read behind the loop only, or at log intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.exceptions import catches
from torchlint.analyses.order import is_before
from torchlint.rule import NoFixError
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.entities import Binding, Call, Loop, Write
from torchlint.semantics.self_test import is_main
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Value

if TYPE_CHECKING:
    from torchlint.analyses.sync.readback import Readback
    from torchlint.semantics.model import Model

_NAMESPACE_READERS = frozenset(["locals", "globals", "eval", "exec"])
_OF_AN_OBJECT_TOO = frozenset(["vars", "dir"])
_CLOCKS = frozenset(f"time.{name}{ns}" for name in ("time", "perf_counter", "monotonic") for ns in ("", "_ns"))
_RECIPROCAL = "On a GPU, the quotient may differ in its last bit, for torch multiplies by the reciprocal there."
_EXACT_FORMATS = ("f", "F", "e", "E", "%")


@dataclass(frozen=True, slots=True)
class HostSum:
    """`name = 0`, in a loop `name += term`, and reads behind the loop or at log intervals. `term` is one readback, or a
    multiple of it.

    `name = name + term` is the same.

    `settled` is `name /= count` or `name = name / count` behind the loop. Reads behind it see the number that it made.
    """

    update: cst.Assign | cst.AugAssign
    term: cst.CSTNode
    settled: cst.Assign | cst.AugAssign | None
    reads: tuple[cst.BaseExpression, ...]
    starts_float: bool  # it starts from 0.0 and not from 0
    is_integer: bool  # integers all the way, on either side
    is_timed: bool  # the loop reads a clock, which stops waiting for the device once the sum stays there
    taken: str  # what nothing in sight says of the numbers that it is multiplied or divided by, in a sentence


def host_sum(model: Model, read: Readback, *, of_powers: bool = False) -> HostSum:
    """The sum that a readback goes into, if nothing but its reads can tell where it is kept.

    `of_powers`: the term may be a power of the readback, of which torch may round the last bit another way.

    Raises NoFixError for any other readback.
    """
    (term, taken), loop = _term(model, read, of_powers), read.loop
    update = _update(model, term) if term is not None else None
    binding = model.binding(_target(update)) if update is not None else None
    if term is None or update is None or loop is None or binding is None:
        raise NoFixError("the number is not simply added to a variable of the function")
    name = binding.name
    if is_seen_elsewhere(model, binding):
        raise NoFixError(f"other code sees `{name}`")
    writes = [write for write in binding.writes if write.target is not _target(update)]
    settled = _settled(model, writes, loop)
    writes = [write for write in writes if not _is_number_behind(model, write, settled)]
    starts = [model.value(write.value) for write in writes if write.value is not None and _is_start(model, write)]
    is_integer = read.is_count and all(start.dtype == "int" for start in starts)
    if not starts or not all(_keeps_exact(model, write, settled, loop, is_integer) for write in writes):
        raise NoFixError(f"`{name}` gets other values too, or starts from something that is no number in sight")
    reads = tuple(
        node
        for node in binding.reads
        if not _is_settled(model, node, settled)
        and model.small_statement(node) is not update
        and reaches(model, binding, _target(update), node)
    )
    for node in reads:
        if is_inside(model, node, loop.node) and not is_log_gated(model, node, loop):
            raise NoFixError(f"the loop reads `{name}` on {model.place(node)}")
        if not takes_cast(model, node):
            raise NoFixError(f"no number can stand for `{name}` on {model.place(node)}")
    if not reads and settled is None and binding.is_global:
        raise NoFixError(f"nothing in the file reads `{name}`, so that it is there for others")
    if has_other_purpose(model, update, loop):
        raise NoFixError("an exception is caught around it, or a copy waits for it")
    added = [update, *(write.target for write in binding.writes if write.kind == "augmented")]
    if is_partly_in_inference(model, added):
        raise NoFixError(f"`{name}` would be made in inference mode, and torch changes no such tensor outside of it")
    starts_float = all(start.dtype == "float" for start in starts)
    return HostSum(update, term, settled, reads, starts_float, is_integer, is_timed(loop), taken)


def told_from_float(model: Model, total: HostSum) -> cst.BaseExpression | None:
    """A read that can tell an integer 0 from 0.0, which it sees after a loop that never ran if the sum is read so."""
    if total.is_integer or total.starts_float:
        return None
    return next((read for read in total.reads if not _hides_type(model, read)), None)


def is_wrapped(model: Model, read: cst.CSTNode, *casts: str) -> bool:
    """Whether the read is all that `int(...)` or `float(...)` is called on."""
    call = model.parent(model.parent(read) or read)
    return isinstance(call, cst.Call) and model.call(call).callee in casts and len(call.args) == 1


# -- the loop --------------------------------------------------------------------------------------------------------


def _term(model: Model, read: Readback, of_powers: bool) -> tuple[cst.CSTNode | None, str]:
    """The readback, or its product with Python numbers, or its quotient by one; and what is taken for granted of these:
    that an attribute is a number, `data.num_graphs`, and that what is divided by is not zero."""
    node: cst.CSTNode = read.node
    parent, taken = model.parent(node), ""
    while isinstance(parent, cst.BinaryOperation):
        other = parent.right if parent.left is node else parent.left
        value = model.value(other)
        is_number = value.kind is Kind.NUMBER and not value.optional
        if value.dtype == "complex" or not (is_number or _may_be_number(other, value)):
            break
        match parent.operator:
            case cst.Multiply():
                pass
            case cst.Divide() if other is parent.right:
                if not _is_exact_divisor(other):
                    taken = _RECIPROCAL
                if not _is_some(model, other):
                    taken = f"Where `{model.code(other)}` is 0, the sum becomes infinite and nothing is raised."
            case cst.Power() if other is parent.right and of_powers and is_number:
                pass
            case _:
                break
        if not is_number:
            what = "a number of Python" if taken in ("", _RECIPROCAL) else "a number of Python that is not 0"
            taken = f"`{model.code(other)}` is taken for {what}."
        node, parent = parent, model.parent(parent)
    is_term = not isinstance(parent, cst.BinaryOperation) or isinstance(parent.operator, cst.Add)
    return (node if is_term else None), taken


def _is_exact_divisor(number: cst.BaseExpression) -> bool:
    """A power of two: on a GPU, torch multiplies by the reciprocal of a number of Python."""
    value = number.evaluated_value if isinstance(number, (cst.Integer, cst.Float)) else 0
    return value > 0 and math.frexp(value)[0] == 0.5


def _may_be_number(node: cst.BaseExpression, value: Value) -> bool:
    """`data.num_graphs`, `batch_size`, of which nothing is known."""
    return value.kind is Kind.UNKNOWN and isinstance(node, (cst.Name, cst.Attribute))


def _is_some(model: Model, number: cst.BaseExpression) -> bool:
    """A number other than zero: a constant, or the length of what the loop has something of."""
    if isinstance(number, cst.Call):
        return model.call(number).callee == "builtins.len"
    return isinstance(number, cst.BaseNumber) and bool(model.value(number).constant)


def _update(model: Model, term: cst.CSTNode) -> cst.Assign | cst.AugAssign | None:
    """The statement `name += term` or `name = name + term`."""
    parent = model.parent(term)
    if isinstance(parent, cst.AugAssign):
        is_sum = isinstance(parent.operator, cst.AddAssign) and isinstance(parent.target, cst.Name)
        return parent if is_sum else None
    statement = model.parent(parent) if isinstance(parent, cst.BinaryOperation) else None
    match parent, statement:
        case (
            cst.BinaryOperation(left=cst.Name() as name, operator=cst.Add()),
            cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]),
        ) if name.value == target.value and parent.right is term:
            return statement
    return None


def is_partly_in_inference(model: Model, added: Iterable[cst.CSTNode]) -> bool:
    """Whether some of the places that add to a sum stand in `with torch.inference_mode():`, and others do not."""
    return len({_is_in_inference(model, node) for node in added}) > 1


def _is_in_inference(model: Model, node: cst.CSTNode) -> bool:
    blocks = (above for above in model.ancestors(node) if isinstance(above, cst.With))
    entered = (item.item for block in blocks for item in block.items)
    return any(isinstance(call, cst.Call) and model.call(call).callee == "torch.inference_mode" for call in entered)


def _target(update: cst.Assign | cst.AugAssign) -> cst.BaseExpression:
    return update.target if isinstance(update, cst.AugAssign) else update.targets[0].target


def is_seen_elsewhere(model: Model, binding: Binding) -> bool:
    """Whether another function has the sum, or a file that imports this one has its name: what is made where the file
    is run as a program is not there for those."""
    if binding.shared or binding.is_parameter:
        return True
    if all(any(map(is_main, model.ancestors(write.target))) for write in binding.writes):
        return False
    word = re.compile(rf"\b{re.escape(binding.name)}\b")
    texts = (source.text for source in model.users()) if binding.is_global else ()
    return any(binding.name in text and word.search(text) is not None for text in texts)


def is_log_gated(model: Model, node: cst.CSTNode, loop: Loop) -> bool:
    """Whether only some iterations of the loop read the sum, and so wait for the device."""
    return any(guard.kind == "log" for guard in model.guards(node, loop))


def is_inside(model: Model, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
    """Whether a node stands in another one."""
    return any(above is outer for above in model.ancestors(node))


def is_timed(loop: Loop) -> bool:
    """Whether the loop reads a clock."""
    return any(call.callee in _CLOCKS for call in loop.calls)


def stops_a_clock(model: Model, node: cst.CSTNode, loop: Loop) -> bool:
    """Whether a clock that the same iteration has started is stopped below a node, which waits until the device has
    done what it measures: `start = time.time()` above, and `took = time.time() - start` below."""
    clocks = [call.node for call in loop.calls if call.callee in _CLOCKS]
    starts = [
        clock for clock in clocks if is_before(model, clock, node) and isinstance(model.parent(clock), cst.Assign)
    ]
    block = getattr(model.parent(model.statement(node)), "body", ())
    below = [line for line in block if is_before(model, node, line)]
    return bool(starts) and any(clock in walk(line) for line in below for clock in clocks)


def has_other_purpose(model: Model, update: cst.CSTNode, loop: Loop, outer: cst.CSTNode | None = None) -> bool:
    """Whether the readback is more than its number: an exception is caught, within the loop or another around it, or an
    asynchronous copy waits for it."""
    last = outer or loop.node
    for above in model.ancestors(update):
        if above is last:
            break
        if catches(above, model):
            return True
    if any(map(reads_namespace, model.function(update).calls)):
        return True
    return any(_is_asynchronous(call.method, call.callee, call.node) for call in loop.calls)


def reads_namespace(call: Call) -> bool:
    """Whether a call may ask for variables by their names: `locals()`, `exec(code)`, but not `vars(args)`."""
    name = call.node.func.value if isinstance(call.node.func, cst.Name) else ""
    return name in _NAMESPACE_READERS or (name in _OF_AN_OBJECT_TOO and not call.arguments)


def _is_asynchronous(method: str | None, callee: str | None, node: cst.Call) -> bool:
    if method in ("record_stream", "wait_stream") or (callee or "").endswith(".Stream"):
        return True
    blocking = any(arg.keyword is not None and arg.keyword.value == "non_blocking" for arg in node.args)
    to_host = any(isinstance(arg.value, cst.SimpleString) and "cpu" in arg.value.value for arg in node.args)
    return blocking and (method in ("copy_", "cpu") or to_host)


# -- what else is written ----------------------------------------------------------------------------------------------


def _is_start(model: Model, write: Write) -> bool:
    if write.kind != "assign" or write.unpacked or write.value is None:
        return False
    value = model.value(write.value)
    return value.kind is Kind.NUMBER and not value.optional and value.dtype in ("int", "float")


def _settled(model: Model, writes: list[Write], loop: Loop) -> cst.Assign | cst.AugAssign | None:
    """`name /= count` or `name = name / count` in a block around the loop, behind it."""
    for write in writes:
        statement = model.small_statement(write.target)
        if isinstance(statement, cst.AugAssign):
            makes_number = isinstance(statement.operator, cst.DivideAssign)
        else:
            makes_number = (
                not write.unpacked and _is_number(model, write) and not isinstance(write.value, cst.BaseNumber)
            )
        if makes_number and isinstance(statement, (cst.Assign, cst.AugAssign)):
            block = model.parent(model.statement(statement))
            if is_before(model, loop.node, statement) and any(above is block for above in model.ancestors(loop.node)):
                return statement
    return None


def _is_number(model: Model, write: Write) -> bool:
    return write.kind == "assign" and write.value is not None and model.value(write.value).kind is Kind.NUMBER


def _keeps_exact(
    model: Model, write: Write, settled: cst.Assign | cst.AugAssign | None, loop: Loop, is_integer: bool
) -> bool:
    """Whether the write, the sum of another loop perhaps, comes out the same on the device as on the host."""
    statement = model.parent(write.target)
    if _is_start(model, write):  # in the loop too: the next term makes a new tensor
        return True
    if is_inside(model, write.statement, loop.node):
        return False
    if statement is settled:
        return True
    if not isinstance(statement, cst.AugAssign) or not isinstance(statement.operator, cst.AddAssign):
        return False
    value = model.value(statement.value)
    if is_integer:
        return value.is_(Kind.NUMBER, Kind.TENSOR) and value.dtype in ("int", "bool") and not value.optional
    return value.kind is Kind.NUMBER or any(_is_double(factor) for factor in _factors(statement.value))


def _factors(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        return [*_factors(node.left), *_factors(node.right)]
    return [node]


def _is_double(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "double"


# -- the reads -------------------------------------------------------------------------------------------------------


def _is_settled(model: Model, read: cst.CSTNode, settled: cst.Assign | cst.AugAssign | None) -> bool:
    """Whether the read stands behind the settling statement, in its block, and sees the number that it made."""
    if settled is None:
        return False
    above = list(model.ancestors(read))
    if settled in above:
        return False
    return any(block in above for block in blocks_around(settled, model)) and is_before(model, settled, read)


def blocks_around(node: cst.CSTNode, model: Model) -> list[cst.CSTNode]:
    """The block of a statement, and those around `with` statements that it is in: what stands there runs behind it."""
    blocks = [block] if (block := model.parent(model.statement(node))) is not None else []
    while blocks and isinstance(outer := model.parent(blocks[-1]), cst.With):
        blocks += [block] if (block := model.parent(outer)) is not None else []
    return blocks


def _is_number_behind(model: Model, write: Write, settled: cst.Assign | cst.AugAssign | None) -> bool:
    if isinstance(settled, cst.Assign) and model.small_statement(write.target) is settled:
        return True
    return _is_number(model, write) and _is_settled(model, write.target, settled)


def takes_cast(model: Model, read: cst.CSTNode) -> bool:
    """Whether `float(name)` can stand for `name`."""
    parent = model.parent(read)
    shows_name = isinstance(parent, cst.FormattedStringExpression) and parent.equal is not None
    return not isinstance(parent, cst.Del) and not shows_name


def _hides_type(model: Model, read: cst.CSTNode) -> bool:
    parent = model.parent(read)
    match parent:
        case cst.BinaryOperation(operator=cst.Divide(), left=left):
            return left is read
        case cst.BinaryOperation(operator=cst.Multiply()):
            return any(model.value(side).dtype == "float" for side in (parent.left, parent.right))
        case cst.BinaryOperation(operator=cst.Power(), left=left, right=right):
            return left is read and model.value(right).dtype == "float"
        case cst.FormattedStringExpression(format_spec=[cst.FormattedStringText(value=spec)]):
            return spec.endswith(_EXACT_FORMATS)
        case cst.Arg():
            return is_wrapped(model, read, "builtins.float")
    return False
