"""Collects the parts in a list, and puts them together after the loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Fix
from torchlint.rewrite import Rewriter
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind
from torchlint.semantics.vectorize.vocabulary import EXACT, MAKES_INEXACT, PRODUCTS, REDUCTIONS

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.cat_growth import Growth
    from torchlint.semantics.model import Model

_CAT = ("torch.cat", "torch.concat", "torch.concatenate")
_FACTORIES = frozenset(
    "zeros ones full empty eye rand randn tensor Tensor arange zeros_like ones_like empty_like".split()
)
_VIEWS = frozenset("contiguous detach conj positive".split())
_MAKING = (EXACT | MAKES_INEXACT | PRODUCTS | frozenset(REDUCTIONS) | _FACTORIES) - _VIEWS
_SAFE = "The same parts are put together, once."
_UNSAFE = "A part that a later iteration changes in place would change the result."


def fix(report: Report, model: Model) -> Fix | None:
    growth: Growth = report.facts
    statement, loop = model.small_statement(growth.call), growth.loops[-1].node
    made = _made_before(model, growth, loop)
    rest = _other_arguments(model, growth.call)
    parts = f"{growth.name}_parts"
    if made is None or rest is None or not _is_alone(model, growth, statement, loop) or parts in model.source.text:
        return None
    rewriter = Rewriter(model)
    codes = [model.code(part) for part in growth.parts]
    added = f"append({codes[0]})" if len(codes) == 1 else f"extend([{', '.join(codes)}])"
    together = f"{growth.name} = {model.code(growth.call.func)}({', '.join([parts, *rest])})"
    edits = [
        rewriter.replace(made.targets[0].target, parts),
        *rewriter.wrap(made.value, "[", "]"),
        rewriter.replace(growth.call if statement is None else statement, f"{parts}.{added}"),
        rewriter.insert_after(loop, together),
    ]
    is_safe = all(_is_new(model, part) for part in (made.value, *growth.parts))
    applicability = Applicability.SAFE if is_safe else Applicability.UNSAFE
    return Fix(tuple(edits), applicability, _SAFE if is_safe else _UNSAFE)


def _is_alone(model: Model, growth: Growth, statement: cst.CSTNode | None, loop: cst.CSTNode) -> bool:
    """Whether nothing in the loops but the growth has to do with the tensor, and errors are not caught around them."""
    if growth.watched or not growth.first or not isinstance(statement, cst.Assign) or len(growth.binding.writes) != 2:
        return False
    if statement.value is not growth.call or getattr(loop, "orelse", None) is not None:
        return False
    if any(isinstance(node, (cst.Try, cst.TryStar)) for node in model.ancestors(loop)):
        return False
    return not any(
        loop in model.ancestors(read) and growth.call not in model.ancestors(read) for read in growth.binding.reads
    )


def _made_before(model: Model, growth: Growth, loop: cst.CSTNode) -> cst.Assign | None:
    """The assignment in the block of the loop that made the tensor, if nobody reads it in between."""
    block = getattr(model.parent(loop), "body", ())
    if not isinstance(block, Sequence) or loop not in block:
        return None
    for place in range(list(block).index(loop) - 1, -1, -1):
        line = block[place]
        match line:
            case cst.SimpleStatementLine(
                body=[cst.Assign(targets=[cst.AssignTarget(target=target)], value=value) as made]
            ):
                if isinstance(target, cst.Name) and target.value == growth.name:
                    return made if model.value(value).kind is Kind.TENSOR else None
        if any(isinstance(node, cst.Name) and node.value == growth.name for node in walk(line)):
            return None
    return None


def _other_arguments(model: Model, call: cst.Call) -> list[str] | None:
    """The dimension as it is written; None where it may differ between iterations."""
    if model.qualified(call.func) not in _CAT:
        return None
    for argument in call.args[1:]:
        keyword = argument.keyword.value if argument.keyword is not None else "dim"
        number = argument.value.expression if isinstance(argument.value, cst.UnaryOperation) else argument.value
        if keyword not in ("dim", "axis") or not isinstance(number, cst.Integer) or argument.star:
            return None
    return [model.source.text[model.span(a)[0] : model.span(a.value)[1]] for a in call.args[1:]]


def _is_new(model: Model, part: cst.BaseExpression) -> bool:
    """Whether an expression makes a tensor that nothing else holds."""
    if isinstance(part, cst.BinaryOperation):
        return True
    if not isinstance(part, cst.Call):
        return False
    call = model.call(part)
    if call.callee is not None:
        return call.callee.startswith("torch.") and call.callee.rpartition(".")[2] in _MAKING
    return call.method == "clone"
