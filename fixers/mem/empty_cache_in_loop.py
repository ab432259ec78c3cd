"""Takes the call that empties the cache out of the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Fix
from torchlint.rewrite import Rewriter
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.analyses.housekeeping import Chore
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_WHY = "the process keeps the cached memory between steps, and where steps differ in size it may fragment"


def fix(report: Report, model: Model) -> Fix:
    chore: Chore = report.facts
    if chore.site is not chore.call:
        raise NoFixError("the call is in a helper, which other code may call as well")
    if not isinstance(model.parent(chore.site.node), cst.Expr):
        raise NoFixError("the call is part of a larger expression")
    edit = Rewriter(model).remove_with_condition(chore.site.node)
    assert edit is not None
    return Fix((edit,), Applicability.UNSAFE, _WHY)
