"""An image classifier as a script: argparse, a train and a test function, a checkpoint of the best epoch."""

import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class Block(nn.Module):
    def __init__(self, channels_in, channels_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride=stride, bias=False)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.shortcut(x))


class SmallResNet(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.blocks = nn.Sequential(Block(32, 64, 2), Block(64, 128, 2), Block(128, 256, 2))
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(256, num_classes)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.fc(self.dropout(x.mean(dim=(2, 3))))


def train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    running = torch.zeros((), device=device)
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device, non_blocking=True), target.to(device, non_blocking=True)
        optimizer.zero_grad()
        output = model(data)
        loss = F.cross_entropy(output, target, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if batch_idx % args.log_interval == 0:
            seen = batch_idx * args.batch_size
            print(f"Train epoch {epoch} [{seen}/{len(train_loader.dataset)}]\tloss: {loss.item():.6f}")
    return running.item() / len(train_loader)


def test(model, device, test_loader):
    model.eval()
    test_loss = torch.zeros((), device=device)
    correct = torch.zeros((), dtype=torch.long, device=device)
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device, non_blocking=True), target.to(device, non_blocking=True)
            output = model(data)
            test_loss += F.cross_entropy(output, target, reduction="sum")
            pred = output.argmax(dim=1)
            correct += pred.eq(target).sum()
    total = len(test_loader.dataset)
    accuracy = 100.0 * correct.item() / total
    print(f"\nTest set: average loss {test_loss.item() / total:.4f}, accuracy {accuracy:.2f}%\n")
    return accuracy


def main():
    parser = argparse.ArgumentParser(description="CIFAR-10 training")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--log-interval", type=int, default=50)
    parser.add_argument("--data", default="./data")
    parser.add_argument("--out", default="checkpoints")
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    normalize = transforms.Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
    augment = transforms.Compose(
        [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), transforms.ToTensor(), normalize]
    )
    plain = transforms.Compose([transforms.ToTensor(), normalize])
    train_set = datasets.CIFAR10(args.data, train=True, download=True, transform=augment)
    test_set = datasets.CIFAR10(args.data, train=False, transform=plain)
    train_loader = DataLoader(
        train_set,
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        pin_memory=True,
        persistent_workers=True,
    )
    test_loader = DataLoader(
        test_set, batch_size=1000, num_workers=args.workers, pin_memory=True, persistent_workers=True
    )

    model = SmallResNet().to(device)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    scheduler = CosineAnnealingLR(optimizer, T_max=args.epochs)
    best = 0.0
    os.makedirs(args.out, exist_ok=True)
    for epoch in range(1, args.epochs + 1):
        mean_loss = train(args, model, device, train_loader, optimizer, epoch)
        accuracy = test(model, device, test_loader)
        scheduler.step()
        print(f"epoch {epoch}: mean loss {mean_loss:.4f}")
        if accuracy > best:
            best = accuracy
            torch.save({"model": model.state_dict(), "epoch": epoch}, os.path.join(args.out, "best.pt"))


if __name__ == "__main__":
    main()
