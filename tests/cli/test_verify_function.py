"""`torchlint verify-function` as a user types it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.test_check import call

pytestmark = pytest.mark.usefixtures("forked")

VERSIONS = '''\
import torch

def old(x, w):
    """x: (batch, n), normalised row by row

    w: (n,)
    """
    print("called")
    return torch.stack([row * w / row.norm() for row in x])

def new(x, w):
    return x * w / x.norm(dim=1, keepdim=True)

def wrong(x, w):
    return x * w / x.norm(dim=0, keepdim=True)

def nan(x, w):
    return torch.where(x.isnan(), 0.0, new(x, w))
'''
TRAIN = """\
import torch
import versions

w = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([w], lr=0.1)
for _ in range(9):
    versions.old(torch.randn(4, 3), w).sum().backward()
    optimizer.step()
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("versions.py").write_text(VERSIONS)
    Path("train.py").write_text(TRAIN)


@pytest.mark.parametrize(
    ("new", "code", "word"), [("new", 0, "equivalent"), ("wrong", 1, "different"), ("nan", 3, "unknown")]
)
def test_made_up_arguments_and_exit_codes(new: str, code: int, word: str) -> None:
    done = call("verify-function", "versions.py:old", f"versions.py:{new}")
    assert (done.exit_code, done.stdout.partition(":")[0]) == (code, word)
    assert "calls made up from annotations and shape comments, none from a real run" in done.stdout
    assert "called\n" not in done.stdout, "what the function prints is no part of the report"


def test_recorded_arguments_as_json() -> None:
    words = ("--output-format", "json", "--steps", "5", "--", sys.executable, "train.py")
    done = call("verify-function", "versions.py:old", "versions.py:new", *words)
    found = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (done.exit_code, found["schema"], found["arguments"]) == (0, "torchlint.function/1", "recorded")
    assert found["verdict"] in ("identical", "equivalent")
    assert (found["seen"], len(found["calls"])) == (5, 4)
    assert "running" in done.stderr


WRONG = {
    ("versions.py:odl", "versions.py:new"): "did you mean `old`?",
    ("versions.py:new", "versions.py:old"): "nothing says what `x` and `w` of versions.py:new may be",
    ("versions.py:old", "versions.py:new", "--", "no-such-program"): "no-such-program is not a program",
    ("versions.py:wrong", "versions.py:new", "--", sys.executable, "train.py"): "never called versions.py:wrong",
}


@pytest.mark.parametrize("words", WRONG, ids=lambda words: WRONG[words])
def test_what_goes_wrong_is_said_in_a_sentence(words: tuple[str, ...]) -> None:
    done = call("verify-function", *words)
    assert done.exit_code == 2
    assert WRONG[words] in done.stderr
