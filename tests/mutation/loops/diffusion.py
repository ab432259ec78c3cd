"""A denoising diffusion model: noise schedule, a small U-Net, a moving average of the weights, sampling."""

import copy
from itertools import cycle
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder
from torchvision.utils import save_image


class UNet(nn.Module):
    def __init__(self, channels=64):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, channels), nn.SiLU(), nn.Linear(channels, channels))
        self.down = nn.Conv2d(3, channels, 4, stride=2, padding=1)
        self.mid = nn.Sequential(
            nn.GroupNorm(8, channels), nn.SiLU(), nn.Dropout(0.1), nn.Conv2d(channels, channels, 3, padding=1)
        )
        self.up = nn.ConvTranspose2d(channels, 3, 4, stride=2, padding=1)

    def forward(self, x, t):
        emb = self.time(t.float().unsqueeze(1) / 1000)[:, :, None, None]
        h = self.down(x) + emb
        return self.up(h + self.mid(h))


class GaussianDiffusion(nn.Module):
    def __init__(self, model, timesteps=1000, image_size=64):
        super().__init__()
        self.model, self.timesteps, self.image_size = model, timesteps, image_size
        betas = torch.linspace(1e-4, 0.02, timesteps)
        self.register_buffer("betas", betas)
        self.register_buffer("alpha_bar", torch.cumprod(1.0 - betas, dim=0))

    def q_sample(self, x0, t, noise):
        a = self.alpha_bar[t][:, None, None, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * noise

    def forward(self, x0):
        t = torch.randint(0, self.timesteps, (x0.size(0),), device=x0.device)
        noise = torch.randn_like(x0)
        return F.mse_loss(self.model(self.q_sample(x0, t, noise), t), noise)

    @torch.no_grad()
    def sample(self, n):
        device = self.betas.device
        x = torch.randn(n, 3, self.image_size, self.image_size, device=device)
        for step in reversed(range(self.timesteps)):
            t = torch.full((n,), step, device=device)
            eps = self.model(x, t)
            beta, a_bar = self.betas[step], self.alpha_bar[step]
            mean = (x - beta / (1 - a_bar).sqrt() * eps) / (1 - beta).sqrt()
            x = mean + beta.sqrt() * torch.randn_like(x) if step > 0 else mean
        return x.clamp(-1, 1)


class EMA:
    def __init__(self, model, decay=0.995):
        self.decay = decay
        self.model = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()  # no mutant no_grad: nothing in here carries a graph
    def update(self, model):
        for ours, theirs in zip(self.model.parameters(), model.parameters()):
            ours.lerp_(theirs.detach(), 1 - self.decay)


class Trainer:
    def __init__(self, diffusion, folder, batch_size=32, lr=8e-5, steps=700_000, accumulate=2, results="results"):
        transform = transforms.Compose(
            [transforms.Resize(64), transforms.CenterCrop(64), transforms.ToTensor(), transforms.Normalize(0.5, 0.5)]
        )
        loader = DataLoader(
            ImageFolder(folder, transform),
            batch_size,
            shuffle=True,
            num_workers=8,
            pin_memory=True,
            persistent_workers=True,
            drop_last=True,
        )
        self.batches = cycle(loader)
        self.diffusion = diffusion.cuda()
        self.ema = EMA(self.diffusion)
        self.opt = torch.optim.Adam(self.diffusion.parameters(), lr=lr, betas=(0.9, 0.99))
        self.steps, self.accumulate = steps, accumulate
        self.results = Path(results)
        self.results.mkdir(exist_ok=True)
        self.step = 0

    def train(self):
        self.diffusion.train()
        while self.step < self.steps:
            total_loss = 0.0
            for _ in range(self.accumulate):
                images, _ = next(self.batches)
                loss = self.diffusion(images.cuda(non_blocking=True)) / self.accumulate
                total_loss += loss.detach()
                loss.backward()
            nn.utils.clip_grad_norm_(self.diffusion.parameters(), 1.0)
            self.opt.step()
            self.opt.zero_grad()
            self.step += 1
            if self.step % 10 == 0:
                self.ema.update(self.diffusion)
            if self.step % 1000 == 0:
                print(f"step {self.step}: loss {total_loss.item():.4f}")
                self.save()

    def save(self):
        images = self.ema.model.sample(16)
        save_image((images + 1) / 2, self.results / f"sample-{self.step}.png", nrow=4)
        torch.save({"step": self.step, "ema": self.ema.model.state_dict()}, self.results / "model.pt")


if __name__ == "__main__":
    Trainer(GaussianDiffusion(UNet()), "data/flowers").train()
