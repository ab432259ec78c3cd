"""TIME01: `copy_` between host and device waits, as `cpu` does, and so does the first element of a loss."""

from __future__ import annotations

import pytest

from tests.rules.time.timed_programs import SETUP
from tests.support import findings

TIMED = """
def to_host(tensor):
    return torch.FloatTensor(tensor.size()).copy_(tensor{how})

start = time.time()
out = net(x)
{copy}
print(time.time() - start)
"""


@pytest.mark.parametrize(
    ("copy", "how", "count"),
    [
        ("out = to_host(out)", "", 0),
        ("out = to_host(out)", ", non_blocking=True", 0),  # not into memory that can be swapped out
        ("out = to_host(out)", ", non_blocking=False", 0),
        ("out = torch.empty(2, 3).pin_memory().copy_(out, non_blocking=True)", "", 1),
        ("out = torch.empty(2, 3, pin_memory=True).copy_(out, True)", "", 1),
        ("out = torch.empty(2, 3).pin_memory().copy_(out)", "", 0),
        ("x.copy_(torch.ones(2, 4).pin_memory(), True)", "", 1),
        ("out = torch.empty(2, 3).copy_(out)", "", 0),
        ("out = torch.empty(2, 3, device='cuda').copy_(out)", "", 1),
        ("x.copy_(torch.ones(2, 4))", "", 0),
    ],
)
def test_a_copy_into_a_tensor_of_the_host(copy: str, how: str, count: int) -> None:
    setup = SETUP.replace('"cuda" if torch.cuda.is_available() else "cpu"', '"cuda"')
    assert len(findings(setup + TIMED.format(copy=copy, how=how), "TIME01")) == count


@pytest.mark.parametrize(("read", "count"), [("loss.data[0]", 0), ("loss.data", 1), ("x.data[0]", 1)])
def test_the_number_in_a_loss_as_it_was_read_once(read: str, count: int) -> None:
    code = SETUP + f"\nstart = time.time()\nloss = net(x).mean()\nseen = {read}\nprint(time.time() - start)\n"
    assert len(findings(code, "TIME01")) == count
