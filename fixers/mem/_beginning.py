"""How a tensor that grows in a loop begins, and how the list begins that takes its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.counters import asks_for_first
from torchlint.analyses.mem.cat_growth import Growth
from torchlint.analyses.order import is_before
from torchlint.edits.rewriter import Rewriter
from torchlint.rule import NoFixError
from torchlint.semantics.tree import is_name, walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.finding import Edit
    from torchlint.semantics.model import Model

_MAY_BE_TENSORS = (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN)


@dataclass(frozen=True)
class Beginning:
    """`edits` make the list. `appends` is the statement that becomes an `append`, and behind `loop` the parts are put
    together. `value` is the first part, `made` the statement before the loop that has it, if none in the loop does.
    `otherwise` is what there was before the loop, if it was no tensor: it is left where there are no parts."""

    loop: cst.CSTNode
    value: cst.BaseExpression
    edits: tuple[Edit, ...]
    appends: cst.CSTNode
    made: cst.Assign | None = None
    otherwise: str = ""
    test: cst.BaseExpression | None = None  # that asked for the tensor, and asks for the list
    is_in_branch: bool = False  # which is left, with the list that begins in it


@dataclass(frozen=True)
class _Choice:
    """Between the `first` part and the growth, in `node`: the one comes where `test` holds, or where it does not."""

    node: cst.CSTNode
    test: cst.BaseExpression
    first: cst.BaseExpression
    begins: bool


def beginning(model: Model, growth: Growth, parts: str) -> Beginning:
    """How the list `parts` begins. Raises NoFixError."""
    statement, loop = model.small_statement(growth.call), growth.loops[-1].node
    written = NoFixError(f"`{growth.name}` is written in other ways too")
    targets = [write.target for write in growth.binding.writes]
    if not isinstance(statement, cst.Assign) or any(
        model.function(target) is not growth.loops[-1].function for target in targets
    ):
        raise written
    firsts = [
        target
        for target in targets
        if loop in model.ancestors(target) and model.small_statement(target) is not statement
    ]
    if not firsts and statement.value is growth.call:
        return _made_before(model, growth, statement, parts)
    if not firsts and isinstance(statement.value, cst.IfExp):
        found = _without_choice(model, growth, _of_expression(statement, statement.value, growth), parts)
        if found is None:
            raise NoFixError(f"the loop asks for the length of `{growth.name}`, or whether there is one yet")
        return found
    first = model.small_statement(firsts[0])
    branches = _branches(model, statement, first)
    if len(firsts) > 1 or branches is None or not isinstance(first, cst.Assign):
        raise written
    if [target.target for target in first.targets] != firsts or not model.value(first.value).is_(*_MAY_BE_TENSORS):
        raise written
    choice = _of_branches(model, branches, first)
    found = _without_choice(model, growth, choice, parts) if choice is not None else None
    return found if found is not None else _begun_in_branch(model, growth, statement, first, branches, parts)


def _of_expression(statement: cst.Assign, value: cst.IfExp, growth: Growth) -> _Choice:
    """`x = part if x is None else torch.cat([x, part])`"""
    begins = value.orelse is growth.call
    return _Choice(statement, value.test, value.body if begins else value.orelse, begins)


def _of_branches(model: Model, branches: cst.If, first: cst.Assign) -> _Choice | None:
    """Branches in which nothing else is done."""
    assert branches.orelse is not None
    if _lines(branches.body) > 1 or _lines(branches.orelse.body) > 1:
        return None
    return _Choice(branches, branches.test, first.value, model.statement(first) in branches.body.body)


def _branches(model: Model, growth: cst.CSTNode, first: cst.CSTNode | None) -> cst.If | None:
    """The condition of `if ...: x = part` and `else: x = torch.cat([x, part])`, or the other way round."""
    if first is None:
        return None
    block, other = (model.parent(model.statement(node)) for node in (growth, first))
    condition = model.parent(block) if block is not None else None
    condition = model.parent(condition) if isinstance(condition, cst.Else) else condition
    if not isinstance(condition, cst.If) or not isinstance(condition.orelse, cst.Else):
        return None
    return condition if {block, other} == {condition.body, condition.orelse.body} else None


def _made_before(model: Model, growth: Growth, statement: cst.Assign, parts: str) -> Beginning:
    """The tensor is made in the block of the loop, and nobody reads it in between."""
    loop = growth.loops[-1].node
    _check_is_unwatched(growth)
    found = _assignment_before(model, growth, loop)
    if found is None:
        raise NoFixError(f"`{growth.name}` is not made right before the loop, or read in between")
    made, target, value = found
    if model.value(value).kind is not Kind.TENSOR:
        raise NoFixError(f"what `{growth.name}` is before the loop is not known to be a tensor")
    rewriter = Rewriter(model)
    edits = (rewriter.replace(target, parts), *rewriter.wrap(value, "[", "]"))
    return Beginning(loop, value, edits, statement, made)


def _without_choice(model: Model, growth: Growth, choice: _Choice, parts: str) -> Beginning | None:
    """Either way the same part is taken, and only the first iteration has to begin. None where that is not so."""
    if len(growth.parts) > 1 or not growth.parts[0].deep_equals(choice.first):
        return None
    nothing = _nothing_before(model, growth)
    if _asks_for_none(choice.test, growth.name, choice.begins):
        if nothing is None or nothing.value != "None" or len(_reads_inside(model, growth, nothing.loop)) > 1:
            return None
        return Beginning(nothing.loop, choice.first, nothing.becomes_list(model, parts), choice.node, None, "None")
    if not choice.begins or not asks_for_first(model, choice.test, growth.loops[:1]):
        return None
    _check_is_unwatched(growth)
    if nothing is not None and nothing.loop is growth.loops[0].node:
        edits = nothing.becomes_list(model, parts)
        return Beginning(nothing.loop, choice.first, edits, choice.node, None, nothing.value)
    loop = growth.loops[0].node
    if _is_written_before(model, growth, loop):
        return None
    _check_is_read_anyway(model, growth, loop)
    return Beginning(loop, choice.first, (Rewriter(model).insert_before(loop, f"{parts} = []"),), choice.node)


def _begun_in_branch(
    model: Model, growth: Growth, statement: cst.Assign, first: cst.Assign, condition: cst.If, parts: str
) -> Beginning:
    """The list begins where the tensor does, in one branch of a condition, and gets longer in the other."""
    rewriter, nothing = Rewriter(model), _nothing_before(model, growth)
    edits = (rewriter.replace(first.targets[0].target, parts), *rewriter.wrap(first.value, "[", "]"))
    begins = model.statement(first) in condition.body.body
    if nothing is not None:
        test = condition.test if _asks_for_none(condition.test, growth.name, begins) else None
        asks = (rewriter.replace(condition.test, f"not {parts}" if begins else parts),) if test is not None else ()
        edits = (*nothing.becomes_list(model, parts), *asks, *edits)
        return Beginning(nothing.loop, first.value, edits, statement, None, nothing.value, test, is_in_branch=True)
    _check_is_unwatched(growth)
    unread = [loop.node for loop in growth.loops if not _reads_inside(model, growth, loop.node)]
    if not unread or _is_written_before(model, growth, unread[-1]):
        raise NoFixError(f"`{growth.name}` is written in other ways too")
    loop = unread[-1]
    _check_is_read_anyway(model, growth, loop)
    return Beginning(loop, first.value, edits, statement, is_in_branch=True)


@dataclass(frozen=True)
class _Nothing:
    """`target = value` right before a loop, with a value that is no tensor, so that nothing can be put together with
    it: None or a number."""

    loop: cst.CSTNode
    target: cst.BaseExpression
    node: cst.BaseExpression
    value: str

    def becomes_list(self, model: Model, parts: str) -> tuple[Edit, ...]:
        rewriter = Rewriter(model)
        return rewriter.replace(self.target, parts), rewriter.replace(self.node, "[]")


def _nothing_before(model: Model, growth: Growth) -> _Nothing | None:
    for loop in growth.loops:
        found = _assignment_before(model, growth, loop.node)
        if found is not None:
            _, target, value = found
            is_nothing = is_name(value, "None") or isinstance(value, (cst.Integer, cst.Float))
            return _Nothing(loop.node, target, value, model.code(value)) if is_nothing else None
    return None


def _is_written_before(model: Model, growth: Growth, loop: cst.CSTNode) -> bool:
    """Whether the loop may find a tensor that something else than the loop has left."""
    outside = [write for write in growth.binding.writes if loop not in model.ancestors(write.target)]
    in_function = takewhile(lambda around: not isinstance(around, cst.FunctionDef), model.ancestors(loop))
    comes_again = any(isinstance(around, (cst.For, cst.While)) for around in in_function)
    return any(comes_again or not is_before(model, loop, write.target) for write in outside)


def _check_is_read_anyway(model: Model, growth: Growth, loop: cst.CSTNode) -> None:
    """A loop of no iterations leaves no tensor, which a line behind it, under no other condition, has to need."""
    blocks = {model.parent(loop)}
    for around in model.ancestors(loop):
        if isinstance(around, cst.With):
            blocks.add(model.parent(around))
        elif around not in blocks:
            break
    lines = (model.statement(read) for read in growth.binding.reads if is_before(model, loop, read))
    needing = (line for line in lines if isinstance(line, cst.SimpleStatementLine) and model.parent(line) in blocks)
    if all(any(is_before(model, loop, guard.node) for guard in model.guards(line)) for line in needing):
        raise NoFixError(f"the loop may leave `{growth.name}` without a value")


def _check_is_unwatched(growth: Growth) -> None:
    if growth.watched:
        raise NoFixError(f"the loop asks for the length of `{growth.name}`, or whether there is one yet")


def _reads_inside(model: Model, growth: Growth, loop: cst.CSTNode) -> list[cst.CSTNode]:
    """The reads in the loop but for that of the growth itself."""
    inside = [read for read in growth.binding.reads if loop in model.ancestors(read)]
    return [read for read in inside if growth.call not in model.ancestors(read)]


def _lines(suite: cst.BaseSuite) -> int:
    return sum(len(line.body) if isinstance(line, cst.SimpleStatementLine) else 2 for line in suite.body)


def _asks_for_none(test: cst.BaseExpression, name: str, begins: bool) -> bool:
    """`x is None` where the tensor begins under the condition, `x is not None` where it begins otherwise."""
    match test:
        case cst.Comparison(
            left=cst.Name(value=asked),
            comparisons=[cst.ComparisonTarget(operator=how, comparator=cst.Name(value="None"))],
        ):
            return asked == name and isinstance(how, cst.Is if begins else cst.IsNot)
    return False


def _assignment_before(
    model: Model, growth: Growth, loop: cst.CSTNode
) -> tuple[cst.Assign, cst.BaseExpression, cst.BaseExpression] | None:
    """The assignment in the block of the loop that gave the tensor its name, with the target and the value, if nobody
    reads it in between."""
    for line in _lines_before(model, loop):
        match line:
            case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=target)]) as made]):
                for one, value in _pairs(target, made.value):
                    if is_name(one, growth.name):
                        return made, one, value
        if any(is_name(node, growth.name) for node in walk(line)):
            return None
    return None


def _lines_before(model: Model, loop: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """From the last to the first, what runs before a loop whenever the loop does: in its block, and in those of the
    contexts that it is entered in."""
    node: cst.CSTNode | None = loop
    while node is not None:
        block = model.parent(node)
        lines = list(getattr(block, "body", ()))
        yield from reversed(lines[: lines.index(node)])
        node = model.parent(block) if block is not None else None
        if not isinstance(node, cst.With):
            return
        yield from node.items


def _pairs(
    target: cst.BaseAssignTargetExpression, value: cst.BaseExpression
) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """`x, y = torch.zeros(0), torch.ones(0)` as two assignments."""
    if not isinstance(target, cst.Tuple):
        return [(target, value)]
    if not isinstance(value, cst.Tuple) or len(value.elements) != len(target.elements):
        return []
    both = (*target.elements, *value.elements)
    if any(isinstance(element, cst.StarredElement) for element in both):
        return []
    return [(one.value, other.value) for one, other in zip(target.elements, value.elements, strict=True)]
