"""WGAN with gradient penalty for tabular data: several critic steps per generator step, batches drawn without a
loader."""

import torch
from torch import autograd, nn


def mlp(sizes):
    layers = []
    for n_in, n_out in zip(sizes[:-2], sizes[1:-1]):
        layers += [nn.Linear(n_in, n_out), nn.LayerNorm(n_out), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


class WGAN:
    def __init__(self, n_features, latent=32, n_critic=5, gp_weight=10.0, device="cuda"):
        self.device = torch.device(device)
        self.latent, self.n_critic, self.gp_weight = latent, n_critic, gp_weight
        self.generator = mlp([latent, 128, 128, n_features]).to(self.device)
        self.critic = mlp([n_features, 128, 128, 1]).to(self.device)
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=1e-4, betas=(0.0, 0.9))
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
        self.wasserstein = []
        self.generator_losses = []

    def gradient_penalty(self, real, fake):
        alpha = torch.rand(real.size(0), 1, device=self.device)
        mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
        score = self.critic(mixed)
        gradient = autograd.grad(score, mixed, torch.ones_like(score), create_graph=True)[0]
        return self.gp_weight * ((gradient.norm(2, dim=1) - 1) ** 2).mean()

    def noise(self, n):
        return torch.randn(n, self.latent, device=self.device)

    def critic_step(self, real):
        with torch.no_grad():  # no mutant no_grad: no rule yet for needless graphs in a step
            fake = self.generator(self.noise(real.size(0)))
        self.opt_c.zero_grad()
        distance = self.critic(real).mean() - self.critic(fake).mean()
        loss = self.gradient_penalty(real, fake) - distance
        loss.backward()
        self.opt_c.step()
        self.wasserstein.append(distance.detach())

    def generator_step(self, batch_size):
        self.opt_g.zero_grad()
        loss = -self.critic(self.generator(self.noise(batch_size))).mean()
        loss.backward()
        self.opt_g.step()
        self.generator_losses.append(loss.detach())

    def fit(self, table, iterations=20_000, batch_size=256, print_every=500):
        table = torch.as_tensor(table, dtype=torch.float32, device=self.device)
        for iteration in range(iterations):
            for _ in range(self.n_critic):
                rows = torch.randint(table.size(0), (batch_size,), device=self.device)
                self.critic_step(table[rows])
            self.generator_step(batch_size)
            if iteration % print_every == 0:
                print(f"{iteration}: distance {self.wasserstein[-1].item():.4f}")
        return self

    @torch.no_grad()
    def sample(self, n, batch_size=4096):
        self.generator.eval()  # no mutant eval: layer norm is the same in both modes
        parts = [self.generator(self.noise(min(batch_size, n - start))) for start in range(0, n, batch_size)]
        self.generator.train()
        return torch.cat(parts).cpu().numpy()
