"""A variational autoencoder on MNIST, closure-style: `main` holds everything, inner functions run the epochs."""

import argparse

import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F
from torchvision import datasets, transforms
from torchvision.utils import save_image


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 400)
        self.bn1 = nn.BatchNorm1d(400)
        self.fc21 = nn.Linear(400, 20)
        self.fc22 = nn.Linear(400, 20)
        self.fc3 = nn.Linear(20, 400)
        self.fc4 = nn.Linear(400, 784)

    def encode(self, x):
        h1 = F.relu(self.bn1(self.fc1(x)))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return self.fc4(F.relu(self.fc3(z)))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 784))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy_with_logits(recon_x, x.view(-1, 784), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def main():
    parser = argparse.ArgumentParser(description="VAE MNIST")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--no-cuda", action="store_true")
    parser.add_argument("--log-interval", type=int, default=100)
    args = parser.parse_args()
    use_cuda = not args.no_cuda and torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    kwargs = {"num_workers": 2, "pin_memory": True, "persistent_workers": True} if use_cuda else {}

    train_loader = torch.utils.data.DataLoader(
        datasets.MNIST("../data", train=True, download=True, transform=transforms.ToTensor()),
        batch_size=args.batch_size,
        shuffle=True,
        **kwargs,
    )
    test_loader = torch.utils.data.DataLoader(
        datasets.MNIST("../data", train=False, transform=transforms.ToTensor()), batch_size=args.batch_size, **kwargs
    )
    model = VAE().to(device)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def train(epoch):
        model.train()
        train_loss = 0
        for batch_idx, (data, _) in enumerate(train_loader):
            data = data.to(device, non_blocking=True)
            optimizer.zero_grad()
            recon_batch, mu, logvar = model(data)
            loss = loss_function(recon_batch, data, mu, logvar)
            loss.backward()
            train_loss += loss.detach().double()
            optimizer.step()
            if batch_idx % args.log_interval == 0:
                print(f"epoch {epoch} [{batch_idx}/{len(train_loader)}] loss {loss.item() / len(data):.6f}")
        print(f"====> epoch {epoch} average loss {train_loss.item() / len(train_loader.dataset):.4f}")

    def test(epoch):
        model.eval()
        test_loss = 0
        with torch.no_grad():
            for i, (data, _) in enumerate(test_loader):
                data = data.to(device, non_blocking=True)
                recon_batch, mu, logvar = model(data)
                test_loss += loss_function(recon_batch, data, mu, logvar).double()
                if i == 0:
                    n = min(data.size(0), 8)
                    images = torch.sigmoid(recon_batch[:n]).view(n, 1, 28, 28)
                    save_image(torch.cat([data[:n], images]).cpu(), f"results/reconstruction_{epoch}.png", nrow=n)
        print(f"====> test set loss {test_loss.item() / len(test_loader.dataset):.4f}")

    for epoch in range(1, args.epochs + 1):
        train(epoch)
        test(epoch)
        model.eval()  # no mutant eval: `test` has switched it before
        with torch.no_grad():
            sample = model.decode(torch.randn(64, 20, device=device))
            save_image(torch.sigmoid(sample).view(64, 1, 28, 28).cpu(), f"results/sample_{epoch}.png")


if __name__ == "__main__":
    main()
