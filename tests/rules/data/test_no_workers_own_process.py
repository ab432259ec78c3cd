"""DATA01 sends no dataset to workers that only its own process can use."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

SAMPLES = """
import h5py
import torch
from torch.utils.data import Dataset
from torchvision import transforms

class Samples(Dataset):
    def __init__(self, files, scale):
        self.files, self.read, self.handle, self.seen = files, 0, None, set()
        {made}

    def start(self):
        self.handle = open(self.files[0], "rb")

    def __getitem__(self, i):
        {item}
        return torch.load(self.files[i])

    def __len__(self):
        return len(self.files)
"""
TRAINING = """
import torch
from torch.utils.data import DataLoader
from samples import Samples

def train(model, files):
    samples = Samples(files, 2)
    for x in DataLoader(samples, 8):
        model(x.cuda()).sum().backward()
"""


@pytest.mark.parametrize(
    ("made", "item", "count"),
    [
        ("self.change = lambda x: x * scale", "pass", 0),
        ("self.changes = {'a': [lambda x: x * scale]}", "pass", 0),
        ("self.change = transforms.Compose([transforms.Lambda(lambda x: x * scale)])", "pass", 0),
        ("self.files = sorted(files, key=lambda file: file.name)", "pass", 1),
        ("self.handles = [h5py.File(file) for file in files]", "pass", 0),
        ("self.text = open(files[0]).read()", "pass", 1),
        ("pass", "self.handle = self.handle or h5py.File(self.files[0])", 1),
        ("pass", "self.read += 1", 0),
        ("pass", "self.seen.add(i)", 0),
        ("pass", "seen = self.seen | {i}", 1),
    ],
)
def test_no_workers_for_what_only_its_own_process_can_use(tmp_path: Path, made: str, item: str, count: int) -> None:
    samples = SAMPLES.format(made=made, item=item)
    beside = samples + TRAINING.replace("from samples import Samples\n", "")
    assert [finding.fix is not None for finding in findings(beside, "DATA01")] == [bool(count)]
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "samples.py").write_text(samples)
    (tmp_path / "main.py").write_text(TRAINING)
    source = Source.read(tmp_path / "main.py")
    found = lint(source, Settings.selecting("DATA01"), strict=True, project=Project())
    assert [finding.fix is not None for finding in found] == [bool(count)]


@pytest.mark.parametrize(
    ("made", "count"),
    [("self.handle = open(files[0], 'rb')", 0), ("self.start()", 0), ("self.handle = h5py.File(files[0])", 1)],
)
def test_workers_would_part_a_file_that_is_read_on_in(made: str, count: int) -> None:
    training = TRAINING.replace("from samples import Samples\n", "")
    assert len(findings(SAMPLES.format(made=made, item="pass") + training, "DATA01")) == count


@pytest.mark.parametrize(
    ("item", "count"),
    [
        ("if i in self.cache:\n            return self.cache[i]", 0),
        ("if i not in self.cache:\n            self.start()", 0),
        ("if self.cache[i] is not None:\n            return self.cache[i]", 0),
        ("sample = self.cache.get(i)", 0),
        ("if i in self.files:\n            return self.cache[i]", 1),
        ("print(len(self.cache))", 1),
    ],
)
def test_what_was_read_once_and_kept_is_not_waited_for(item: str, count: int) -> None:
    assert_count(f"{item}\n        self.cache[i] = torch.load(self.files[i])", count)


@pytest.mark.parametrize("kept", ["self.cache[i] = torch.load(i) / 255", "x = self.cache[i] = torch.load(i)"])
def test_a_sample_is_kept_however_it_is_written(kept: str) -> None:
    assert_count(f"if i not in self.cache:\n            {kept}", 0)


def test_a_sample_may_be_kept_by_the_expression_that_looks_for_it() -> None:
    assert_count("self.cache[i] = self.cache.get(i) or torch.load(i)", 0)


@pytest.mark.parametrize(
    "item",
    [
        "self.cache[i] = self.cache.get(i, 0) + 1",
        "if i not in self.cache:\n            self.cache[i] = len(self.cache)",
    ],
)
def test_counts_and_numbers_of_labels_are_no_samples(item: str) -> None:
    assert_count(item, 1)


def assert_count(item: str, count: int) -> None:
    training = TRAINING.replace("from samples import Samples\n", "")
    assert len(findings(SAMPLES.format(made="self.cache = {}", item=item) + training, "DATA01")) == count


@pytest.mark.parametrize(
    ("listed", "size", "count"),
    [
        ("[path]", "", 0),
        ("files=[path, path + '.old']", ", 2", 0),
        ("[path, path + '.old']", "", 1),
        ("[*path]", "", 1),
        ("path, [path]", "", 1),
        ("['a.wav']", "", 1),
    ],
)
def test_no_worker_is_worth_it_for_one_batch(listed: str, size: str, count: int) -> None:
    samples = SAMPLES.format(made="pass", item="pass").replace("files, scale", "files, scale=2")
    predicting = f"""
import torch
from torch.utils.data import DataLoader

def predict(model, path):
    for x in DataLoader(Samples({listed}){size}):
        yield model(x.cuda())
"""
    assert len(findings(samples + predicting, "DATA01")) == count


@pytest.mark.parametrize(("kind", "count"), [("TensorDataset", 0), ("ImageFolder", 1)])
def test_what_is_annotated_as_tensors_lies_in_memory(kind: str, count: int) -> None:
    code = f"""
        from torch.utils.data import DataLoader, TensorDataset
        from torchvision.datasets import ImageFolder
        import layers

        class Experiment:
            def __init__(self, model):
                self.model = model
                self.data: {kind} = layers.set_up("images")
                self.loader = DataLoader(self.data, batch_size=8)

            def train(self):
                for x, y in self.loader:
                    self.model(x.cuda()).sum().backward()
        """
    assert len(findings(dedent(code), "DATA01")) == count


@pytest.mark.parametrize(("samples", "count"), [("ImageFolder('data')", 1), ("TensorDataset(torch.ones(9))", 0)])
def test_a_dataset_that_is_wrapped_again_and_again_is_read_as_what_is_inside(samples: str, count: int) -> None:
    code = f"""
        import torch
        from torch.utils.data import DataLoader, Dataset, TensorDataset
        from torchvision.datasets import ImageFolder

        class Part(Dataset):
            def __init__(self, samples, places):
                self.samples, self.places = samples, places

            def __len__(self):
                return len(self.places)

            def __getitem__(self, i):
                return self.samples[self.places[i]]

        def train(model, parts):
            samples = {samples}
            for part in parts:
                samples = Part(samples, part)
            for x, y in DataLoader(samples, batch_size=8):
                model(x.cuda()).sum().backward()
        """
    assert len(findings(dedent(code), "DATA01")) == count
