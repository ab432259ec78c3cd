"""SYNC: what runs once per pass over some data, or only where a tensor says so, is in no step."""

from __future__ import annotations

import pytest

from tests.support import findings

SPLITS = """
import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("gpt2").cuda()

def encode(model, texts, n):
    start, found, count = 0, [], 0
    {loop}
        part = texts[start : start + n]
        with torch.no_grad():
            found.append(-model(part, labels=part).loss * len(part))
        start += n
        count += len(part)
    perplexity = torch.exp(torch.stack(found).sum() / count)
    print(f"perplexity {{perplexity}}")

for split, texts in data.items():
    encode(model, texts, 8)
"""


@pytest.mark.parametrize(
    ("loop", "count"), [("while start < len(texts):", 0), ("for _ in range(0, len(texts), n):", 0), ("if texts:", 1)]
)
def test_a_function_that_runs_over_the_data_is_no_step(loop: str, count: int) -> None:
    assert len(findings(SPLITS.format(loop=loop), "SYNC04")) == count


WHOLE = """
import itertools
import torch
import tqdm
from torch import nn

def train(net: nn.Module, inside: torch.utils.data.DataLoader, held_out: torch.utils.data.DataLoader, optimizer):
    net.cuda()
    batches = iter(inside)
    for round in {rounds}:
        cost = 0
        {inner}
            cost = cost + net(x.cuda()).square().mean()
        optimizer.zero_grad()
        cost.backward()
        optimizer.step()
        total = cost.item()
        print(total)
"""


@pytest.mark.parametrize(
    ("inner", "count"),
    [
        ("for x in inside:", 0),
        ("for i, x in enumerate(inside, 1):", 0),
        ("for x, y in tqdm.tqdm(zip(inside, held_out)):", 0),
        ("for x in itertools.islice(inside, 4):", 1),
        ("for i, x in enumerate(batches):\n            if i == 3:\n                break", 1),
        ("for x in torch.randn(4, 8, 3):", 1),
        ("drawn = next(batches)\n        for name, x in drawn.items():", 1),
        ("for x in inside:\n            break\n        for x in net.parts:", 1),
        ("for x in inside:\n            if net.is_tried_out:\n                break", 0),
        ("if round % 50 == 0:\n            for x in inside:\n                print(x)\n        for x in net.parts:", 1),
    ],
)
def test_a_step_that_goes_through_all_batches_is_an_epoch(inner: str, count: int) -> None:
    assert len(findings(WHOLE.format(rounds="range(1000)", inner=inner), "SYNC01")) == count


@pytest.mark.parametrize("rounds", ["held_out", "enumerate(held_out)", "zip(held_out, held_out)"])
def test_a_step_of_a_batch_may_go_through_those_of_another_loader(rounds: str) -> None:
    assert len(findings(WHOLE.format(rounds=rounds, inner="for x in inside:"), "SYNC01")) == 1


SHIFTED = """
import torch


def adjust(shift, total, log):
    before, shift = shift, torch.max(shift, total.abs().max())
    log.info(f"{{before.item():.2f}} -> {{shift.item():.2f}}")
    return shift


def train(net, loader, optimizer, log, limit):
    shift = torch.zeros(()).cuda()
    for x, y in loader:
        total = net(x.cuda())
        if {condition}:
            shift = adjust(shift, total, log)
        loss = (total / shift - y.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("condition", "count"), [("total.max() >= limit", 0), ("total.shape[0] > 2", 1)])
def test_a_call_that_hangs_on_a_tensor(condition: str, count: int) -> None:
    assert len(findings(SHIFTED.format(condition=condition), "SYNC02")) == count


MASKED = """
import torch


def box_loss(guess, truth, log):
    loss = (guess - truth).abs().sum()
    log.append(loss.item())
    return loss


def train(net, loader, optimizer, log):
    for x, y in loader:
        y = y.cuda()
        guess = net(x.cuda())
        loss = guess.mean()
        inside = y > 0
        count = inside.sum()
        {condition}
            loss = loss + box_loss({given}, log)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("condition", "given", "count"),
    [
        ("if inside.any():", "guess[inside], y[inside]", 1),
        ("if inside.sum() > 0:", "guess, y", 1),
        ("if count > 0:", "guess, y", 1),
        ("if guess.max() > y.max():", "guess, y", 0),
    ],
)
def test_most_batches_have_rows_that_a_mask_picks(condition: str, given: str, count: int) -> None:
    assert len(findings(MASKED.format(condition=condition, given=given), "SYNC01")) == count


RUNS = """
import torch
from nets import Autoencoder

nets = [torch.nn.Linear(3, 3).cuda()]
for run in runs:
    x = torch.tensor(run.data, device="cuda")
    net = {made}
    with torch.no_grad():
        net.eval()
        found.append(net.encoder(x).norm().item())
"""


@pytest.mark.parametrize(("made", "count"), [("Autoencoder.load_from_checkpoint(run.path)", 0), ("nets[0]", 1)])
def test_a_network_that_is_loaded_for_each_round_is_no_step(made: str, count: int) -> None:
    assert len(findings(RUNS.format(made=made), "SYNC01")) == count


LISTED = """
import torch

net = torch.nn.Linear(3, 3).cuda()


def check_scale():
    net.eval()
    for name, scale in cases:
        with torch.no_grad():
            print(name, net(torch.ones(2, 3).cuda() * scale).mean().item())


def check_shape():
    with torch.no_grad():
        print(net(torch.ones(2, 3).cuda()).mean().item())


cases = {cases}
checks = {checks}
for run in checks:
    run()
"""
WRITTEN = '[("tiny", 0.01), ("small", 0.1), ("usual", 1.0), ("large", 5.0), ("huge", 1e2), ("vast", 1e4)]'


@pytest.mark.parametrize(
    ("cases", "checks", "count"),
    [
        (WRITTEN, "[check_scale, check_shape]", 0),
        ("load_cases()", "[check_shape, check_scale]", 1),
        ("[]\nfor case in more:\n    cases.append(case)", "[check_scale]", 1),
    ],
    ids=["listed", "loaded", "grown"],
)
def test_what_runs_once_for_each_thing_that_is_listed(cases: str, checks: str, count: int) -> None:
    assert len(findings(LISTED.format(cases=cases, checks=checks), "SYNC01")) == count


METRICS = """\
import torch
from pytorch_lightning import LightningModule
from torch import nn
from torchmetrics import MeanMetric

import const


class Net(LightningModule):
    def __init__(self):
        super().__init__()
        self.scores = nn.ModuleDict()
        for name in const.kinds:
            self.scores[name] = MeanMetric()

    def on_train_epoch_start(self):
        torch.cuda.empty_cache()

    def {hook}(self):
        found = {{}}
        for name in {names}:
            found[name] = self.scores[name].compute()
            found[name] = 0.0 if torch.isnan(found[name]) else found[name].item()
            self.log(f"val/{{name}}", found[name])
"""


@pytest.mark.parametrize(
    ("hook", "names", "count"),
    [
        ("on_validation_epoch_end", "const.kinds", 0),
        ("on_validation_epoch_end", "self.batches", 1),
        ("on_train_batch_end", "const.kinds", 1),
        ("show", '["pocket"] + const.kinds', 0),
    ],
)
def test_a_measure_of_each_kind_of_things_is_read_once(hook: str, names: str, count: int) -> None:
    assert len(findings(METRICS.format(hook=hook, names=names), "SYNC01")) == count
