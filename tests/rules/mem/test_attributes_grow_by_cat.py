"""MEM10: tensors that an object keeps and a method of it makes longer, once for each iteration of a loop."""

from __future__ import annotations

import pytest

from tests.support import findings, fixed

FILTER = """
import torch


class Filter:
    def start(self, n):
        self.state = torch.zeros(n, 2, 1)
        self.seen = self.state.clone()

    def step(self, observed, gain):
        self.state = self.state + gain @ (observed - self.state)
        {grow}

    def run(self, observed, gain, steps):
        for t in {times}:
            {body}
        return self.seen
"""
GROW = "self.seen = torch.cat((self.seen, self.state.clone()), 2)"
STEP = "self.step(observed[..., t], gain)"


def program(grow: str = GROW, times: str = "range(steps)", body: str = STEP) -> str:
    return FILTER.format(grow=grow, times=times, body=body)


FOUND = {
    "in a method that the loop calls": program(),
    "in front": program("self.seen = torch.cat((self.state, self.seen), 2)"),
    "in the loop itself": program("pass", body=GROW),
    "where a branch calls the method": program(body="if t > 0: " + STEP),
}
SILENT = {
    "the method reads what there is": program("print(self.seen.mean())\n        " + GROW),
    "the loop reads what there is": program(body=STEP + "\n            print(self.seen.mean())"),
    "another method of the loop reads it": program(body=STEP + "\n            self.show()").replace(
        "    def run", "    def show(self):\n        print(self.seen.mean())\n\n    def run"
    ),
    "each iteration begins anew": program(body="self.start(3)\n            " + STEP),
    "the object is handed on": program(body=STEP + "\n            show(self)"),
    "at intervals": program(body="if t % 100 == 0: " + STEP),
    "the method grows it at intervals": program("if self.count % 100 == 0: " + GROW),
    "a few times": program(times="range(3)"),
    "no loop": program().replace("for t in range(steps):", "if steps:"),
    "another attribute": program("self.seen = torch.cat((self.state, self.state), 2)"),
    "an attribute of another object": program("gain.seen = torch.cat((gain.seen, self.state), 2)"),
}


@pytest.mark.parametrize("code", FOUND.values(), ids=FOUND)
def test_an_attribute_that_grows_in_each_iteration_is_found_and_left_to_its_author(code: str) -> None:
    [found] = findings(code, "MEM10")
    assert "all of `self.seen`" in found.message
    assert found.fix is None
    assert fixed(code, "MEM10").strip() == code.strip()


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_an_attribute_that_somebody_works_with_or_that_grows_seldom_is_silent(code: str) -> None:
    assert findings(code, "MEM10") == []


@pytest.mark.parametrize(
    ("test", "otherwise", "count"),
    [
        ('"out" not in seen', "else", 1),
        ("i == 0", "else", 1),
        ('"out" not in seen', "if rows", 0),
    ],
)
def test_an_entry_of_a_dict_that_another_branch_begins_grows(test: str, otherwise: str, count: int) -> None:
    code = f"""
        import torch

        def collect(rows):
            seen = {{}}
            for i, row in enumerate(rows):
                if {test}:
                    seen["out"] = row.clone()
                {otherwise}:
                    seen["out"] = torch.cat([seen["out"].clone(), row])
            return seen
    """
    found = findings(code, "MEM10")
    assert [finding.fix for finding in found] == [None] * count


METRIC = """
import torch
from torchmetrics import Metric


class Retrieval(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("seen", default=torch.tensor([]))

    def {method}(self, preds, target):
        {grow}

    def compute(self):
        return torch.cdist(self.seen, self.seen).mean()
"""
COLLECTED = "self.seen = torch.cat([self.seen, preds])"


@pytest.mark.parametrize("grow", [COLLECTED, "self.seen = torch.cat([self.seen.cpu(), preds.cpu()])"])
def test_a_state_of_a_metric_that_each_batch_makes_longer_is_found_and_left_to_its_author(grow: str) -> None:
    [found] = findings(METRIC.format(method="update", grow=grow), "MEM10")
    assert "Every batch copies all of `self.seen`" in found.message
    assert found.fix is None


@pytest.mark.parametrize(
    ("method", "grow"),
    [
        ("update", COLLECTED + "\n        self.best = self.seen.max()"),
        ("update", COLLECTED + "\n        self.seen = self.seen[-100:]"),
        ("merge", COLLECTED),
    ],
    ids=["the batch reads what there is", "of a fixed length", "a method that nobody calls"],
)
def test_a_state_that_is_worked_with_or_grows_nobody_knows_when_is_silent(method: str, grow: str) -> None:
    assert findings(METRIC.format(method=method, grow=grow), "MEM10") == []
