"""Shows the tensor every hundred steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.steps import step_of
from torchlint.analyses.sync.branching import tensors_asked
from torchlint.analyses.sync.residence import Residence
from torchlint.finding import Applicability, Fix
from torchlint.rewrite import Rewriter
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.analyses.sync.shown import Shown
    from torchlint.rule import Report
    from torchlint.semantics.entities import Loop
    from torchlint.semantics.model import Model

_INTERVAL = 100
_WHY = f"It is shown in one of {_INTERVAL} steps only."


def fix(report: Report, model: Model) -> Fix:
    shown: Shown = report.facts
    loop = shown.step.loop
    line = model.parent(model.parent(shown.call.node) or shown.call.node)
    counter = _counter(model, loop) if loop is not None else None
    if counter is None:
        raise NoFixError("no variable counts the steps")
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1 or not isinstance(line.body[0], cst.Expr):
        raise NoFixError("the call is part of a larger statement")
    if _waits_anyway(model, shown):
        raise NoFixError("another question to the device in the same step waits for it anyway")
    if not all(shown.call.node in model.ancestors(tensor) for tensor in shown.tensors):
        raise NoFixError("the text that is shown is made before, in another statement")
    edits = Rewriter(model).indent_under([line], f"if {counter} % {_INTERVAL} == 0:")
    assert edits is not None
    return Fix(tuple(edits), Applicability.UNSAFE, _WHY)


def _waits_anyway(model: Model, shown: Shown) -> bool:
    """Whether the step asks the device in every case, as by `if accuracy > best:`: to show less would save nothing."""
    residence = model.once(Residence)
    return any(
        residence.may_be_device(leaf, shown.step)
        for node in model.nodes_of(cst.If)
        if isinstance(node, cst.If) and step_of(model, node) == shown.step and not model.guards(node, shown.step.loop)
        for leaf in tensors_asked(model, node.test)
    )


def _counter(model: Model, loop: Loop) -> str | None:
    """The variable that counts the iterations of a loop over `enumerate(...)` or `range(...)`."""
    match loop.target, loop.iterable:
        case cst.Tuple(elements=[cst.Element(value=cst.Name() as name), _]), _ if _enumerates(model, loop.iterable):
            pass
        case cst.Name() as name, cst.Call(args=[_] | [_, _]) as call if model.call(call).callee == "builtins.range":
            pass
        case _:
            return None
    binding = model.binding(name)
    if binding is None:
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
