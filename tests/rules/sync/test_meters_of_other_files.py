"""SYNC01, SYNC06: classes of measures that another file makes, and that it, or a third one, fills in each step."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests.support import marked
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

METERS = """
class Share:
    def __init__(self):
        self.hits, self.seen = 0, 0

    def update(self, out, y):
        self.hits += (out.argmax(1) == y).sum().item()  # here
        self.seen += len(y)

    def value(self):
        return self.hits / self.seen
"""
CALLED = METERS.replace("def update", "def __call__")
DERIVED = """
class Measure:
    def __init__(self):
        self.total = 0

    def update(self, out, y):
        self.total += self.of(out, y)

    def of(self, out, y):
        raise NotImplementedError


class Error(Measure):
    def of(self, out, y):
        return (out - y).abs().mean().item()  # here


class Share(Error):
    pass
"""
LOOP = """
import torch
from meters import *


def train(model, loader, optimizer, criterion, meter):
    model.cuda()
{before}
    for step, (x, y) in enumerate(loader):
        x, y = x.cuda(), y.cuda()
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
{body}
{after}
"""
MAKER = """
from meters import Share
from training import {name}


def main(model, loader, optimizer, criterion):
    {main}
"""


def lines_of(path: Path, meters: str, **files: str) -> list[int]:
    (path / "pyproject.toml").touch()
    for name, code in {"meters": "import torch\n" + meters, **files}.items():
        (path / f"{name}.py").write_text(dedent(code).lstrip())
    settings = Settings.selecting("SYNC01", "SYNC06")
    found = lint(Source.read(path / "meters.py"), settings, strict=True, project=Project())
    return [finding.line for finding in found]


def wanted(meters: str) -> list[int]:
    return marked("import torch\n" + meters)


def loop(body: str, before: str = "", after: str = "") -> str:
    parts = {"body": indent(dedent(body), " " * 8), "before": indent(before, " " * 4), "after": indent(after, " " * 4)}
    return LOOP.format(**parts).replace("import *", "import Share")


@pytest.mark.parametrize(
    ("meters", "before", "body"),
    [
        (METERS, "own = Share()", "own.update(out, y)"),
        (METERS, "own = [Share(), Share()]", "for each in own:\n    each.update(out, y)"),
        (METERS, "own = {'share': Share()}", "own['share'].update(out, y)"),
        (CALLED, "own = Share()", "own(out, y)"),
        (CALLED, "own = {'share': Share()}", "for name, each in own.items():\n    each(out, y)"),
        (DERIVED, "own = Share()", "own.update(out, y)"),
    ],
)
def test_a_meter_is_filled_by_the_file_that_makes_it(tmp_path: Path, meters: str, before: str, body: str) -> None:
    assert lines_of(tmp_path, meters, training=loop(body, before)) == wanted(meters)


@pytest.mark.parametrize(
    ("meters", "before", "body", "after"),
    [
        (CALLED, "own = Share()", "", "own(model(x), y)"),  # once
        (CALLED, "own = Share()", "if step % 50 == 0:\n    own(out, y)", ""),
        (CALLED, "own = Share()", "own(out.cpu(), y.cpu())", ""),
        (CALLED, "own = Share()", "own(out.detach().cpu().numpy(), y.cpu().numpy())", ""),
        (CALLED, "own = Other()", "own(out, y)", ""),
        (DERIVED, "own = Share()", "", "own.update(model(x), y)"),
        (DERIVED, "own = Share()", "if step % 50 == 0:\n    own.update(out, y)", ""),
        (DERIVED, "own = Share()", "own.update(out.cpu(), y.cpu())", ""),
    ],
)
def test_what_is_filled_seldom_or_on_the_host_does_not_wait(
    tmp_path: Path, meters: str, before: str, body: str, after: str
) -> None:
    assert lines_of(tmp_path, meters, training=loop(body, before, after)) == []


HANDED = [
    (METERS, "train", "train(model, loader, optimizer, criterion, Share())", "meter.update(out, y)"),
    (METERS, "train", "train(model, loader, optimizer, criterion, meter=Share())", "meter.update(out, y)"),
    (METERS, "train", "train(model, loader, optimizer, criterion, [Share()])", "for m in meter: m.update(out, y)"),
    (METERS, "train", "train(model, loader, optimizer, criterion, [Share()])", "meter[0].update(out, y)"),
    (
        METERS,
        "train",
        "train(model, loader, optimizer, criterion, {'share': Share()})",
        "for name, each in meter.items(): each.update(out, y)",
    ),
    (
        METERS,
        "train",
        "train(model, loader, optimizer, criterion, {'share': Share()})",
        "share = meter['share']\nshare.update(out, y)",
    ),
    (CALLED, "train", "train(model, loader, optimizer, criterion, Share())", "meter(out, y)"),
    (DERIVED, "train", "train(model, loader, optimizer, criterion, Share())", "meter.update(out, y)"),
]


@pytest.mark.parametrize(("meters", "name", "main", "body"), HANDED)
def test_a_meter_is_filled_by_the_file_that_is_given_it(
    tmp_path: Path, meters: str, name: str, main: str, body: str
) -> None:
    training = loop(body).replace("from meters import Share\n", "")
    assert lines_of(tmp_path, meters, training=training, main=MAKER.format(name=name, main=main)) == wanted(meters)


@pytest.mark.parametrize(
    ("main", "body"),
    [
        ("train(model, loader, optimizer, criterion, Share())", "meter.update(out.cpu(), y.cpu())"),
        ("train(model, loader, optimizer, criterion, Share())", "meter.update(out.cpu().numpy(), y.cpu().numpy())"),
        ("train(model, loader, optimizer, criterion, Share())", "if step % 50 == 0: meter.update(out, y)"),
        ("train(model, loader, optimizer, criterion, Share())", "meter.reset(out, y)"),
        ("train(model, loader, optimizer, Share(), None)", "meter.update(out, y)"),
        ("train(model, loader, optimizer, criterion, {'share': Share()})", "meter.update(out, y)"),  # of the dict
        ("train(model, loader, optimizer, criterion, Share())", "other = meter.other\nother.update(out, y)"),
    ],
)
def test_what_is_given_and_filled_seldom_or_on_the_host_does_not_wait(tmp_path: Path, main: str, body: str) -> None:
    training = loop(body).replace("from meters import Share\n", "")
    assert lines_of(tmp_path, METERS, training=training, main=MAKER.format(name="train", main=main)) == []


def test_who_fills_it_after_the_loop_does_not_wait_in_each_step(tmp_path: Path) -> None:
    training = loop("pass", after="meter.update(model(x), y)").replace("from meters import Share\n", "")
    main = MAKER.format(name="train", main="train(model, loader, optimizer, criterion, Share())")
    assert lines_of(tmp_path, METERS, training=training, main=main) == []


FACTORY = (
    METERS
    + """

def measure(options):
    return Share()


def measures(options):
    return {"share": Share(), "other": Share()} if options else {"share": Share()}


def nothing(options):
    return options
"""
)


@pytest.mark.parametrize(
    ("before", "body", "is_found"),
    [
        ("own = measure(0)", "own.update(out, y)", True),
        ("own = measures(0)", "for name, each in own.items():\n    each.update(out, y)", True),
        ("own = measures(0)", "own['share'].update(out, y)", True),
        ("own = measure(0)", "own.update(out.cpu(), y.cpu())", False),
        ("own = measure(0)", "if step % 20 == 0: own.update(out, y)", False),
        ("own = measures(0)", "own.update(out, y)", False),  # of the dict
        ("own = nothing(0)", "own.update(out, y)", False),
    ],
)
def test_a_function_beside_the_class_makes_the_meter(tmp_path: Path, before: str, body: str, is_found: bool) -> None:
    training = loop(body, before).replace("import Share", "import measure, measures, nothing")
    assert lines_of(tmp_path, FACTORY, training=training) == (wanted(FACTORY) if is_found else [])


def test_what_a_function_has_made_is_handed_on_twice(tmp_path: Path) -> None:
    training = loop("meter.update(out, y)").replace("from meters import Share\n", "")
    middle = "from training import train\n\ndef run(parts, meter):\n    train(*parts, meter=meter)\n"
    main = "from meters import measure\nfrom middle import run\n\nrun(parts(), measure(1))\n"
    assert lines_of(tmp_path, FACTORY, training=training, middle=middle, main=main) == wanted(FACTORY)


TRAINER = """
import torch


class Trainer:
    def __init__(self, model, optimizer, criterion, meters):
        self.model, self.optimizer, self.criterion = model.cuda(), optimizer, criterion
        self.meters = meters

    def run(self, loader):
        for step, (x, y) in enumerate(loader):
            {each}

    def step(self, x, y):
        x, y = x.cuda(), y.cuda()
        self.optimizer.zero_grad()
        out = self.model(x)
        loss = self.criterion(out, y)
        loss.backward()
        self.optimizer.step()
        {body}

    def end(self, out, y):
        for meter in self.meters:
            meter.update(out, y)
"""


@pytest.mark.parametrize(
    ("each", "body", "is_found"),
    [
        ("self.step(x, y)", "for meter in self.meters: meter.update(out, y)", True),
        ("self.step(x, y)", "self.meters[0].update(out, y)", True),
        ("self.step(x, y)", "self.end(out, y)", True),
        ("self.step(x, y)", "for meter in self.meters: meter.update(out.cpu(), y.cpu())", False),
        ("self.step(x, y)", "pass", False),
        ("self.step(x, y)", "if self.seen % 50 == 0: self.meters[0].update(out, y)", False),
    ],
)
def test_a_trainer_keeps_the_meters_that_it_is_given(tmp_path: Path, each: str, body: str, is_found: bool) -> None:
    training = TRAINER.format(each=each, body=body)
    main = MAKER.format(name="Trainer", main="Trainer(model, optimizer, criterion, [Share()]).run(loader)")
    assert lines_of(tmp_path, METERS, training=training, main=main) == (wanted(METERS) if is_found else [])


STEPPED = """
import torch
from meters import Share


class Trainer:
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model.cuda(), optimizer, criterion
        self.meter = Share()

    def run(self, loader):
        for step, (x, y) in enumerate(loader):
            x, y = x.cuda(), y.cuda()
            self.optimizer.zero_grad()
            out = self.model(x)
            loss = self.criterion(out, y)
            loss.backward()
            self.optimizer.step()
            {body}
        {after}

    def note(self, out, y):
        self.meter.update(out, y)

    def __call__(self, out, y):
        pass
"""


@pytest.mark.parametrize(
    ("body", "after", "is_found"),
    [
        ("self.note(out, y)", "", True),
        ("if step % 50 == 0: self.note(out, y)", "", False),
        ("pass", "self.note(out, y)", False),
    ],
)
def test_a_method_that_each_step_calls_fills_a_meter(tmp_path: Path, body: str, after: str, is_found: bool) -> None:
    training = STEPPED.format(body=body, after=after)
    assert lines_of(tmp_path, METERS, training=training) == (wanted(METERS) if is_found else [])
    called = training.replace("self.meter.update(", "self.meter(")
    assert lines_of(tmp_path, CALLED, training=called) == (wanted(CALLED) if is_found else [])


LIGHTNING = """
import pytorch_lightning as pl
import torch
from meters import Share
from torch import nn


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 2)
        self.meter = Share()

    def training_step(self, batch, batch_idx):
        x, y = batch
        out = self.net(x)
        {body}
        return nn.functional.cross_entropy(out, y)

    def on_train_epoch_end(self):
        {end}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
"""


@pytest.mark.parametrize(
    ("body", "end", "is_found"),
    [
        ("self.meter.update(out, y)", "pass", True),
        ("if batch_idx % 50 == 0: self.meter.update(out, y)", "pass", False),
        ("self.meter.update(out.cpu(), y.cpu())", "pass", False),
        ("self.last = out, y", "self.meter.update(*self.last)", False),
    ],
)
def test_a_hook_of_a_framework_fills_a_meter(tmp_path: Path, body: str, end: str, is_found: bool) -> None:
    training = LIGHTNING.format(body=body, end=end)
    assert lines_of(tmp_path, METERS, training=training) == (wanted(METERS) if is_found else [])


TEMPLATE = """
import torch


class Base:
    def step(self, x, y):
        x, y = x.cuda(), y.cuda()
        out = self.model.cuda()(x)
        loss = self.loss(out, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


class Middle(Base):
    pass
"""
HEIR = """
from between import Middle
from torch.nn import functional as F


class Trainer(Middle):
    def loss(self, out, y):
        value = F.cross_entropy(out, y)
        self.losses.append(value.item())  # here
        return value
"""


def test_a_base_two_files_away_calls_what_the_class_puts_in_its_place(tmp_path: Path) -> None:
    between = "from template import Base\n\n\nclass Middle(Base):\n    pass\n"
    assert lines_of(tmp_path, HEIR, template=TEMPLATE, between=between) == wanted(HEIR)
    rare = TEMPLATE.replace("def step", "def report").replace(
        "        loss.backward()\n        self.optimizer.step()\n", ""
    )
    assert lines_of(tmp_path, HEIR, template=rare, between=between) == []


JUDGE = """
from torch.nn import functional as F


class Judge:
    def __init__(self, model):
        self.model = model

    def __call__(self, batch):
        x, y = batch
        loss = F.cross_entropy(self.model(x), y)
        return dict(loss=loss.item())  # here
"""


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("for batch in loader: log.append(judge(to_device(*batch)))", True),
        ("for step, batch in enumerate(loader):\n        if step % 20 == 0: log.append(judge(batch))", False),
        ("log.append(judge(next(iter(loader))))", False),
        ("for name in names: log.append(judge(batches))", False),
    ],
)
def test_an_object_that_runs_a_model_is_called_with_each_batch(tmp_path: Path, body: str, is_found: bool) -> None:
    main = f"""
        from meters import Judge

        def main(model, loader, log, names, batches, to_device):
            judge = Judge(model.to("cuda"))
            {body}
    """
    assert lines_of(tmp_path, JUDGE, main=main) == (wanted(JUDGE) if is_found else [])


ENTRIES = """
class Mean:
    def __init__(self):
        self.total = 0

    def update(self, batch):
        self.total += batch["lengths"].long().sum().item()
"""


PAIRS = """
class Mean:
    def __init__(self):
        self.total = 0

    def update(self, pair):
        out, lengths = pair
        self.total += lengths.long().sum().item()
"""


@pytest.mark.parametrize(("meters", "given"), [(ENTRIES, "batch"), (PAIRS, "(batch['out'], batch['lengths'])")])
def test_one_part_of_many_on_the_device_says_nothing_of_the_others(tmp_path: Path, meters: str, given: str) -> None:
    fill = f"""
        import torch
        from meters import Mean

        def train(model, loader, optimizer, criterion):
            model.cuda()
            mean = Mean()
            for batch in loader:
                optimizer.zero_grad()
                batch["out"] = model(batch["x"].cuda())
                criterion(batch["out"], batch["y"].cuda()).backward()
                optimizer.step()
                mean.update({given})
    """
    assert lines_of(tmp_path, meters, training=fill) == []
