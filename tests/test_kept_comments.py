"""No fix takes a comment away, whatever its fixer does."""

from __future__ import annotations

import pytest

from tests.conftest import PlantedRule
from torchlint.engine import lint
from torchlint.finding import Applicability, Edit, Fix
from torchlint.fixing.kept_comments import lost_comment
from torchlint.fixing.passes import fix_source
from torchlint.rule import Report
from torchlint.semantics.model import Model
from torchlint.source import Source

TEXT = "import torch\nx = torch.zeros(\n    3,  # channels\n)\n"


def _edit(text: str, old: str, new: str) -> Edit:
    start = text.index(old)
    return Edit(start, start + len(old), new)


@pytest.mark.parametrize(
    ("text", "old", "new", "lost"),
    [
        ("f(1)  # one\n", "f(1)", "g(1)", None),
        ("f(1)  # one\n", "f(1)  # one", "g(1)", "# one"),
        ("f(1)  # one\n", "f(1)  # one", "g(1)  # one", None),
        ("f(1)  # one\n", "f(1)  # one", "g('# one')", "# one"),
        ("f('# one')\n", "f('# one')", "g(1)", None),
        ("if c:\n    # why\n    f()\n", "if c:\n    # why\n    f()", "f()", "# why"),
        ("if c:\n    # why\n    f()\n", "if c:\n    # why\n    f()", "# why\nf()", None),
        ("a  # x\nb  # x\n", "a  # x\nb  # x", "ab  # x", "# x"),
        ("!ls\nf(1)  # one\n", "f(1)  # one", "g(1)", "# one"),
        ("!ls\nf(1)  # one\n", "f(1)  # one", "g(1)  # one", None),
    ],
)
def test_which_comment_is_lost(text: str, old: str, new: str, lost: str | None) -> None:
    assert lost_comment(text, [_edit(text, old, new)]) == lost


def test_a_comment_that_another_edit_writes_is_kept() -> None:
    text = "a = f(1)  # one\nb = 2\n"
    moved = [_edit(text, "a = f(1)  # one\n", ""), _edit(text, "b = 2\n", "b = 2\na = f(1)  # one\n")]
    assert lost_comment(text, moved) is None
    assert lost_comment(text, moved[:1]) == "# one"


@pytest.mark.parametrize(("new", "applied"), [("torch.ones(3)", False), ("torch.ones(\n    3,  # channels\n)", True)])
def test_a_fix_that_would_lose_one_is_withheld(planted: PlantedRule, new: str, applied: bool) -> None:
    def fixer(report: Report, model: Model) -> Fix:
        return Fix((Edit(*model.span(report.node), new),), Applicability.SAFE)

    planted.fix_with(fixer)
    fixed = fix_source(Source.from_text(TEXT), planted.settings)
    assert fixed.source.text == ("import torch\nx = " + new + "\n" if applied else TEXT)
    found = lint(Source.from_text(TEXT), planted.settings)
    assert [(finding.fix is not None, finding.no_fix) for finding in found] == [
        (applied, "" if applied else "the comment `# channels` would be lost")
    ]
