"""Soft actor-critic: four optimizers' worth of losses in one update, target networks, a temperature that is learned."""

import copy

import gymnasium as gym
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal


def mlp(inputs, outputs, hidden=256):
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
    )


class Actor(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.body = mlp(states, 2 * actions)

    def forward(self, state):
        mean, log_std = self.body(state).chunk(2, dim=-1)
        normal = Normal(mean, log_std.clamp(-20, 2).exp())
        raw = normal.rsample()
        action = torch.tanh(raw)
        log_prob = (normal.log_prob(raw) - torch.log1p(-action.pow(2) + 1e-6)).sum(-1)
        return action, log_prob


class Critics(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.first, self.second = mlp(states + actions, 1), mlp(states + actions, 1)

    def forward(self, state, action):
        pair = torch.cat([state, action], dim=-1)
        return self.first(pair).squeeze(-1), self.second(pair).squeeze(-1)


class Replay:
    def __init__(self, capacity, states, actions, device):
        self.device, self.capacity, self.size, self.place = device, capacity, 0, 0
        self.rows = np.zeros((capacity, 2 * states + actions + 2), dtype=np.float32)
        self.splits = [states, actions, 1, states, 1]

    def add(self, *parts):
        self.rows[self.place] = np.concatenate([np.ravel(part) for part in parts])
        self.place = (self.place + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def sample(self, count):
        chosen = self.rows[np.random.randint(0, self.size, count)]
        batch = torch.from_numpy(chosen).pin_memory().to(self.device, non_blocking=True)
        state, action, reward, after, done = batch.split(self.splits, dim=-1)
        return state, action, reward.squeeze(-1), after, done.squeeze(-1)


class Agent:
    def __init__(self, states, actions, device, gamma=0.99, tau=0.005, lr=3e-4):
        self.device, self.gamma, self.tau = device, gamma, tau
        self.actor, self.critics = Actor(states, actions).to(device), Critics(states, actions).to(device)
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        # no mutant create_then_move: the copy would be no leaf, which the optimizer refuses
        self.log_alpha = torch.zeros(1, requires_grad=True, device=device)
        self.wanted = -float(actions)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=lr)
        self.critic_opt = torch.optim.Adam(self.critics.parameters(), lr=lr)
        self.alpha_opt = torch.optim.Adam([self.log_alpha], lr=lr)

    def act(self, state):
        with torch.no_grad():
            action, _ = self.actor(torch.as_tensor(state, dtype=torch.float32, device=self.device))
        return action.cpu().numpy()

    def update(self, batch):
        state, action, reward, after, done = batch
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():  # no mutant no_grad: no rule yet for needless graphs in a step
            next_action, next_log_prob = self.actor(after)
            value = torch.min(*self.targets(after, next_action)) - alpha * next_log_prob
            wanted = reward + self.gamma * (1 - done) * value
        first, second = self.critics(state, action)
        critic_loss = F.mse_loss(first, wanted) + F.mse_loss(second, wanted)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        chosen, log_prob = self.actor(state)
        actor_loss = (alpha * log_prob - torch.min(*self.critics(state, chosen))).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

        alpha_loss = -(self.log_alpha * (log_prob.detach() + self.wanted)).mean()
        self.alpha_opt.zero_grad()
        alpha_loss.backward()
        self.alpha_opt.step()

        # no mutant no_grad: no rule yet for averages of parameters that record a graph
        with torch.no_grad():
            for target, current in zip(self.targets.parameters(), self.critics.parameters()):
                target.lerp_(current, self.tau)
        return critic_loss.detach(), actor_loss.detach()


def main(name="HalfCheetah-v4", steps=1_000_000, start=10_000, batch_size=256, log_every=5_000):
    env = gym.make(name)
    device = torch.device("cuda")
    states, actions = env.observation_space.shape[0], env.action_space.shape[0]
    agent, replay = Agent(states, actions, device), Replay(1_000_000, states, actions, device)
    state, _ = env.reset(seed=0)
    window = []
    for step in range(steps):
        action = env.action_space.sample() if step < start else agent.act(state)
        after, reward, terminated, truncated, _ = env.step(action)
        replay.add(state, action, reward, after, float(terminated))
        state = after
        if terminated or truncated:
            state, _ = env.reset()
        if step >= start:
            critic_loss, actor_loss = agent.update(replay.sample(batch_size))
            window.append(torch.stack([critic_loss, actor_loss]))
        if window and step % log_every == 0:
            critic, actor = torch.stack(window).mean(0).tolist()
            print(f"step {step}: critic {critic:.3f}, actor {actor:.3f}")
            window.clear()


if __name__ == "__main__":
    main()
