"""Reptile: an inner loop with an optimizer of its own on a copy of the network, and a step of the original towards
where the copy ended up."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


def conv_block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


def make_network(ways):
    return nn.Sequential(
        conv_block(1, 64), conv_block(64, 64), conv_block(64, 64), nn.Flatten(), nn.Dropout(0.1), nn.Linear(576, ways)
    )


class Episodes:
    """Tasks of a few images each, all of which are on the device."""

    def __init__(self, images, ways, shots, generator):
        self.images, self.ways, self.shots, self.generator = images, ways, shots, generator

    def sample(self):
        classes = torch.randperm(len(self.images), generator=self.generator)[: self.ways]
        chosen = self.images[classes.to(self.images.device)]
        labels = torch.arange(self.ways, device=self.images.device)
        support, query = chosen[:, : self.shots], chosen[:, self.shots :]
        return (support.flatten(0, 1), labels.repeat_interleave(self.shots)), (
            query.flatten(0, 1),
            labels.repeat_interleave(query.shape[1]),
        )


def inner_loop(network, images, labels, steps, lr):
    """The network after some steps on one task, and the loss of the last one."""
    fast = copy.deepcopy(network)
    optimizer = torch.optim.SGD(fast.parameters(), lr=lr)
    fast.train()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(fast(images), labels)
        loss.backward()
        optimizer.step()
    return fast, loss.detach()


def evaluate(network, episodes, count, steps, lr):
    correct = []
    for _ in range(count):
        (images, labels), (query, wanted) = episodes.sample()
        fast, _ = inner_loop(network, images, labels, steps, lr)
        fast.eval()
        with torch.no_grad():
            correct.append((fast(query).argmax(1) == wanted).float().mean())
    return torch.stack(correct).mean().item()


def train(images, held_out, ways=5, shots=5, iterations=100_000, outer_lr=0.1, check_every=1_000):
    device = torch.device("cuda")
    generator = torch.Generator().manual_seed(0)
    network = make_network(ways).to(device)
    episodes = Episodes(images.to(device), ways, shots, generator)
    checks = Episodes(held_out.to(device), ways, shots, generator)
    running = torch.zeros((), device=device)
    for iteration in range(iterations):
        (support, labels), _ = episodes.sample()
        fast, loss = inner_loop(network, support, labels, steps=8, lr=0.05)
        with torch.no_grad():  # no mutant no_grad: torch refuses to change a leaf in place
            for slow, moved in zip(network.parameters(), fast.parameters()):
                slow.lerp_(moved, outer_lr * (1 - iteration / iterations))
        running += loss
        if (iteration + 1) % check_every == 0:
            accuracy = evaluate(network, checks, 50, steps=50, lr=0.05)
            print(f"{iteration + 1}: loss {running.item() / check_every:.3f}, accuracy {accuracy:.2%}")
            running.zero_()
    return network
