"""DATA01: the training process loads and decodes every batch itself while the GPU waits."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
import torch

from tests.rules.data.unpinned_loaders import LOOP
from tests.support import findings, fixed, marked
from torchlint.finding import Applicability

HEADER = """\
import os
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils import data
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, TensorDataset, random_split
from torchvision import datasets, transforms

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
images = datasets.ImageFolder("data", transform=transforms.ToTensor())
model = nn.Linear(8, 2).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Photos(Dataset):
    def __init__(self, root):
        self.paths = sorted(Path(root).iterdir())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        photo = Image.open(self.paths[i])
        return torch.from_numpy(np.asarray(photo)), i
"""


def script(body: str, loop: str = LOOP) -> str:
    return HEADER + dedent(body) + loop


VARIANTS = {
    "no workers": script("loader = DataLoader(images, batch_size=64, shuffle=True)  # found\n"),
    "zero workers": script("loader = DataLoader(  # found\n    images, 64, num_workers=0\n)\n"),
    "zero workers by position": script("loader = DataLoader(  # found\n    images, 64, True, None, None, 0\n)\n"),
    "module alias": script("loader = data.DataLoader(images, 64)  # found\n"),
    "samples out of sight that are transformed": script(
        "from crops import Crops\nloader = DataLoader(Crops('data', transform=transforms.ToTensor()), 8)  # found\n"
    ),
    "dataset of the file that opens files": script("loader = DataLoader(Photos('data'), 64)  # found\n"),
    "half of a dataset": script(
        """\
        train, test = random_split(images, [0.8, 0.2])
        loader = DataLoader(train, 64)  # found
        """
    ),
    "subset": script("loader = DataLoader(Subset(images, range(100)), 64)  # found\n"),
    "two datasets": script("loader = DataLoader(ConcatDataset([images, Photos('more')]), 64)  # found\n"),
    "options in a dict": script(
        """\
        options = {"batch_size": 64, "shuffle": True}
        loader = DataLoader(images, **options)  # found
        """
    ),
    "evaluation": script(
        "loader = DataLoader(images, 64)  # found\n",
        """\
model.eval()
with torch.no_grad():
    for x, y in loader:
        print(criterion(model(x.cuda()), y.cuda()))
""",
    ),
    "training in a function": HEADER
    + dedent(
        """\
        def train(loader):
            for x, y in loader:
                criterion(model(x.to(device)), y.to(device)).backward()


        def main():
            loader = DataLoader(Photos("data"), batch_size=64, shuffle=True)  # found
            train(loader)
        """
    ),
}

LOOK_ALIKES = {
    "workers that somebody has taken out": script(
        """\
        loader = DataLoader(images, 64,
                            # num_workers=8,
                            shuffle=True)
        """
    ),
    "workers": script("loader = DataLoader(images, 64, num_workers=4)\n"),
    "workers by position": script("loader = DataLoader(images, 64, True, None, None, 4)\n"),
    "workers from the command line": script("loader = DataLoader(images, 64, num_workers=int(sys.argv[1]))\n"),
    "workers where they can be forked": script(
        """\
        workers = 0 if sys.platform == "win32" else 4
        loader = DataLoader(images, 64, num_workers=workers)
        """
    ),
    "all samples in one batch": script("loader = DataLoader(images, batch_size=len(images))\n"),
    "no workers for a reason": script(
        "loader = DataLoader(images, 64, num_workers=0)  # the file handle does not survive a fork\n"
    ),
    "workers in a dict": script(
        """\
        options = {"batch_size": 64}
        if torch.cuda.is_available():
            options.update({"num_workers": 1, "pin_memory": True})
        loader = DataLoader(images, **options)
        """
    ),
    "workers set by key": script(
        """\
        options = dict(batch_size=64)
        options["num_workers"] = 4
        loader = DataLoader(images, **options)
        """
    ),
    "options of the caller": script(
        """\
        def make(**options):
            return DataLoader(images, 64, **options)

        loader = make(num_workers=2)
        """
    ),
    "samples out of sight, which may lie in memory": script(
        "from crops import Crops\nloader = DataLoader(Crops('data', transform=None), 8)\n"
    ),
    "tensors in memory": script(
        "loader = DataLoader(TensorDataset(torch.randn(100, 8), torch.zeros(100).long()), 64)\n"
    ),
    "half of the tensors in memory": script(
        """\
        points = TensorDataset(torch.randn(100, 8), torch.zeros(100).long())
        train, test = random_split(points, [80, 20])
        loader = DataLoader(train, 64)
        """
    ),
    "list of samples": script("loader = DataLoader([(torch.randn(8), 0) for _ in range(100)], 64)\n"),
    "dataset of the file that holds arrays": script(
        """\
        class Points(Dataset):
            def __init__(self, x, y):
                self.x, self.y = x, y

            def __len__(self):
                return len(self.x)

            def __getitem__(self, i):
                return torch.tensor(self.x[i]), self.y[i]

        loader = DataLoader(Points(np.zeros((100, 8)), np.zeros(100)), 64)
        """
    ),
    "rows of a dict of tensors": script(
        """\
        class Rows(Dataset):
            def __init__(self, **tensors):
                self.tensors = tensors

            def __len__(self):
                return len(next(iter(self.tensors.values())))

            def __getitem__(self, i):
                return tuple(tensor[i] for name, tensor in self.tensors.items())

        loader = DataLoader(Rows(x=torch.zeros(100, 8), y=torch.zeros(100)), 64)
        """
    ),
    "dataset on the GPU": script(
        "loader = DataLoader(TensorDataset(torch.randn(100, 8, device=device), torch.zeros(100).cuda()), 64)\n"
    ),
    "stream": script(
        """\
        class Lines(IterableDataset):
            def __iter__(self):
                for line in open("data.txt"):
                    yield torch.tensor([float(word) for word in line.split()]), 0

        loader = DataLoader(Lines(), 64)
        """
    ),
    "samples moved by the dataset": script(
        """\
        class Moved(Dataset):
            def __len__(self):
                return 100

            def __getitem__(self, i):
                return torch.load(f"{i}.pt").to(device), i

        loader = DataLoader(Moved(), 64)
        """
    ),
    "batch moved by the collate function": script(
        """\
        def collate(samples):
            return torch.stack([x for x, _ in samples]).cuda(), torch.tensor([y for _, y in samples]).cuda()

        loader = DataLoader(images, 64, collate_fn=collate)
        """
    ),
    "one batch to look at": script(
        "loader = DataLoader(images, 64)\n", "x, y = next(iter(loader))\nprint(model(x.to(device)))\n"
    ),
    "batches that stay on the host": script(
        "loader = DataLoader(images, 64)\n", "for x, y in loader:\n    print(x.mean())\n"
    ),
    "graphs in memory": HEADER
    + dedent(
        """\
        from torch_geometric.datasets import PPI
        from torch_geometric.loader import DataLoader as GraphLoader

        for graph in GraphLoader(PPI("data"), batch_size=2):
            graph = graph.to(device)
            criterion(model(graph.x), graph.y).backward()
        """
    ),
    "script for the CPU": dedent(
        """\
        import torch
        from torch import nn
        from torch.utils.data import DataLoader
        from torchvision import datasets

        model = nn.Linear(8, 2)
        for x, y in DataLoader(datasets.MNIST("data"), 64):
            nn.functional.cross_entropy(model(x), y).backward()
        """
    ),
    "test of a model": script(
        """\
        def test_model_learns():
            loader = DataLoader(images, 64)
            for x, y in loader:
                assert model(x.to(device)).shape == (64, 2)

        """,
        "",
    ),
}

REWRITES = {
    "keyword appended": (
        "loader = DataLoader(images, 64, shuffle=True)\n",
        "loader = DataLoader(images, 64, shuffle=True, num_workers=min(8, os.cpu_count() or 1))\n",
    ),
    "options in a dict": (
        'options = {"batch_size": 64}\nloader = DataLoader(images, **options)\n',
        'options = {"batch_size": 64, "num_workers": min(8, os.cpu_count() or 1)}\n'
        "loader = DataLoader(images, **options)\n",
    ),
}


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_variants_are_found(code: str) -> None:
    assert [finding.line for finding in findings(code, "DATA01")] == marked(code, "# found")


@pytest.mark.parametrize("code", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_look_alikes_stay_silent(code: str) -> None:
    assert findings(code, "DATA01") == []


def program(body: str, guard: str = 'if __name__ == "__main__":\n    main()\n') -> str:
    return HEADER + "\n\n" + indent("def main():\n" + body + LOOP, "    ").lstrip() + "\n\n" + guard


@pytest.mark.parametrize(("before", "after"), REWRITES.values(), ids=REWRITES.keys())
def test_rewrites_only_when_asked(before: str, after: str) -> None:
    assert fixed(program(before), "DATA01", unsafe=False) == program(before)
    assert fixed(program(before), "DATA01", unsafe=True) == program(after)


CACHED = """\
import soundfile
from torch.utils.data import Dataset


class Speech(Dataset):
    def __init__(self, files):
        self.files, self.waves, self.last = files, {}, None

    @classmethod
    def split(cls, files):
        return cls(files[:8]), cls(files[8:])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.read(self.files[index])

    def read(self, file):
        wave = self.waves.get(file)
        if wave is None:
            wave = soundfile.read(file)[0]
            KEPT = wave
        return wave
"""


@pytest.mark.parametrize("made", ["images = Speech(files)\n", "images, rest = Speech.split(files)\n"])
@pytest.mark.parametrize(("kept", "is_fixed"), [("self.waves[file]", False), ("last", True)])
def test_no_workers_for_a_dataset_that_keeps_what_it_has_read(made: str, kept: str, is_fixed: bool) -> None:
    code = CACHED.replace("KEPT", kept) + program(made + "loader = DataLoader(images, 64)\n")
    assert len(findings(code, "DATA01")) == is_fixed
    assert ("num_workers" in fixed(code, "DATA01")) is is_fixed


@pytest.mark.parametrize(
    ("seeds", "is_fixed"),
    [("numpy.random.seed(1)\n", False), ("numpy.random.seed(1)\ntorch.manual_seed(1)\n", True)],
)
def test_no_fix_for_a_program_that_seeds_all_but_torch(seeds: str, is_fixed: bool) -> None:
    """Workers are seeded by torch: what they draw would no longer be the same in every run."""
    code = "import numpy\n" + program(seeds + "loader = DataLoader(datasets.ImageFolder('data'), 64)\n")
    assert len(findings(code, "DATA01")) == 1
    assert ("num_workers" in fixed(code, "DATA01")) is is_fixed


@pytest.mark.parametrize("given", ["num_workers=0, drop_last=True", "True, None, None, 0"])
def test_zero_workers_that_somebody_asked_for_stay(given: str) -> None:
    code = program(f"loader = DataLoader(images, 64, {given})\n")
    assert len(findings(code, "DATA01")) == 1
    assert fixed(code, "DATA01") == code


PARSER = """\
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--n_cpu", type=int, default=DEFAULT, help="cpu threads to use during batch generation")
args = parser.parse_args()
"""


@pytest.mark.parametrize(("default", "workers"), [("8", "args.n_cpu"), ("0", "min(8, os.cpu_count() or 1)")])
def test_the_option_of_the_command_line_says_how_many(default: str, workers: str) -> None:
    before, after = REWRITES["keyword appended"]
    head = PARSER.replace("DEFAULT", default)
    expected = head + program(after).replace("min(8, os.cpu_count() or 1)", workers)
    assert fixed(head + program(before), "DATA01") == expected
    inside = before.replace("loader =", "args = None\nloader =")
    assert "num_workers=min(" in fixed(head + program(inside), "DATA01")


def test_only_shown_where_spawned_workers_would_run_the_script_again() -> None:
    before, _ = REWRITES["keyword appended"]
    [finding] = findings(program(before, "main()\n"), "DATA01")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.DISPLAY


@pytest.mark.parametrize(
    ("made", "options", "count"),
    [
        ("Shifted(lambda x: x + 1)", "", 0),
        ("Shifted(Both([abs, lambda x: x + 1]))", "", 0),
        ("Shifted(shift)", "", 0),
        ("Shifted(abs)", ", collate_fn=lambda parts: parts[0]", 0),
        ("Shifted(abs)", "", 1),
        ("Shifted(sorted(changes, key=lambda change: str(change))[0])", "", 1),
        ("Shifted(shift(abs))", "", 1),
    ],
)
def test_no_fix_for_a_dataset_that_no_other_process_can_be_sent(made: str, options: str, count: int) -> None:
    code = f"""
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Shifted(Dataset):
            def __init__(self, change):
                self.change = change

            def __getitem__(self, i):
                return self.change(torch.load(f"{{i}}.pt"))

            def __len__(self):
                return 100

        def train(model, changes):
            def shift(x):
                return x + 1

            samples = {made}
            for x in DataLoader(samples, 8{options}):
                model(x.cuda()).sum().backward()
        """
    [finding] = findings(code, "DATA01")
    assert (finding.fix is not None) == count


def test_imports_os_where_it_is_needed() -> None:
    before, after = REWRITES["keyword appended"]
    without = program(before).replace("import os\n", "")
    expected = program(after).replace("import os\n", "").replace("random_split\n", "random_split\nimport os\n", 1)
    changed = fixed(without, "DATA01", unsafe=True)
    assert sorted(changed.splitlines()) == sorted(expected.splitlines())
    compile(changed, "changed", "exec")


RUNNABLE = """\
import os
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset


class Files(Dataset):
    def __init__(self, root):
        self.paths = sorted(Path(root).iterdir())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return torch.load(self.paths[i]), i


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Files(root), 4, shuffle=True)
    return [part.to(device) for batch in loader for part in batch] + [torch.rand(2)]


if __name__ == "__main__":
    seen = main()
"""


def test_the_batches_and_the_random_numbers_after_them_stay_the_same(tmp_path: Path) -> None:
    for i in range(10):
        torch.save(torch.full((3,), float(i)), tmp_path / f"{i}.pt")
    changed = fixed(RUNNABLE, "DATA01", unsafe=True)
    assert "num_workers=min(8, os.cpu_count() or 1)" in changed
    before: dict[str, Any] = {"__name__": "__main__", "root": tmp_path}
    after: dict[str, Any] = {"__name__": "__main__", "root": tmp_path}
    exec(compile(RUNNABLE, "before", "exec"), before)
    exec(compile(changed, "after", "exec"), after)
    assert len(before["seen"]) == len(after["seen"]) == 7
    assert all(a.equal(b) for a, b in zip(before["seen"], after["seen"], strict=True))


@pytest.mark.parametrize(("given", "is_fixed"), [("num_workers=0", False), ("num_workers=2", True)])
def test_a_loader_stays_as_the_one_beside_it_that_was_asked_for_no_workers(given: str, is_fixed: bool) -> None:
    more = f"checked = DataLoader(images, 64, {given})\nfor x, y in checked:\n    print(model(x.to(device)), y)\n"
    code = program("loader = DataLoader(images, 64)\n" + more)
    assert ("DataLoader(images, 64, num_workers=min(" in fixed(code, "DATA01")) is is_fixed


@pytest.mark.parametrize(("change", "count"), [("lambda x: x + 1", 0), ("abs", 1)])
def test_a_dataset_that_is_handed_in_may_hold_the_lambdas_of_the_file(change: str, count: int) -> None:
    code = f"""
        import torch
        from torch.utils.data import DataLoader
        from torchvision.datasets import ImageFolder

        transforms = [{change}]

        def train(model, images: ImageFolder):
            loader = DataLoader(images, 64)
            for x, y in loader:
                model(x.cuda()).sub(y.cuda()).abs().mean().backward()
        """
    assert [finding.fix is not None for finding in findings(code, "DATA01")].count(True) == count
