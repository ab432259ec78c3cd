"""`net.forward(x)` becomes `net(x)`, dropout asks for the training flag, lists of modules become an `nn.ModuleList`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.analyses.train.module_protocol import forwards_that_stay
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

_WHY = {
    "forward": "the hooks of the module run, and what wraps it",
    "dropout": "dropout ends where the module is in evaluation mode, so outputs change there",
    "list": "the modules are trained, moved and saved from now on, and old checkpoints lack them",
}


def fix(report: Report, model: Model) -> Fix:
    problem, subject = report.facts
    rewriter = Rewriter(model)
    edits: list[Edit] = []
    if problem == "forward":
        if (stays := _left_beside(subject, model)) is not None:
            raise NoFixError(f"`{model.code(stays.node.func)}` in {model.place(stays.node)} may have to stay")
        if (same := _called_beside(subject, model)) is not None:
            raise NoFixError(f"it is compared with the call without it in {model.place(same.node)}")
        gone = Edit(model.span(subject.receiver)[1], model.span(subject.node.func)[1], "")
        edits = [gone, *rewriter.arguments_moved_left(subject.node, gone.end - gone.start)]
    elif problem == "dropout":
        edits = [rewriter.add_argument(subject.node, f"training={subject.function.params[0]}.training")]
    else:
        name, edits = rewriter.name_for("torch.nn.ModuleList", subject)
        edits = [*edits, *rewriter.wrap(subject, f"{name}(", ")")]
    return Fix(tuple(edits), Applicability.UNSAFE, _WHY[problem])


def _left_beside(forward: Call, model: Model) -> Call | None:
    """Another call of a `forward` that may have to stay: in the same function, or in the same words."""
    words = model.code(forward.node.func)
    stays = model.once(forwards_that_stay)
    own = (call for call in stays if call.function is forward.function or model.code(call.node.func) == words)
    return next(own, None)


def _called_beside(forward: Call, model: Model) -> Call | None:
    """`net(x)` of a function that has `net.forward(x)`, too."""
    assert forward.receiver is not None
    start, end = model.span(forward.receiver)[1], model.span(forward.node.func)[1]
    begin, last = model.span(forward.node)
    written = model.source.text[begin:start] + model.source.text[end:last]
    return next((call for call in forward.function.calls if model.code(call.node) == written), None)
