"""Train a small GAN to draw points from a ring of eight Gaussians."""

from __future__ import annotations

import argparse
import math

import torch
from torch import nn

MODES = 8
LATENT = 16


def mlp(inputs: int, outputs: int, hidden: int = 128) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.LeakyReLU(0.2),
        nn.Linear(hidden, hidden),
        nn.LeakyReLU(0.2),
        nn.Linear(hidden, outputs),
    )


def sample_ring(n: int, device: torch.device) -> torch.Tensor:
    angle = torch.randint(MODES, (n,), device=device) * (2 * math.pi / MODES)
    centre = torch.stack([angle.cos(), angle.sin()], dim=1)
    return 2 * centre + 0.05 * torch.randn(n, 2, device=device)


def modes_hit(generator: nn.Module, centres: torch.Tensor, n: int, device: torch.device) -> int:
    """How many of the eight modes at least one in 50 generated points falls on."""
    generator.eval()
    points = generator(torch.randn(n, LATENT, device=device))
    distance = torch.cdist(points, centres)
    near = distance.argmin(dim=1)[distance.amin(dim=1) < 0.3]
    generator.train()
    return int((torch.bincount(near, minlength=MODES) > n // 50).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    generator = mlp(LATENT, 2).to(device)
    discriminator = mlp(2, 1).to(device)
    criterion = nn.BCEWithLogitsLoss()
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=args.lr, betas=(0.5, 0.999))
    d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=args.lr, betas=(0.5, 0.999))

    real_labels = torch.ones(args.batch, 1, device=device)
    fake_labels = torch.zeros(args.batch, 1, device=device)
    angles = torch.arange(MODES, device=device) * (2 * math.pi / MODES)
    centres = 2 * torch.stack([angles.cos(), angles.sin()], dim=1)

    d_losses = []
    g_losses = []
    fooled = 0
    for step in range(args.steps):
        real = sample_ring(args.batch, device)
        fake = generator(torch.randn(args.batch, LATENT, device=device))

        d_optimizer.zero_grad()
        d_real = discriminator(real)
        d_fake = discriminator(fake.detach())
        d_loss = criterion(d_real, real_labels) + criterion(d_fake, fake_labels)
        d_loss.backward()
        d_optimizer.step()

        g_optimizer.zero_grad()
        d_fake = discriminator(fake)
        g_loss = criterion(d_fake, real_labels)
        g_loss.backward()
        g_optimizer.step()

        d_losses.append(d_loss)
        g_losses.append(g_loss)
        fooled += (d_fake > 0).sum().item()

        if (step + 1) % 250 == 0:
            d_recent = torch.stack(d_losses[-250:]).mean()
            g_recent = torch.stack(g_losses[-250:]).mean()
            hit = modes_hit(generator, centres, 2000, device)
            print(f"step {step + 1}: d loss {d_recent:.4f}, g loss {g_recent:.4f}, {hit} of {MODES} modes")

    print(f"the discriminator took {fooled / (args.steps * args.batch):.3f} of the fakes for real")


if __name__ == "__main__":
    main()
