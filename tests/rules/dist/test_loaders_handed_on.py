"""DIST02: loaders that classes and functions of other files draw from, under names of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Finding
from torchlint.fixing.passes import fix_source
from torchlint.semantics.project import Project
from torchlint.source import Source

HEAD = """
import torch
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler
"""

STEPS = """
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
"""


def found(folder: Path, main: str, **others: str) -> list[Finding]:
    for name, text in others.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "main.py").write_text(main)
    source = Source.read(folder / "main.py")
    return lint(source, Settings.selecting("DIST02"), strict=True, project=Project())


TRAINER = f"""
from tqdm import tqdm


class Trainer:
    def __init__(self, model, loader, optimizer, epochs):
        self.model, self.optimizer, self.epochs = model, optimizer, epochs
        self.loader = loader

    def fit(self):
        for epoch in range(self.epochs):
            self.run_epoch()

    def run_epoch(self):
        model, optimizer = self.model, self.optimizer
        for x, y in tqdm(self.loader, total=len(self.loader)):{STEPS}
"""

MAIN = (
    HEAD
    + """
from trainer import Trainer


def main(data):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 3, sampler=sampler)
    trainer = Trainer(model, loader, optimizer, 3)
    {}
"""
)

HERE = "for epoch in range(3):\n        trainer.run_epoch()"


@pytest.mark.parametrize(
    ("run", "place"), [("trainer.fit()", "line 11 of trainer.py"), (HERE, "line 14")], ids=["fits", "one epoch"]
)
def test_a_class_of_another_file_keeps_the_loader(tmp_path: Path, run: str, place: str) -> None:
    [finding] = found(tmp_path, MAIN.format(run), trainer=TRAINER)
    assert finding.line == 11
    assert f"loop in {place}" in " ".join(finding.message.split())


def test_where_the_epochs_are_here_the_sampler_is_told_here(tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)
    (tmp_path / "main.py").write_text(MAIN.format(HERE))
    source = Source.read(tmp_path / "main.py")
    after = fix_source(source, Settings.selecting("DIST02"), unsafe=True, strict=True, project=Project()).source.text
    assert "    for epoch in range(3):\n        sampler.set_epoch(epoch)\n        trainer.run_epoch()\n" in after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.run_epoch()\n", "self.run_epoch()\n            self.loader.sampler.set_epoch(epoch)\n"),
        ("self.run_epoch()\n", "self.run_epoch()\n            end(self.loader, epoch)\n"),
        ("range(self.epochs)", "range(1)"),
        ("class Trainer:", "from base import Base\n\n\nclass Trainer(Base):"),
        ("        self.loader = loader\n", "        self.loader = shuffled(loader)\n"),
        ("            optimizer.step()\n", ""),
        ("self.run_epoch()\n", "self.run_epoch()\n            end(self, epoch)\n"),
    ],
    ids=["told", "handed on", "once", "a base", "another", "no step", "itself"],
)
def test_a_class_that_may_tell_it_the_epoch(tmp_path: Path, old: str, new: str) -> None:
    assert old in TRAINER
    assert found(tmp_path, MAIN.format("trainer.fit()"), trainer=TRAINER.replace(old, new)) == []


@pytest.mark.parametrize(
    "method",
    [
        "    def note(self, name, value):\n        setattr(self, name, value)\n",
        "    @staticmethod\n    def moved(batch):\n        return anywhere(batch)\n",
    ],
)
def test_a_class_with_methods_that_do_not_hand_it_on(tmp_path: Path, method: str) -> None:
    assert len(found(tmp_path, MAIN.format("trainer.fit()"), trainer=f"{TRAINER}\n{method}")) == 1


@pytest.mark.parametrize(
    "bar",
    [
        "bar = tqdm(loader) if shows else loader",
        "if shows:\n        bar = tqdm(loader)\n    else:\n        bar = loader",
    ],
)
def test_a_function_of_another_file_that_shows_a_bar_or_none(tmp_path: Path, bar: str) -> None:
    main = MAIN.replace("from trainer import Trainer", "from engine import train").replace(
        "trainer = Trainer(model, loader, optimizer, 3)", "for epoch in range(3):"
    )
    main = main.format("    train(model, loader, optimizer, epoch == 0)")
    steps = STEPS.replace("\n            ", "\n        ")
    engine = f"""
from tqdm import tqdm


def train(model, loader, optimizer, shows):
    {bar}
    for x, y in bar:{steps}
        if shows:
            bar.set_postfix(lr=optimizer.param_groups[0]["lr"])
"""
    assert len(found(tmp_path, main, engine=engine)) == 1
    assert (
        found(tmp_path, main, engine=engine.replace("bar.set_postfix", "tell(bar)\n            bar.set_postfix")) == []
    )


@pytest.mark.parametrize(("run", "expected"), [("model(x, loader)", 1), ("model(tell(x, loader))", 0)])
def test_a_network_that_gets_the_loader_tells_it_nothing(tmp_path: Path, run: str, expected: int) -> None:
    main = MAIN.replace("from trainer import Trainer", "from engine import train").replace(
        "trainer = Trainer(model, loader, optimizer, 3)", "for epoch in range(3):"
    )
    main = main.format("    train(loader, optimizer)")
    steps = STEPS.replace("\n            ", "\n        ").replace("model(x)", run)
    engine = "import torch\n\nmodel = torch.nn.Linear(1, 1)\n\n\n"
    engine += f"def train(loader, optimizer):\n    for x, y in loader:{steps}"
    assert len(found(tmp_path, main, engine=engine)) == expected


def test_the_step_is_in_another_file(tmp_path: Path) -> None:
    main = (
        HEAD
        + """
from steps import step

data = torch.utils.data.TensorDataset(torch.zeros(9, 1), torch.zeros(9, 1))
loader = DataLoader(data, 3, sampler=DistributedSampler(data))


def train(model, optimizer):
    for epoch in range(9):
        for x, y in loader:
            {}(model, optimizer, x, y)


model = torch.nn.Linear(1, 1)
train(model, torch.optim.SGD(model.parameters(), lr=0.1))
"""
    )
    body = STEPS.replace("\n            ", "\n    ")
    steps = f"\ndef step(model, optimizer, x, y):{body}\n\ndef look(model, optimizer, x, y):\n    print(model(x))\n"
    assert len(found(tmp_path, main.format("step"), steps=steps)) == 1
    assert found(tmp_path, main.replace("import step", "import look").format("look"), steps=steps) == []


LOADERS = """
from torch.utils.data import DataLoader


class LoaderAhead(DataLoader):
    def __init__(self, device, **kwargs):
        super().__init__(**kwargs)
        self.device = device

    def __iter__(self):
        return (ahead(batch, self.device) for batch in super().__iter__())
"""


def test_a_loader_of_a_class_of_the_project(tmp_path: Path) -> None:
    main = (
        HEAD
        + f"""
from loaders import LoaderAhead


def main(data, model, optimizer):
    batches = BatchSampler(DistributedSampler(data), 3, True)
    loader = LoaderAhead(device="cuda", dataset=data, batch_sampler=batches)
    for epoch in range(3):
        for x, y in loader:{STEPS}
"""
    )
    assert len(found(tmp_path, main, loaders=LOADERS)) == 1
    telling = LOADERS.replace("        return", "        self.batch_sampler.sampler.set_epoch(3)\n        return")
    assert found(tmp_path, main, loaders=telling) == []
