"""Steps that read from the device twice what one read could bring."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.conditions import are_alternatives
from torchlint.analyses.devices.host_use import Use
from torchlint.analyses.loops.steps import step_of
from torchlint.analyses.order import is_before
from torchlint.analyses.sync.element_reads import element_reads
from torchlint.analyses.sync.parameter_reads import parameter_reads
from torchlint.analyses.sync.readback import FOREIGN, Readback, deferrable_readbacks, reads
from torchlint.analyses.sync.shown import wants_number, warns_of_something
from torchlint.analyses.tensor_writes import Written, writing_mentions
from torchlint.semantics.dataflow import hold_the_same
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Grad

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

FORMATTED = "format"
PLAIN = frozenset({"item", "float"})  # ways to read a number as it is
_SAME_LINES = 20  # further down, nobody takes two reads for a pair
_BRANCHING = (cst.BaseComp, cst.CompFor, cst.Lambda, cst.IfExp, cst.BooleanOperation)


class Again(NamedTuple):
    """A number that was read before, earlier in the same step."""

    first: Readback
    read: Readback


class Several(NamedTuple):
    """The numbers that one statement reads, one by one."""

    reads: list[Readback]


class Numbers(NamedTuple):
    """The deferrable reads of numbers of a file: each is single, or one of several, or there again."""

    single: list[Readback]
    several: list[Several]
    again: list[Again]


def numbers(model: Model) -> Numbers:
    """The numbers that each step reads from the device, by what there is to say of them."""
    others = {node for found in model.once(element_reads) for node in found.nodes}
    others |= {found.node for found in parameter_reads(model)}
    found = Numbers([], [], [])
    groups: dict[cst.CSTNode, list[Readback]] = {}
    read_before: dict[object, list[Readback]] = {}  # by their variables
    for read in deferrable_readbacks(model):
        if not read.is_number or read.node in others or warns_of_something(model, read.node, read.step):
            continue
        same = read_before.setdefault((read.loop, model.binding(read.tensor)), [])
        first = next((earlier for earlier in same if _reads_the_same(model, earlier, read)), None)
        first = first or _needed_before(model, read)
        if first is not None:
            found.again.append(Again(first, read))
            continue
        same.append(read)
        groups.setdefault(model.small_statement(read.node) or read.node, []).append(read)
    for group in groups.values():
        summed = [read for read in group if Use.ACCUMULATED in read.use]
        beside = [read for read in group[1:] if not are_alternatives(model, group[0].node, read.node)]
        if beside and not summed:
            found.several.append(Several([group[0], *beside]))
        else:
            found.single.append((summed or group)[0])
    return found


def later_reads(model: Model, first: Readback) -> Iterator[Readback]:
    """What reads the number of a first read later in the same step and is no finding of its own: an assertion, or
    `f"{loss:.4f}"`."""
    for node, tensor, how in model.once(_untold).get(model.binding(first.tensor), ()):
        if node is first.node or not (how == FORMATTED or _give_the_same(first, how)):
            continue
        read = replace(first, node=node, tensor=tensor)
        is_later = model.function(node) is model.function(first.node) and is_before(model, first.node, node)
        if is_later and _reads_the_same(model, first, read):
            yield read


def read_twice_elsewhere(model: Model, first: Readback, taken: Container[cst.CSTNode]) -> cst.CSTNode | None:
    """Where the same step reads the number twice once more, on another way, of which no finding speaks: in a branch at
    an interval that says what this one says."""
    binding = model.binding(first.tensor)
    others = [
        replace(first, node=node, tensor=tensor)
        for node, tensor, how in reads(model)
        if _give_the_same(first, how) and node not in taken and model.binding(tensor) is binding
    ]
    others = [read for read in others if model.function(read.node) is model.function(first.node)]
    pairs = ((read, again) for read in others for again in others if is_before(model, read.node, again.node))
    return next((again.node for read, again in pairs if _reads_the_same(model, read, again)), None)


def another_read_twice(model: Model, again: Again, taken: Container[cst.CSTNode]) -> cst.Call | None:
    """`float(second)` beside `float(first)`, both written twice in the same lines, of which no finding speaks twice:
    it may be a number already, or be read under a condition."""
    block = list(getattr(model.parent(model.statement(again.first.node)), "body", ()))
    start, end = (model.statement(read.node) for read in (again.first, again.read))
    lines = block[block.index(start) : block.index(end) + 2][:_SAME_LINES] if start in block and end in block else []
    form = _form(again.first.node)
    read: dict[str, cst.Call] = {}
    for node in (node for line in lines if isinstance(line, cst.SimpleStatementLine) for node in walk(line)):
        is_like = isinstance(node, cst.Call) and node not in taken and _form(node) == form is not None
        if isinstance(node, cst.Call) and is_like and read.setdefault(model.code(node), node) is not node:
            return node
    return None


def _form(node: cst.BaseExpression) -> str | None:
    """`float` of `float(x)`, `item` of `x.item()`, for a variable."""
    match node:
        case cst.Call(func=cst.Name(value=name), args=[cst.Arg(value=cst.Name() | cst.Attribute())]):
            return name
        case cst.Call(func=cst.Attribute(value=cst.Name() | cst.Attribute(), attr=cst.Name(value=name)), args=[]):
            return name
    return None


def _told(model: Model) -> set[cst.BaseExpression]:
    found = model.once(numbers)
    told = {*(again.read.node for again in found.again), *(read.node for read in found.single)}
    return told | {read.node for several in found.several for read in several.reads}


def _untold(model: Model) -> dict[Binding | None, list[tuple[cst.BaseExpression, cst.BaseExpression, str]]]:
    """What else reads numbers, by their variables."""
    told = model.once(_told)
    found: dict[Binding | None, list[tuple[cst.BaseExpression, cst.BaseExpression, str]]] = {}
    for node, tensor, how in (*reads(model), *_formatted(model)):
        if node not in told:
            found.setdefault(model.binding(tensor), []).append((node, tensor, how))
    return found


def _formatted(model: Model) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression, str]]:
    """`loss` of `f"{loss:.4f}"`"""
    for text in model.nodes_of(cst.FormattedString):
        assert isinstance(text, cst.FormattedString)
        for part in text.parts:
            match part:
                case cst.FormattedStringExpression(expression=cst.Name() as name, conversion=None):
                    if wants_number(model, part):
                        yield name, name, FORMATTED


def _needed_before(model: Model, read: Readback) -> Readback | None:
    """An earlier read of the same number that the step waits for: `if math.isnan(loss.item()): ...`"""
    for node, tensor, how in model.once(_of_variables).get(model.binding(read.tensor), ()):
        if not _give_the_same(read, how) or step_of(model, node) != read.step:
            continue
        if is_before(model, node, read.node) and is_read_each_time(model, node):
            earlier = replace(read, node=node, tensor=tensor, how=how)
            if _reads_the_same(model, earlier, read):
                return earlier
    return None


def _of_variables(model: Model) -> dict[Binding | None, list[tuple[cst.Call, cst.Name, str]]]:
    """The reads of variables, by the variable, each with how it reads."""
    found: dict[Binding | None, list[tuple[cst.Call, cst.Name, str]]] = {}
    for node, tensor, how in reads(model):
        if isinstance(tensor, cst.Name):
            found.setdefault(model.binding(tensor), []).append((node, tensor, how))
    return found


def is_read_each_time(model: Model, node: cst.CSTNode) -> bool:
    """Whether each run of its statement, or of the head of it, comes by a node."""
    statement = model.small_statement(node) or model.statement(node)
    below = node
    for above in model.ancestors(node):
        match above:
            case cst.Assert(msg=message) if message is below:
                return False
            case cst.Comparison(comparisons=[_, *later]) if below in later:
                return False
        if above is statement:
            return True
        if isinstance(above, _BRANCHING):
            return False
        below = above
    return True


def _give_the_same(read: Readback, how: str) -> bool:
    """Whether reading it in another way brings the same number: `float(loss)` of a real one is `loss.item()`."""
    is_float = read.value.dtype == "float" or read.value.grad is Grad.CARRIES
    return how == read.how or (is_float and {how, read.how} <= PLAIN)


def _reads_the_same(model: Model, first: Readback, read: Readback) -> bool:
    """Whether both read one variable, between which nothing writes it and on the same way through the step."""
    if first.loop is not read.loop or not isinstance(read.tensor, cst.Name) or not isinstance(first.tensor, cst.Name):
        return False
    binding = model.binding(read.tensor)
    if binding is None or binding is not model.binding(first.tensor) or not _give_the_same(read, first.how):
        return False
    if read.how == FOREIGN and model.code(first.node) != model.code(read.node):
        return False  # another function, or for other arguments, reads numbers of its own
    block = model.parent(model.statement(first.node))
    if not any(above is block for above in model.ancestors(read.node)):
        return False
    return hold_the_same(model, first.tensor, read.tensor) and written_between(model, first, read) < Written.SURELY


def written_between(model: Model, first: Readback, read: Readback) -> Written:
    """Whether something writes to the variable of both between the two."""
    binding = model.binding(first.tensor)
    assert binding is not None
    found = (how for node, how in writing_mentions(model, binding) if _is_between(model, node, first, read))
    return max(found, default=Written.NEVER)


def _is_between(model: Model, node: cst.CSTNode, first: Readback, read: Readback) -> bool:
    if model.function(node) is not model.function(read.node):
        return True  # whenever that runs
    around_both = model.loops_around(first.node)
    comes_round = {*model.loops_around(node)} & {*model.loops_around(read.node)}.difference(around_both)
    is_earlier = bool(comes_round) or is_before(model, node, read.node)
    return is_earlier and is_before(model, first.node, node)
