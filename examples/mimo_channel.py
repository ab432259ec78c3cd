"""Learn a receiver for a MIMO-OFDM link: simulate the channel, equalise every subcarrier, refine with a network.

On subcarrier k the receiver sees y[k] = H[k] x[k] + n[k], coarsely quantised. A linear MMSE equaliser with a learned
loading gives a first estimate of the QPSK symbols, and a small network corrects what quantisation broke.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from torch import nn

SUBCARRIERS = 256
RX, TX = 4, 2
TAPS = 6


def draw_channel(device: torch.device) -> torch.Tensor:
    """Frequency response of a random multipath channel, (subcarriers, rx, tx), complex."""
    taps = torch.randn(TAPS, RX, TX, dtype=torch.complex64, device=device)
    decay = torch.exp(-0.5 * torch.arange(TAPS, device=device))
    taps = taps * (decay / decay.norm()).view(-1, 1, 1)
    return torch.fft.fft(taps, n=SUBCARRIERS, dim=0)


def draw_symbols(batch: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Random bits (subcarriers, tx, batch, 2) and their QPSK symbols (subcarriers, tx, batch)."""
    bits = torch.randint(0, 2, (SUBCARRIERS, TX, batch, 2), device=device).float()
    return bits, torch.view_as_complex((2 * bits - 1) / 2**0.5)


def propagate(h: torch.Tensor, x: torch.Tensor, noise_std: float) -> torch.Tensor:
    """Send the symbols through the channel, (subcarriers, rx, batch)."""
    subcarriers, rx, _ = h.shape
    _, _, batch = x.shape
    y = torch.zeros(subcarriers, rx, batch, dtype=h.dtype, device=h.device)
    for k in range(subcarriers):
        y[k] = h[k] @ x[k]
    return y + noise_std * torch.randn_like(y)


def quantise(y: torch.Tensor, step: float, levels: int) -> torch.Tensor:
    """A uniform analogue-to-digital converter on the real and on the imaginary part."""
    parts = torch.view_as_real(y)
    digital = torch.zeros_like(parts)
    for k in range(parts.shape[0]):
        digital[k] = torch.clamp(torch.round(parts[k] / step), -levels, levels) * step
    return torch.view_as_complex(digital)


def signal_power(y: torch.Tensor) -> torch.Tensor:
    """Mean received power of every subcarrier, (subcarriers,)."""
    powers = []
    for k in range(y.shape[0]):
        powers.append(y[k].abs().square().mean())
    return torch.stack(powers)


class Receiver(nn.Module):
    def __init__(self, hidden: int = 32) -> None:
        super().__init__()
        self.log_loading = nn.Parameter(torch.tensor(0.0))
        self.correct = nn.Sequential(nn.Linear(2 * TX + 1, hidden), nn.ReLU(), nn.Linear(hidden, 2 * TX))

    def equalise(self, h: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Linear MMSE estimate of the symbols, (subcarriers, tx, batch)."""
        subcarriers, _, tx = h.shape
        _, _, batch = y.shape
        loading = self.log_loading.exp() * torch.eye(tx, dtype=h.dtype, device=h.device)
        estimates = torch.zeros(subcarriers, tx, batch, dtype=h.dtype, device=h.device)
        for k in range(subcarriers):
            gram = h[k].mH @ h[k] + loading
            matched = h[k].mH @ y[k]
            estimates[k] = torch.linalg.solve(gram, matched)
        return estimates

    def forward(self, h: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Logits of the bits, (subcarriers, tx, batch, 2)."""
        linear = torch.view_as_real(self.equalise(h, y))
        flat = linear.permute(0, 2, 1, 3).flatten(2)
        power = signal_power(y).view(-1, 1, 1).expand(-1, flat.shape[1], 1)
        refined = self.correct(torch.cat([flat, power], dim=2)) + 4 * flat
        return refined.view(*flat.shape[:2], TX, 2).permute(0, 2, 1, 3)


@torch.no_grad()
def bit_error_rate(receiver: Receiver, batches: int, batch: int, noise_std: float, device: torch.device) -> float:
    receiver.eval()
    errors = 0
    bits_sent = 0
    for _ in range(batches):
        h = draw_channel(device)
        bits, x = draw_symbols(batch, device)
        logits = receiver(h, quantise(propagate(h, x, noise_std), step=0.5, levels=3))
        errors += ((logits > 0).float() != bits).sum().item()
        bits_sent += bits.numel()
    receiver.train()
    return errors / bits_sent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16, help="OFDM symbols per channel")
    parser.add_argument("--snr-db", type=float, default=14.0)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    noise_std = 10 ** (-args.snr_db / 20)

    receiver = Receiver().to(device)
    optimizer = torch.optim.Adam(receiver.parameters(), lr=args.lr)

    history = []
    wrong_bits = 0
    for step in range(args.steps):
        h = draw_channel(device)
        bits, x = draw_symbols(args.batch, device)
        y = quantise(propagate(h, x, noise_std), step=0.5, levels=3)
        logits = receiver(h, y)
        loss = F.binary_cross_entropy_with_logits(logits, bits)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        history.append(loss.item())
        decided = (logits > 0).cpu()
        wrong_bits += int((decided != bits.bool().cpu()).sum())
        if (step + 1) % 100 == 0:
            rate = bit_error_rate(receiver, 8, args.batch, noise_std, device)
            print(f"step {step + 1}: loss {sum(history[-100:]) / 100:.4f}, bit error rate {rate:.4f}")

    print(f"learned loading {receiver.log_loading.exp().item():.4f}, last loss {history[-1]:.4f}")
    print(f"{wrong_bits} wrong bits while training")


if __name__ == "__main__":
    main()
