"""Programs that are awkward to observe, each run once under the probe."""

from __future__ import annotations

import ast
import sys
from functools import partial
from pathlib import Path

import pytest
from torchlint.runtime_check.launch import BOOT, End
from torchlint.runtime_check.overlay import SMALL

from tests.runtime_check.programs import launch

pytestmark = pytest.mark.usefixtures("forked")

observe = partial(launch, steps=6, warmup=1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.mark.parametrize("file", sorted(BOOT.rglob("*.py")), ids=lambda file: file.name)
def test_the_guest_speaks_old_python_and_brings_nothing(file: Path) -> None:
    """It runs in the user's interpreter, which may be older than ours and has torch but not torchlint."""
    tree = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0}
    allowed = {*sys.stdlib_module_names, "torch", "torchlint_probe"}
    assert {name.partition(".")[0] for name in imported} <= allowed


def test_a_module_with_workers_and_data_beside_it(root: Path) -> None:
    (root / "data.txt").write_text("0.5")
    code = """
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Data(Dataset):
            def __len__(self): return 64
            def __getitem__(self, index):
                start = float(open("data.txt").read())
                return torch.full((2,), start + index * torch.rand(()).item() * 0)

        if __name__ == "__main__":
            model = torch.nn.Linear(2, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            for x in DataLoader(Data(), batch_size=4, num_workers=2):
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
    """
    outcome = observe(root, code, "-m", "package.train", name="package/train.py")
    assert outcome.end is End.DONE, outcome.log
    assert outcome.run is not None
    assert (outcome.run.boundary, len(outcome.run.steps), outcome.run.why) == ("optimizer", 6, "stop")
    assert outcome.run.helpers == 2
    assert outcome.run.mean("reads", 1) == 0.0
    assert "package/train.py" in outcome.run.loaded


def test_training_in_a_spawned_process(root: Path) -> None:
    code = """
        import torch
        import torch.multiprocessing

        def train(rank):
            weight = torch.nn.Parameter(torch.ones(3))
            optimizer = torch.optim.SGD([weight], lr=0.1)
            while True:
                weight.square().sum().backward()
                optimizer.step()

        if __name__ == "__main__":
            torch.multiprocessing.spawn(train)
    """
    outcome = observe(root, code)
    assert outcome.end is End.DONE, outcome.log
    assert outcome.run is not None
    assert (outcome.run.boundary, len(outcome.run.steps), len(outcome.run.losses)) == ("optimizer", 6, 6)


def test_a_program_that_swallows_the_exit_and_saves_over_its_data(root: Path) -> None:
    """Two optimizers, of which the first sets the step; torch.save writes through native code."""
    big = b"x" * (SMALL + 1)
    (root / "model.pt").write_bytes(big)
    code = """
        import torch
        one, two = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
        first, second = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (one, two))
        while True:
            try:
                for _ in range(2):
                    second.zero_grad()
                    two(torch.ones(2)).sum().backward()
                    if "stepped" in globals():
                        second.step()
                first.zero_grad()
                one(torch.ones(2)).sum().backward()
                stepped = True
                torch.save(one.state_dict(), "model.pt")
                first.step()
            except:
                pass
    """
    outcome = observe(root, code)
    assert outcome.end is End.DONE, outcome.log
    assert outcome.run is not None
    assert len(outcome.run.steps) == 6
    assert len(outcome.run.losses) == 18
    assert len(outcome.run.parameters) == 4
    assert (root / "model.pt").read_bytes() == big


def test_fewer_steps_than_asked_for_are_what_there_is(root: Path) -> None:
    code = """
        import torch
        def main():
            weight = torch.nn.Parameter(torch.ones(3))
            optimizer = torch.optim.SGD([weight], lr=0.1)
            for _ in range(4):
                weight.square().sum().backward()
                optimizer.step()
            print("done")
        main()
    """
    outcome = observe(root, code)
    assert outcome.run is not None
    assert (outcome.run.why, len(outcome.run.steps), outcome.run.printed) == ("exit", 4, "done\n")
    assert [step for step, _ in outcome.run.losses] == [1, 2, 3, 4]
    assert len(outcome.run.parameters) == 1
    assert outcome.run.growth("graph_nodes", 1) == 0.0


def test_reads_are_counted_where_the_program_makes_them(root: Path) -> None:
    """Not those of the optimizer, of the sampler or of the dataset, whose tensors stay on the host."""
    code = """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        x = torch.arange(24.0)
        weight = torch.nn.Parameter(torch.ones(1))
        optimizer = torch.optim.Adam([weight], lr=0.1, foreach=False)
        for (batch,) in DataLoader(TensorDataset(x), batch_size=4, shuffle=True):
            loss = (weight * batch).sum()
            if loss > 0:
                float(loss)
            rows = batch[batch > 1e9]
            batch.cpu()
            loss.backward()
            optimizer.step()
    """
    outcome = observe(root, code, steps=5)
    assert outcome.run is not None, outcome.log
    assert outcome.run.read_lines == {f"train.py:{line}": 4 for line in (9, 10, 11, 12)}
    assert outcome.run.mean("reads", 1) == 4.0
