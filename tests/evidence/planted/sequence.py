import torch
from torch import nn

torch.manual_seed(5)
cell, head = nn.GRUCell(3, 8), nn.Linear(8, 3)
parameters = [*cell.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.05)
lengths = torch.tensor([7, 5, 3, 6])
mask = (torch.arange(7)[None] < lengths[:, None]).float()
state = torch.zeros(4, 8)
for step in range(16):
    x = torch.randn(4, 7, 3)
    outputs = []
    for t in range(7):
        state = cell(x[:, t], state)
        outputs.append(head(state))
    predicted = torch.stack(outputs, dim=1)
    error = (predicted[:, :-1] - x[:, 1:]).square().mean(dim=2)
    loss = (error * mask[:, 1:]).sum() / mask[:, 1:].sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = state.detach()
