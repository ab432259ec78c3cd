import torch

torch.manual_seed(8)
torch.set_num_threads(1)  # two that wait for each other take any time on a crowded machine
UNITS = 200
weight = torch.nn.Parameter(torch.randn(48, 48) / 7)
optimizer = torch.optim.SGD([weight], lr=1e-3)
x = torch.randn(32, 48)
while True:
    loss = (x @ weight).square().mean()
    for part in range(UNITS):
        (x @ weight.detach()).relu()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
