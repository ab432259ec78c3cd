"""A trainer whose step is spread over three methods: one computes the loss and the gradients, one updates, one keeps
the numbers."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader


@dataclass
class Options:
    epochs: int = 30
    batch_size: int = 128
    lr: float = 1e-3
    clip: float = 1.0
    workers: int = 4


class Meter:
    def __init__(self, device):
        self.total = torch.zeros((), dtype=torch.float64, device=device)
        self.count = 0

    def add(self, value, n):
        self.total += value * n
        self.count += n

    def mean(self):
        return self.total.item() / max(self.count, 1)


class Trainer:
    def __init__(self, model, options, device="cuda"):
        self.options, self.device = options, torch.device(device)
        self.model = model.to(self.device)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=options.lr, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 10)
        self.best = 0.0
        self.losses = []

    def loader(self, dataset, shuffle):
        return DataLoader(
            dataset,
            batch_size=self.options.batch_size,
            shuffle=shuffle,
            num_workers=self.options.workers,
            pin_memory=True,
            persistent_workers=True,
        )

    def moved(self, batch):
        return [part.to(self.device, non_blocking=True) for part in batch]

    def compute(self, batch):
        inputs, targets = self.moved(batch)
        loss = self.criterion(self.model(inputs), targets)
        loss.backward()
        return loss, len(targets)

    def update(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def note(self, loss, n):
        self.meter.add(loss.detach(), n)
        self.losses.append(loss.detach())

    def train_epoch(self, loader):
        self.model.train()
        self.meter = Meter(self.device)
        for batch in loader:
            loss, n = self.compute(batch)
            self.update()
            self.note(loss, n)
        return self.meter.mean()

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        correct = torch.zeros((), dtype=torch.long, device=self.device)
        for batch in loader:
            inputs, targets = self.moved(batch)
            correct += (self.model(inputs).argmax(1) == targets).sum()
        return correct.item() / len(loader.dataset)

    def fit(self, train_set, valid_set):
        train_loader, valid_loader = self.loader(train_set, True), self.loader(valid_set, False)
        for epoch in range(self.options.epochs):
            loss = self.train_epoch(train_loader)
            self.schedule.step()
            accuracy = self.evaluate(valid_loader)
            print(f"epoch {epoch + 1}: loss {loss:.4f}, accuracy {accuracy:.2%}")
            if accuracy > self.best:
                self.best = accuracy
                torch.save(self.model.state_dict(), "best.pt")
        return torch.stack(self.losses).cpu()
