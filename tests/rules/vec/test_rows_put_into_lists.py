"""VEC01: rows that go into places of a list stay apart, unless something is computed of them."""

from __future__ import annotations

import pytest

from tests.support import findings

PICTURES = """
import numpy as np
import torch


def sample(frames, count):
    views = np.arange(0, count * 2, 2)
    pictures = torch.zeros(count * 2, 3, 8, 8).cuda()
    kept = {kept}
    for place, view in enumerate(views):
        {store}
    return kept
"""


@pytest.mark.parametrize(
    ("kept", "store", "count"),
    [
        ("[[None] * count for _ in range(frames)]", "kept[0][place] = pictures[view].unsqueeze(0)", 0),
        ("[None] * count", "kept[place] = pictures[view].unsqueeze(0)", 0),
        ("torch.zeros(count, 1, 3, 8, 8)", "kept[place] = pictures[view].unsqueeze(0)", 1),
    ],
)
def test_a_list_keeps_rows_apart(kept: str, store: str, count: int) -> None:
    assert len(findings(PICTURES.format(kept=kept, store=store), "VEC01")) == count


@pytest.mark.parametrize(("start", "count"), [("[None for _ in range(n)]", 0), ("[0 for _ in range(n)]", 1)])
def test_a_list_of_none_has_places_for_what_may_be_rows(start: str, count: int) -> None:
    code = f"""
        import torch

        class Decoder:
            def __init__(self, n):
                self.active, self.ended = torch.arange(n), {start}

            def end(self, texts):
                for i, text in zip(self.active, texts):
                    self.ended[i] = text
    """
    assert len(findings(code, "VEC01")) == count


MEASURED = """
import numpy as np
import torch
from scipy.stats import sem


def {name}(a, b):
    {measure}


def report(a: torch.Tensor, b: torch.Tensor):
    errors = []
    for i in range(a.size(0)):
        errors.append({name}(a[i : i + 1], b[i : i + 1]))
    return interval(0.95, len(errors) - 1, np.mean(errors), sem(errors))
"""


@pytest.mark.parametrize(
    ("measure", "count"),
    [
        ("return torch.mean((a - b) ** 2).item()", 1),
        ("return torch.sqrt(torch.mean((a - b) ** 2, dim=1)).mean().item()", 1),
        ("return compare(a.numpy(), b.numpy())", 0),
        ("return a[a > b].tolist()", 0),
    ],
)
def test_a_number_that_a_function_makes_of_each_row(measure: str, count: int) -> None:
    assert len(findings(MEASURED.format(name="error", measure=measure), "VEC01", "VEC02")) == count
