"""Loops over the entries of a dict, in functions that are called in each step."""

from __future__ import annotations

import pytest

from tests.support import findings

HOOK = """
    import pytorch_lightning as pl
    import torch

    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(4, 2)

        def losses(self, batch):
            x, y = batch
            out = self.net(x)
            loss = torch.nn.functional.cross_entropy(out, y)
            return {{"loss": loss, "accuracy": (out.argmax(1) == y).float().mean()}}

        def {name}(self, batch, index=0):
            losses = self.losses(batch)
            for name, value in losses.items():
                {line}
            return losses["loss"]
"""


@pytest.mark.parametrize(
    ("name", "line", "lines"),
    [
        ("training_step", "self.log('train ' + name, value.item())", [18]),
        ("validation_step", "if value is not None: self.log(name, value.item(), on_epoch=True)", [18]),
        ("training_step", "self.log('train ' + name, value)", []),
        ("training_step", "if index % 100 == 0: print(name, value.item())", []),
        ("summary", "self.log('train ' + name, value.item())", []),
    ],
)
def test_the_entries_of_what_a_hook_has_computed(name: str, line: str, lines: list[int]) -> None:
    assert [finding.line for finding in findings(HOOK.format(name=name, line=line), "SYNC01")] == lines
