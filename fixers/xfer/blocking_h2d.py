"""`x.to(device)` becomes `x.to(device, non_blocking=True)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Fix
from torchlint.rewrite import Rewriter
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.analyses.xfer.copies import Copy
    from torchlint.finding import Edit
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_ARGUMENT = "non_blocking=True"


def fix(report: Report, model: Model) -> Fix:
    copy: Copy = report.facts
    if copy.is_written(model):
        raise NoFixError("the host writes to the batch while the copy may still be under way")
    rewriter = Rewriter(model)
    flag = copy.flag
    if flag.arg is not None:
        edits = [rewriter.replace_argument(flag.arg, "True")]
    elif flag.given:
        raise NoFixError("`non_blocking` is set where the arguments are made")
    else:
        edits = [rewriter.add_argument(copy.call.node, _ARGUMENT), *_one_a_line(copy, rewriter, model)]
    if "mps" in model.source.text or "current_accelerator" in model.source.text:
        why = "Copies to Apple's GPU are not ordered with the host: there, a batch may be freed or written too early."
        return Fix(tuple(edits), Applicability.UNSAFE, why)
    if not copy.is_tensor:
        why = "The collate function may make objects of a class whose `to` does not take `non_blocking`."
        return Fix(tuple(edits), Applicability.UNSAFE, why)
    return Fix(tuple(edits), Applicability.SAFE, "Kernels that read the copy are queued behind it.")


def _one_a_line(copy: Copy, rewriter: Rewriter, model: Model) -> list[Edit]:
    """`x, y = x.to(device), y.to(device)` as an assignment each, where the line would get too long for them all."""
    statement = model.small_statement(copy.call.node)
    if not isinstance(statement, cst.Assign) or not isinstance(statement.value, cst.Tuple):
        return []
    elements = [element.value for element in statement.value.elements]
    if copy.call.node not in elements:
        return []
    lacking = [
        node for node in elements if isinstance(node, cst.Call) and not model.call(node).argument("non_blocking").given
    ]
    length = len(rewriter.indentation(statement)) + len(model.code(statement)) + len(lacking) * len(f", {_ARGUMENT}")
    return rewriter.assign_apart(statement) or [] if length > model.line_length else []
