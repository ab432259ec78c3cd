"""MEM10: a tensor that the first iteration begins, by a flag, a count or because there is none yet."""

from __future__ import annotations

import pytest
import torch

from tests.support import as_shown, findings, fixed
from torchlint.finding import Applicability

HEAD = "import torch\n\n\n"

GROWING = {
    "by a count": """\
def f(xs):
    for i, x in enumerate(xs):
        if i == 0:
            out = x * 2
        else:
            out = torch.cat([out, x * 2])
    return out
""",
    "by a count, with another first part": """\
def f(xs):
    for i in range(len(xs)):
        if i == 0:
            out = xs[i] * 2
        else:
            out = torch.cat([out, xs[i] * 3])
    return out
""",
    "by a flag": """\
def f(xs):
    first = True
    with torch.no_grad():
        for x in xs:
            if first:
                out = x.float()
                first = False
            else:
                out = torch.cat((out, x.float()), 0)
    out = out + 1
    return out
""",
    "with the growth in front": """\
def f(xs):
    begun = False
    for x in xs:
        if begun:
            out = torch.cat([out, x], dim=1)
        else:
            out = x * 2
            begun = True
    return out
""",
    "rows that go on from tensor to tensor": """\
def f(xs):
    begun = False
    for x in xs:
        for row in x.split(1):
            if begun:
                out = torch.cat([out, row])
            else:
                out = row * 2
                begun = True
    return out
""",
    "anew in each pass": """\
def f(xs):
    found = []
    for k in range(2):
        for i, x in enumerate(xs):
            if i == 0:
                out = x * k
            else:
                out = torch.cat([out, x * k])
        found.append(out.sum())
    return torch.stack(found)
""",
}
NOTHING_BEFORE = {
    "two tensors of one condition": """\
def f(xs):
    out, other = None, None
    for x in xs:
        if out is None:
            out = x * 2
            other = x
        else:
            out = torch.cat([out, x * 2])
            other = torch.cat([other, x])
    return out if out is None else out + other
""",
    "a number": """\
def f(xs):
    out = 0
    for i in range(len(xs)):
        if i == 0:
            out = xs[i] * 2
        else:
            out = torch.cat([out, xs[i] * 2], 1)
    return None if isinstance(out, int) else out
""",
    "a number, and a count of rows": """\
def f(xs):
    out, seen = 0, 0
    for x in xs:
        if seen == 0:
            out = x * 2
        else:
            out = torch.cat([out, x * 2], 1)
        seen += len(x)
    return None if isinstance(out, int) else out
""",
    "an expression": """\
def f(xs):
    out = None
    for x in xs:
        out = x if out is None else torch.cat([out, x])
    return out
""",
    "an expression the other way round": """\
def f(xs):
    out = None
    for x in xs:
        out = torch.cat([out, x]) if out is not None else x
    return out
""",
    "branches": """\
def f(xs):
    out, count = None, 0
    for x in xs:
        count += 1
        if out is None:
            out = x * 2
        else:
            out = torch.cat([out, x * 2], dim=0)
    return out
""",
    "branches the other way round, in two loops": """\
def f(xs):
    out = None
    for x in xs:
        for row in x:
            if out is not None:
                out = torch.cat([out, row[None]])
            else:
                out = row[None]
    return out
""",
}


def called(code: str, count: int) -> object:
    space: dict[str, object] = {}
    exec(code, space)
    torch.manual_seed(3)
    return space["f"]([torch.randn(4, 3) for _ in range(count)])  # type: ignore[operator]


def same(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return torch.equal(one, other)
    return one is other is None


@pytest.mark.parametrize("name", GROWING)
def test_the_list_begins_where_the_tensor_does(name: str) -> None:
    before = HEAD + GROWING[name]
    after = as_shown(before, "MEM10")
    assert "out_parts" in after
    assert findings(after, "MEM10") == []
    for count in (1, 2, 5):
        assert same(called(before, count), called(after, count))
    for code in (before, after):
        with pytest.raises((NameError, ValueError, RuntimeError)):
            called(code, 0)


@pytest.mark.parametrize("name", NOTHING_BEFORE)
def test_a_loop_without_iterations_leaves_what_was_there(name: str) -> None:
    before = HEAD + NOTHING_BEFORE[name]
    after = as_shown(before, "MEM10")
    assert "if out_parts else" in after
    assert findings(after, "MEM10") == []
    for count in (0, 1, 2, 5):
        assert same(called(before, count), called(after, count))


def test_a_condition_that_only_tells_the_first_part_apart_goes() -> None:
    assert fixed(HEAD + GROWING["by a count"], "MEM10", unsafe=True).removeprefix(HEAD) == (
        "def f(xs):\n    out_parts = []\n    for i, x in enumerate(xs):\n        out_parts.append(x * 2)\n"
        "    out = torch.cat(out_parts)\n    return out\n"
    )


@pytest.mark.parametrize("name", ["by a count, with another first part", "by a flag"])
def test_a_list_that_begins_in_a_branch_is_only_shown(name: str) -> None:
    code = HEAD + GROWING[name]
    assert fixed(code, "MEM10", unsafe=True) == code
    [found] = findings(code, "MEM10")
    assert found.fix is not None
    assert found.fix.applicability is Applicability.DISPLAY


def test_a_count_is_that_of_its_loop() -> None:
    code = GROWING["by a count"].replace("    return", "    for i in range(3):\n        out = out + i\n    return")
    assert "if i == 0" not in fixed(HEAD + code, "MEM10", unsafe=True)
    counted_by_hand = code.replace("            out = x * 2\n", "            i = 1\n            out = x * 2\n", 1)
    assert "i = 1" in fixed(HEAD + counted_by_hand, "MEM10", unsafe=True)


def test_a_first_part_is_no_safe_fix() -> None:
    """With a single iteration the tensor is a copy now, and was the part itself before."""
    [finding] = findings(HEAD + GROWING["by a count"], "MEM10")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


KEPT = {
    "the loop may find what another has left": """\
def f(xs):
    out = xs[0]
    first = True
    for x in xs:
        if first:
            out = x * 2
            first = False
        else:
            out = torch.cat([out, x])
    return out
""",
    "one of two that begin together in one line": """\
def f(xs):
    for i, x in enumerate(xs):
        if i == 0:
            out, other = x * 2, x
        else:
            out = torch.cat([out, x])
    return out + other
""",
    "none again in between": """\
def f(xs):
    for x in xs:
        if x.sum() > 9:
            out = None
        else:
            out = torch.cat([out, x])
    return out
""",
    "nothing needs it that there is one": """\
def f(xs, wanted):
    first = True
    for x in xs:
        if first:
            out = x * 2
            first = False
        else:
            out = torch.cat([out, x])
    if wanted:
        return out
    return None
""",
    "what leaves before it is needed": """\
def f(xs):
    first = True
    for x in xs:
        if first:
            out = x * 2
            first = False
        else:
            out = torch.cat([out, x])
    if first:
        return None
    return out
""",
    "a part that does not fit is left out": """\
def f(xs):
    out = None
    for x in xs:
        try:
            out = x if out is None else torch.cat([out, x])
        except RuntimeError:
            continue
    return out
""",
    "the loop asks for it in another place, too": """\
def f(xs):
    out = None
    for x in xs:
        if out is None:
            out = x
        else:
            out = torch.cat([out, x])
        if out is not None and len(out) > 8:
            break
    return out
""",
    "what was there before is no list": """\
def f(xs):
    out = xs[0] if xs else None
    for x in xs:
        if out is None:
            out = x
        else:
            out = torch.cat([out, x])
    return out
""",
    "a later pass begins with what became of it": """\
def f(xs):
    first = True
    for k in range(2):
        for x in xs:
            if first:
                out = x * 2
                first = False
            else:
                out = torch.cat([out, x])
        out = out + 1
    return out
""",
}


@pytest.mark.parametrize("name", KEPT)
def test_what_may_not_be_the_same_is_left(name: str) -> None:
    code = HEAD + KEPT[name]
    assert fixed(code, "MEM10", unsafe=True) == code


def test_what_is_made_before_the_context_of_the_loop_counts() -> None:
    code = HEAD + (
        "def f(xs):\n    out = torch.zeros(0, 3)\n    with torch.no_grad():\n        for x in xs:\n"
        "            out = torch.cat([out, x * 2])\n    return out\n"
    )
    after = fixed(code, "MEM10")
    assert "out_parts = [torch.zeros(0, 3)]" in after
    for count in (0, 1, 4):
        assert same(called(code, count), called(after, count))
    entered = code.replace("torch.no_grad()", "torch.autograd.graph.save_on_cpu(pin_memory=len(out) > 0)")
    assert fixed(entered, "MEM10") == entered


def test_tensors_of_one_line_become_lists_of_one_line() -> None:
    code = HEAD + (
        "def f(xs):\n    u, v = torch.zeros(0, 3), torch.ones(1, 3)\n    for x in xs:\n"
        "        u = torch.cat((u, x * 2))\n        v = torch.cat((v, x * 3))\n    return u + v[1:]\n"
    )
    after = fixed(code, "MEM10")
    assert "u_parts, v_parts = [torch.zeros(0, 3)], [torch.ones(1, 3)]" in after
    for count in (0, 1, 4):
        assert same(called(code, count), called(after, count))


def test_a_condition_that_only_begins_several_tensors_goes() -> None:
    assert fixed(HEAD + NOTHING_BEFORE["two tensors of one condition"], "MEM10", unsafe=True).removeprefix(HEAD) == (
        "def f(xs):\n    out_parts, other_parts = [], []\n    for x in xs:\n        out_parts.append(x * 2)\n"
        "        other_parts.append(x)\n    out = torch.cat(out_parts) if out_parts else None\n"
        "    other = torch.cat(other_parts) if other_parts else None\n    return out if out is None else out + other\n"
    )


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("other = x\n        else", "other = x + 1\n        else"),
        ("other = x\n        else", "other = x  # the first\n        else"),
        ("other = x\n        else", "other = x\n            print(x)\n        else"),
    ],
    ids=["another first part", "a comment", "more to do in the first round"],
)
def test_a_condition_that_is_there_for_more_stays(line: str, other: str) -> None:
    before = HEAD + NOTHING_BEFORE["two tensors of one condition"].replace(line, other)
    after = as_shown(before, "MEM10")
    assert "if not out_parts:" in after
    for count in (0, 1, 2, 5):
        assert same(called(before, count), called(after, count))


def test_a_condition_by_which_one_of_several_begins_anew_stays() -> None:
    before = """\
import torch


def f(xs):
    out, seen = None, []
    for k in range(1, 3):
        other = None
        for x in xs:
            if other is None:
                out = x * k
                other = x
            else:
                out = torch.cat([out, x * k])
                other = torch.cat([other, x])
        seen.append(other.sum())
    return out + torch.stack(seen).sum()
"""
    after = as_shown(before, "MEM10")
    assert "out_parts = [x * k]" in after
    for count in (1, 2, 5):
        assert same(called(before, count), called(after, count))
