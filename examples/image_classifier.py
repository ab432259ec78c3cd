"""Train a small CNN to tell circles, squares, crosses and stripes apart. The pictures are drawn on the fly."""

from __future__ import annotations

import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = ("circle", "square", "cross", "stripes")
SIZE = 32


class Shapes(Dataset):
    """Grey 1x32x32 pictures; picture `index` is the same in every epoch and every run."""

    def __init__(self, length: int, seed: int) -> None:
        self.length = length
        self.seed = seed

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        rng = torch.Generator().manual_seed(self.seed * 1_000_003 + index)
        label = index % len(CLASSES)
        row, column, radius, angle = torch.rand(4, generator=rng).tolist()
        row, column, radius, angle = 10 + 12 * row, 10 + 12 * column, 4 + 5 * radius, math.pi * angle
        y, x = torch.meshgrid(torch.arange(SIZE) - row, torch.arange(SIZE) - column, indexing="ij")
        if label == 0:
            picture = (x**2 + y**2 < radius**2).float()
        elif label == 1:
            picture = ((x.abs() < radius) & (y.abs() < radius)).float()
        elif label == 2:
            picture = ((x.abs() < 1.5) | (y.abs() < 1.5)).float() * (x.abs().maximum(y.abs()) < 1.5 * radius)
        else:
            picture = (torch.sin((x * math.cos(angle) + y * math.sin(angle)) * 1.2) > 0).float()
        picture += 0.35 * torch.randn(SIZE, SIZE, generator=rng)
        return picture.unsqueeze(0), label


class ConvNet(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )  # fmt: skip
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(64, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x))


def evaluate(model, loader, criterion, device):
    model.eval()
    total_loss = 0.0
    correct = 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        outputs = model(images)
        total_loss += criterion(outputs, labels)
        correct += (outputs.argmax(dim=1) == labels).sum().item()
    return total_loss.item() / len(loader), correct / len(loader.dataset)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    train_loader = DataLoader(Shapes(args.samples, seed=1), batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(Shapes(args.samples // 4, seed=2), batch_size=args.batch_size)

    model = ConvNet(len(CLASSES))
    if torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    losses = []
    for epoch in range(args.epochs):
        model.train()
        running_loss = 0.0
        correct = 0
        for images, labels in train_loader:
            images = images.to(device)
            labels = labels.to(device)
            optimizer.zero_grad()
            outputs = model(images)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()

            losses.append(loss)
            running_loss += loss.item()
            correct += (outputs.argmax(dim=1) == labels).sum().item()

        val_loss, val_accuracy = evaluate(model, val_loader, criterion, device)
        print(
            f"epoch {epoch + 1}: loss {running_loss / len(train_loader):.4f}, "
            f"accuracy {correct / len(train_loader.dataset):.3f}, "
            f"validation loss {val_loss:.4f}, accuracy {val_accuracy:.3f}"
        )

    curve = torch.stack(losses).tolist()
    print(f"first batch {curve[0]:.4f}, best batch {min(curve):.4f}, last batch {curve[-1]:.4f}")


if __name__ == "__main__":
    main()
