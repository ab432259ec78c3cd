"""Meters and small helpers of the detection project."""

import random
from collections import defaultdict

import numpy as np
import torch


class AverageMeter:
    """Mean of numbers that are Python floats already."""

    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(1, self.count)


class MetricLogger:
    """Running sums by name, on the device that the values are on."""

    def __init__(self):
        self.totals = defaultdict(float)
        self.counts = defaultdict(int)

    def update(self, **values):
        for name, value in values.items():
            self.totals[name] = self.totals[name] + value
            self.counts[name] += 1

    def summary(self):
        return {name: float(total) / self.counts[name] for name, total in self.totals.items()}


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def collate_fn(batch):
    images, heatmaps, masks = zip(*batch)
    return torch.stack(images), torch.stack(heatmaps), torch.stack(masks)


def save_on_master(state, path, rank):
    if rank == 0:
        torch.save(state, path)
