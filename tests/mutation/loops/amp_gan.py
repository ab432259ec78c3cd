"""A conditional GAN in mixed precision: two optimizers with a scaler each, an average of the generator, and scores of
the average on held-out images."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


class Generator(nn.Module):
    def __init__(self, latent, classes):
        super().__init__()
        self.embed = nn.Embedding(classes, latent)
        self.layers = nn.Sequential(nn.Linear(2 * latent, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 3072))

    def forward(self, noise, labels):
        return torch.tanh(self.layers(torch.cat([noise, self.embed(labels)], dim=1)))


class Discriminator(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.embed = nn.Embedding(classes, 512)
        self.layers = nn.Sequential(nn.Linear(3072, 512), nn.LeakyReLU(0.2), nn.Dropout(0.3))
        self.head = nn.Linear(512, 1)

    def forward(self, images, labels):
        features = self.layers(images)
        return self.head(features).squeeze(1) + (features * self.embed(labels)).sum(1)


@torch.no_grad()  # no mutant no_grad: no rule yet for averages of parameters that record a graph
def update_average(average, model, decay=0.999):
    for kept, current in zip(average.parameters(), model.parameters()):
        kept.lerp_(current, 1 - decay)


def train(dataset, held_out, latent=128, classes=10, epochs=100, max_norm=5.0):
    device = torch.device("cuda")
    loader = DataLoader(
        dataset, 256, shuffle=True, drop_last=True, num_workers=8, pin_memory=True, persistent_workers=True
    )
    held_out_loader = DataLoader(held_out, 256, num_workers=8, pin_memory=True, persistent_workers=True)
    netG, netD = Generator(latent, classes).to(device), Discriminator(classes).to(device)
    average = copy.deepcopy(netG).requires_grad_(False)
    opt_g = torch.optim.Adam(netG.parameters(), lr=1e-4, betas=(0.0, 0.99))
    opt_d = torch.optim.Adam(netD.parameters(), lr=4e-4, betas=(0.0, 0.99))
    scaler_g, scaler_d = torch.amp.GradScaler("cuda"), torch.amp.GradScaler("cuda")
    history = {"g": [], "d": []}

    for epoch in range(epochs):
        sum_g = torch.zeros((), device=device)
        sum_d = torch.zeros((), device=device)
        for real, labels in loader:
            real = real.to(device, non_blocking=True).flatten(1)
            labels = labels.to(device, non_blocking=True)
            noise = torch.randn(len(real), latent, device=device)

            opt_d.zero_grad(set_to_none=True)
            with torch.amp.autocast("cuda"):
                fake = netG(noise, labels)
                loss_d = F.relu(1 - netD(real, labels)).mean() + F.relu(1 + netD(fake.detach(), labels)).mean()
            scaler_d.scale(loss_d).backward()
            scaler_d.unscale_(opt_d)
            nn.utils.clip_grad_norm_(netD.parameters(), max_norm)
            scaler_d.step(opt_d)
            scaler_d.update()

            opt_g.zero_grad(set_to_none=True)
            with torch.amp.autocast("cuda"):
                loss_g = -netD(fake, labels).mean()
            scaler_g.scale(loss_g).backward()
            scaler_g.unscale_(opt_g)
            nn.utils.clip_grad_norm_(netG.parameters(), max_norm)
            scaler_g.step(opt_g)
            scaler_g.update()
            update_average(average, netG)

            sum_g += loss_g.detach()
            sum_d += loss_d.detach()
        history["g"].append(sum_g.item() / len(loader))
        history["d"].append(sum_d.item() / len(loader))
        taken = score(netD, held_out_loader, device)
        print(f"epoch {epoch}: {history['g'][-1]:.3f} {history['d'][-1]:.3f} {taken:.3f}")
    return average, history


def score(netD, loader, device):
    """How often the discriminator takes held-out images for real."""
    netD.eval()
    taken = torch.zeros((), device=device)
    with torch.no_grad():
        for images, labels in loader:
            images = images.to(device, non_blocking=True).flatten(1)
            labels = labels.to(device, non_blocking=True)
            taken += (netD(images, labels) > 0).sum()
    netD.train()
    return taken.item() / len(loader.dataset)
