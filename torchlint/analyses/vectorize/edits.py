"""The rewrite of a planned loop: its lines, its comments, and the calls that used its lists."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize.aftermath import Consumer
from torchlint.analyses.vectorize.plan import Plan
from torchlint.analyses.vectorize.shapes import Lifted
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_LONGEST = 150
_COUNTED = 3
_CLOSED = (cst.AssignTarget, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Return, cst.Arg, cst.Expr, cst.Element)


def fix_for(rewrite: Plan | str, model: Model) -> Fix:
    """The fix that puts the batched form in the place of the loop.

    Raises NoFixError with a reason for a plan, and with one in doubt.
    """
    if isinstance(rewrite, str):
        raise NoFixError(rewrite)
    plan, rewriter = rewrite, Rewriter(model)
    if plan.doubts:
        raise NoFixError(plan.doubts[0])
    if isinstance(plan.root, cst.Call) and _adds_beside(plan.root, model):
        raise NoFixError("the statement has another `sum`, and two ways of adding up in one help nobody")
    if isinstance(plan.root, cst.Call):
        edits = _call_edits(plan.root, _or_nothing(plan), model, rewriter)
    elif isinstance(plan.root, cst.ListComp):
        edits = _list_edits(plan, plan.root, model, rewriter)
    else:
        edits = _loop_edits(plan, plan.root, model, rewriter)
    if edits is None:
        raise NoFixError("a comment stands where the rewrite has no place for it")
    if any(is_hard_to_read(edit.text) for edit in edits):
        return Fix(tuple(edits), Applicability.DISPLAY, "So written, it is hard to read.")
    applicability = Applicability.SAFE if plan.exact else Applicability.UNSAFE
    return Fix(tuple(edits), applicability, "" if plan.exact else _why(plan))


def is_hard_to_read(text: str) -> bool:
    """Whether dimensions are moved to and fro for less than a product, or a function, a dtype or a shape is there for
    the rewrite alone: a function in which matrices are decomposed or solved is worth it."""
    return (
        ("vmap(lambda" in text and "torch.linalg." not in text)
        or "result_type(" in text
        or "*[1] *" in text
        or text.count("arange(") > _COUNTED
        or any(len(line) > _LONGEST or ".movedim(" in line.rpartition(" = ")[0] for line in text.splitlines())
        or any(line.count(".movedim(") + line.count(".flatten(") > 2 and "@" not in line for line in text.splitlines())
    )


def _adds_beside(call: cst.Call, model: Model) -> bool:
    """Whether the statement of a call of Python's `sum` has others, which do not add up the same rows: those of
    `sum(sum(x))` do."""
    sums = [other.node for other in model.calls_to("builtins.sum")]
    statement = model.small_statement(call) or model.statement(call)
    beside = [
        one for one in sums if one is not call and (model.small_statement(one) or model.statement(one)) is statement
    ]
    return call in sums and not all(call in _chain(other) or other in _chain(call) for other in beside)


def _chain(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """`f(g(x))`, `g(x)` and `x`"""
    yield node
    while isinstance(node, cst.Call) and len(node.args) == 1:
        node = node.args[0].value
        yield node


def _or_nothing(plan: Plan) -> Lifted | None:
    """A sum over rows that there may be none of."""
    if plan.result is None or plan.condition is None:
        return plan.result
    return plan.result.but(text=f"{plan.result.text} if {plan.condition} else 0", level=-1)


def _why(plan: Plan) -> str:
    reasons = list(plan.cautions)
    if plan.operations & {"matmul", "linalg", "layer"}:
        reasons.append("a batched product may round differently from the products of single rows")
    elif plan.operations & {"reduction", "pointwise", "mapped"}:
        reasons.append("results may differ in the last bits")
    if "extreme" not in plan.operations:
        reasons.append("all rows are in memory at once")
    sentence = "; ".join(reasons)
    return sentence[0].upper() + sentence[1:] + "."


def _call_edits(
    call: cst.Call | cst.ListComp, result: Lifted | None, model: Model, rewriter: Rewriter
) -> list[Edit] | None:
    if result is None or "#" in model.code(call):
        return None
    closed = isinstance(model.parent(call), _CLOSED)
    return [rewriter.replace(call, result.text if closed else result.atom)]


def _list_edits(plan: Plan, root: cst.ListComp, model: Model, rewriter: Rewriter) -> list[Edit] | None:
    """The list becomes a tensor, and goes where the next statement stacks it."""
    only = plan.consumers[0]
    if len(plan.consumers) == 1 and _is_next(plan, only, model.statement(root), model):
        removed, used = rewriter.remove_statement(only.creation), _call_edits(only.call, only.inlined, model, rewriter)
        return [removed, *used] if removed is not None and used is not None and "#" not in model.code(root) else None
    parts = [_call_edits(root, plan.result, model, rewriter)]
    parts += [_call_edits(consumer.call, consumer.by_name, model, rewriter) for consumer in plan.consumers]
    return [edit for part in parts for edit in part or ()] if all(part is not None for part in parts) else None


def _loop_edits(plan: Plan, root: cst.For, model: Model, rewriter: Rewriter) -> list[Edit] | None:
    inlined = {consumer.name for consumer in plan.consumers if _is_next(plan, consumer, root, model)}
    texts: dict[cst.CSTNode, list[str]] = {}
    for line in plan.lines:
        texts.setdefault(line.source, [])
        if line.rows not in inlined or line.rows is None:
            texts[line.source].append(rewriter.unit(root) * line.indented + line.text)
    lines = list(_lines(root, texts))
    start, end = _extent(root, model, rewriter)
    if sum("#" in line for line in lines) != _comments(model.source.text[start:end]):
        return None
    if plan.condition is not None:
        lines = [f"if {plan.condition}:", *(rewriter.unit(root) + line for line in lines)]
    edits = [_replaced(start, end, lines, model, rewriter, root)]
    for consumer in plan.consumers:
        result = consumer.inlined if consumer.name in inlined else consumer.by_name
        used = _call_edits(consumer.call, result, model, rewriter)
        if used is None:
            return None
        edits += used
    for creation in {consumer.creation for consumer in plan.consumers}:
        removed = rewriter.remove_statement(creation)
        if removed is None:
            return None
        edits.append(removed)
    return edits


def _is_next(plan: Plan, consumer: Consumer, root: cst.CSTNode, model: Model) -> bool:
    """Whether a list is used once, by the statement behind the one that makes or fills it."""
    if consumer.inlined is None or sum(other.name == consumer.name for other in plan.consumers) != 1:
        return False
    block = model.parent(root)
    statement = model.statement(consumer.call)
    around = {consumer.call, *model.ancestors(consumer.call)}
    stacked = {other.call for other in plan.consumers}
    if any(isinstance(part, cst.Call) and part not in around | stacked for part in walk(statement)):
        return False
    if not isinstance(block, (cst.IndentedBlock, cst.Module)) or not isinstance(statement, cst.SimpleStatementLine):
        return False
    place = next(index for index, sibling in enumerate(block.body) if sibling is root)
    return place + 1 < len(block.body) and block.body[place + 1] is statement


def _lines(loop: cst.For, texts: dict[cst.CSTNode, list[str]]) -> Iterator[str]:
    """The new lines, with the comments of the statements that they come from."""
    body = loop.body
    if isinstance(body, cst.SimpleStatementSuite):
        found = [text for small in body.body for text in texts.get(small, ())]
        yield from _commented(found, body.trailing_whitespace.comment)
        return
    assert isinstance(body, cst.IndentedBlock)
    yield from _commented([], body.header.comment)
    for statement in body.body:
        if isinstance(statement, (cst.SimpleStatementLine, cst.For, cst.If)):
            yield from (line.comment.value for line in statement.leading_lines if line.comment is not None)
        if isinstance(statement, cst.For):
            yield from _lines(statement, texts)
        elif isinstance(statement, cst.If):
            yield from texts.get(statement, [])
        elif isinstance(statement, cst.SimpleStatementLine):
            yield from _commented(texts.get(statement, []), statement.trailing_whitespace.comment)
    yield from (line.comment.value for line in body.footer if line.comment is not None)


def _commented(lines: list[str], comment: cst.Comment | None) -> Iterator[str]:
    yield from lines[:-1]
    if lines:
        yield f"{lines[-1]}  {comment.value}" if comment is not None else lines[-1]
    elif comment is not None:
        yield comment.value


def _comments(code: str) -> int:
    """How many comments a piece of code holds; -1 if it cannot be told."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return -1
    return sum(token.type == tokenize.COMMENT for token in tokens)


def _extent(root: cst.For, model: Model, rewriter: Rewriter) -> tuple[int, int]:
    """Where a loop begins and ends, with the comments that are part of its block."""
    text = model.source.text
    start, end = model.span(root)
    indent = re.escape(rewriter.indentation(root))
    comments = re.compile(rf"(?:[ \t]*#[^\r\n]*)?(?:(?:\r?\n[ \t]*)*\r?\n{indent}[ \t]+#[^\r\n]*)*")
    found = comments.match(text, start + len(text[start:end].rstrip()))
    assert found is not None
    return start, found.end()


def _replaced(start: int, end: int, lines: list[str], model: Model, rewriter: Rewriter, root: cst.For) -> Edit:
    text = model.source.text
    indent = rewriter.indentation(root)
    if lines:
        return Edit(start, end, (rewriter.newline + indent).join(lines))
    rest = re.compile(r"[ \t]*(\r\n|\n|\r)?").match(text, end)
    assert rest is not None
    return Edit(start - len(indent), rest.end(), "")
