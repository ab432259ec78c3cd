"""TRAIN04: a method by which a network answers, as `generate`, behind the loop that trained the network."""

from __future__ import annotations

import pytest
import torch

from tests.support import findings, fixed

PROGRAM = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 8)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, 5)

    def forward(self, tokens):
        return self.head(self.drop(self.table(tokens)))

    def generate(self, tokens, count):
        for _ in range(count):
            chances = F.softmax(self(tokens)[:, -1], dim=-1)
            tokens = torch.cat((tokens, chances.argmax(-1, keepdim=True)), dim=1)
        return tokens

speaker = Speaker()
model = speaker.to("cpu")
opt = torch.optim.SGD(speaker.parameters(), lr=0.1)
data = [torch.randint(5, (2, 4)) for _ in range(3)]

@torch.no_grad()
def mean_loss():
    speaker.eval()
    found = sum(F.cross_entropy(speaker(x).transpose(1, 2), x) for x in data)
    speaker.train()
    return found.item()

for step in range(30):
    x = data[step % 3]
    opt.zero_grad()
    F.cross_entropy(speaker(x).transpose(1, 2), x).backward()
    opt.step()
    if step % 10 == 0:
        print(mean_loss())

start = torch.zeros((1, 1), dtype=torch.long)
answer = model.generate(start, 40)
"""
LOOP = "for _ in range(count):"
CALL = "answer = model.generate(start, 40)\n"


def test_an_answer_behind_the_training_is_found() -> None:
    (found,) = findings(PROGRAM, "TRAIN04")
    assert found.message.startswith("Nothing calls `model.eval()` on the way here: `Dropout` goes on dropping values")
    assert found.message.endswith("Call `model.eval()` before it.")
    assert PROGRAM.splitlines()[found.line - 1] == CALL.strip()


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(PROGRAM.replace(CALL, "speaker.eval()\n" + CALL), id="evaluation mode under its other name"),
        pytest.param(PROGRAM.replace("nn.Dropout(0.5)", "nn.Identity()"), id="nothing differs between the modes"),
        pytest.param(PROGRAM.replace("generate", "mc_dropout"), id="dropout is meant"),
        pytest.param(PROGRAM.replace("    opt.step()\n", "    opt.step()\n    " + CALL, 1).replace("\n" + CALL, "\n"),
                     id="in the midst of training"),
        pytest.param(PROGRAM.replace("        return tokens", "        return self(tokens)"), id="it returns a graph"),
        pytest.param(PROGRAM.replace(LOOP, "self.eval()\n        " + LOOP), id="it switches by itself"),
        pytest.param(PROGRAM.replace(LOOP, "self.drop.eval()\n        " + LOOP), id="it switches its layer"),
        pytest.param(PROGRAM.replace("self(tokens)", "self.head(self.table(tokens))"), id="it leaves out the dropout"),
        pytest.param(PROGRAM.replace(CALL, CALL.removeprefix("answer = ")), id="it is called for what it changes"),
    ],
)  # fmt: skip
def test_what_looks_like_it(code: str) -> None:
    assert code != PROGRAM
    assert findings(code, "TRAIN04") == []


def test_an_answer_of_layers_that_are_run_one_by_one_is_found() -> None:
    by_hand = PROGRAM.replace("self(tokens)", "self.head(self.drop(self.table(tokens)))")
    assert len(findings(by_hand, "TRAIN04")) == 1


def test_a_unit_test_wants_no_better_answer() -> None:
    assert len(findings(PROGRAM, "TRAIN04", path="speaker.py")) == 1
    assert findings(PROGRAM, "TRAIN04", path="tests/test_speaker.py") == []


def test_the_fix_switches_the_network_for_the_rest_of_the_program() -> None:
    after = fixed(PROGRAM, "TRAIN04")
    assert after == PROGRAM.replace(CALL, "model.eval()\n" + CALL)
    answers: list[torch.Tensor] = []
    for code in (PROGRAM, PROGRAM, after, after):
        names: dict[str, object] = {}
        exec(code + "\nanswers = [model.generate(start, 40) for _ in range(3)]\n", names)
        answers.append(torch.stack(names["answers"]))  # type: ignore[arg-type]
        assert names["model"].training is (code is PROGRAM)  # type: ignore[attr-defined]
    assert not (answers[0] == answers[0][0]).all()
    assert (answers[2] == answers[2][0]).all()


def test_training_mode_comes_back_where_something_trains_behind_it() -> None:
    again = "F.cross_entropy(speaker(x).transpose(1, 2), x).backward()\n"
    (found,) = findings(PROGRAM + again, "TRAIN04")
    assert found.message.endswith("Call `model.eval()` before it and `model.train()` before training goes on.")
    after = fixed(PROGRAM + again, "TRAIN04")
    assert after == (PROGRAM + again).replace(CALL, "model.eval()\n" + CALL + "model.train()\n")
