"""What a finding about a loop says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise import costly
from torchlint.analyses.rowwise.names import spelled
from torchlint.analyses.rowwise.state import Sink

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.state import Step, Trace
    from torchlint.analyses.rowwise.work import Root
    from torchlint.analyses.vectorize.plan import Plan
    from torchlint.semantics.model import Model

_DOES = {
    "LIN01": "multiplies the rows",
    "LIN02": "decomposes the matrices",
    "LIN03": "solves for the rows",
    "VEC08": "combines all pairs of rows",
}
_REMEDY = {
    "LIN01": "One batched product does them all",
    "LIN02": "The functions of torch.linalg take the whole batch in one call",
    "LIN03": "The functions of torch.linalg take the whole batch in one call",
    "VEC08": "Broadcasting one of them, or `torch.cdist` for distances, does it in one call",
}
_UNFOLD = "`Tensor.unfold` gives all windows of one length in one call."
_ROWS = "Do it on the whole tensor, in one call"


def _sentence(code: str, root: Root, of: str) -> str:
    where = "This loop" if isinstance(root, cst.For) else "This comprehension"
    return f"{where} {_DOES.get(code, 'works on the rows')} of {of} one by one. {_REMEDY.get(code, _ROWS)}."


def of_plan(code: str, plan: Plan) -> str:
    """Of a loop that can be rewritten."""
    return _sentence(code, plan.root, f"`{plan.tensor}`")


def of_sorting(name: str) -> str:
    """Of `sorted` on a tensor."""
    return (
        f"`sorted` compares the elements of `{name}` one by one, and every answer is read back. Use `torch.sort` or "
        "`torch.argsort`."
    )


def of_builtin(name: str, walked: cst.BaseExpression) -> str:
    """Of `sum`, `max` or `min` on a tensor."""
    of = f"`{spelled(walked)}`" if isinstance(walked, (cst.Name, cst.Attribute)) else "a tensor"
    if name == "builtins.sum":
        return f"`sum` of Python adds up the rows of {of} one by one, a kernel for each. Use `torch.sum` or `.sum(0)`."
    name = name.removeprefix("builtins.")
    return (
        f"`{name}` of Python compares the elements of {of} one by one, and every answer is read back. Use "
        f"`torch.{name}`."
    )


def of_loop(model: Model, code: str, root: Root, trace: Trace, step: Step | None) -> str:
    """Of a loop without a plan: `step` is what can leave it."""
    subject = costly.subject(trace, code)
    if step is not None and code == "VEC02":
        name = model.code(step.node.func) if isinstance(step.node, cst.Call) else step.name
        of = f" of `{subject}`" if subject is not None else ""
        return f"`{name}` gets a batch of one row{of} in every iteration. Give it all rows as one batch."
    if subject is not None and any(kept.seen.looked_up for kept in trace.kept):
        return (
            f"This loop looks up an entry of a table for each element of `{subject}`, which is read back for that. "
            "Read them all at once with `.tolist()`, or let the table be a tensor, and index it with the whole tensor."
        )
    return _sentence(code, root, f"`{subject}`" if subject is not None else _filled(trace))


def of_selection(root: Root, trace: Trace) -> str:
    """Of a loop that collects what a test of the rows picks."""
    where = "This loop" if isinstance(root, cst.For) else "This comprehension"
    subject = next(iter(trace.subjects), None)
    names = [kept.name for kept in trace.kept]
    taking = "take what the mask picks: `x[mask]`, `torch.nonzero(mask)`"
    if len(set(names)) < len(names):
        taking = "choose with `torch.where(mask, a, b)`"
    return (
        f"{where} tests the rows of {f'`{subject}`' if subject else 'a tensor'} one by one, and every answer is read "
        f"back. Compare the whole tensor in one call, and {taking}."
    )


def of_restacking(walked: cst.BaseExpression) -> str:
    """Of a loop that takes a tensor apart and puts it together again."""
    of = f"`{spelled(walked)}`" if isinstance(walked, (cst.Name, cst.Attribute)) else "a tensor"
    return (
        f"This loop takes {of} apart row by row, only for the rows to be put together again. Keep the whole tensor: "
        "`torch.cat` joins several, and `.split(n)` cuts one into parts of n rows."
    )


def of_windows(root: Root, trace: Trace) -> str:
    """Of a loop that cuts windows out of a tensor."""
    where = "This loop" if isinstance(root, cst.For) else "This comprehension"
    return (
        f"{where} cuts windows out of `{next(iter(trace.subjects), 'a tensor')}` one by one, and they are put together "
        f"afterwards. {_UNFOLD}"
    )


def of_picks(root: Root) -> str:
    """Of a loop that joins what a mask picks of each row."""
    where = "This loop" if isinstance(root, cst.For) else "This comprehension"
    return (
        f"{where} puts what a mask picks of each row behind one another. Of the whole tensor the mask picks the same, "
        "in one call: `x[mask]`."
    )


def of_frames(name: str) -> str:
    """Of a loop that fills a tensor with windows."""
    return f"This loop takes windows of `{name}` one by one, for a tensor to be made of them. {_UNFOLD}"


def of_draws(trace: Trace) -> str:
    """Of a loop that draws random numbers for each row."""
    subject = next(iter(trace.subjects), None)
    return (
        f"This loop draws random numbers for one row of {f'`{subject}`' if subject else 'a tensor'} after the other. "
        "Draw those of all rows in one call, and do the rest on the whole tensor."
    )


def of_step(model: Model, trace: Trace, step: Step) -> str:
    """Of an operation that can leave a loop, given a dimension."""
    name = model.code(step.node.func) if isinstance(step.node, cst.Call) else step.name
    subject = _taken_apart(step) or next(iter(trace.subjects))
    return (
        f"`{name}` works on one row of `{subject}` in every iteration. Do it on the whole tensor before the loop, "
        "along a dimension, and take what each iteration needs from the result."
    )


def _taken_apart(step: Step) -> str | None:
    """`x` of `x[i].sum()` and of `torch.sum(x[i])`."""
    call = step.node
    if not isinstance(call, cst.Call):
        return None
    given = [call.func.value] if isinstance(call.func, cst.Attribute) else []
    rows = (node for node in (*given, *(arg.value for arg in call.args)) if isinstance(node, cst.Subscript))
    return next((spelled(row.value) for row in rows if isinstance(row.value, (cst.Name, cst.Attribute))), None)


def _filled(trace: Trace) -> str:
    filled = (kept.name for kept in trace.kept if kept.sink is Sink.FILL and kept.name)
    return next((f"`{name}`" for name in filled), "a tensor")
