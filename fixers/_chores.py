"""Takes a call out of the step that concerns the whole device."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.edits.rewriter import Rewriter
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.analyses.loops.housekeeping import Chore
    from torchlint.finding import Edit
    from torchlint.semantics.model import Model

_REASON = re.compile(r"cache|memory|\boom\b|\bfree|release|\bclea[nr]|synchron|wait|finish", re.IGNORECASE)


def taken_out(chore: Chore, model: Model) -> Edit:
    """The edit that takes the call out. Raises NoFixError where it cannot go by itself."""
    if chore.site is not chore.call:
        raise NoFixError("the call is in a helper, which other code may call as well")
    if not isinstance(model.parent(chore.site.node), cst.Expr):
        raise NoFixError("the call is part of a larger expression")
    if _REASON.search(Rewriter(model).comments(chore.site.node)):
        raise NoFixError("a comment beside it says what it is for")
    edit = Rewriter(model).remove_with_condition(chore.site.node)
    assert edit is not None
    return edit
