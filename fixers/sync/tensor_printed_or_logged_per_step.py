"""Shows the tensor every hundred steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.evaluation_names import is_over_loader
from torchlint.analyses.sync.shown import shown_tensors
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.entities import Role
from torchlint.semantics.tree import integer, walk
from torchlint.semantics.values import Kind

from .._rows import row_around
from ._waits import waits_beside

if TYPE_CHECKING:
    from torchlint.analyses.sync.shown import Shown
    from torchlint.rule import Report
    from torchlint.semantics.entities import Loop
    from torchlint.semantics.model import Model

_BY_STEP = ("add_scalar", "add_scalars", "add_histogram")
_INTERVAL = 100
_MANY = 1000  # rounds
_OVERWRITTEN = re.compile(r"\\r(?!\\n)")  # `print(text, end="\r")`
_ON_BAR = re.compile(r"set_(description|postfix)")
_WHY = f"It is shown in one of {_INTERVAL} steps only."


def fix(report: Report, model: Model) -> Fix:
    shown: Shown = report.facts
    line = _line(shown, model)
    counter = _count_shown(model, shown) or _counter(model, shown.step.loop)
    if counter is None:
        raise NoFixError("no variable counts the steps")
    if line is None:
        raise NoFixError("the call is part of a larger statement")
    if shown.step.loop is not None and shown.step.loop.role is Role.EVALUATION:
        raise NoFixError("what an evaluation shows of each batch is its result")
    if waits_beside(model, shown.step, {shown.node}):
        raise NoFixError("something else in the same step waits for the device anyway")
    if not all(shown.node in model.ancestors(tensor) for tensor in shown.tensors):
        raise NoFixError("the text that is shown is made before, in another statement")
    if _OVERWRITTEN.search(model.code(shown.node)):
        raise NoFixError("the line is written over in every step, and would stand still in between")
    if (own := _own_interval(shown, model)) is not None:
        raise NoFixError(f"the loop has an interval, `{own}`, and which is meant is for you to say")
    row = _beside(line, shown, model)
    methods = {_method(other, model) for other in shown_tensors(model) if _line(other, model) in row}
    if any(_ON_BAR.match(method) for method in methods):
        raise NoFixError("the progress bar would stand still in between")
    edits = Rewriter(model).indent_under(row, f"if {counter} % {_INTERVAL} == 0:")
    assert edits is not None
    if methods.intersection(_BY_STEP):
        return Fix(tuple(edits), Applicability.DISPLAY, "A curve would have one of 100 points only.")
    if shown.step.loop is None or not _has_many_rounds(shown.step.loop, model):
        return Fix(tuple(edits), Applicability.DISPLAY, f"There may be fewer than {_INTERVAL} rounds.")
    return Fix(tuple(edits), Applicability.UNSAFE, _WHY)


def _has_many_rounds(loop: Loop, model: Model) -> bool:
    """Whether a loop is over the batches of a data set, or over thousands of numbers."""
    if is_over_loader(loop) or loop.iterates.is_(Kind.BATCH):
        return True
    match loop.iterable:
        case cst.Call(args=[*_, cst.Arg(value=bound)]) as call if model.call(call).callee == "builtins.range":
            binding = model.binding(bound) if isinstance(bound, cst.Name) else None
            said = [write.value for write in binding.writes] if binding is not None else [bound]
            return all((integer(number) or 0) >= _MANY for number in said)
    return False


def _own_interval(shown: Shown, model: Model) -> str | None:
    """`i % args.print_freq`, a setting by which the loop does other things already, or `i % 1` around what is shown."""
    loop = shown.step.loop
    branches = [node for node in (walk(loop.node) if loop is not None else ()) if isinstance(node, cst.If)]
    around = set(model.ancestors(shown.node))
    for branch in branches:
        for node in walk(branch.test):
            match node:
                case cst.BinaryOperation(operator=cst.Modulo(), right=right):
                    if branch in around or isinstance(right, (cst.Name, cst.Attribute)):
                        return model.code(node)
    return None


def _method(shown: Shown, model: Model) -> str:
    return (model.call(shown.node).method or "") if isinstance(shown.node, cst.Call) else ""


def _line(shown: Shown, model: Model) -> cst.SimpleStatementLine | None:
    """The line that does nothing but show."""
    line = model.parent(model.parent(shown.node) or shown.node)
    is_whole = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 and isinstance(line.body[0], cst.Expr)
    return line if is_whole else None  # type: ignore[return-value]


def _beside(line: cst.SimpleStatementLine, shown: Shown, model: Model) -> list[cst.BaseStatement]:
    """The unbroken row of lines around a line that show tensors of the same step."""
    lines = {_line(other, model) for other in shown_tensors(model) if other.step == shown.step}
    return row_around(line, lines, model)


def _count_shown(model: Model, shown: Shown) -> str | None:
    """The number that TensorBoard is given as that of the step, where a variable counts it."""
    call = model.call(shown.node) if isinstance(shown.node, cst.Call) else None
    step = call.argument("global_step", 2).node if call is not None and call.method in _BY_STEP else None
    binding = model.binding(step) if isinstance(step, (cst.Name, cst.Attribute)) else None
    writes = [write for write in binding.writes if write.loop is shown.step.loop] if binding is not None else []
    counts = bool(writes) and all(_counts(model.small_statement(write.target)) for write in writes)
    return model.code(step) if step is not None and counts else None


def _counts(statement: cst.CSTNode | None) -> bool:
    """`n += 1` and `n = n + 1`."""
    match statement:
        case cst.AugAssign(operator=cst.AddAssign(), value=cst.Integer(value="1")):
            return True
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Name(value=name))],
            value=cst.BinaryOperation(left=cst.Name(value=other), operator=cst.Add(), right=cst.Integer(value="1")),
        ):
            return name == other
    return False


def _counter(model: Model, loop: Loop | None) -> str | None:
    """The variable that counts the iterations of a loop over `enumerate(...)` or `range(...)`, if its name is not that
    of one that nobody reads."""
    if loop is None:
        return None
    match loop.target, loop.iterable:
        case cst.Tuple(elements=[cst.Element(value=cst.Name() as name), _]), _ if _enumerates(model, loop.iterable):
            pass
        case cst.Name() as name, cst.Call(args=[_] | [_, _]) as call if model.call(call).callee == "builtins.range":
            pass
        case _:
            return None
    binding = model.binding(name)
    if binding is None or name.value.startswith("_"):
        return None
    inside = (write for write in binding.writes if write.loop is not None and loop in write.loop.around())
    return name.value if all(write.statement is loop.node for write in inside) else None


def _enumerates(model: Model, iterable: cst.BaseExpression | None) -> bool:
    """`enumerate(batches)`, perhaps inside a progress bar."""
    while isinstance(iterable, cst.Call):
        callee = model.call(iterable).callee or ""
        if callee == "builtins.enumerate":
            return True
        iterable = iterable.args[0].value if callee.startswith("tqdm") and iterable.args else None
    return False
