"""A curve fit as a flat script on the CPU, the way tutorials begin."""

import math

import matplotlib.pyplot as plt
import torch
from torch import nn

torch.manual_seed(0)

x = torch.linspace(-math.pi, math.pi, 2000).unsqueeze(1)
y = torch.sin(x) + 0.1 * torch.randn(x.shape)

model = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Dropout(0.05), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

losses = []
smoothed = 0.0
model.train()
for t in range(2000):
    order = torch.randperm(x.size(0))[:256]
    prediction = model(x[order])
    loss = loss_fn(prediction, y[order])
    losses.append(loss.item())
    smoothed = 0.98 * smoothed + 0.02 * losses[-1]

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    if t % 100 == 99:
        print(t, smoothed)

model.eval()
with torch.no_grad():  # no mutant no_grad: `fitted.numpy()` would raise
    fitted = model(x)
    print("final error", loss_fn(fitted, torch.sin(x)).item())

plt.plot(losses)
plt.savefig("losses.png")
plt.figure()
plt.scatter(x.numpy(), y.numpy(), s=2)
plt.plot(x.numpy(), fitted.numpy(), "r")
plt.savefig("fit.png")
