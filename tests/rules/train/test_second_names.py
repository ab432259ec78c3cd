"""TRAIN10: `x = Variable(y)` leaves no second name behind where one is enough."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.support import fixed

HEAD = """\
import torch
from torch.autograd import Variable

"""
RENAMED = {
    "what is drawn above": (
        """
        noise = torch.randn(n)
        sample = Variable(noise)
        out.append(sample * 2)
        """,
        """
        sample = torch.randn(n)
        out.append(sample * 2)
        """,
    ),
    "what a loop brings": (
        """
        for i, (row, label) in enumerate(zip(rows, rows)):
            size = len(rows)
            image = Variable(row)
            target = Variable(label)
            out.append(image + target * size * i)
        """,
        """
        for i, (image, target) in enumerate(zip(rows, rows)):
            size = len(rows)
            out.append(image + target * size * i)
        """,
    ),
    "a parameter, at a few places": (
        """
        y = Variable(x)
        out.append(y + y.sum())
        """,
        """
        out.append(x + x.sum())
        """,
    ),
}
TWICE = {
    "in two loops": """\
for a in rows:
        a = a + 1
        b = Variable(a)
        out.append(b + a.sum())
    for a in rows:
        b = Variable(a)
        out.append(b)
        out.append(a)""",
    "read in between": "a, b = torch.zeros(n), x\n    out += [b]\n    b = Variable(a)\n    out += [b]",
    "in the head of the loop": "b = rows\n    for a in b:\n        b = Variable(a)\n        out.append(b)",
}
KEPT = {
    "the first name is read again": "a = torch.zeros(n)\n    b = Variable(a)\n    out.append((a, b))",
    "an iteration ends in between": """\
b = x
    for a in rows:
        if a.sum() > 3:
            continue
        b = Variable(a)
    out.append(b)""",
    "the first is set in a loop behind it": """\
a = torch.zeros(n)
    b = Variable(a)
    for row in rows:
        out.append(b)
        a = row""",
    "an exception may come in between": """\
b = x
    try:
        a = torch.zeros(n)
        len(a, a)
        b = Variable(a)
    except TypeError:
        pass
    out.append(b)""",
    "both get other values": "a = torch.zeros(n)\n    b = Variable(a)\n    a = x\n    out.append(b + a)",
    "another block": "a = torch.zeros(n)\n    b = x\n    if n > 2:\n        b = Variable(a)\n    out.append(b)",
    "names are asked for": "a = torch.zeros(n)\n    b = Variable(a)\n    out.append(sorted(locals()))",
    "a comment": "a = torch.zeros(n)\n    b = Variable(a)  # of the first\n    out.append(b)",
}


def program(body: str) -> str:
    return f"{HEAD}def make(x, n, rows, out):\n    {body.strip()}\n"


def results(code: str) -> list[Any]:
    names: dict[str, Any] = {}
    exec(compile(code, "program", "exec"), names)
    torch.manual_seed(0)
    out: list[Any] = []
    names["make"](torch.arange(3.0), 3, [torch.arange(3.0), torch.ones(3), torch.zeros(3)], out)
    return out


def same(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


@pytest.mark.parametrize(("before", "after"), RENAMED.values(), ids=RENAMED)
def test_the_tensor_has_its_second_name_from_the_start_or_its_first_one_to_the_end(before: str, after: str) -> None:
    before, after = before.replace("\n    ", "\n"), after.replace("\n    ", "\n")
    changed = fixed(program(before), "TRAIN10", unsafe=True)
    assert changed == program(after)
    assert same(results(program(before)), results(changed))


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_where_that_could_be_told_both_names_stay(body: str) -> None:
    changed = fixed(program(body), "TRAIN10", unsafe=True)
    assert "b = a\n" in changed or "b = a " in changed or "b = a.detach()" in changed
    assert same(results(program(body)), results(changed))


@pytest.mark.parametrize("body", TWICE.values(), ids=TWICE)
def test_a_second_name_goes_that_gets_other_values_elsewhere(body: str) -> None:
    changed = fixed(program(body), "TRAIN10", unsafe=True)
    assert "b = Variable" not in changed
    assert "b = a" not in changed or "out.append(b + a.sum())" in changed
    assert same(results(program(body)), results(changed))


def test_a_name_that_another_file_may_import_stays() -> None:
    code = HEAD + "first = torch.zeros(3)\nsecond = Variable(first)\nprint(second)\n"
    assert "second = torch.zeros(3)\nprint(second)" in fixed(code, "TRAIN10", unsafe=True)
    function = HEAD + "def f():\n    first = torch.zeros(3)\n    second = Variable(first)\n    return lambda: second\n"
    assert "second = first" in fixed(function, "TRAIN10", unsafe=True)
