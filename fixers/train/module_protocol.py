"""`net.forward(x)` becomes `net(x)`, dropout asks for the training flag, lists of modules become an `nn.ModuleList`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from torchlint.fixers._together import places_of

from torchlint.analyses.train.module_protocol import direct_forwards, forwards_that_stay
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.finding import Places
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
        if (same := _called_beside(subject, model)) is not None:
            raise NoFixError(f"it is compared with the call without it in {model.place(same.node)}")
        gone = Edit(model.span(subject.receiver)[1], model.span(subject.node.func)[1], "")
        edits = [gone, *rewriter.arguments_moved_left(subject.node, gone.end - gone.start)]
    elif problem == "dropout":
        edits = [rewriter.add_argument(subject.node, f"training={subject.function.params[0]}.training")]
    else:
        name, edits = rewriter.name_for("torch.nn.ModuleList", subject)
        edits = [*edits, *rewriter.wrap(subject, f"{name}(", ")")]
    alike = _alike(subject, model) if problem == "forward" else ()
    return Fix(tuple(edits), Applicability.UNSAFE, _WHY[problem], goes_with=alike)


def _alike(forward: Call, model: Model) -> tuple[Places, ...]:
    """The calls of a `forward` in the same function, and those in the same words."""
    known = model.once(_forwards)
    return known[forward.function], known[model.code(forward.node.func)]


def _forwards(model: Model) -> dict[object, Places]:
    found: defaultdict[object, list[cst.CSTNode]] = defaultdict(list)
    for call in model.in_order([*direct_forwards(model), *forwards_that_stay(model)]):
        found[call.function].append(call.node.func)
        found[model.code(call.node.func)].append(call.node.func)
    return {key: places_of(nodes, model) for key, nodes in found.items()}


def _called_beside(forward: Call, model: Model) -> Call | None:
    """`net(x)` of a function that has `net.forward(x)`, too."""
    assert forward.receiver is not None
    start, end = model.span(forward.receiver)[1], model.span(forward.node.func)[1]
    begin, last = model.span(forward.node)
    written = model.source.text[begin:start] + model.source.text[end:last]
    return next((call for call in forward.function.calls if model.code(call.node) == written), None)
