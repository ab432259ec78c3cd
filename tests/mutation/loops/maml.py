"""Model-agnostic meta-learning on sinusoids: inner steps by hand with `autograd.grad`, one outer step per batch of
tasks."""

import numpy as np
import torch
from torch import nn
from torch.func import functional_call


class Regressor(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.head(self.net(x))


class SinusoidTasks:
    def __init__(self, rng, shots, device):
        self.rng, self.shots, self.device = rng, shots, device

    def sample(self):
        amplitude, phase = self.rng.uniform(0.1, 5.0), self.rng.uniform(0, np.pi)
        x = torch.empty(2 * self.shots, 1, device=self.device).uniform_(-5, 5)
        y = amplitude * torch.sin(x + phase)
        return (x[: self.shots], y[: self.shots]), (x[self.shots :], y[self.shots :])


def adapt(model, params, support, inner_lr, steps, create_graph):
    x, y = support
    for _ in range(steps):
        loss = nn.functional.mse_loss(functional_call(model, params, (x,)), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=create_graph)
        params = {name: p - inner_lr * g for (name, p), g in zip(params.items(), grads)}
    return params


def meta_train(model, tasks, iterations=60_000, meta_batch=25, inner_lr=0.01, outer_lr=1e-3, log_every=500):
    optimizer = torch.optim.Adam(model.parameters(), lr=outer_lr)
    curve = []
    for iteration in range(1, iterations + 1):
        optimizer.zero_grad()
        query_losses = []
        for _ in range(meta_batch):
            support, (x, y) = tasks.sample()
            adapted = adapt(model, dict(model.named_parameters()), support, inner_lr, 1, create_graph=True)
            query_losses.append(nn.functional.mse_loss(functional_call(model, adapted, (x,)), y))
        meta_loss = torch.stack(query_losses).mean()
        meta_loss.backward()
        optimizer.step()
        if iteration % log_every == 0:
            curve.append(meta_loss.item())
            print(f"iteration {iteration}: meta loss {curve[-1]:.4f}")
    return curve


def meta_test(model, tasks, episodes=100, steps=10, inner_lr=0.01):
    errors = []
    for _ in range(episodes):
        support, (x, y) = tasks.sample()
        adapted = adapt(model, dict(model.named_parameters()), support, inner_lr, steps, create_graph=False)
        with torch.no_grad():
            errors.append(nn.functional.mse_loss(functional_call(model, adapted, (x,)), y))
    return torch.stack(errors).mean().item()


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    tasks = SinusoidTasks(np.random.default_rng(0), shots=10, device=device)
    model = Regressor().to(device)
    meta_train(model, tasks)
    print(f"error after adaptation {meta_test(model, tasks):.4f}")
