"""TRAIN10: what a file tries its layers on, be it on a GPU, has no graph; what others give them may have one."""

from __future__ import annotations

from tests.support import fixed

LAYER = """\
import torch
from torch import nn
from torch.autograd import Variable

class Whitened(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(size))

    def forward(self, x):
        mean = Variable(x.mean(0).data, requires_grad=False)
        return (x - mean) * self.scale

if __name__ == "__main__":
    x = torch.rand(8, 4)
    layer = Whitened(4)
    print(layer(x))
    layer.cuda()
    print(layer(x.cuda()))
"""


def test_what_keeps_a_gradient_out_of_a_layer_stays() -> None:
    assert "mean = x.mean(0).detach()\n" in fixed(LAYER, "TRAIN10")
