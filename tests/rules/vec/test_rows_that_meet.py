"""VEC: rows that change what other rows read, rows of nested tensors, and tables that a constructor makes."""

from __future__ import annotations

import pytest

from tests.support import findings

RULES = ("VEC01", "VEC02", "VEC06")


def found(code: str) -> int:
    return sum(len(findings(code, rule)) for rule in RULES)


RINGS = """
import torch

class Cache:
    def __init__(self, batch, nodes, room, width):
        self.values = torch.zeros(batch, nodes, room, width, device="cuda")
        self.next = torch.zeros(batch, nodes, device="cuda", dtype=torch.long)
        self.room = room

    def write(self, rows: torch.Tensor, batch_index: torch.Tensor, node_index: torch.Tensor):
        for i in range(rows.size(0)):
            b = int(batch_index[i].item())
            n = int(node_index[i].item())
            {body}
"""
NEXT = "at = int(self.next[b, n].item())\n            self.values[b, n, at] = rows[i]\n            "


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (NEXT + "self.next[b, n] = (at + 1) % self.room", 0),
        (NEXT + "self.next[b, n] += 1", 0),
        ("self.values[b, n, 0] = rows[i]", 1),
    ],
)
def test_rows_that_go_to_the_same_place_come_one_after_the_other(body: str, count: int) -> None:
    assert found(RINGS.format(body=body)) == count


NESTED = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, 3 * width)

    def prefill(self, x: torch.Tensor):
        outputs = []
        for row in range(x.size(0)):
            q, k, v = self.proj(x[row].unsqueeze(0)).chunk(3, dim=-1)
            outputs.append((q * k * v).squeeze(0))
        return torch.{together}(outputs)
"""


@pytest.mark.parametrize(("together", "count"), [("nested.nested_tensor", 0), ("stack", 1)])
def test_rows_of_a_nested_tensor_have_lengths_of_their_own(together: str, count: int) -> None:
    assert found(NESTED.format(together=together)) == count


BLOCKS = """
import torch
from torch import nn

class Scores(nn.Module):
    def {name}(self, vectors):
        super().__init__()
        self.matrices = self.blocks(torch.tensor(vectors))

    @staticmethod
    def blocks(vectors):
        turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
        found = []
        for alpha in range(vectors.shape[1]):
            column = vectors[:, alpha]
            blocks = [k * turn for k in column]
            found.append(torch.block_diag(*blocks))
        return torch.stack(found)
"""
TABLE = """
import torch

class Table{bases}:
    def {name}(self, steps):
        times = 1 - torch.cos(torch.arange(steps) / steps)
        factors = torch.exp(torch.arange(128.0))
        self.found = torch.zeros(steps, 256)
        for i in range(steps):
            angles = times[i] * factors
            self.found[i] = torch.cat((angles.sin(), angles.cos()), dim=-1)

    {rest}
"""


def test_comprehensions_in_what_a_constructor_calls() -> None:
    assert found(BLOCKS.format(name="__init__")) == 0
    assert found(BLOCKS.format(name="refresh")) == 1


@pytest.mark.parametrize(
    ("name", "rest", "count"),
    [
        ("__init__", "def run(self):\n        return self.found", 0),
        ("run", "def stop(self):\n        return self.found", 1),
        ("__init__", "def __getitem__(self, i):\n        return self.found[i]", 1),
    ],
)
def test_tables_of_other_objects(name: str, rest: str, count: int) -> None:
    assert found(TABLE.format(bases="", name=name, rest=rest)) == count


COUNTS = """
import torch

def confusion(truth: torch.Tensor, guess: torch.Tensor, n: int):
    table = torch.zeros(n, n)
    for i in range(truth.size(0)):
        t, g = int(truth[i]), int(guess[i])
        {body}
    return table
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("table[t, g] = table[t, g] + 1", 1),
        ("table[t, g] += 1", 1),
        ("table[t, g] = table[g, t] + 1", 0),
        ("table[t, g] = 2 * table[t, g]", 0),
    ],
)
def test_counts_of_rows_that_meet(body: str, count: int) -> None:
    assert found(COUNTS.format(body=body)) == count


@pytest.mark.parametrize(
    ("place", "count"),
    [("j % room", 0), ("(j + start) % room", 0), ("j // room, j % room", 1), ("j, j % room", 1), ("j", 1)],
)
@pytest.mark.parametrize("sign", ["=", "+="])
def test_places_that_come_round(place: str, count: int, sign: str) -> None:
    code = f"""
        import torch

        def used(rows: torch.Tensor, room, start):
            out = torch.zeros(room, room)
            for j in range(len(rows)):
                out[{place}] {sign} rows[j] * 2
            return out
    """
    assert found(code) == count


@pytest.mark.parametrize(("test", "count"), [("len(picked) <= 1", 0), ("picked.shape[0] <= 1", 0), ("which < 1", 1)])
def test_how_much_a_mask_picks_is_no_answer_that_is_read_back(test: str, count: int) -> None:
    code = f"""
        import torch

        def spread(points, owner):
            found = []
            for which in torch.unique(owner):
                picked = points[owner == which]
                if {test}:
                    continue
                found.append(torch.sum((picked - picked.mean(dim=0)) ** 2, dim=1).mean())
            return torch.stack(found).mean()
    """
    assert found(code) == count


CLIPPED = """
import torch

def clip(boxes, limits, count):
    for i in range({count}):
        {body}
    return boxes
"""


@pytest.mark.parametrize(
    ("count", "body", "expected"),
    [
        ("count", "boxes[i, :, 0::4].clamp_(0, limits[i, 1] - 1)", 1),
        ("boxes.size(0)", "boxes[i, :, 0::4].clamp_(0, limits[i, 1] - 1)", 1),
        ("count", "w = limits[i, 1]\n        boxes[i, :, 0::4].clamp_(0, w - 1)", 1),
        ("count", "boxes[i, :, 0].mul_(limits[i, 0])", 1),
        ("count", "boxes[i].clamp_(0, limits[i, 1])", 0),
        ("boxes.size(0)", "boxes[i, :, 0].mul_(limits[i])", 0),
        ("boxes.size(0)", "boxes[i, :, 0].mul_(scale(limits[i, 0]))", 0),
        ("count", "boxes[i, :, 0].update_(limits[i, 0])", 0),
        ("1, boxes.size(0)", "boxes[i, :, 0].add_(boxes[i - 1, 0, 0])", 0),
    ],
    ids=[
        "within bounds of their own",
        "as many as the tensor says",
        "under a name",
        "times a number each",
        "what may be a list of tensors",
        "by what may be a list",
        "by what a function makes",
        "no method of tensors",
        "by the row before",
    ],
)
def test_rows_that_change_by_what_belongs_to_them(count: str, body: str, expected: int) -> None:
    assert found(CLIPPED.format(count=count, body=body)) == expected
