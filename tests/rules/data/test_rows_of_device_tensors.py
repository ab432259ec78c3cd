"""DATA02 on rows of tensors that may be on the GPU all along."""

from __future__ import annotations

import pytest

from tests.support import findings

UPDATE = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    class Agent:
        def __init__(self, make, buffer):
            self.net = make().to(torch.device("cuda"))
            self.buffer = buffer

        def update(self):
            {rows}
            loader = DataLoader(TensorDataset(obs, act), batch_size=64, shuffle=True)
            for _ in range(10):
                for obs_rows, act_rows in loader:
                    {step}
"""
BUFFER = "data = self.buffer.get(); obs, act = data['obs'], data['act']"
KEPT = "obs, act = self.buffer.obs.detach(), self.buffer.act.detach()"
HOST = "obs, act = torch.randn(999, 4), torch.zeros(999)"
UNSEEN = "self.net.improve(obs_rows, act_rows)"
MOVED = "print(self.net(obs_rows.cuda()), act_rows.cuda())"


@pytest.mark.parametrize(
    ("rows", "step", "count"), [(BUFFER, UNSEEN, 0), (KEPT, UNSEEN, 0), (BUFFER, MOVED, 1), (HOST, MOVED, 1)]
)
def test_rows_of_tensors_out_of_sight_are_not_said_to_be_copied(rows: str, step: str, count: int) -> None:
    assert len(findings(UPDATE.format(rows=rows, step=step), "DATA02")) == count
