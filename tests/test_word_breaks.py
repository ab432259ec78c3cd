"""Words that only a bracket keeps apart."""

from __future__ import annotations

import pytest

from tests.support import fixed
from torchlint.finding import Edit
from torchlint.fixing.word_breaks import set_apart
from torchlint.source import splice


@pytest.mark.parametrize(
    ("text", "cuts", "after"),
    [
        ("return(x)", ["(", ")"], "return x"),
        ("return (x)", ["(", ")"], "return x"),
        ("returned(x)", ["(", ")"], "returnedx"),
        ("a if(x)else(y)", ["(", ")", "(", ")"], "a if x else y"),
        ("[f(x)for x in xs]", ["f(", ")"], "[x for x in xs]"),
        ("not(-x)", ["(", ")"], "not-x"),
        ("return(f(x))", ["(", "f(", ")", ")"], "return x"),
        ("(x)", ["(", ")"], "x"),
    ],
)
def test_a_blank_stands_for_the_bracket(text: str, cuts: list[str], after: str) -> None:
    edits, place = [], 0
    for cut in cuts:
        place = text.index(cut, place)
        edits.append(Edit(place, place + len(cut), ""))
        place += len(cut)
    assert splice(text, set_apart(text, edits)) == after


@pytest.mark.parametrize(
    ("returned", "after"),
    [
        ("return(Variable(x * 2))", "return x * 2"),
        ("return[Variable(x * 2)for x in xs]", "return[x * 2 for x in xs]"),
        ("return(torch.zeros(3)).cuda()", 'return torch.zeros(3, device="cuda")'),
    ],
)
def test_no_fix_makes_one_word_of_two(returned: str, after: str) -> None:
    head = "import torch\nfrom torch.autograd import Variable\n\n\ndef f(x, xs):\n    "
    left = head.replace("from torch.autograd import Variable\n", "") if "Variable" in returned else head
    assert fixed(f"{head}{returned}\n", "TRAIN10", "XFER01", unsafe=True).endswith(f"{left[-20:]}{after}\n")
