"""A class of networks whose objects do something of their own when they are called: what that is, its code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

FINDER = """
import torch

class Finder(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.net = torch.nn.Linear(size, size)
        self.found_by = None

    def {name}(self, images):
        return {answer}
"""
TIMED = """
def measure(images, device):
    finder = Finder(3).cuda()
    x = torch.ones(2, 3, device="cuda")
    with torch.no_grad():
        start = time.time()
        answers = finder(x)
        print(time.time() - start)
    return answers
"""
KEPT = """
def measure(loader):
    finder = Finder(3).cuda()
    optimizer = torch.optim.SGD(finder.parameters(), 0.1)
    speeds = []
    for x in loader:
        answers = finder(x.cuda())
        answers[0].sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        speeds.append(answers[1])
    print(speeds)
"""
CASES = [
    ("__call__", "self.found_by.find(images)", 0),
    ("__call__", "self.net(images)", 1),
    ("__call__", "super().__call__(images)", 1),
    ("forward", "self.found_by.find(images)", 1),
]


@pytest.mark.parametrize(("name", "answer", "count"), CASES)
@pytest.mark.parametrize(("rule", "code"), [("TIME01", TIMED), ("MEM01", KEPT)])
def test_an_object_with_a_call_of_its_own(rule: str, code: str, name: str, answer: str, count: int) -> None:
    program = "import time\n" + FINDER.format(name=name, answer=answer) + code
    assert len(findings(program, rule)) == count


@pytest.mark.parametrize(("name", "answer", "count"), CASES)
@pytest.mark.parametrize(("rule", "code"), [("TIME01", TIMED), ("MEM01", KEPT)])
def test_a_call_of_its_own_that_a_class_has_from_another_file(
    rule: str, code: str, name: str, answer: str, count: int, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "base.py").write_text(FINDER.format(name=name, answer=answer).replace("Finder", "Base"))
    (tmp_path / "finder.py").write_text("from base import Base\n\nclass Finder(Base):\n    size = 3\n")
    (tmp_path / "main.py").write_text("import time\n\nimport torch\nfrom finder import Finder\n" + code)
    settings = Settings.selecting(rule)
    assert len(lint(Source.read(tmp_path / "main.py"), settings, strict=True, project=Project())) == count
