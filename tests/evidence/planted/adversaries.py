import torch
from torch import nn

torch.manual_seed(6)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
c_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.999))
losses = []
for step in range(16):
    real = torch.randn(32, 2) * 0.5 + 1
    fake = generator(torch.randn(32, 4))
    c_loss = nn.functional.softplus(-critic(real)).mean() + nn.functional.softplus(critic(fake.detach())).mean()
    c_optimizer.zero_grad()
    c_loss.backward()
    c_optimizer.step()
    g_loss = nn.functional.softplus(-critic(fake)).mean()
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
    losses.append(g_loss.item())
