"""The loop vectoriser where what a loop fills is no variable: an attribute, an entry of a dict, `x[i][j]`."""

from __future__ import annotations

import pytest

from tests.fixers import loops as kinds
from tests.fixers.generated import RULES, disagreement
from tests.fixers.test_vectorizer_agreement import SHAPES, module
from tests.support import fixed

HELD = "class Held:\n    pass\n\n\n"
FORMS = {
    "an attribute": ("held = Held()\nheld.out = torch.zeros(n, p)", "held.out[i] = x[i] * 2", "held.out"),
    "an entry": ('kept = {}\nkept["out"] = torch.zeros(n, p)', 'kept["out"][i] = x[i] * 2', 'kept["out"]'),
    "an entry of a literal": ('kept = {"out": torch.zeros(n, p)}', 'kept["out"][i] = x[i] * 2', 'kept["out"]'),
    "in place": ("held = Held()\nheld.out = x.clone()", "held.out[i] += y[i]", "held.out"),
    "made of itself": ("held = Held()\nheld.out = x.clone()", "held.out[i] = held.out[i] * s[i]", "held.out"),
    "data": ("out = x.clone()", "out.data[i] = y[i] * 2", "out.data"),
    "indices one by one": ("out = torch.zeros(n, p)", "out[i][0] = x[i][1]", "out"),
    "the same row everywhere": ("held = Held()\nheld.out = torch.zeros(n, p)", "held.out[i] = x[0]", "held.out"),
}  # fmt: skip


def code_of(made: str, line: str, result: str) -> str:
    body = f"{made}\nfor i in range(n):\n    {line}\nout = {result}\n"
    return module(body).replace("\n\n\ndef", f"\n\n\n{HELD}def", 1)


@pytest.mark.parametrize("name", FORMS)
def test_it_is_filled_at_once(name: str) -> None:
    code = code_of(*FORMS[name])
    new = fixed(code, *RULES)
    assert "for " not in new.split("def f")[1], new
    assert disagreement(kinds.Generated(code, SHAPES), new) is None


KEPT = {
    "the object has another name": (
        "held = Held()\nheld.out = torch.zeros(n + 1)\nsame = held",
        "held.out[i + 1] = x[i].sum() + same.out[i]",
    ),
    "it has another name": (
        "held = Held()\nheld.out = torch.zeros(n + 1)\nbeyond = held.out[1:]",
        "held.out[i] = x[i].sum() + beyond[i]",
    ),
    "a copy of the dict has it, too": (
        'kept = {"out": torch.zeros(n)}\nsame = dict(kept)',
        'kept["out"][i] = x[i].sum() + same["out"].sum()',
    ),
    "the dict has given it before": (
        'kept = {"out": torch.zeros(n)}\nsame = kept.get("out")',
        'kept["out"][i] = x[i].sum() + same.sum()',
    ),
    "the dict gives it in the loop": (
        'kept = {"out": torch.zeros(n)}',
        'kept["out"][i] = x[i].sum() + kept.get("out").sum()',
    ),
    "another name of the object has given it a name": (
        "held = Held()\nsame = held\nheld.out = torch.zeros(n)\nview = same.out.view(-1)",
        "held.out[i] = x[i].sum() + view.sum()",
    ),
    "another row": ("held = Held()\nheld.out = torch.zeros(n + 1)", "held.out[i + 1] = x[i].sum() + held.out[i]"),
    "a part of it": ("held = Held()\nheld.out = torch.zeros(n, p)", "held.out[i] = x[i] + held.out.T[0, 0]"),
    "what it is the data of": ("held = Held()\nheld.out = x.clone()", "held.out.data[i] = held.out[0] + x[i]"),
    "a call in between": (
        "held = Held()\nheld.out = torch.zeros(n)\nchange(held)",
        "held.out[i] = x[i].sum()",
    ),
    "nothing in sight makes it": ("held = given()", "held.out[i] = x[i].sum()"),
    "a list of tensors": ("out = [torch.zeros(p) for _ in range(n)]", "out[i][0] = x[i][1]"),
    "an entry that changes": ("kept = {}\nkept[0] = torch.zeros(n)", "kept[n * 0][i] = x[i].sum()"),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_may_be_reached_otherwise_keeps_its_loop(name: str) -> None:
    code = code_of(*KEPT[name], "None")
    assert fixed(code, *RULES) == code


CLASS = """\
import torch


class Meter:
    def __init__(self, count):
        self.errors = torch.zeros(count)
        self.grid = torch.zeros(4, 5)

    @property
    def late(self):
        return self.errors[1:]

    def update(self, x: torch.Tensor):
        {made}
        for i in range(x.size(0)):
            {line}
        return self.errors
"""


WIDE = ("self.wide[i] = self.grid", "self.wide[:] = self.grid\n")


@pytest.mark.parametrize(
    ("made", "line", "new"),
    [
        ("self.errors = torch.zeros(x.size(0))", "self.errors[i] = x[i].sum() * 2", "self.errors[:] ="),
        ("self.wide = torch.zeros(torch.Size([x.size(0)]) + self.grid.size())", *WIDE),
        ("self.wide = torch.zeros((x.size(0), *self.grid.shape))", *WIDE),
        ("self.wide = torch.zeros(x.size(0), 3)", "self.wide[i] = i", "self.wide[:] = torch.arange(x.size(0)"),
    ],
)
def test_attributes_made_before_the_loop_are_filled_at_once(made: str, line: str, new: str) -> None:
    assert new in fixed(CLASS.format(made=made, line=line), *RULES)


@pytest.mark.parametrize(
    ("made", "line"),
    [
        ("pass", "self.errors[i] = x[i].sum()"),  # a caller may hand in a part of what the object holds
        ("self.errors = torch.zeros(x.size(0))", "self.errors[i] = x[i].sum() + self.late[i]"),
        ("self.errors = torch.zeros(x.size(0)); self.update(x)", "self.errors[i] = x[i].sum()"),
        ("self.errors = view = torch.zeros(x.size(0))", "self.errors[i] = x[i].sum() + view[0]"),
    ],
)
def test_attributes_that_may_be_something_else_keep_their_loop(made: str, line: str) -> None:
    code = CLASS.format(made=made, line=line)
    assert fixed(code, *RULES) == code


COUNTS = """\
import torch


def f(net, loader, n: int):
    table = torch.zeros(n, n{device})
    for x, labels in loader:
        labels, best = labels.cuda(), torch.argmax(net(x), 1)
        for label, found in zip(labels.view(-1), best.view(-1)):
            table[label.long(), found.long()] += 1
        {line}
    return table
"""


def test_places_on_a_device_are_brought_to_a_table_of_the_host() -> None:
    new = fixed(COUNTS.format(device="", line="pass"), *RULES)
    assert "table.index_put_(" in new
    assert new.count(".to(table.device)") == 2, new


def test_places_that_are_where_the_table_is_stay_there() -> None:
    new = fixed(COUNTS.format(device=', device="cuda"', line="pass"), *RULES)
    assert "table.index_put_(" in new
    assert ".to(table.device)" not in new


def test_a_table_that_is_handed_on_in_each_round_keeps_its_loop() -> None:
    code = COUNTS.format(device="", line="net.keep(table)")
    assert fixed(code, *RULES) == code
