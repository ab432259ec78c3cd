"""SYNC01: what a helper goes back through is one real number, and can be added up on the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.sync.programs import TORCH_ONLY
from tests.support import fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

HELPER = """def optimize(optimizer, loss, retain_graph=False):
    optimizer.zero_grad()
    loss.backward(retain_graph=retain_graph)
    optimizer.step()


"""
TRAINING = """def train(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        loss = model.loss(x.to(device), y.to(device))
        optimize(optimizer, loss)
        total += loss.item()
    return total
"""


@pytest.mark.parametrize(
    ("old", "new", "is_fixed"),
    [
        ("", "", True),
        ("optimize(optimizer, loss)\n", "optimize(loss=loss, optimizer=optimizer)\n", True),
        ("    loss.backward(", "    if retain_graph:\n        loss.backward(", False),
        ("loss.backward(", "loss.backward(loss, ", False),
        ("    optimizer.zero_grad()", "    loss = loss.mean()\n    optimizer.zero_grad()", False),
        ("total = 0.0", "total = 0.0\n    scaler = torch.amp.GradScaler()", True),
    ],
)
def test_what_a_helper_goes_back_through_is_one_number(old: str, new: str, is_fixed: bool) -> None:
    code = TORCH_ONLY.lstrip() + HELPER + TRAINING
    assert ("loss.detach().double()" in fixed(code.replace(old, new, 1), "SYNC01")) is is_fixed


def test_what_a_scaler_scales_is_one_number() -> None:
    code = TORCH_ONLY.lstrip() + TRAINING.replace(
        "optimize(optimizer, loss)", "scaler.scale(loss).backward()\n        scaler.step(optimizer)"
    ).replace("total = 0.0", "total = 0.0\n    scaler = torch.amp.GradScaler('cuda')")
    assert "loss.detach().double()" in fixed(code, "SYNC01")


def test_a_helper_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(HELPER)
    path = tmp_path / "train.py"
    path.write_text(TORCH_ONLY.lstrip() + "from helpers import optimize\n\n\n" + TRAINING)
    [finding] = lint(Source.read(path), Settings.selecting("SYNC01"), project=Project())
    assert finding.fix is not None
    assert "loss.detach().double()" in {edit.text for edit in finding.fix.edits}
