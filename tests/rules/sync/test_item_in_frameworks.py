"""SYNC01 where a framework runs the steps, or keeps the metrics."""

from __future__ import annotations

import pytest

from tests.support import findings


def test_lightning_hooks_run_once_per_step() -> None:
    code = """
        import pytorch_lightning as L

        class Net(L.LightningModule):
            def training_step(self, batch, index):
                losses = self.compute(self.model(batch))
                self.log_dict({name: value.item() for name, value in losses.items()})
                return losses["loss"]
    """
    assert [finding.line for finding in findings(code, "SYNC01")] == [6]


@pytest.mark.parametrize(
    ("hook", "returned", "count"),
    [
        ("training_step", '{"loss": loss, "log": {"error": loss.item()}}', 1),
        ("validation_step", '{"error": loss.item()}', 1),
        ("validation_step", '{"error": loss}', 0),
        ("validation_step", "loss.item()", 1),
        ("validation_step", "(loss.item(), x)", 1),
        ("predict_step", "loss.item()", 0),
        ("training_step", "loss.item()", 0),  # Lightning goes back from what it returns
        ("predict_step", '{"error": loss.item()}', 0),  # what the program is run for
    ],
)
def test_numbers_that_a_hook_of_lightning_returns_beside_a_loss_are_for_the_log(
    hook: str, returned: str, count: int
) -> None:
    code = f"""
        import pytorch_lightning as L

        class Net(L.LightningModule):
            def {hook}(self, batch, index):
                x, y = batch
                loss = (self.model(x) - y).abs().mean()
                return {returned}
    """
    assert len(findings(code, "SYNC01")) == count


@pytest.mark.parametrize(
    ("returned", "count"),
    [("loss.item()", 1), ("loss.detach()", 0), ("make_tensor(loss.item()).cuda()", 0)],
)
def test_the_output_of_an_ignite_engine_is_for_its_metrics(returned: str, count: int) -> None:
    code = f"""
        import torch
        from ignite.engine import Engine

        def build(model, optimizer, criterion):
            def update(engine, batch):
                x, y = (part.cuda() for part in batch)
                optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
                return {returned}

            return Engine(update)
    """
    assert len(findings(code, "SYNC01")) == count


METRIC = """
import torch
from {package} import {base}


class Error({base}):
    def reset(self):
        self.seen = []

    def update(self, output):
        guess, truth = output
        self.seen.append((guess - truth).abs().sum().item())

    def other(self, output):
        self.seen.append(output[0].sum().item())

model = torch.nn.Linear(2, 2).cuda()
"""


@pytest.mark.parametrize(
    ("package", "base", "lines"),
    [
        ("ignite.metrics", "Metric", [11]),
        ("ignite.metrics.metric", "Metric", [11]),
        ("torchmetrics", "Metric", [11]),
        ("metrics", "Metric", []),
        ("ignite.engine", "Engine", []),
    ],
)
def test_a_metric_of_a_framework_is_updated_with_every_batch(package: str, base: str, lines: list[int]) -> None:
    found = findings(METRIC.format(package=package, base=base), "SYNC01")
    assert [finding.line for finding in found] == lines


GENERATED = """
import torch
from torchmetrics import Metric

class Kinds(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("counts", default=torch.zeros(9))

    def update(self, generated):
        {each}
            for kind in kinds:
                self.counts[int(kind)] += 1
"""


@pytest.mark.parametrize(
    ("each", "count"),
    [("for kinds, _ in generated:", 0), ("for row in range(9):\n            kinds = generated[row]", 1)],
)
def test_what_a_metric_walks_over_may_be_a_list_of_results_on_the_host(each: str, count: int) -> None:
    assert len(findings(GENERATED.format(each=each), "SYNC07")) == count
