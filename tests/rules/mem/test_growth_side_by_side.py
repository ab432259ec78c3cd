"""MEM10: tensors that grow side by side are all collected in lists, or none of them is."""

from __future__ import annotations

import torch

from tests.support import findings, fixed

SIDE_BY_SIDE = """\
import torch


def f(xs):
    boxes = torch.zeros((0, 4))
    scores = torch.zeros(0)
    for x in xs:
        boxes = torch.cat((boxes, x[None] * 2))
        scores = torch.cat((scores, x.mean()[None]))
    return boxes, scores
"""


def test_all_of_them_become_lists() -> None:
    after = fixed(SIDE_BY_SIDE, "MEM10", unsafe=True)
    assert after.count(".append(") == 2
    results = []
    for code in (SIDE_BY_SIDE, after):
        names: dict[str, object] = {}
        exec(code, names)
        results.append(names["f"](torch.arange(12.0).reshape(3, 4)))  # type: ignore[operator]
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_none_does_where_one_cannot() -> None:
    code = SIDE_BY_SIDE.replace("return boxes", "    if len(scores) > 2:\n            break\n    return boxes")
    assert len(findings(code, "MEM10")) == 2
    assert fixed(code, "MEM10", unsafe=True) == code


def test_what_grows_in_another_block_has_nothing_to_do_with_it() -> None:
    code = SIDE_BY_SIDE + SIDE_BY_SIDE.partition("\n\n\n")[2].replace("def f", "\n\ndef g").replace(
        "return boxes", "    if len(scores) > 2:\n            break\n    return boxes"
    )
    assert fixed(code, "MEM10", unsafe=True).count(".append(") == 2


def test_a_name_that_only_another_function_has_is_not_taken() -> None:
    done = fixed(SIDE_BY_SIDE, "MEM10", unsafe=True)
    code = done + "\n\n" + SIDE_BY_SIDE.partition("\n\n\n")[2].replace("def f", "def g")
    assert fixed(code, "MEM10", unsafe=True).count(".append(") == 4


def test_a_name_that_the_whole_file_has_is() -> None:
    code = f"boxes_parts = []\n{SIDE_BY_SIDE}"
    assert fixed(code, "MEM10", unsafe=True) == code
