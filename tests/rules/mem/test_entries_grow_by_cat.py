"""MEM10: entries of a dict or of lists that a loop makes longer, and those that it only chooses."""

from __future__ import annotations

import pytest

from tests.support import findings

HEAD = "import torch\nfrom torch import nn\n\n\n"

ENTRY = """\
def f(xs, show, model):
    seen = {{"out": torch.zeros(0, 3), "last": torch.zeros(3)}}
    for key, x in enumerate(xs):
        {before}
        seen["out"] = torch.cat({parts})
        {after}
    return seen
"""


@pytest.mark.parametrize(
    ("before", "parts", "after", "count"),
    [
        ("pass", '[seen["out"], x]', "pass", 1),
        ("pass", "(seen['out'], x), dim=0", "pass", 1),
        ('y = x + seen["last"]', '[seen["out"], x]', 'seen["last"] = y[0]', 1),
        ('seen["out"] if "out" in seen else 0', '[seen["out"], x]', "pass", 0),
        ('show("out" in seen)', '[seen["out"], x]', 'show(len(seen["out"]))', 1),
        ("pass", '[seen["last"], x]', "pass", 0),  # another entry
        ("pass", '[seen["out"], model(seen["out"])]', "pass", 0),  # the next iteration goes on from it
        ("pass", '[seen["out"], x]', "show(seen)", 0),
        ("pass", '[seen["out"], x]', "model(**seen)", 0),
        ("pass", '[seen["out"], x]', "show(seen[key])", 0),
        ("pass", '[seen["out"], x]', 'show(seen["out"])', 0),
        ('seen["out"] = x', '[seen["out"], x]', "pass", 0),
        ('seen = {"out": x}', '[seen["out"], x]', "pass", 0),
    ],
)
def test_an_entry_of_a_dict_grows_like_a_variable(before: str, parts: str, after: str, count: int) -> None:
    found = findings(HEAD + ENTRY.format(before=before, parts=parts, after=after), "MEM10")
    assert len(found) == count
    assert all(finding.fix is None for finding in found)


CHOSEN = """\
import torch


def collect(net, loader, n):
    seen = [[] for _ in range(n)]
    for x, labels in loader:
        rows = net(x)
        for i in range(len(x)):
            label = labels[i]
            if len(labels) < i:
                seen[label] = rows[i]
            else:
                {grows}
{beside}
    return seen
"""


@pytest.mark.parametrize(
    ("grows", "beside", "count"),
    [
        ("seen[label] = torch.cat((seen[label], rows[i]), 0)", "", 1),
        ("seen[label] = torch.cat((seen[label], rows[i]), 0)", "            print(seen[label].mean())", 0),
        ("seen[label] = torch.cat((seen[label], rows[i]), 0)", "        seen = [[] for _ in range(n)]", 0),
        ("seen[i] = torch.cat((seen[label], rows[i]), 0)", "", 0),
        ("seen[next(keys)] = torch.cat((seen[next(keys)], rows[i]), 0)", "", 0),
    ],
)
def test_an_entry_that_an_inner_loop_chooses_grows_in_the_loop_around_it(grows: str, beside: str, count: int) -> None:
    found = findings(CHOSEN.format(grows=grows, beside=beside), "MEM10")
    assert [finding.fix for finding in found] == [None] * count


@pytest.mark.parametrize(
    ("inner", "count"), [("for row in rows[i]:", 1), ("for row in rows[i][:2]:", 1), ("if rows:", 0)]
)
def test_a_loop_that_chooses_an_entry_does_not_make_it_grow(inner: str, count: int) -> None:
    code = f"""
        import torch

        def collect(rows, n):
            seen = [torch.empty(0) for _ in range(n)]
            for i in range(n):
                {inner}
                    seen[i] = torch.cat([seen[i], rows[i]])
            return seen
    """
    assert len(findings(code, "MEM10")) == count


@pytest.mark.parametrize(("key", "count"), [("label", 1), ("batch.label", 0), ("self.label", 0)])
def test_an_entry_that_an_attribute_chooses_may_be_another_one_each_time(key: str, count: int) -> None:
    code = f"""
        import torch

        class Collector:
            def collect(self, loader, label):
                seen = {{}}
                for batch in loader:
                    self.advance(batch)
                    seen[{key}] = torch.cat([seen[{key}], batch.x])
                return seen
    """
    assert len(findings(code, "MEM10")) == count
