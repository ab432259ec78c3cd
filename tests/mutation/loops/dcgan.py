"""A DCGAN: two networks, two optimizers, one loop; samples of a fixed noise are saved after every epoch."""

import argparse
import os

import torch
import torch.nn as nn
import torch.optim as optim
import torchvision.datasets as dset
import torchvision.transforms as transforms
import torchvision.utils as vutils
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--dataroot", required=True)
parser.add_argument("--workers", type=int, default=4)
parser.add_argument("--batchSize", type=int, default=128)
parser.add_argument("--nz", type=int, default=100, help="size of the latent z vector")
parser.add_argument("--ngf", type=int, default=64)
parser.add_argument("--ndf", type=int, default=64)
parser.add_argument("--niter", type=int, default=25)
parser.add_argument("--lr", type=float, default=0.0002)
parser.add_argument("--outf", default="samples")


def weights_init(m):
    classname = m.__class__.__name__
    if "Conv" in classname:
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif "BatchNorm" in classname:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self, nz, ngf):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 4, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 4),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, 3, 4, 4, 0, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self, ndf):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(3, ndf, 4, 4, 0, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
        )

    def forward(self, input):
        return self.main(input).flatten()


def main(opt):
    os.makedirs(opt.outf, exist_ok=True)
    device = torch.device("cuda:0")
    dataset = dset.ImageFolder(
        opt.dataroot,
        transform=transforms.Compose(
            [transforms.Resize(32), transforms.CenterCrop(32), transforms.ToTensor(), transforms.Normalize(0.5, 0.5)]
        ),
    )
    dataloader = DataLoader(
        dataset,
        batch_size=opt.batchSize,
        shuffle=True,
        num_workers=opt.workers,
        pin_memory=True,
        persistent_workers=True,
        drop_last=True,
    )

    netG = Generator(opt.nz, opt.ngf).to(device)
    netG.apply(weights_init)
    netD = Discriminator(opt.ndf).to(device)
    netD.apply(weights_init)
    criterion = nn.BCEWithLogitsLoss()
    fixed_noise = torch.randn(64, opt.nz, 1, 1, device=device)
    real_label = torch.ones(opt.batchSize, device=device)
    fake_label = torch.zeros(opt.batchSize, device=device)
    optimizerD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(0.5, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(0.5, 0.999))

    D_losses, G_losses = [], []
    for epoch in range(opt.niter):
        for i, (real, _) in enumerate(dataloader):
            # (1) update D: maximize log(D(x)) + log(1 - D(G(z)))
            netD.zero_grad()
            real = real.to(device, non_blocking=True)
            errD_real = criterion(netD(real), real_label)
            errD_real.backward()
            noise = torch.randn(opt.batchSize, opt.nz, 1, 1, device=device)
            fake = netG(noise)
            errD_fake = criterion(netD(fake.detach()), fake_label)
            errD_fake.backward()
            errD = errD_real + errD_fake
            optimizerD.step()

            # (2) update G: maximize log(D(G(z)))
            netG.zero_grad()
            errG = criterion(netD(fake), real_label)
            errG.backward()
            optimizerG.step()

            D_losses.append(errD.detach())
            G_losses.append(errG.detach())
            if i % 100 == 0:
                print(f"[{epoch}/{opt.niter}][{i}/{len(dataloader)}] D {errD.item():.4f} G {errG.item():.4f}")

        netG.eval()
        with torch.no_grad():
            samples = netG(fixed_noise)
        netG.train()
        vutils.save_image(samples, f"{opt.outf}/epoch_{epoch:03d}.png", normalize=True)
        torch.save(netG.state_dict(), f"{opt.outf}/netG_{epoch}.pth")
        torch.save(netD.state_dict(), f"{opt.outf}/netD_{epoch}.pth")

    curves = torch.stack([torch.stack(D_losses), torch.stack(G_losses)])
    torch.save(curves.cpu(), f"{opt.outf}/losses.pt")


if __name__ == "__main__":
    main(parser.parse_args())
