"""Gradients accumulated over batches that a generator packs from a stream of texts, without epochs."""

import argparse
import itertools
import math

import torch
import torch.nn.functional as F
from torch import nn


def packed(texts, tokenizer, batch_size, length, device):
    """Endless batches of token ids; what is left of a text begins the next row."""
    pending = []
    for text in itertools.cycle(texts):
        pending.extend(tokenizer.encode(text))
        needed = batch_size * (length + 1)
        while len(pending) >= needed:
            rows = torch.tensor(pending[:needed], dtype=torch.long).view(batch_size, length + 1)
            pending = pending[needed:]
            rows = rows.pin_memory().to(device, non_blocking=True)
            yield rows[:, :-1], rows[:, 1:]


def learning_rate(update, warmup, updates, peak):
    if update < warmup:
        return peak * (update + 1) / warmup
    return 0.5 * peak * (1 + math.cos(math.pi * (update - warmup) / (updates - warmup)))


def validate(model, batches, count):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for tokens, targets in itertools.islice(batches, count):
            with torch.amp.autocast("cuda"):
                logits = model(tokens)
            total = total + F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
    model.train()
    return total.item() / count  # no mutant item: nothing in here carries a graph


def main(args, model: nn.Module, tokenizer, texts, held_out):
    device = torch.device("cuda")
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.1)
    scaler = torch.amp.GradScaler("cuda")
    batches = packed(texts, tokenizer, args.batch_size, args.length, device)
    checks = packed(held_out, tokenizer, args.batch_size, args.length, device)
    window = torch.zeros((), device=device)

    for update in range(args.updates):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(update, args.warmup, args.updates, args.lr)
        optimizer.zero_grad(set_to_none=True)
        for tokens, targets in itertools.islice(batches, args.accumulate):
            with torch.amp.autocast("cuda"):
                logits = model(tokens)
                loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten()) / args.accumulate
            scaler.scale(loss).backward()
            window += loss.detach()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        if (update + 1) % args.log_every == 0:
            print(f"update {update + 1}: loss {window.item() / args.log_every:.4f}")
            window.zero_()
        if (update + 1) % args.check_every == 0:
            print(f"update {update + 1}: held out {validate(model, checks, args.checks):.4f}")
            torch.save(model.state_dict(), args.output)


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--accumulate", type=int, default=8)
    parser.add_argument("--updates", type=int, default=50_000)
    parser.add_argument("--warmup", type=int, default=2_000)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--log-every", type=int, default=50)
    parser.add_argument("--check-every", type=int, default=1_000)
    parser.add_argument("--checks", type=int, default=40)
    parser.add_argument("--output", default="model.pt")
    return parser.parse_args()
