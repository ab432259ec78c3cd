"""The loop vectoriser on tensors that torch returns together: `torch.topk(x, k)[1]`, `x.max(1).values`."""

from __future__ import annotations

import pytest

from tests.fixers import loop_parts as parts
from tests.fixers import loops as kinds
from tests.fixers.generated import CASES, RULES, disagreement
from tests.support import fixed

HEAD = "import torch\nfrom rank import best, rank\n\n\ndef f(a: torch.Tensor, b: torch.Tensor):\n"
LOOP = "    return torch.stack([b[:, index[i]] for i in range(len(index))], dim={dim})\n"
BATCHED = {-1: "b[:, index].movedim(1, -1)", 0: "b[:, index].movedim(1, 0)", 1: "b[:, index]"}


@pytest.mark.parametrize("dim", BATCHED)
@pytest.mark.parametrize(
    "made",
    [
        "index = torch.topk(a[:, 0], 1)[1]",
        "index = torch.sort(a[:, 0], descending=True).indices",
        "index = a[:, 0].sort().indices",
        "most, index = a[:, 0].sort()",
        "most, index = torch.sort(a[:, 0])",
    ],
)
def test_places_among_several_results_are_taken_at_once(made: str, dim: int) -> None:
    head = HEAD.replace("from rank import best, rank\n", "")
    ranks = "    n, p = a.shape\n    m, n = b.shape\n"
    code = f"{head}{ranks}    {made}\n    (k,) = index.shape\n{LOOP.format(dim=dim)}"
    new = fixed(code, *RULES)
    assert f"return {BATCHED[dim]}\n" in new
    given = kinds.Generated(code, {"a": ("n", "p"), "b": ("m", "n")})
    assert disagreement(given, new, CASES[parts.FLOATS]) is None


@pytest.mark.parametrize("made", ["index = rank(a)[1]", "most, index = rank(a)", "index = best.max(0)[1]"])
def test_results_of_what_is_not_torch_may_be_lists(made: str) -> None:
    code = f"{HEAD}    {made}\n{LOOP.format(dim=0)}"
    assert fixed(code, *RULES) == code
