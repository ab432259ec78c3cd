"""Tensors that grow in each branch of a condition."""

from __future__ import annotations

import pytest

from tests.support import findings

GROWING = """
import torch

def f(rows, model):
    kept = torch.empty(0)
    for row in rows:
{body}
    return kept
"""


def lines_of(body: str) -> list[int]:
    shown = "\n".join(" " * 8 + line for line in body.splitlines())
    found = findings(GROWING.format(body=shown), "MEM10")
    assert all(finding.fix is None for finding in found)
    return [finding.line for finding in found]


def test_a_tensor_that_grows_in_either_branch_grows() -> None:
    body = "if row.sum() > 0:\n    kept = torch.cat([kept, row])\nelse:\n    kept = torch.cat([kept, -row])"
    assert lines_of(body) == [7, 9]


def test_a_tensor_that_grows_in_one_of_several_branches_grows() -> None:
    body = (
        "if row.sum() > 0:\n    kept = torch.cat([kept, row])\nelif row.sum() < -1:\n"
        "    kept = torch.cat((kept, model(row)), dim=0)\nelse:\n    kept = torch.cat([kept, -row])"
    )
    assert lines_of(body) == [7, 9, 11]


@pytest.mark.parametrize(
    "body",
    [
        "if row.sum() > 0:\n    kept = torch.cat([kept, row])\nelse:\n    kept = torch.cat([kept, model(kept)])",
        "if row.sum() > 0:\n    kept = torch.cat([kept, row])\nelse:\n    kept = torch.cat([kept, row])[1:]",
        "if row.sum() > 0:\n    kept = torch.cat([kept, row])\nelse:\n    row = torch.cat([kept, row])\n    model(row)",
        "if row.sum() > 0:\n    kept = torch.cat([kept, row])\nkept = torch.cat([kept, -row])",
    ],
    ids=["the next part is made of it", "its beginning goes", "another tensor is made of it", "it grows twice"],
)
def test_a_tensor_that_the_other_branch_works_with_has_to_be_there(body: str) -> None:
    assert lines_of(body) == []
