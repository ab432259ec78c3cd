"""Deep Q-learning with a replay buffer and a target network, in the style of a single-file RL library."""

import random
from collections import deque

import gymnasium as gym
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.tensorboard import SummaryWriter


class QNetwork(nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(observations, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, actions)
        )

    def forward(self, x):
        return self.network(x)


class ReplayBuffer:
    def __init__(self, capacity, device):
        self.rows = deque(maxlen=capacity)
        self.device = device

    def add(self, *row):
        self.rows.append(row)

    def sample(self, batch_size):
        columns = zip(*random.sample(self.rows, batch_size))
        return [torch.as_tensor(np.array(column), device=self.device) for column in columns]


def linear_schedule(start_e, end_e, duration, t):
    return max(start_e + (end_e - start_e) / duration * t, end_e)


def main(total_timesteps=500_000, learning_starts=10_000, batch_size=128, gamma=0.99, train_frequency=10):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    writer = SummaryWriter("runs/dqn")
    env = gym.make("CartPole-v1")
    q_network = QNetwork(env.observation_space.shape[0], env.action_space.n).to(device)
    target_network = QNetwork(env.observation_space.shape[0], env.action_space.n).to(device)
    target_network.load_state_dict(q_network.state_dict())
    optimizer = torch.optim.Adam(q_network.parameters(), lr=2.5e-4)
    rb = ReplayBuffer(10_000, device)
    td_losses = []

    obs, _ = env.reset(seed=1)
    for global_step in range(total_timesteps):
        epsilon = linear_schedule(1.0, 0.05, 0.5 * total_timesteps, global_step)
        if random.random() < epsilon:
            action = env.action_space.sample()
        else:
            with torch.no_grad():
                q_values = q_network(torch.as_tensor(obs, device=device).unsqueeze(0))
            action = q_values.argmax(dim=1).item()
        next_obs, reward, terminated, truncated, _ = env.step(action)
        rb.add(obs, action, np.float32(reward), next_obs, np.float32(terminated))
        obs = next_obs
        if terminated or truncated:
            obs, _ = env.reset()
            writer.add_scalar("charts/epsilon", epsilon, global_step)

        if global_step > learning_starts and global_step % train_frequency == 0:
            s, a, r, s_next, done = rb.sample(batch_size)
            with torch.no_grad():  # no mutant no_grad: no rule yet for needless graphs in a step
                target_max = target_network(s_next).max(dim=1).values
                td_target = r + gamma * target_max * (1 - done)
            old_val = q_network(s).gather(1, a.unsqueeze(1)).squeeze(1)
            loss = F.mse_loss(old_val, td_target)
            td_losses.append(loss.detach())

            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

            if global_step % 10_000 == 0:
                writer.add_scalar("losses/td_loss", torch.stack(td_losses).mean().item(), global_step)
                td_losses.clear()
                target_network.load_state_dict(q_network.state_dict())

    torch.save(q_network.state_dict(), "dqn.pt")
    env.close()
    writer.close()


if __name__ == "__main__":
    main()
