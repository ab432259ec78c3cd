"""A small framework: a learner that calls its callbacks around every step, and the callbacks that train and record."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader


class Callback:
    def before_epoch(self, learner):
        pass

    def before_batch(self, learner):
        pass

    def after_batch(self, learner):
        pass

    def after_epoch(self, learner):
        pass


class ToDevice(Callback):
    def before_batch(self, learner):
        learner.batch = tuple(part.to(learner.device, non_blocking=True) for part in learner.batch)


class Recorder(Callback):
    def __init__(self):
        self.losses = []

    def before_epoch(self, learner):
        self.total = torch.zeros((), device=learner.device)
        self.seen = 0
        self.start = time.perf_counter()

    def after_batch(self, learner):
        self.total += learner.loss.detach() * len(learner.batch[0])
        self.seen += len(learner.batch[0])

    def after_epoch(self, learner):
        self.losses.append(self.total.item() / self.seen)
        seconds = time.perf_counter() - self.start
        print(f"epoch {learner.epoch}: loss {self.losses[-1]:.4f} in {seconds:.0f} s")


class Schedule(Callback):
    def __init__(self, make):
        self.make = make

    def before_epoch(self, learner):
        if learner.epoch == 0:
            self.scheduler = self.make(learner.optimizer)

    def after_batch(self, learner):
        self.scheduler.step()


class Learner:
    def __init__(self, model, criterion, train_set, valid_set, callbacks, lr=1e-3, device="cuda"):
        self.device = torch.device(device)
        self.model, self.criterion = model.to(self.device), criterion
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        options = {"batch_size": 64, "num_workers": 4, "pin_memory": True, "persistent_workers": True}
        self.train_loader = DataLoader(train_set, shuffle=True, **options)
        self.valid_loader = DataLoader(valid_set, **options)
        self.callbacks = callbacks

    def __call__(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self)

    def one_batch(self):
        *inputs, targets = self.batch
        self.loss = self.criterion(self.model(*inputs), targets)
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()

    def fit(self, epochs):
        for self.epoch in range(epochs):
            self.model.train()
            self("before_epoch")
            for self.batch in self.train_loader:
                self("before_batch")
                self.one_batch()
                self("after_batch")
            self("after_epoch")
            print(f"accuracy {self.validate():.2%}")

    def validate(self):
        self.model.eval()
        hits = torch.zeros((), dtype=torch.long, device=self.device)
        with torch.no_grad():
            for inputs, targets in self.valid_loader:
                inputs = inputs.to(self.device, non_blocking=True)
                targets = targets.to(self.device, non_blocking=True)
                hits += (self.model(inputs).argmax(1) == targets).sum()
        return hits.item() / len(self.valid_loader.dataset)


def classifier(train_set, valid_set, features, classes):
    model = nn.Sequential(nn.Linear(features, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, classes))
    steps = 20 * (len(train_set) // 64 + 1)
    schedule = Schedule(lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps))
    learner = Learner(model, nn.CrossEntropyLoss(), train_set, valid_set, [ToDevice(), Recorder(), schedule])
    learner.fit(20)
    return learner
