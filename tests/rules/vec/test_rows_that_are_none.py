"""Rows that are none: several at once, counts of the numbers in a row, and what an earlier iteration has changed."""

from __future__ import annotations

import pytest

from tests.support import findings

ROW_RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")

TURNED = """
    import torch

    def turned(count, by):
        places = torch.arange(count) + by
        return places % count

    def contrast(read, nodes, n):
        context = read(nodes)
        others = torch.cat([context[{place}] for i in range(n)], dim=0)
        return torch.sum(context.repeat(n, 1) * others, dim=1)
"""


@pytest.mark.parametrize(("place", "count"), [("turned(len(context), i + 1)", 0), ("i", 1), ("i + 1", 1)])
def test_all_rows_in_another_order_are_no_row(place: str, count: int) -> None:
    assert len(findings(TURNED.format(place=place), *ROW_RULES)) == count


PREDICTED = """
    import torch

    def contrast(z, steps, width):
        n = z.shape[0]
        start = torch.randint(z.shape[1] - steps, {size}).long()
        wanted = torch.empty((steps, n, width))
        for i in range(1, steps + 1):
            wanted[i - 1] = z[:, start + i, :].view(n, width)
        return wanted
"""


@pytest.mark.parametrize(("size", "count"), [("size=(1,)", 1), ("(1,)", 1), ("(4,)", 0)])
def test_a_place_that_is_drawn_is_one_row_and_several_are_not(size: str, count: int) -> None:
    assert len(findings(PREDICTED.format(size=size), *ROW_RULES)) == count


ENTROPY = """
    import torch

    def entropy(codes: torch.Tensor):
        found = []
        for i in range(codes.shape[1]):
            counts = {counts}
            part = counts / counts.sum()
            found.append(-(part * part.log()).sum().item())
        return found
"""


@pytest.mark.parametrize(
    ("counts", "count"),
    [
        ("torch.bincount(codes[0, i])", 0),
        ("torch.bincount(codes[0, i], minlength=1024)", 1),
        ("codes[0, i].float()", 1),
    ],
)
def test_counts_of_a_row_are_as_many_as_its_largest_number_says(counts: str, count: int) -> None:
    assert len(findings(ENTROPY.format(counts=counts), *ROW_RULES)) == count


WINNERS = """
    import torch

    def winners(rows: torch.Tensor, means: torch.Tensor, rate):
        found = torch.zeros(rows.shape[0])
        for i in range(rows.shape[0]):
            near = torch.mm(means, rows[i, :].unsqueeze(-1)).squeeze(-1)
            best = torch.argmax(near)
            found[i] = best
            {change}
        return found
"""


@pytest.mark.parametrize(
    ("change", "count"),
    [
        ("means.data[best, :] = means.data[best, :] * rate + rows.data[i, :] * (1 - rate)", 0),
        ("means[best] = means[best] * rate + rows[i] * (1 - rate)", 0),
        ("found.data[i] = best", 1),
        ("pass", 1),
    ],
)
def test_what_an_iteration_changes_behind_the_back_of_autograd_the_next_one_sees(change: str, count: int) -> None:
    assert len(findings(WINNERS.format(change=change), *ROW_RULES)) == count


ANSWERS = """
    import torch

    def predict(model, ids: torch.Tensor, kinds: torch.Tensor):
        found, answers = [], None
        with torch.no_grad():
            for i in range(ids.shape[0]):
                if answers is not None:
                    {change}
                kind = kinds[i]
                logits = model(ids[i].unsqueeze(0), kind.unsqueeze(0))
                found.append(logits)
                answers = logits > 0
        return torch.cat(found)
"""


@pytest.mark.parametrize(
    ("change", "count"),
    [
        ("kind = kinds[i]; kind[:, 3] = answers", 0),
        ("kinds[i, :, 3] = answers", 0),
        ("kind = kinds[i]; kind[:, 3] = 1", 1),
        ("other = kinds[i].clone(); other[:, 3] = answers", 1),
    ],
)
def test_a_row_that_gets_what_an_earlier_iteration_found_is_none_of_its_own(change: str, count: int) -> None:
    assert len(findings(ANSWERS.format(change=change), *ROW_RULES)) == count
