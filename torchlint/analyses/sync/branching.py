"""Decisions that Python makes by a value on the device although the step does not hang on them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.devices.host_calls import is_log
from torchlint.analyses.devices.host_use import DEFERRABLE, KEPT, HostFlow
from torchlint.analyses.loops.steps import Step, step_around, step_of
from torchlint.analyses.sync.claims import is_worth_its_wait
from torchlint.analyses.sync.host_sizes import becomes_size
from torchlint.analyses.sync.residence import Residence
from torchlint.analyses.sync.tallies import is_truth
from torchlint.semantics.dataflow import text
from torchlint.semantics.entities import Role
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.semantics.entities import Loop
    from torchlint.semantics.model import Model

_CHECKS = frozenset(
    "builtins.bool builtins.any builtins.all math.isnan math.isinf math.isfinite numpy.isnan numpy.isinf".split()
)
_ORDERS = (cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_LIMITS = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_STEPS = (Role.STEPS, Role.EVALUATION)


class Purpose(Enum):
    """What a decision on a tensor is for, where it could be made without a wait."""

    CLAIM = "claim"  # an assertion
    REPORT = "report"  # an `if` that does no more than print
    FLAG = "flag"  # `if tensor and flag`: the flag alone could have decided
    MASK = "mask"  # `if mask.any(): x[mask] = 0`, which does nothing where the mask is empty
    BOUND = "bound"  # `max(0, tensor)`, `tensor if tensor > 0 else 0`, by which Python compares
    COUNT = "count"  # `if guess == truth: hits += 1`, where nothing looks at the count before the end


class Decision(NamedTuple):
    """A place where Python asks for the truth of a tensor."""

    statement: cst.Assert | cst.If | cst.Call | cst.IfExp
    tensor: cst.BaseExpression  # the first that the test looks at
    purpose: Purpose
    step: Step


def follows_answer(model: Model, residence: Residence, node: cst.CSTNode, step: Step) -> bool:
    """Whether the node runs only where a test that has waited for the device says so."""
    above = set(model.ancestors(node))
    return any(
        residence.may_be_device(leaf, step)
        for guard in model.guards(node, inside=step.loop)
        if guard.test is not None and guard.branch == "body" and guard.node in above
        for leaf in tensors_asked(model, guard.test)
    )


def needless_decisions(model: Model) -> Iterator[Decision]:
    """Decisions in every step that nothing in the step hangs on, in source order but for the kinds of statements."""
    residence = model.once(Residence)
    for node in model.nodes_of(cst.Assert, cst.If):
        assert isinstance(node, (cst.Assert, cst.If))
        purpose = _purpose(model, node)
        step = waiting_step(model, node) if purpose is not None else None
        if purpose is None or step is None:
            continue
        test = node.test.left if purpose is Purpose.FLAG and isinstance(node.test, cst.BooleanOperation) else node.test
        looked_at = (leaf for leaf in tensors_asked(model, test) if residence.may_be_device(leaf, step))
        tensor = next(looked_at, None)
        if tensor is not None and not (purpose is Purpose.CLAIM and is_worth_its_wait(model, node, tensor)):
            yield Decision(node, tensor, purpose, step)
    yield from _bounds(model, residence)


def _bounds(model: Model, residence: Residence) -> Iterator[Decision]:
    """`max(0, tensor)` and `min(a, b)` of single numbers on the device: of a clamp, nobody asks the outcome,
    unless it is a size or a bound, which the host needs."""
    for node, given in _clamped(model):
        if not all(model.value(value).is_(Kind.TENSOR, Kind.NUMBER) for value in given):
            continue
        step = waiting_step(model, node)
        if step is None:
            continue
        tensor = next((value for value in given if residence.may_be_device(value, step)), None)
        if tensor is None or follows_answer(model, residence, node, step):
            continue
        if not becomes_size(model, node):
            yield Decision(node, tensor, Purpose.BOUND, step)


def _clamped(model: Model) -> Iterator[tuple[cst.Call | cst.IfExp, list[cst.BaseExpression]]]:
    """What takes the greatest or the least of several things, and these."""
    for call in model.calls_to("builtins.max", "builtins.min"):
        given = [arg.value for arg in call.arguments if arg.keyword is None and not arg.star]
        if len(given) > 1 and len(given) == len(call.arguments):
            yield call.node, given
    for node in model.nodes_of(cst.IfExp):
        match node:
            case cst.IfExp(
                test=cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(order, right)]),
                body=body,
                orelse=other,
            ) if isinstance(order, _LIMITS) and {text(left), text(right)} == {text(body), text(other)}:
                yield node, [body, other]


def waiting_step(model: Model, node: cst.CSTNode) -> Step | None:
    """The training step or evaluation batch that runs a node every time, in a loop over parameters perhaps."""
    step = step_of(model, node)
    if (step is not None and step.role not in _STEPS) or (step is None and _is_over_parameters(model.loop(node))):
        step = step_around(model, node)
    return step if step is not None and step.role in _STEPS else None


def _is_over_parameters(loop: Loop | None) -> bool:
    return loop is not None and loop.role is Role.MODULES


def _purpose(model: Model, node: cst.Assert | cst.If) -> Purpose | None:
    if isinstance(node, cst.Assert):
        return Purpose.CLAIM
    if _is_flag_last(model, node.test):
        return Purpose.FLAG
    if node.orelse is not None or isinstance(model.parent(node), cst.If):
        return None
    statements = [small for line in node.body.body for small in _small_statements(line)]
    if statements and all(_only_reports(model, small) for small in statements):
        return None if _is_flag_first(model, node.test) else Purpose.REPORT
    if len(statements) != 1:
        return None
    if _fills_mask(model, node.test, statements[0]):
        return Purpose.MASK
    return Purpose.COUNT if _only_counts(model, node, statements[0]) else None


def _small_statements(node: cst.CSTNode) -> list[cst.CSTNode]:
    return list(node.body) if isinstance(node, cst.SimpleStatementLine) else [node]


def _only_reports(model: Model, statement: cst.CSTNode) -> bool:
    return (
        isinstance(statement, cst.Expr)
        and isinstance(statement.value, cst.Call)
        and is_log(model.call(statement.value))
    )


def _is_flag_last(model: Model, test: cst.BaseExpression) -> bool:
    match test:
        case cst.BooleanOperation(operator=cst.And(), right=cst.Name() | cst.Attribute() as flag):
            return not model.value(flag).is_(Kind.TENSOR, Kind.BATCH)
    return False


def _is_flag_first(model: Model, test: cst.BaseExpression) -> bool:
    """`debug and loss > 3`: where the flag is off, nobody asks the device."""
    match test:
        case cst.BooleanOperation(operator=cst.And(), left=flag):
            return next(tensors_asked(model, flag), None) is None
    return False


def _only_counts(model: Model, branch: cst.If, statement: cst.CSTNode) -> bool:
    """`hits += 1`, of which the loop wants to know nothing while it runs; with no flag that may save the question."""
    match statement:
        case _ if isinstance(branch.test, cst.BooleanOperation):
            return False
        case cst.AugAssign(operator=cst.AddAssign(), value=cst.Integer() | cst.Float()):
            use = HostFlow(model, model.loop(branch)).of_sum(statement)
            return bool(use & DEFERRABLE) and not use & KEPT
    return False


def _fills_mask(model: Model, test: cst.BaseExpression, statement: cst.CSTNode) -> bool:
    """`x[mask] = 0`, `x[t, mask] = y[mask]`: nothing, where the mask is empty."""
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript() as target)], value=value):
            mask = _mask(model, test)
            if mask is None or not is_truth(model, mask) or not _is_indexed_by(model, target, mask):
                return False
            is_number = model.value(value).kind is Kind.NUMBER
            return is_number or (isinstance(value, cst.Subscript) and _is_indexed_by(model, value, mask))
    return False


def _is_indexed_by(model: Model, part: cst.Subscript, mask: cst.BaseExpression) -> bool:
    """By the mask, and besides by numbers and slices."""
    indices = [element.slice.value for element in part.slice if isinstance(element.slice, cst.Index)]
    others = [index for index in indices if not _bare(index).deep_equals(_bare(mask))]
    return len(others) == len(indices) - 1 and all(model.value(index).kind is Kind.NUMBER for index in others)


def _bare(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=(), rpar=())


def _mask(model: Model, test: cst.BaseExpression) -> cst.BaseExpression | None:
    """`mask` of `mask.any()`, `torch.any(mask)` and `mask.sum() > 0`, also behind a condition that asks no tensor."""
    match test:
        case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
            return _mask(model, right) if not any(tensors_asked(model, left)) else None
        case cst.Comparison(
            left=cst.Call() as left, comparisons=[cst.ComparisonTarget(cst.GreaterThan(), cst.Integer(value="0"))]
        ):
            name, test = "sum", left
        case _:
            name = "any"
    if not isinstance(test, cst.Call):
        return None
    call = model.call(test)
    if call.method == name and call.receiver is not None and not test.args:
        return call.receiver
    return test.args[0].value if call.callee == f"torch.{name}" and len(test.args) == 1 else None


def tensors_asked(model: Model, test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The tensors whose truth the test asks for, whole or as a number."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            yield from tensors_asked(model, inner)
        case cst.BooleanOperation(left=left, right=right):
            yield from tensors_asked(model, left)
            yield from tensors_asked(model, right)
        case cst.Comparison(comparisons=comparisons):
            if isinstance(comparisons[0].operator, (cst.In, cst.NotIn)):
                searched = comparisons[0].comparator
                if model.value(searched).kind is Kind.TENSOR and model.value(test.left).kind is not Kind.STRING:
                    yield searched
                return  # a text is looked for among the keys of a dict
            sides = (test.left, *(target.comparator for target in comparisons))
            if not all(isinstance(target.operator, _ORDERS) for target in comparisons):
                return
            if any(model.value(side).kind is Kind.STRING for side in sides):
                return  # what a text is compared with is the key of a dict, and no tensor
            if model.value(test).kind is Kind.TENSOR:
                yield test
            else:
                for side in sides:
                    yield from _number(model, side)
        case cst.Call(args=[cst.Arg(value=inner)]) if model.call(test).callee in _CHECKS:
            yield from tensors_asked(model, inner)
        case _:
            yield from _number(model, test)
            if model.value(test).kind is Kind.TENSOR or _is_row_of_batch(model, test):
                yield test


def _is_row_of_batch(model: Model, node: cst.BaseExpression) -> bool:
    """`done[i]` of what a loader has given and `.to(device)` has moved: a number finds a place in tensors alone."""
    match node:
        case cst.Subscript(value=whole, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
            value = model.value(whole)
            is_moved = value.kind is Kind.BATCH and value.place is Place.ACCELERATOR
            return is_moved and model.value(index).kind is Kind.NUMBER
    return False


def _number(model: Model, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    call = model.call(node) if isinstance(node, cst.Call) else None
    if call is not None and call.method == "item" and call.receiver is not None:
        yield call.receiver
