"""Loops that never reset their gradients, with or without a fix; behind HEADER."""

from __future__ import annotations

import pytest

HEADER = """\
import itertools

import torch
from torch import nn

model = nn.Linear(3, 1)
head = nn.Linear(3, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
opt_g = torch.optim.SGD(model.parameters(), lr=0.0)
opt_d = torch.optim.SGD(head.parameters(), lr=0.0)
scaler = torch.amp.GradScaler("cpu", enabled=False)
loader = [(torch.ones(2, 3) * i, torch.ones(2, 1)) for i in range(4)]
"""


# Code, and the lines that the fix adds.
CASES = [
    pytest.param(
        """
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()  # found
            optimizer.step()
        """,
        ["    optimizer.zero_grad()"],
        id="V1 straight loop",
    ),
    pytest.param(
        """
        batches = iter(loader)
        step = 0
        while step < 4:
            x, y = next(batches)
            criterion(model(x), y).backward()  # found
            optimizer.step()
            step += 1
        """,
        ["    optimizer.zero_grad()"],
        id="V2 while and next",
    ),
    pytest.param(
        """
        for epoch in range(2):
            for i, (x, y) in enumerate(loader):
                criterion(model(x), y).backward()  # found
                optimizer.step()
        """,
        ["        optimizer.zero_grad()"],
        id="V2 enumerate, in epochs",
    ),
    pytest.param(
        """
        class Trainer:
            def __init__(self, model):
                self.model = model
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.0)

            def train_step(self, x, y):
                loss = criterion(self.model(x), y)
                loss.backward()  # found
                self.optimizer.step()
                return loss.item()

            def fit(self):
                for x, y in loader:
                    self.train_step(x, y)

        Trainer(model).fit()
        """,
        ["        self.optimizer.zero_grad()"],
        id="V3 split methods",
    ),
    pytest.param(
        """
        def update(loss):
            loss.backward()  # found

        for x, y in loader:
            update(criterion(model(x), y))
            optimizer.step()
        """,
        ["    optimizer.zero_grad()"],
        id="V3 backward in a helper",
    ),
    pytest.param(
        """
        for x, y in loader:
            loss = criterion(model(x), y)
            scaler.scale(loss).backward()  # found
            scaler.step(optimizer)
            scaler.update()
        """,
        ["    optimizer.zero_grad()"],
        id="V4 scaler",
    ),
    pytest.param(
        """
        mixed = False
        for x, y in loader:
            loss = criterion(model(x), y)
            if mixed:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
            else:
                loss.backward()
                optimizer.step()
        """,
        ["    optimizer.zero_grad()"],
        id="V4 with and without a scaler",
    ),
    pytest.param(
        """
        for x, y in loader:
            opt_d.zero_grad()
            criterion(head(x), y).backward()
            opt_d.step()
            g_loss = criterion(model(x), y) + head(x).mean()
            g_loss.backward()  # found
            opt_g.step()
        """,
        ["    opt_g.zero_grad()"],
        id="V5 only the other optimizer",
    ),
    pytest.param(
        """
        def build(width):
            return nn.Linear(width, 1)

        model = build(3)
        critic = build(3).train()
        opt_g = torch.optim.SGD(model.parameters(), lr=0.0)
        opt_c = torch.optim.SGD(critic.parameters(), lr=0.0)
        for x, y in loader:
            opt_c.zero_grad()
            criterion(critic(x), y).backward()
            opt_c.step()
            criterion(model(x), y).backward()  # found
            opt_g.step()
        """,
        ["    opt_g.zero_grad()"],
        id="two networks of one function",
    ),
    pytest.param(
        """
        for x, y in loader:
            criterion(model(x), y).backward()  # found
            if torch.isnan(model.weight.grad).any():
                print(model.weight.grad.norm())
            optimizer.step()
        """,
        ["    optimizer.zero_grad()"],
        id="gradients only read",
    ),
    pytest.param(
        """
        def fit(model, optimizer, batches):
            for x, y in batches:
                loss = criterion(model(x), y)
                loss.backward()  # found
                optimizer.step()

        fit(model, optimizer, loader)
        """,
        ["        optimizer.zero_grad()"],
        id="V9 optimizer passed in",
    ),
    pytest.param(
        """
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / 2
            loss.backward()  # found
            if (i + 1) % 2 == 0:
                optimizer.step()
        """,
        ["        optimizer.zero_grad()"],
        id="accumulation that never resets",
    ),
    pytest.param(
        """
        for x, y in loader:
            for net, opt in zip([model, head], [opt_g, opt_d]):
                loss = criterion(net(x), y)
                loss.backward()  # found
                opt.step()
        """,
        ["        opt.zero_grad()"],
        id="loop over optimizers",
    ),
    pytest.param(
        """
        for x, y in loader: criterion(model(x), y).backward(); optimizer.step()
        """,
        ["optimizer.zero_grad(); "],
        id="one-line loop",
    ),
    pytest.param(
        """
        scale = torch.zeros(1, requires_grad=True)
        scale_opt = torch.optim.SGD([scale], lr=0.0)
        for x, y in loader:
            criterion(model(x), y).backward()  # found
            optimizer.step()
            scale_opt.zero_grad()
            (scale * model(x).detach().mean()).backward()
            scale_opt.step()
        """,
        ["    optimizer.zero_grad()"],
        id="only a tensor that is trained by itself is reset",
    ),
]


REPORTED = [
    pytest.param(
        """
        for epoch in range(3):
            optimizer.zero_grad()
            for x, y in loader:
                criterion(model(x), y).backward()  # found
                optimizer.step()
        """,
        id="V6 only before the loop",
    ),
    pytest.param(
        """
        for i, (x, y) in enumerate(loader):
            if i % 10 == 0:
                optimizer.zero_grad()
            criterion(model(x), y).backward()  # found
            optimizer.step()
        """,
        id="V7 less often than the step",
    ),
    pytest.param(
        """
        opts = {"g": optimizer}
        for x, y in loader:
            criterion(model(x), y).backward()  # found
            opts["g"].step()
        """,
        id="optimizer without a name",
    ),
    pytest.param(
        """
        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()
            (model(x) ** 2).mean().backward()  # found
            optimizer.step()
        """,
        id="two steps of one optimizer",
    ),
]


LEFT_TO_THE_LOOP = [
    pytest.param(
        """
        def normalised(batches):
            for x, y in batches:
                yield x / 255, y

        for x, y in normalised(loader):
            criterion(model(x), y).backward()  # found
            optimizer.step()
        """,
        id="a generator that resets nothing",
    ),
    pytest.param(
        """
        import transformers

        other = transformers.AdamW(model.parameters())
        for x, y in loader:
            criterion(model(x), y).backward()  # found
            other.step()
        """,
        id="an optimizer of another package",
    ),
    pytest.param(
        """
        import horovod.torch as hvd

        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
        for x, y in loader:
            criterion(model(x), y).backward()  # found
            optimizer.step()
        """,
        id="an optimizer around another",
    ),
    pytest.param(
        """
        import torch.distributed as dist

        def average():
            for p in model.parameters():
                dist.all_reduce(p.grad.data)
                p.grad.data /= dist.get_world_size()
                p.grad.data.mul_(2)

        for x, y in loader:
            criterion(model(x), y).backward()  # found
            average()
            optimizer.step()
        """,
        id="gradients that are averaged",
    ),
    pytest.param(
        """
        class Noisy(torch.optim.SGD):
            def step(self):
                for group in self.param_groups:
                    for p in group["params"]:
                        p.grad.add_(torch.randn_like(p))
                super().step()

        noisy = Noisy(model.parameters(), lr=0.1)
        for x, y in loader:
            criterion(model(x), y).backward()  # found
            noisy.step()
        """,
        id="an optimizer of the project",
    ),
    pytest.param(
        """
        for x, y in loader:
            delta = torch.zeros_like(x).to(x.device)
            delta.requires_grad_()
            criterion(model(x + delta), y).backward()
            delta.data = delta.grad.sign()
            delta.grad.zero_()
            delta = delta.detach()
            criterion(model(x + delta), y).backward()  # found
            optimizer.step()
        """,
        id="only what an attack adds is reset",
    ),
    pytest.param(
        """
        import higher
        from apex import amp

        for x, y in loader:
            with higher.innerloop_ctx(model, optimizer) as (copy, inner):
                print(copy(x))
            criterion(model(x), y).backward()  # found
            nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1)
            optimizer.step()
        """,
        id="packages that leave the gradients to the loop",
    ),
]
