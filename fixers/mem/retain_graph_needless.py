"""Takes `retain_graph=True` out of a backward pass."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Fix
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.analyses.mem.retained_graph import Retained
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_TOLD = re.compile(r"(?i)retain|graph|reus")  # a comment says why it is there
_WHY = "a backward pass raises a RuntimeError where a module out of sight still needs a part of the graph"


def fix(report: Report, model: Model) -> Fix:
    retained: Retained = report.facts
    call, argument = retained.call.node, retained.argument
    rewriter = Rewriter(model)
    if argument.keyword is None or argument not in call.args:
        raise NoFixError("`retain_graph` is given by its position, or where the options are made")
    if _TOLD.search(rewriter.comments(call)):
        raise NoFixError("a comment beside it says what the graph is kept for")
    return Fix((rewriter.remove_argument(call, argument),), Applicability.UNSAFE, _WHY)
