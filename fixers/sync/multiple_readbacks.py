"""Reads several numbers at once, or one number once."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers._together import places_of

from torchlint.analyses.devices.visible_devices import names_several_gpus
from torchlint.analyses.exceptions import is_caught
from torchlint.analyses.loops.steps import step_of
from torchlint.analyses.order import is_before
from torchlint.analyses.sync.readback import reads as all_reads
from torchlint.analyses.sync.repeated_reads import (
    PLAIN,
    Again,
    Several,
    another_read_twice,
    is_read_each_time,
    later_reads,
    numbers,
    read_twice_elsewhere,
    written_between,
)
from torchlint.analyses.sync.shown import shown_tensors
from torchlint.analyses.tensor_writes import Written
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.tree import last_name, walk
from torchlint.semantics.values import Grad
from torchlint.semantics.vocabulary import is_reduction

from ._expressions import new_name, only_computes
from ._sums import is_told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.analyses.sync.readback import Readback
    from torchlint.finding import Places
    from torchlint.rule import Report
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_STACKED = "The tensors have to be on one device, and come out in one type, as the same numbers if all are real."
_AS_STACKED = (Applicability.UNSAFE, _STACKED)
_NAMED = "Nothing writes to the tensor in between."
_UNNAMED = "value"
_SILENT = ("float", "double", "detach", "cpu")  # methods that a name need not tell of
_WORDS: dict[type[cst.BaseCompOp], str] = {
    cst.LessThan: "lt",
    cst.LessThanEqual: "le",
    cst.GreaterThan: "gt",
    cst.GreaterThanEqual: "ge",
    cst.Equal: "eq",
    cst.NotEqual: "ne",
}
_ENDS = (cst.Continue, cst.Break, cst.Return, cst.Raise)


def fix(report: Report, model: Model) -> Fix:
    facts = report.facts
    return _stacked(model, facts) if isinstance(facts, Several) else _named(model, facts)


def _stacked(model: Model, several: Several) -> Fix:
    """`a, b = torch.stack([x.detach(), y.detach()]).tolist()` before the statement."""
    reads = several.reads
    if names_several_gpus(model):
        raise NoFixError("the file names several GPUs, and tensors of two of them cannot be stacked")
    for read in reads:
        _check_can_move(model, read)
        if read.how not in PLAIN or not _is_real_number(read):
            raise NoFixError(f"`{model.code(read.node)}` is not known to read a single real number as it is")
    first = reads[0].node
    again = [again for again in model.once(numbers).again if any(again.first.node is read.node for read in reads)]
    if (other := _read_beside(model, [*reads, *(each.read for each in again)])) is not None:
        raise NoFixError(f"`{model.code(other)}` on {model.place(other)} waits in the same step anyway")
    rewriter = Rewriter(model)
    alike = (model.once(_returned_reads),) if isinstance(model.small_statement(first), cst.Return) else ()
    function, edits = rewriter.name_for("torch.stack", first)
    tensors, indent = [_detached(model, read) for read in reads], rewriter.indentation(first)
    values = _all_that_is_assigned(model, [read.node for read in reads]) if not again else None
    if values is not None:
        made = (rewriter.newline + indent).join(_lines([], function, tensors, indent, model))
        return Fix((*edits, rewriter.replace(values, made)), *_AS_STACKED, goes_with=alike)
    wishes = [_wish(read, model) for read in reads]
    if wishes.count(_UNNAMED) > 1:
        raise NoFixError("several of the numbers have no name to go by")
    names: list[str] = []
    for wish in wishes:
        names.append(new_name(model, wish, first, tuple(names)))
    lines = _lines(names, function, tensors, indent, model)
    edits = [*edits, rewriter.insert_before(first, *lines)]
    edits += [rewriter.replace(read.node, name) for read, name in zip(reads, names)]
    named = dict(zip((read.node for read in reads), names))
    edits += [rewriter.replace(each.read.node, named[each.first.node]) for each in again]
    return Fix(tuple(edits), *_AS_STACKED, goes_with=alike)


def _read_beside(model: Model, stacked: list[Readback]) -> cst.CSTNode | None:
    """What else waits in the same step: for one of the variables, as a curve does that gets it as it is, or in the same
    statement."""
    nodes = {read.node for read in stacked}
    statements = {model.small_statement(read.node) for read in stacked}
    variables = {binding for read in stacked for binding in _variables(model, read.tensor)}
    read: list[tuple[cst.BaseExpression, list[cst.BaseExpression]]] = []
    read += [(node, [tensor]) for node, tensor, _ in all_reads(model)]
    read += [(shown.node, shown.tensors) for shown in shown_tensors(model)]
    return next(
        (
            node
            for node, tensors in read
            if node not in nodes
            and step_of(model, node) == stacked[0].step
            and (
                model.small_statement(node) in statements
                or any(binding in variables for tensor in tensors for binding in _variables(model, tensor))
            )
        ),
        None,
    )


def _variables(model: Model, tensor: cst.BaseExpression) -> Iterator[Binding]:
    names = (model.binding(node) for node in walk(tensor) if isinstance(node, cst.Name))
    return (binding for binding in names if binding is not None and not binding.is_global)


def _all_that_is_assigned(model: Model, reads: list[cst.BaseExpression]) -> cst.Tuple | None:
    """`a.item(), b.item()` of `a, b = a.item(), b.item()`"""
    match model.parent(element) if (element := model.parent(reads[0])) is not None else None:
        case cst.Tuple(elements=elements, lpar=[]) as values if [each.value for each in elements] == reads:
            match model.parent(values):
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=targets))]):
                    plain = all(isinstance(target, cst.Element) for target in targets)
                    return values if plain and len(targets) == len(reads) else None
    return None


def _returned_reads(model: Model) -> Places:
    """The reads of each `return loss.item(), accuracy.item()` of the file, which change together."""
    found: list[cst.CSTNode] = []
    for statement in model.nodes_of(cst.Return):
        items = [node for node in walk(statement) if isinstance(node, cst.Call) and model.call(node).method == "item"]
        found += items if len(items) > 1 else []
    return places_of(found, model)


def _lines(names: list[str], function: str, tensors: list[str], indent: str, model: Model) -> list[str]:
    """The statement on one line, or where that is too long, with a line for each tensor."""
    left = ", ".join(names) + " = " if names else ""
    whole = f"{left}{function}([{', '.join(tensors)}]).tolist()"
    if len(indent.expandtabs(4)) + len(whole) <= model.line_length:
        return [whole]
    return [f"{left}{function}([", *(f"    {tensor}," for tensor in tensors), "]).tolist()"]


def _spoken_of(model: Model) -> frozenset[cst.CSTNode]:
    return frozenset(read.node for each in model.once(numbers).again for read in (each.first, each.read))


def _named(model: Model, again: Again) -> Fix:
    """The name that the first read is given, or one that it gets now, in the place of the second."""
    first, read = again.first, again.read
    if not isinstance(first.tensor, cst.Name):
        raise NoFixError("what is read is no variable")
    if is_told(model, first.node) or is_told(model, read.node):
        raise NoFixError("a comment beside it explains the read")
    _check_can_move(model, first)
    statement = model.parent(first.node)
    rewriter = Rewriter(model)
    edits: list[Edit] = []
    beside = [other for other in later_reads(model, first) if first.how in PLAIN and not is_told(model, other.node)]
    taken = model.once(_spoken_of).union(other.node for other in beside)
    others = (read_twice_elsewhere(model, first, taken), another_read_twice(model, again, taken))
    alike = (places_of([other for other in others if other is not None], model),)
    is_written = any(written_between(model, first, other) is not Written.NEVER for other in (read, *beside))
    is_safe = _is_fresh(model, first) and not is_written
    applicability = Applicability.SAFE if is_safe else Applicability.UNSAFE
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]) if _is_written_once(model, target):
            name = target.value
        case _ if (moved := _assigned_earlier(model, again, rewriter)) is not None:
            return Fix(tuple(moved), applicability, _NAMED, goes_with=alike)
        case _:
            name = new_name(model, _wish(first, model), first.node)
            edits += [
                rewriter.insert_before(first.node, f"{name} = {model.code(first.node)}"),
                rewriter.replace(first.node, name),
            ]
    edits += [rewriter.replace(other.node, name) for other in (read, *beside)]
    return Fix(tuple(edits), applicability, _NAMED, goes_with=alike)


def _assigned_earlier(model: Model, again: Again, rewriter: Rewriter) -> list[Edit] | None:
    """`shown = loss.item()`, the second read, in front of the statement of the first one, which takes the name too."""
    first, read = again.first.node, again.read.node
    match model.parent(read):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name) as target)]) as assign:
            binding = model.binding(target)
        case _:
            return None
    line = model.statement(assign)
    is_beside = model.parent(line) is model.parent(model.statement(first))
    if binding is None or binding.shared or not is_beside or not _is_line_of_its_own(line):
        return None
    statement = model.small_statement(first)
    for node in (*binding.reads, *(write.target for write in binding.writes)):
        is_later = node is target or not is_before(model, node, read)
        if not is_later and (model.small_statement(node) is statement or not is_before(model, node, first)):
            return None
    removed = rewriter.remove_statement(assign)
    if removed is None or _may_end_between(model, model.statement(first), line) or is_caught(read, model):
        return None
    return [rewriter.insert_before(first, f"{name} = {model.code(first)}"), rewriter.replace(first, name), removed]


def _may_end_between(model: Model, first: cst.CSTNode, last: cst.CSTNode) -> bool:
    """Whether an iteration, or the function, may end between two statements of a block."""
    block = list(getattr(model.parent(first), "body", ()))
    between = block[block.index(first) : block.index(last)]
    return any(isinstance(node, _ENDS) for line in between for node in walk(line))


def _is_line_of_its_own(line: cst.CSTNode | None) -> bool:
    """Whether a statement shares its line with no other one, and no comment speaks of it."""
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return False
    above = line.leading_lines
    return line.trailing_whitespace.comment is None and all(empty.comment is None for empty in above)


def _check_can_move(model: Model, read: Readback) -> None:
    """It must be possible to read right before the statement, which reads on every way."""
    statement = model.small_statement(read.node)
    head = model.statement(read.node) if statement is None else None
    if head is not None and (not isinstance(head, cst.If) or isinstance(model.parent(head), cst.If)):
        raise NoFixError(f"`{model.code(read.node)}` stands in the head of a statement")
    if not is_read_each_time(model, read.node):
        raise NoFixError(f"`{model.code(read.node)}` is not read each time that its statement runs")
    if statement is not None and not isinstance(model.parent(statement), cst.SimpleStatementLine):
        raise NoFixError("the statement has no line of its own")
    if not only_computes(model, read.tensor):
        raise NoFixError(f"`{model.code(read.tensor)}` may do more than compute")


def _is_real_number(read: Readback) -> bool:
    value = read.value
    return value.rank == 0 and not value.optional and (value.dtype == "float" or value.grad is Grad.CARRIES)


def _is_written_once(model: Model, target: cst.Name) -> bool:
    binding = model.binding(target)
    return binding is not None and len(binding.writes) == 1 and not binding.shared


def _is_fresh(model: Model, read: Readback) -> bool:
    """Whether the tensor is a result of its own, which no other part of the program holds."""
    binding = model.binding(read.tensor)
    writes = [write.value for write in binding.writes] if binding is not None else []
    return _is_real_number(read) and all(
        isinstance(value, cst.BinaryOperation)
        or (isinstance(value, cst.Call) and is_reduction(model.call(value).method or "sum"))
        for value in writes
    )


def _detached(model: Model, read: Readback) -> str:
    text = model.code(read.tensor)
    if read.value.grad is Grad.DETACHED:
        return text
    is_atom = isinstance(read.tensor, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or text.startswith("(")
    return f"{text if is_atom else f'({text})'}.detach()"


def _wish(read: Readback, model: Model) -> str:
    """`loss_value` for `loss`, or `loss_item` where the file has one; `out_mean` for `out.mean()`, `loss_sum` for
    `loss_a + loss_b`, `epe_lt_3_mean` for `(epe < 3).float().mean()`."""
    match _past_silent(read.tensor):
        case (cst.Name() | cst.Attribute()) as variable:
            name = last_name(variable)
            return f"{name}_item" if re.search(rf"\b{name}_value\b", model.source.text) else f"{name}_value"
        case cst.Call():
            return _of_call(read.tensor) or _UNNAMED
        case cst.Subscript() as part:
            return _of_part(part) or _UNNAMED
        case cst.BinaryOperation(operator=cst.Add(), left=left, right=right):
            pairs = takewhile(lambda pair: pair[0] == pair[1], zip(last_name(left), last_name(right)))
            shared = "".join(letter for letter, _ in pairs).rstrip("_0123456789")
            return f"{shared}_sum" if len(shared) > 1 else "sum_value"
    return _UNNAMED


def _past_silent(node: cst.BaseExpression) -> cst.BaseExpression:
    """`loss` of `loss.detach().float()`."""
    match node:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=method))) if method in _SILENT:
            return _past_silent(inner)
    return node


def _of_call(node: cst.BaseExpression) -> str:
    """`out_mean` of `out.mean()` or `torch.mean(out)`; casts and moves say nothing. Nothing where no name is in it."""
    match node:
        case cst.Call(
            func=cst.Attribute(value=cst.Name(value="torch"), attr=cst.Name(value=method)), args=[cst.Arg(value=of), *_]
        ):
            pass
        case cst.Call(func=cst.Attribute(value=of, attr=cst.Name(value=method))):
            pass
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=limit)]):
            word, number = _WORDS.get(type(operator)), limit.value if isinstance(limit, cst.Integer) else ""
            words = [_of_call(left), word or "", number or _of_call(limit)]
            return "_".join(words) if all(words) else ""
        case cst.Subscript():
            return _of_part(node)
        case _:
            return last_name(node)
    inner = _of_call(of)
    return inner if method in _SILENT or not inner else f"{inner}_{method}"


def _of_part(part: cst.Subscript) -> str:
    """`scores_0` of `scores[:, 0]`: the numbers that are written out."""
    name = _of_call(part.value)
    places = [element.slice.value for element in part.slice if isinstance(element.slice, cst.Index)]
    written = [place.value for place in places if isinstance(place, cst.Integer)]
    return "_".join([name, *written]) if name and len(written) == len(places) else ""
