"""Statements that put a value where the values of earlier iterations are: appends, running sums, best-so-far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import text
from torchlint.semantics.parallel_assignment import assigned_pairs
from torchlint.semantics.tree import arms, walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

COLLECTIONS = (cst.ListComp, cst.DictComp, cst.SetComp)
_JOINS = ("torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.vstack")
_EXTREMES = ("torch.max", "torch.min", "torch.maximum", "torch.minimum")
_CONTAINER_METHODS = {"append": 0, "appendleft": 0, "add": 0, "extend": 0, "insert": 1}
_ORDERINGS = (cst.LessThan, cst.GreaterThan, cst.LessThanEqual, cst.GreaterThanEqual)


class Way(Enum):
    """How a value is kept."""

    APPEND = "append"  # a container holds one more
    SUM = "sum"  # a running sum, product or maximum takes in one more
    BEST = "best"  # the best value so far is replaced


@dataclass(frozen=True, slots=True)
class Keeping:
    """`node` puts `kept` into, or adds it to, `holder`."""

    way: Way
    node: cst.CSTNode
    holder: cst.BaseExpression
    kept: cst.BaseExpression


def keepings(model: Model) -> list[Keeping]:
    """Every such statement or call of the file, in source order."""
    return list(_keepings(model))


def _keepings(model: Model) -> Iterator[Keeping]:
    for node in model.nodes_of(cst.Call, cst.AugAssign, cst.Assign):
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=method), value=holder)):
                place = _CONTAINER_METHODS.get(method)
                if place is None or len(node.args) != place + 1 or node.args[place].star:
                    continue
                if _is_container(model, node, holder, method):
                    yield Keeping(Way.APPEND, node, holder, node.args[place].value)
            case cst.AugAssign(operator=cst.AddAssign() | cst.SubtractAssign() | cst.MultiplyAssign()) if (
                not _adds_itself(model, node.target)
            ):
                yield Keeping(_way_of_sum(node.value), node, node.target, node.value)
            case cst.Assign():
                for target, value in assigned_pairs(node):
                    yield from _assigned(model, node, target, value)


def _is_container(model: Model, node: cst.Call, holder: cst.BaseExpression, method: str) -> bool:
    """Whether the receiver is one of Python's containers; a meter with an `add` of its own may keep no graph."""
    kind = model.value(holder).kind
    if model.call(node).target is not None or kind in (Kind.INSTANCE, Kind.MODULE):
        return False
    return method != "add" or kind is Kind.SET


def _adds_itself(model: Model, target: cst.BaseExpression) -> bool:
    """Whether `+=` may be a method of a meter, which says itself what it keeps of a tensor."""
    if model.value(target).kind is Kind.INSTANCE:
        return True
    return not isinstance(target, cst.Name) and "def __iadd__" in model.source.text


def _way_of_sum(added: cst.BaseExpression) -> Way:
    return Way.APPEND if isinstance(added, (cst.List, cst.ListComp)) else Way.SUM


def _assigned(
    model: Model, node: cst.Assign, target: cst.BaseExpression, value: cst.BaseExpression
) -> Iterator[Keeping]:
    if not isinstance(target, (cst.Name, cst.Attribute, cst.Subscript)):
        return
    if isinstance(value, COLLECTIONS):
        yield Keeping(Way.APPEND, node, target, value)
    yield from _joined(model, node, target, value)
    yield from _compared(model, node, target, value)
    if isinstance(target, cst.Subscript) and model.value(target.value).is_(Kind.ARRAY):
        return  # a table of numpy holds numbers
    if isinstance(target, cst.Subscript) and _is_fresh_place(model, target):
        yield Keeping(Way.APPEND, node, target, value)
        return
    added = [term for branch in arms(value) for term in _added(model, branch, target)]
    for term in added:
        yield Keeping(_way_of_sum(term), node, target, term)
    if not added and _is_best_so_far(model, node, target, value):
        yield Keeping(Way.BEST, node, target, value)


def _added(model: Model, value: cst.BaseExpression, target: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a sum adds to the old value of the target, or a product multiplies it by."""
    terms = list(_terms(model, value, target))
    same = [term for term in terms if _is_previous(model, term, target)]
    if len(terms) == 1 and isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Multiply):
        factors = (value.left, value.right)
        others = [factor for factor in factors if not _is_same(model, factor, target)]
        return others if len(others) == 1 else []
    return [term for term in terms if term is not same[0]] if len(same) == 1 else []


def _is_fresh_place(model: Model, target: cst.Subscript) -> bool:
    """`losses[step] = loss`: a place of its own in every iteration, where nothing was before."""
    index = {model.binding(node) for element in target.slice for node in walk(element) if isinstance(node, cst.Name)}
    for loop in model.loops_around(target):
        changed = {b for b in index if b and any(w.loop is loop and w.kind in ("for", "augmented") for w in b.writes)}
        if changed:
            return not any(_reads(model, node, target) for node in walk(model.small_statement(target) or target))
    return False


def _reads(model: Model, node: cst.CSTNode, target: cst.Subscript) -> bool:
    """Whether a node is the old value at the place."""
    return node is not target and isinstance(node, cst.BaseExpression) and _is_same(model, node, target)


def _joined(model: Model, node: cst.Assign, target: cst.BaseExpression, value: cst.BaseExpression) -> Iterator[Keeping]:
    """`out = torch.cat([out, x])`: a tensor that grows instead of a list."""
    match value:
        case cst.Call(args=[cst.Arg(value=cst.List(elements=parts) | cst.Tuple(elements=parts)), *_]) as call:
            if model.call(call).callee in _JOINS and any(_is_same(model, part.value, target) for part in parts):
                for part in parts:
                    if not _is_same(model, part.value, target):
                        yield Keeping(Way.APPEND, node, target, part.value)


def _compared(
    model: Model, node: cst.Assign, target: cst.BaseExpression, value: cst.BaseExpression
) -> Iterator[Keeping]:
    """`most = torch.max(most, loss)`: the graph of each loss hangs on the one before, as in a sum."""
    match value:
        case cst.Call(args=[cst.Arg(keyword=None, value=first), cst.Arg(keyword=None, value=second)]) as call:
            others = [part for part in (first, second) if not _is_same(model, part, target)]
            if model.call(call).callee in _EXTREMES and len(others) == 1:
                yield Keeping(Way.SUM, node, target, others[0])


def _terms(model: Model, value: cst.BaseExpression, target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """`a`, `b` and `c` of `a + b - c`, and of `(a + b - c) / n` where one of them is the old value of the target."""
    stack = [value]
    while stack:
        match stack.pop():
            case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract(), right=right):
                stack += [right, left]
            case cst.BinaryOperation(
                left=cst.BinaryOperation(operator=cst.Add() | cst.Subtract()) as whole,
                operator=cst.Divide() | cst.Multiply(),
            ) if any(_is_previous(model, term, target) for term in _terms(model, whole, target)):
                stack.append(whole)
            case term:
                yield term


def _is_previous(model: Model, term: cst.BaseExpression, target: cst.BaseExpression) -> bool:
    """Whether a term is the old value of the target, weighted or not."""
    while isinstance(term, cst.BinaryOperation) and isinstance(term.operator, (cst.Multiply, cst.Divide)):
        sides = (term.left, term.right)
        inner = [side for side in sides if not model.value(side).is_(Kind.NUMBER) or _is_same(model, side, target)]
        if len(inner) != 1:
            return any(_is_same(model, side, target) for side in sides)
        term = inner[0]
    return _is_same(model, term, target)


def _is_same(model: Model, a: cst.BaseExpression, b: cst.BaseExpression) -> bool:
    if isinstance(a, cst.Call) and isinstance(b, cst.Subscript):  # d[k] = d.get(k, 0) + x
        func = a.func
        return isinstance(func, cst.Attribute) and func.attr.value == "get" and _is_same(model, func.value, b.value)
    return type(a) is type(b) and text(a) == text(b)


def _is_best_so_far(model: Model, node: cst.Assign, target: cst.BaseExpression, value: cst.BaseExpression) -> bool:
    orderings = model.once(_orderings)
    if not orderings:
        return False
    guard = next((outer for outer in model.ancestors(node) if isinstance(outer, cst.If)), None)
    compared = orderings.get(guard) if guard is not None else None
    if compared is None or text(target) not in compared:
        return False
    return set(compared) == {text(value), text(target)}


def _orderings(model: Model) -> dict[cst.CSTNode, tuple[str, str]]:
    """By `if` statement, the two sides of the first comparison in its test that asks which one is greater."""
    found: dict[cst.CSTNode, tuple[str, str]] = {}
    for node in model.nodes_of(cst.If):
        for test in walk(cst.ensure_type(node, cst.If).test):
            if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
                compared = test.comparisons[0]
                if type(compared.operator) in _ORDERINGS:
                    found[node] = text(test.left), text(compared.comparator)
                    break
    return found
