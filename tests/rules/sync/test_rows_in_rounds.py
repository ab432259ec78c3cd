"""SYNC07: rows of what a model says, where nothing but the rounds around them shows that they come again."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import TORCH_ONLY, evaluation
from tests.support import findings

DECODER = """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(8, 8)
        self.out = nn.Linear(8, 8)

    def {name}(self, x):
        state, picked = None, []
        for step in range(9):
            state = self.cell(x, state)
            x = torch.zeros(4, 8).to(device)
            for row, best in enumerate(self.out(state[0]).to(device).argmax(1)):
                x[row, int(best)] = 1
        return x
"""


@pytest.mark.parametrize(("name", "count"), [("forward", 1), ("draw", 0)])
def test_a_forward_pass_that_nobody_is_seen_to_run_is_there_for_steps(name: str, count: int) -> None:
    assert len(findings(TORCH_ONLY + DECODER.format(name=name), "SYNC07")) == count


@pytest.mark.parametrize(
    ("made", "rows", "count"),
    [
        ("scores = net(x.to(device))", "scores.argsort(descending=True)", 1),
        ("scores = load(x)", "scores.argsort(descending=True)", 0),
        ("scores, _ = net(x.to(device))", "scores", 0),  # a list of steps, perhaps
    ],
)
def test_rows_of_what_a_model_says_in_each_of_several_rounds(made: str, rows: str, count: int) -> None:
    code = (
        TORCH_ONLY
        + f"""
@torch.no_grad()
def rank(net: nn.Module, draw, load):
    net.to(device)
    ranks = []
    for _ in range(10):
        x, wanted = draw()
        {made}
        for truth, order in zip(wanted, {rows}):
            ranks += [truth[order.cpu().numpy()]]
    return ranks
"""
    )
    assert len(findings(code, "SYNC07")) == count


@pytest.mark.parametrize(
    ("place", "count"),
    [
        ("(order[i, :] == y[i]).nonzero()", 1),
        ("(order[i] == y[i]).nonzero()", 1),
        ("(order == y[i]).nonzero().sum()", 0),
        ("(order[i] == y[i]).nonzero()\n    rank = rank + net(order[i])", 0),
    ],
)
def test_the_place_of_something_in_each_row_is_an_answer_of_all_rows(place: str, count: int) -> None:
    loop = f"for i in range(9):\n    rank = {place}\n    rank = 1 + rank.item()\n    kept.append(rank <= 3)"
    found = findings(evaluation(f"order = out.argsort(1)\n{loop}", "kept, net = [], make()"), "SYNC07")
    asked = "Ask all rows of `order` at once, and copy the answers once, before the loop."
    assert [finding.message.endswith(asked) for finding in found] == [True] * count
