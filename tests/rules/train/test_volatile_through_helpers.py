"""TRAIN10: `volatile=True`, asked of a function that makes a Variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

HELPERS = """\
import torch
from torch.autograd import Variable

def {head}:
    if torch.cuda.is_available():
        x = x.cuda()
    return {made}
"""
EVALUATION = """\
{start}
import torch
from torch import nn

def test(model, loader):
    model.eval()
    for images, labels in loader:
        shown = as_variable({arguments})
        print(model(shown).argmax(1) == labels)
"""


@pytest.mark.parametrize(
    ("head", "made", "arguments", "count"),
    [
        ("as_variable(x, volatile=False)", "Variable(x, volatile=volatile)", "images, volatile=True", 1),
        ("as_variable(x, volatile=False)", "Variable(x, volatile=volatile).cuda()", "images, volatile=True", 1),
        ("as_variable(x, volatile=False)", "Variable(x, volatile=volatile)", "images, volatile=False", 0),
        ("as_variable(x, volatile=False)", "Variable(x, volatile=volatile)", "images", 0),
        ("as_variable(x, volatile=False)", "Variable(x.cuda())", "images, volatile=True", 0),
        ("as_variable(x, volatile=False)", "store(x, volatile=volatile)", "images, volatile=True", 0),
    ],
)
def test_what_a_helper_is_asked_for(head: str, made: str, arguments: str, count: int, tmp_path: Path) -> None:
    helpers = HELPERS.format(head=head, made=made)
    together = EVALUATION.format(start=helpers, arguments=arguments)
    asked = [finding for finding in findings(together, "TRAIN10") if "as_variable" in finding.message]
    assert len(asked) == count
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "helpers.py").write_text(helpers)
    apart = EVALUATION.format(start="from helpers import as_variable", arguments=arguments)
    (tmp_path / "evaluation.py").write_text(apart)
    source = Source.read(tmp_path / "evaluation.py")
    found = lint(source, Settings.selecting("TRAIN10"), strict=True, project=Project())
    assert [finding.line for finding in found] == [8] * count


@pytest.mark.parametrize(
    ("helper", "asked", "count"),
    [
        ("from helpers import as_variable", "volatile=True", 1),
        ("from helpers import as_variable", "volatile=False", 0),
        ("from helpers import as_variable", "persistent=True", 0),
        ("from helpers import as_variable\nfrom triton.language import load as as_variable", "volatile=True", 0),
        ("class as_variable:\n    def __init__(self, x, volatile):\n        self.x = x\n", "volatile=True", 0),
        ("def as_variable(x, volatile):\n    return x\n", "volatile=True", 0),
    ],
)
def test_a_helper_in_a_file_of_an_older_python(helper: str, asked: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "helpers.py").write_text("def as_variable(x, volatile=False):\n    return x.cuda(async=True)\n")
    (tmp_path / "main.py").write_text(EVALUATION.format(start=helper, arguments=f"images, {asked}"))
    found = lint(Source.read(tmp_path / "main.py"), Settings.selecting("TRAIN10"), strict=True, project=Project())
    assert len(found) == count
