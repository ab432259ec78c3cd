"""Pinned memory in the lattice: what is in it, what stays in it, and what leaves it."""

from __future__ import annotations

import pytest

from tests.semantics.programs import model_of, value_of
from torchlint.semantics.account import describe

HEADER = """
    import torch
    from torch.utils.data import DataLoader

    options = {"pin_memory": True}
"""


@pytest.mark.parametrize(
    ("made", "pinned"),
    [
        ("torch.ones(3).pin_memory()", True),
        ("torch.empty(3, 2, pin_memory=True)", True),
        ("torch.empty(3, 2, pin_memory=cuda)", False),
        ("torch.empty(3, 2)", False),
        ("torch.empty(3, 2, **options)", True),
        ("torch.ones(3).pin_memory().view(1, 3).detach()", True),
        ("torch.ones(3).pin_memory().zero_()", True),
        ("torch.ones(3).pin_memory()[1:]", True),
        ("torch.ones(3).pin_memory()[[2, 0]]", False),
        ("torch.ones(3).pin_memory().double()", False),
        ("torch.ones(3).pin_memory() + 1", False),
        ("torch.ones(3).pin_memory().cuda()", False),
        ("torch.ones(3).pin_memory() if cuda else torch.ones(3)", False),
        ("next(iter(DataLoader(data, 4, pin_memory=True)))", True),
        ("next(iter(DataLoader(data, 4, pin_memory=True)))[0]", True),
        ('next(iter(DataLoader(data, 4, pin_memory=True)))["image"]', True),
        ('next(iter(DataLoader(data, 4, pin_memory=True)))["image"].float()', False),
        ("next(iter(DataLoader(data, 4, **options)))", True),
        ("next(iter(DataLoader(data, 4, pin_memory=False)))", False),
    ],
)
def test_what_lies_in_pinned_memory(made: str, *, pinned: bool) -> None:
    assert value_of(model_of(f"{HEADER}    value = {made}\n"), "value").pinned is pinned


def test_it_is_said_of_batches_and_of_their_loader() -> None:
    model = model_of(
        f"{HEADER}    loader = DataLoader(data, 4, pin_memory=True)\n    for x, y in loader:\n        pass\n"
    )
    assert describe(value_of(model, "x")) == "a batch, or a part of one, in pinned memory, carries no graph"
    assert describe(value_of(model, "loader")).endswith("that pins its batches")
