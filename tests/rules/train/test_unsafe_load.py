"""TRAIN11: what is put in the place of `torch.load`, and what only looks like it."""

from __future__ import annotations

import pytest

from tests.support import findings

LOAD = "import torch\n\nstate = torch.load('model.pt')\n"


def test_a_load_is_found() -> None:
    assert [finding.line for finding in findings(LOAD, "TRAIN11")] == [3]


@pytest.mark.parametrize(("line", "expected"), [("torch.load = restricted", []), ("args.load = ''", [3])])
def test_only_another_torch_load_makes_it_safe(line: str, expected: list[int]) -> None:
    code = f"{LOAD}\ndef prepare(args, restricted):\n    {line}\n"
    assert [finding.line for finding in findings(code, "TRAIN11")] == expected
