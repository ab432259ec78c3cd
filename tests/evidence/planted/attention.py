# torchlint: ignore-file[TRAIN07] the truths are about what a program computes
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(2)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.scale = nn.Parameter(torch.ones(width))

    def normalised(self, x):
        centred = x - x.mean(dim=-1, keepdim=True)
        return self.scale * centred / torch.sqrt(centred.square().mean(dim=-1, keepdim=True) + 1e-6)

    def forward(self, x):
        x = self.normalised(x)
        scores = self.query(x) @ self.key(x).transpose(-2, -1) / x.shape[-1] ** 0.5
        weights = scores.softmax(dim=-1)
        weights = F.dropout(weights, 0.1)
        return x + weights @ self.value(x)


model = Attention(8)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(16):
    x = torch.randn(6, 8, 8)
    target = x.flip(1)
    out = model(x)
    loss = (out[:, 1:] - target[:, :-1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
