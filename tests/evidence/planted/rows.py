# torchlint: ignore-file[MEM01, KERN02, LIN01, VEC01] the truths are about what a program computes
import torch

torch.manual_seed(3)
weight = torch.nn.Parameter(torch.randn(6, 4) * 0.1)
bias = torch.nn.Parameter(torch.zeros(4))
frozen = torch.randn(4, 4)
optimizer = torch.optim.Adam([weight, bias], lr=0.02)
history = []
for step in range(16):
    x, y = torch.randn(10, 6), torch.rand(10, 4)
    rows = []
    for i in range(x.shape[0]):
        hidden = torch.tanh(x[i] @ weight + bias)
        rows.append(hidden / (hidden.norm() + 1e-5))
    out = torch.stack(rows)
    distances = torch.zeros(10)
    for i in range(10):
        distances[i] = (out[i] - y[i]).square().sum()
    smooth = (out[1:] - out[:-1]).abs().sum()
    probabilities = torch.softmax(out @ frozen, dim=1)
    entropy = -(probabilities * torch.log(probabilities)).sum(dim=1).mean()
    loss = distances.mean() + 0.01 * smooth + 0.1 * entropy
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    history.append(loss)
print(torch.stack(history).mean().item())
