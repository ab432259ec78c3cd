"""REINFORCE with a baseline on a Gym environment: an episode is played, then the policy is updated once."""

import argparse
from collections import deque

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical

parser = argparse.ArgumentParser(description="REINFORCE")
parser.add_argument("--env", default="CartPole-v1")
parser.add_argument("--gamma", type=float, default=0.99)
parser.add_argument("--seed", type=int, default=543)
parser.add_argument("--episodes", type=int, default=2000)
parser.add_argument("--log-interval", type=int, default=10)
args = parser.parse_args()

env = gym.make(args.env)
torch.manual_seed(args.seed)


class Policy(nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observations, 128), nn.Dropout(p=0.2), nn.ReLU())
        self.action_head = nn.Linear(128, actions)
        self.value_head = nn.Linear(128, 1)

    def forward(self, x):
        x = self.body(x)
        return self.action_head(x), self.value_head(x).squeeze(-1)


policy = Policy(env.observation_space.shape[0], env.action_space.n)
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = np.finfo(np.float32).eps.item()


def select_action(state):
    logits, value = policy(torch.from_numpy(state).float())
    distribution = Categorical(logits=logits)
    action = distribution.sample()
    # no mutant item: a sampled action carries no graph
    return action.item(), distribution.log_prob(action), value


def play_episode():
    state, _ = env.reset()
    log_probs, values, rewards = [], [], []
    for _ in range(10_000):
        action, log_prob, value = select_action(state)
        state, reward, terminated, truncated, _ = env.step(action)
        log_probs.append(log_prob)
        values.append(value)
        rewards.append(reward)
        if terminated or truncated:
            break
    return log_probs, values, rewards


def finish_episode(log_probs, values, rewards):
    ret, returns = 0.0, deque()
    for reward in reversed(rewards):
        ret = reward + args.gamma * ret
        returns.appendleft(ret)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    values = torch.stack(values)
    advantages = returns - values.detach()
    policy_loss = -(torch.stack(log_probs) * advantages).sum()
    value_loss = nn.functional.smooth_l1_loss(values, returns, reduction="sum")
    optimizer.zero_grad()
    loss = policy_loss + value_loss
    loss.backward()
    optimizer.step()
    return loss.item()


def evaluate(episodes=10):
    policy.eval()
    total = 0.0
    with torch.no_grad():
        for _ in range(episodes):
            state, _ = env.reset()
            done = False
            while not done:
                logits, _ = policy(torch.from_numpy(state).float())
                state, reward, terminated, truncated, _ = env.step(logits.argmax().item())
                total += reward
                done = terminated or truncated
    policy.train()
    return total / episodes


def main():
    running_reward, losses = 10.0, []
    for i_episode in range(1, args.episodes + 1):
        log_probs, values, rewards = play_episode()
        losses.append(finish_episode(log_probs, values, rewards))
        running_reward = 0.05 * sum(rewards) + 0.95 * running_reward
        if i_episode % args.log_interval == 0:
            print(f"episode {i_episode}\tlast {sum(rewards):.2f}\taverage {running_reward:.2f}\tloss {losses[-1]:.3f}")
        if running_reward > env.spec.reward_threshold:
            print(f"solved, evaluation {evaluate():.1f}")
            break


if __name__ == "__main__":
    main()
