"""Training frameworks: what they call, move, wrap and reset, and which findings are right inside of them."""

from __future__ import annotations

import pytest

from tests.semantics.programs import call_on, function_of, model_of, value_of
from tests.support import findings
from torchlint.analyses.loops.steps import step_of
from torchlint.semantics.entities import Role
from torchlint.semantics.values import Kind, Place

LIGHTNING = """
    import torch
    from torch import nn
    import lightning as L

    class Lit(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(2, 2)

        def training_step(self, batch, batch_idx):
            x, y = batch
            loss = nn.functional.mse_loss(self.net(x), y)
            self.log("loss", loss)
            print(loss.item())
            return loss

        def validation_step(self, batch, batch_idx):
            x, y = batch
            guess = self.net(x)
            self.log("accuracy", (guess.argmax(1) == y).float().mean())

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())
"""
ACCELERATE = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from accelerate import Accelerator

    def main():
        accelerator = Accelerator()
        net = nn.Linear(2, 2)
        opt = torch.optim.Adam(net.parameters())
        loader = DataLoader(dataset, shuffle=True, num_workers=4, pin_memory=True)
        net, opt, loader = accelerator.prepare(net, opt, loader)
        for epoch in range(3):
            for x, y in loader:
                with accelerator.accumulate(net):
                    loss = net(x).sum()
                    accelerator.backward(loss)
                    opt.step()
                    opt.zero_grad()
                print(loss.item())
"""
TRANSFORMERS = """
    import torch
    from transformers import Trainer

    class Mine(Trainer):
        def compute_loss(self, model, inputs, return_outputs=False):
            outputs = model(**inputs)
            loss = torch.nn.functional.cross_entropy(outputs.logits, inputs["labels"])
            print(loss.item())
            return loss

        def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
            out = model(**inputs)
            return out.loss, out.logits, None
"""
IGNITE = """
    import torch
    from torch import nn
    from ignite.engine import Engine

    net = nn.Linear(2, 2).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=1)

    def train(engine, batch):
        opt.zero_grad()
        loss = net(batch[0].cuda()).sum()
        loss.backward()
        opt.step()
        print(loss.item())
        return loss.detach()

    def validate(engine, batch):
        net.eval()
        return net(batch[0].cuda())

    Engine(train).run(loader, max_epochs=3)
    Engine(validate).run(loader)
"""
DEEPSPEED = """
    import deepspeed
    from torch import nn

    engine, optimizer, loader, _ = deepspeed.initialize(model=nn.Linear(2, 2), training_data=dataset)
    for x in loader:
        loss = engine(x.to(engine.device)).sum()
        engine.backward(loss)
        engine.step()
        print(loss.item())
"""
FABRIC = """
    import torch
    import lightning as L
    from torch import nn
    from torch.utils.data import DataLoader

    fabric = L.Fabric()
    net = nn.Linear(2, 2)
    net, opt = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=1))
    train, test = fabric.setup_dataloaders(DataLoader(dataset), DataLoader(dataset))
    for x in train:
        opt.zero_grad()
        loss = net(x).sum()
        fabric.backward(loss)
        opt.step()
        print(loss.item())
"""
PROGRAMS = {
    "lightning": LIGHTNING,
    "accelerate": ACCELERATE,
    "transformers": TRANSFORMERS,
    "ignite": IGNITE,
    "deepspeed": DEEPSPEED,
    "fabric": FABRIC,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_read_in_every_training_step_is_found(program: str) -> None:
    assert [found.code for found in findings(program, "SYNC01")] == ["SYNC01"]


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_nothing_is_asked_for_that_the_framework_does(program: str) -> None:
    assert findings(program, "TRAIN01", "XFER02", "MEM05", "DIST02") == []


@pytest.mark.parametrize("program", [ACCELERATE, FABRIC], ids=["accelerate", "fabric"])
def test_gradients_that_the_framework_does_not_reset_are_found(program: str) -> None:
    code = "\n".join(line for line in program.splitlines() if "zero_grad" not in line)
    code = code.replace("with accelerator.accumulate(net):", "if True:")
    assert [found.code for found in findings(code, "TRAIN01")] == ["TRAIN01"]


@pytest.mark.parametrize(
    ("program", "function", "role"),
    [
        (LIGHTNING, "Lit.training_step", Role.STEPS),
        (LIGHTNING, "Lit.validation_step", Role.EVALUATION),
        (TRANSFORMERS, "Mine.compute_loss", Role.STEPS),
        (TRANSFORMERS, "Mine.prediction_step", Role.EVALUATION),
        (IGNITE, "train", Role.STEPS),
        (IGNITE, "validate", Role.EVALUATION),
    ],
)
def test_a_hook_is_called_once_for_every_batch(program: str, function: str, role: Role) -> None:
    model = model_of(program)
    step = step_of(model, function_of(model, function).node.body)
    assert step is not None
    assert step.role is role


def test_a_method_of_another_class_with_the_name_of_a_hook_is_none() -> None:
    model = model_of("import torch\nclass Runner:\n    def training_step(self, batch):\n        return batch.item()\n")
    assert function_of(model, "Runner.training_step").hook is None


def test_lightning_hands_batches_over_on_the_device() -> None:
    loss = value_of(model_of(LIGHTNING), "loss", "Lit.training_step")
    assert (loss.carries, loss.place) == (True, Place.ACCELERATOR)


def test_accelerate_hands_back_what_it_prepares() -> None:
    model = model_of(ACCELERATE)
    assert value_of(model, "net", "main").ref == "torch.nn.Linear"
    assert value_of(model, "opt", "main").kind is Kind.OPTIMIZER
    assert value_of(model, "loader", "main").kind is Kind.LOADER
    assert value_of(model, "x", "main").place is Place.ACCELERATOR


def test_fabric_hands_back_what_it_sets_up() -> None:
    model = model_of(FABRIC)
    assert (value_of(model, "net").kind, value_of(model, "opt").kind) == (Kind.MODULE, Kind.OPTIMIZER)
    assert value_of(model, "x").place is Place.ACCELERATOR
    assert "fabric" in model.frameworks


def test_an_engine_of_deepspeed_steps_and_leaves_no_gradients() -> None:
    model = model_of(DEEPSPEED)
    step = call_on(model, "engine.step()")
    assert step.is_optimizer_step
    assert step.is_zero_grad
    assert value_of(model, "loss").carries
    assert model.loops[0].role is Role.STEPS


@pytest.mark.parametrize("annotation", ["", ": Accelerator"])
def test_what_runs_backward_on_a_loss_is_no_loss(annotation: str) -> None:
    model = model_of(
        f"""
        from accelerate import Accelerator
        def step(accelerator{annotation}, net, x):
            loss = net(x).sum()
            accelerator.backward(loss)
        """
    )
    assert function_of(model, "step").parameter("accelerator").kind is not Kind.TENSOR
    assert call_on(model, "accelerator.backward(loss)").is_backward


FORMULA = """
    import torch
    from torch import nn

    net = nn.Linear(2, 2)

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = net(x)
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, given):
            out, = ctx.saved_tensors
            scaled = given.exp()
            return scaled * out
"""


def test_autograd_records_nothing_in_the_formula_of_a_function() -> None:
    model = model_of(FORMULA)
    assert model.grad_enabled(call_on(model, "net(x)").node) is False
    assert model.grad_enabled(call_on(model, "given.exp()").node) is None
    assert value_of(model, "given", "Own.backward").kind is Kind.TENSOR
    assert value_of(model, "out", "Own.backward").kind is Kind.TENSOR


EVALUATED = """
    import torch
    from pytorch_lightning import {base}

    class Net({base}):
        def training_step(self, batch, index):
            return self.shared(batch)

        def {hook}(self, batch, index):
            return self.prototypes(batch), self.shared(batch)

        def prototypes(self, batch):
            return self.net(batch)

        def shared(self, batch):
            return self.net(batch).mean()
"""


@pytest.mark.parametrize(
    ("base", "hook", "enabled"),
    [
        ("LightningModule", "test_step", False),
        ("LightningModule", "on_validation_epoch_end", False),
        ("LightningModule", "predict_step", False),
        ("LightningModule", "on_train_epoch_end", True),
        ("Trainer", "test_step", True),
    ],
)
def test_lightning_evaluates_with_autograd_off(base: str, hook: str, enabled: bool) -> None:
    model = model_of(EVALUATED.format(base=base, hook=hook))
    inner = {name: function_of(model, f"Net.{name}").calls for name in ("prototypes", "shared")}
    assert model.grad_enabled(inner["prototypes"][0].node) is enabled
    assert model.grad_enabled(inner["shared"][0].node) is True
