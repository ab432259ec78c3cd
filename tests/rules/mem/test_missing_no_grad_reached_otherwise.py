"""MEM05: functions that training in another file reaches by a name that their own file does not give them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

LOSSES = """
    import torch.nn.functional as F

    def evaluate(net, batches):
        net.eval()
        total = 0
        for images, labels in batches:
            total += F.cross_entropy(net(images), labels)
        return total
    """
OWN_DICT = """
    CHOICES = {"all": evaluate}
    """
TRAINER = """
    import torch
    {imported}

    def train(net, batches, kind):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(10):
            optimizer.zero_grad()
            loss = {called}(net, batches)
            {used}
            optimizer.step()
    """
WAYS = {
    "as it is": ("", "from lib.losses import evaluate", "evaluate"),
    "another name": ("", "from lib.losses import evaluate as objective", "objective"),
    "another name in its package": (
        "from .losses import evaluate as objective",
        "from lib import objective",
        "objective",
    ),
    "another name of its module": ("from . import losses as objectives", "import lib", "lib.objectives.evaluate"),
    "all of a package": ("from .losses import evaluate", "import lib as parts", "parts.evaluate"),
    "a package that takes all": ("from .losses import *", "import lib as parts", "parts.evaluate"),
}
OUT_OF_SIGHT = {
    "a dict of its package": (
        "from .losses import evaluate\nALL = {'a': evaluate}",
        "from lib import ALL",
        "ALL[kind]",
    ),
    "a dict of the trainer": ("", "from lib.losses import evaluate\nALL = {'a': evaluate}", "ALL[kind]"),
    "a dict of its own": ("", "from lib.losses import CHOICES", "CHOICES[kind]"),
    "a variable": ("from . import losses\nobjective = losses.evaluate", "import lib", "lib.objective"),
    "what is named there": ("", "import lib.losses as losses", "getattr(losses, kind)"),
}


def found_in_losses(folder: Path, way: tuple[str, str, str], used: str) -> int:
    package, imported, called = way
    (folder / "pyproject.toml").touch()
    (folder / "lib").mkdir()
    (folder / "lib" / "__init__.py").write_text(package)
    losses = folder / "lib" / "losses.py"
    losses.write_text(dedent(LOSSES) + (dedent(OWN_DICT) if "CHOICES" in imported else ""))
    trainer = dedent(TRAINER).replace("{used}", used).replace("{called}", called)
    (folder / "train.py").write_text(trainer.replace("{imported}", imported))
    return len(lint(Source.read(losses), Settings.selecting("MEM05"), strict=True, project=Project()))


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(("used", "count"), [("loss.backward()", 0), ("print(loss.item())", 1)])
def test_a_name_that_others_hand_on(tmp_path: Path, name: str, used: str, count: int) -> None:
    assert found_in_losses(tmp_path, WAYS[name], used) == count


@pytest.mark.parametrize("name", OUT_OF_SIGHT)
@pytest.mark.parametrize(("used", "count"), [("loss.backward()", 0), ("print(loss.item())", 1)])
def test_a_function_that_is_handed_around(tmp_path: Path, name: str, used: str, count: int) -> None:
    assert found_in_losses(tmp_path, OUT_OF_SIGHT[name], used) == count
