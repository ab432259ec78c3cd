"""Loops whose gradients start from zero in every step, or may; behind HEADER of those that do not."""

from __future__ import annotations

import pytest

SILENT = [
    pytest.param(
        """
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        """,
        id="before backward",
    ),
    pytest.param(
        """
        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()
            model.zero_grad(set_to_none=True)
        """,
        id="of the module, after the step",
    ),
    pytest.param(
        """
        for i, (x, y) in enumerate(loader):
            (criterion(model(x), y) / 2).backward()
            if (i + 1) % 2 == 0:
                optimizer.step()
                optimizer.zero_grad()
        """,
        id="N1 accumulation",
    ),
    pytest.param(
        """
        def reset_grad():
            for p in model.parameters():
                p.grad = None

        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()
            reset_grad()
        """,
        id="N2 helper",
    ),
    pytest.param(
        """
        def reset_before(batches):
            for batch in batches:
                optimizer.zero_grad()
                yield batch

        for step, (x, y) in enumerate(reset_before(loader)):
            criterion(model(x), y).backward()
            optimizer.step()
        """,
        id="the generator of the batches",
    ),
    pytest.param(
        """
        from training import prepared

        for x, y in prepared(loader, optimizer):
            criterion(model(x), y).backward()
            optimizer.step()
        """,
        id="a generator of another file that gets the optimizer",
    ),
    pytest.param(
        """
        optimizer.register_step_post_hook(lambda stepped, args, kwargs: stepped.zero_grad())
        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()
        """,
        id="a lambda that runs behind each step",
    ),
    pytest.param(
        """
        from training import reset_gradients

        for x, y in loader:
            reset_gradients()
            criterion(model(x), y).backward()
            optimizer.step()
        """,
        id="N2 helper of another file",
    ),
    pytest.param(
        """
        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()
            for p in model.parameters():
                p.grad.data.zero_()
        """,
        id="N3 by hand",
    ),
    pytest.param(
        """
        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()
            torch._foreach_zero_([p.grad for p in model.parameters()])
        """,
        id="N3 by hand, all at once",
    ),
    pytest.param(
        """
        import deepspeed

        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()
        """,
        id="N4 DeepSpeed",
    ),
    pytest.param(
        """
        def run(engine):
            for x, y in loader:
                engine.backward(criterion(engine(x), y))
                engine.step()
        """,
        id="N4 engine that runs backward",
    ),
    pytest.param(
        """
        import torch.distributed.autograd as dist_autograd
        from torch.distributed.optim import DistributedOptimizer

        opt = DistributedOptimizer(torch.optim.SGD, [], lr=0.1)
        for x, y in loader:
            with dist_autograd.context() as context_id:
                dist_autograd.backward(context_id, [criterion(model(x), y)])
                opt.step(context_id)
        """,
        id="N5 distributed autograd",
    ),
    pytest.param("for x, y in loader:\n    criterion(model(x), y).backward()\n", id="N6 no step"),
    pytest.param("criterion(model(torch.ones(3)), torch.ones(1)).backward()\noptimizer.step()\n", id="N7 one step"),
    pytest.param(
        """
        def check():
            for _ in range(1):
                model(torch.ones(3)).sum().backward()
                optimizer.step()
        """,
        id="N7 loop of one",
    ),
    pytest.param(
        """
        from timm.utils import NativeScaler

        loss_scaler = NativeScaler()
        for x, y in loader:
            loss_scaler(criterion(model(x), y), optimizer, parameters=model.parameters())
            optimizer.step()
        """,
        id="N8 scaler object",
    ),
    pytest.param(
        """
        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step(zero_grad=True)
        """,
        id="N9 reset inside the step",
    ),
    pytest.param(
        """
        from training import Noam

        optimizer = Noam(torch.optim.Adam(model.parameters()))
        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()
        """,
        id="N9 optimizer of another file",
    ),
    pytest.param(
        """
        for task in loader:
            x = task[0].detach().requires_grad_()
            optimizer = torch.optim.SGD([x], lr=0.1)
            model(x).sum().backward()
            optimizer.step()
        """,
        id="N10 a new leaf and optimizer each time",
    ),
    pytest.param(
        """
        def train_step(x, y):
            criterion(model(x), y).backward()
            optimizer.step()

        for x, y in loader:
            optimizer.zero_grad()
            train_step(x, y)
        """,
        id="reset by the caller",
    ),
    pytest.param(
        """
        class Learner:
            def update(self, x, y):
                criterion(model(x), y).backward()
                optimizer.step()
        """,
        id="called from elsewhere",
    ),
    pytest.param(
        """
        from base import Base

        class Trainer(Base):
            def fit(self):
                for x, y in loader:
                    self.before_batch()
                    criterion(model(x), y).backward()
                    optimizer.step()
        """,
        id="hook of a base class out of sight",
    ),
    pytest.param(
        """
        from training import prepare_batch

        for x, y in loader:
            prepare_batch(model, x)
            criterion(model(x), y).backward()
            optimizer.step()
        """,
        id="model handed to other code",
    ),
    pytest.param(
        """
        for x, y in loader:
            for o in (opt_g, opt_d):
                o.zero_grad()
            (model(x) + head(x)).sum().backward()
            for o in (opt_g, opt_d):
                o.step()
        """,
        id="several optimizers in turn",
    ),
    pytest.param(
        """
        class Pair(nn.Module):
            def __init__(self, a, b):
                super().__init__()
                self.a, self.b = a, b

        pair = Pair(model, head)
        for x, y in loader:
            pair.zero_grad()
            (model(x) + head(x)).sum().backward()
            opt_g.step()
            opt_d.step()
        """,
        id="module made of both",
    ),
    pytest.param(
        """
        solver = torch.optim.LBFGS(model.parameters())
        for x, y in loader:
            def closure():
                solver.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                return loss

            solver.step(closure)
        """,
        id="closure that resets",
    ),
    pytest.param(
        """
        def build(width):
            return nn.Sequential(nn.Linear(width, 1))

        net = build(3)
        alias = net
        solver = torch.optim.SGD(alias.parameters(), lr=0.1)
        for x, y in loader:
            net.zero_grad()
            criterion(alias(x), y).backward()
            solver.step()
        """,
        id="one network of a function under two names",
    ),
    pytest.param(
        """
        shared = nn.Linear(3, 1)

        def get():
            return shared

        actor = get()
        critic = get()
        solver = torch.optim.SGD(critic.parameters(), lr=0.1)
        for x, y in loader:
            actor.zero_grad()
            criterion(actor(x), y).backward()
            solver.step()
        """,
        id="a function that returns the same network each time",
    ),
    pytest.param(
        """
        while True:
            model(torch.ones(3)).sum().backward()
            optimizer.step()
            break
        """,
        id="loop that ends behind the step",
    ),
    pytest.param(
        """
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Linear(3, 1)
                self.scale = nn.Parameter(torch.zeros(1))

        scaled = Scaled()
        solver = torch.optim.SGD([scaled.scale], lr=0.0)
        for x, y in loader:
            scaled.zero_grad()
            criterion(scaled.inner(x) * scaled.scale, y).backward()
            solver.step()
        """,
        id="a tensor of a network that is reset",
    ),
    pytest.param(
        """
        scale = torch.zeros(1, requires_grad=True)
        solver = torch.optim.SGD([scale, *model.parameters()], lr=0.0)
        for x, y in loader:
            model.zero_grad()
            solver.zero_grad()
            criterion(model(x) * scale, y).backward()
            solver.step()
        """,
        id="a tensor that is trained beside a network",
    ),
    pytest.param(
        """
        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()
            for p in model.parameters():
                p.grad *= 0
        """,
        id="gradients times zero",
    ),
    pytest.param(
        """
        class Cleaning(torch.optim.SGD):
            def step(self):
                super().step()
                self.zero_grad()

        cleaning = Cleaning(model.parameters(), lr=0.1)
        for x, y in loader:
            criterion(model(x), y).backward()
            cleaning.step()
        """,
        id="an optimizer of the project that resets",
    ),
]
