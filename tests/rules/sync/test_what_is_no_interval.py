"""Conditions that make a line rare, and those that only look as if they did."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.support import findings

GRADIENTS = """
import torch

model = torch.nn.Linear(8, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(loader, every):
    for step, (x, y) in enumerate(loader):
        hidden = model(x.cuda())
        losses = (hidden - y.cuda()).pow(2).mean(0)
        loss = losses.sum()
        optimizer.zero_grad()
        {condition}:
            for term in range(2):
                losses[term].backward(retain_graph=True)
                print(losses[term])
            {update}
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("condition", "update", "count"),
    [
        ("if step % every == 0", "pass", 0),
        ("if step % every == 0", "optimizer.step()", 1),  # a second kind of step
        ("if step >= 0", "pass", 1),
    ],
)
def test_gradients_that_are_only_looked_at_are_no_second_kind_of_step(condition: str, update: str, count: int) -> None:
    assert len(findings(GRADIENTS.format(condition=condition, update=update), "SYNC04")) == count


REPORT = """
import torch
from torch import nn

class Trainer:
    def __init__(self, net):
        self.net = net.cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def step(self, y):
        loss = -self.net(y.cuda()).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def report(self, writer, y, step):
        y = y.cuda()
        writer.add_image("data", y[:, 0].cpu().numpy(), step)
        writer.add_image("samples", self.net.backward(y), step)

def main(net, dataset, writer):
    loader = torch.utils.data.DataLoader(dataset)
    trainer = Trainer(net)
    for step, y in enumerate(loader):
        trainer.step(y)
        {call}
"""


@pytest.mark.parametrize(
    ("call", "count"),
    [
        ("trainer.report(writer, y, step)", 1),
        ("if step == 1 or step % 100 == 0:\n            trainer.report(writer, y, step)", 0),
    ],
)
def test_a_report_at_intervals_may_call_a_pass_that_is_named_backward(call: str, count: int) -> None:
    assert len(findings(REPORT.format(call=call), "SYNC03")) == count


SHOWN = """
import torch

@torch.no_grad()
def evaluate(model, loader):
    model = model.cuda()
    {before}
    for x in loader:
        out = model(x.cuda())
        {inside}
        if flagged:
            print(out[0])
"""


@pytest.mark.parametrize(
    ("before", "inside", "count"),
    [
        ("pass", "flagged = False", 0),
        ("flagged = False", "pass", 0),
        ("flagged = False", "flagged = flagged or out.ndim", 1),
        ("flagged = True", "pass", 1),
    ],
)
def test_what_nothing_switches_on_never_runs(before: str, inside: str, count: int) -> None:
    assert len(findings(SHOWN.format(before=before, inside=inside), "SYNC04")) == count


ERRORS = """
import torch
from torch.nn import functional as F

def error(model, x, disp_true, mask, wanted):
    model.eval()
    with torch.no_grad():
        out = model(x.cuda())
    {use}

def main(model, loader):
    total = 0
    for x, y in loader:
        total += error(model.cuda(), x, y, y > 0, 3)
    print(total)
"""


@pytest.mark.parametrize(
    "condition", ["len(disp_true[mask]) == 0", "len(disp_true) > len(wanted)", "len(mask) > len(disp_true)"]
)
def test_how_much_there_is_makes_nothing_rare(condition: str) -> None:
    use = f"out = out.cpu()\n    if {condition}:\n        return 0\n    return F.l1_loss(out[mask], disp_true[mask])"
    (found,) = findings(ERRORS.format(use=use), "SYNC03")
    assert "intervals" not in found.message.partition(", ")[2].partition(".")[0]


GROWING = """
import torch

@torch.no_grad()
def generate(model, tokens, decode, steps):
    model = model.cuda()
    tokens = tokens.cuda()
    last_text = ""
    candidates = []
    for step in range(steps):
        logits = model(tokens)
        best = logits.softmax(-1).topk(5).values.tolist()
        text = decode(step)
        if {condition}:
            last_text = text
            candidates.append(best)
    return candidates
"""


def test_a_text_that_grows_sets_no_pace() -> None:
    messages = [found.message for found in findings(GROWING.format(condition="len(text) > len(last_text)"), "SYNC03")]
    assert not any("at intervals only" in message for message in messages)


EXCLUSIVE = """
import torch

def bank(loader, device):
    vectors = []
    for batch in loader:
        rows = batch["rows"]
        if {there}:
            rows = rows.to(device, non_blocking=True)
        vectors.append(rows.cpu() if {back} else rows)
    return torch.cat(vectors)
"""


@pytest.mark.parametrize(
    ("there", "back", "count"),
    [
        ('device and device != "cpu"', 'device == "cpu"', 0),
        ('device != "cpu"', 'device == "cpu"', 0),
        ('device != "cpu"', "batch.keep", 1),
    ],
)
def test_branches_that_exclude_each_other_make_no_round_trip(there: str, back: str, count: int) -> None:
    code = dedent(EXCLUSIVE).format(there=there, back=back)
    assert len(findings(code, "SYNC03")) == count


CACHED = """
import torch
from torch.utils.data import DataLoader, Dataset

class Cached(Dataset):
    def __init__(self, rows, device):
        self.rows, self.device, self.cache = rows, device, {{}}

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = self.rows[index]{moved}
        return self.cache[index]

device = torch.device("cuda")
model = torch.nn.Linear(8, 8).to(device)
found = []
with torch.no_grad():
    for batch in DataLoader(Cached(rows, {device}), 4):
        batch = batch.to(device, non_blocking=True)
        out = model(batch)
        found.append(batch.cpu())
"""


@pytest.mark.parametrize(("moved", "device", "count"), [(".to(self.device)", "device", 0), ("", "None", 1)])
def test_of_samples_that_are_on_the_device_the_host_has_none(moved: str, device: str, count: int) -> None:
    assert len(findings(CACHED.format(moved=moved, device=device), "SYNC03")) == count


EPOCHS = """
import torch

class Trainer:
    def __init__(self, model, parts, writer):
        self.model, self.parts, self.writer = model.cuda(), parts, writer

    def evaluate_all(self):
        {calls}

    def evaluate(self, loader):
        with torch.no_grad():
            for x in loader:
                out = self.model(x.cuda())
        for name, p in self.model.named_parameters():
            self.writer.add_histogram(name, p)
        return out

    def fit(self, batches):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for x in batches:
            optimizer.zero_grad()
            self.model(x.cuda()).sum().backward()
            optimizer.step()
            {each}
"""


@pytest.mark.parametrize(
    ("calls", "each", "count"),
    [
        ("for name, loader in self.parts.items():\n            self.evaluate(loader)", "pass", 0),
        ("pass", "self.evaluate(batches)", 1),
    ],
)
def test_each_of_several_loaders_is_a_pass_and_no_batch(calls: str, each: str, count: int) -> None:
    assert len(findings(EPOCHS.format(calls=calls, each=each), "SYNC09")) == count


SLICES = """
import torch

@torch.no_grad()
def show(model, loader, target, middle):
    model = model.cuda()
    for x in loader:
        volume = model(x.cuda())
        images = []
        for j in range(volume.size(1)):
            images.append(volume[{part}].cpu().numpy())
        save(images)
"""


@pytest.mark.parametrize(("part", "count"), [("0, j, :, :, middle", 0), ("0, j", 1), ("j, :, :", 1), ("0, j, :", 1)])
def test_slices_of_a_volume_are_far_less_than_the_volume(part: str, count: int) -> None:
    assert len(findings(SLICES.format(part=part), "SYNC07")) == count


ANSWERS = """
import torch

@torch.no_grad()
def accuracy(model, loader, decode):
    model = model.cuda()
    right = 0
    for batch in loader:
        out = model(batch["x"].cuda())
        answer = {answer}
        if {test}:
            right += 1
    return right
"""


@pytest.mark.parametrize(
    ("answer", "test", "count"),
    [
        ("decode(out)", 'batch["answer"][0].strip().lower() == answer.strip().lower()', 0),
        ("decode(out)", 'batch["answer"][0].lower().startswith("yes")', 0),
        ("out.argmax()", 'batch["answer"][0].cuda() == answer', 1),
    ],
)
def test_an_entry_of_a_batch_with_methods_of_texts_is_a_text(answer: str, test: str, count: int) -> None:
    assert len(findings(ANSWERS.format(answer=answer, test=test), "SYNC05")) == count


INTERVALS = """
import torch

def train(model, loader, held_out, optimizer, every):
    model = model.cuda()
    for step, x in enumerate(loader):
        loss = model(x.cuda()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % every == 0:
            losses = []
            with torch.no_grad():
                for y in held_out:
                    losses.append(model(y.cuda()).sum().item())
            print(sum(losses))
"""


def test_an_evaluation_at_intervals_runs_all_its_batches() -> None:
    (found,) = findings(INTERVALS, "SYNC01")
    assert "every evaluation batch" in found.message


TWO_KINDS = """
import torch

class Trainer:
    def __init__(self, net, every):
        self.net, self.every = net.cuda(), every
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def step(self, x):
        loss = self.net(x.cuda()).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def other_step(self, x):
        loss = self.net(x.cuda()).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self, loader):
        for step, x in enumerate(loader):
            if step % self.every != 0:
                self.{first}(x)
            else:
                loss = self.step(x)
                shown = loss.item() / 2
                print(shown)
"""


@pytest.mark.parametrize(("first", "count"), [("step", 0), ("other_step", 1)])
def test_a_step_that_both_branches_make_is_shown_at_intervals(first: str, count: int) -> None:
    assert len(findings(TWO_KINDS.format(first=first), "SYNC01")) == count
