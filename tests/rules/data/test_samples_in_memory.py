"""DATA01 asks no workers for samples that lie in memory already."""

from __future__ import annotations

import pytest

from tests.support import findings


@pytest.mark.parametrize(("cut", "count"), [("[start:]", 0), ("", 1)])
def test_what_can_be_cut_is_a_list_that_lies_in_memory(cut: str, count: int) -> None:
    code = f"""
        import torch
        from torch.utils.data import DataLoader

        class Client:
            def __init__(self, samples, net):
                self.samples = samples
                self.net = net.cuda()

            def train(self, start):
                for x, y in DataLoader(self.samples{cut}, 8):
                    torch.nn.functional.cross_entropy(self.net(x.cuda()), y.cuda()).backward()
        """
    assert len(findings(code, "DATA01")) == count
