"""TRAIN10: a function that computes with nothing but volatile variables is switched off, and loses them."""

from __future__ import annotations

import pytest

from tests.support import findings, fixed

HEAD = "import torch\nfrom torch.autograd import Variable\nfrom scores import attention\n\n"
END = '\n\nif __name__ == "__main__":\n    scores([], [])\n'
SCORES = """\
def scores(images, captions):
    for image in images:
        x = Variable(torch.from_numpy(image), volatile=True).cuda()
        similar = attention(x, captions)
        print(similar.data.cpu().numpy())
"""


def test_a_function_of_volatile_variables_records_no_graph() -> None:
    off = SCORES.replace("Variable(torch.from_numpy(image), volatile=True)", "torch.from_numpy(image)")
    off = "@torch.no_grad()\n" + off.replace(".data.cpu()", ".cpu()")
    after = HEAD.replace("from torch.autograd import Variable\n", "") + off
    assert fixed(HEAD + SCORES + END, "TRAIN10", "LINT") == after + END


@pytest.mark.parametrize(
    "line",
    [
        "    y = Variable(captions)\n    print(attention(y, y))\n",
        "    attention(images, captions).backward()\n",
        "    yield images\n",
        "    with torch.enable_grad():\n        print(attention(images, captions))\n",
        "    if isinstance(images, Variable):\n        print(images)\n",
    ],
    ids=["with a graph", "takes gradients", "a generator", "sets the mode", "asks"],
)
def test_what_else_a_function_does_with_graphs_is_for_its_author(line: str) -> None:
    code = HEAD + SCORES + line
    assert findings(code, "TRAIN10")
    assert "no_grad" not in fixed(code, "TRAIN10")


def test_nothing_is_detached_beside_what_stays_volatile() -> None:
    beside = "    y = Variable(captions)\n    print(attention(y, y))\n"
    assert "detach" not in fixed(HEAD + SCORES + beside, "TRAIN10")
    assert "detach" in fixed(HEAD + (SCORES + beside).replace(", volatile=True", ""), "TRAIN10")


ERROR = """\
def error(states, rewards, following):
    best = attention(Variable(following, volatile=True), rewards)
    {rest}
"""


@pytest.mark.parametrize(
    ("rest", "is_off"),
    [
        ("values = attention(states, rewards); return values - best", False),
        ("return attention(states, rewards) - best", False),
        ("values = attention(states, rewards); print(values - best)", True),
        ("return rewards + 0.99 * best", True),
        ("return attention(states, best)", True),
    ],
)
def test_what_is_computed_beside_volatile_variables_may_be_trained(rest: str, is_off: bool) -> None:
    assert ("no_grad" in fixed(HEAD + ERROR.format(rest=rest), "TRAIN10")) is is_off
