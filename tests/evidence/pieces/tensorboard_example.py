"""A small network, with what it writes to TensorBoard."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import MagicMock

from tests.evidence.driving import Pictures, run_script, stand_in, torchvision
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    written: dict[str, object] = {}
    writer = MagicMock()
    writer.add_scalar = lambda name, value, global_step: written.update({f"{name} {global_step}": value})
    writer.add_hparams = lambda settings, results: written.update(results)
    torchvision(MNIST=Pictures)
    stand_in("torch.utils.tensorboard", SummaryWriter=lambda folder: writer)
    variables, _ = run_script(checkout / PIECE.path, replace={"batch_sizes = [256]": "batch_sizes = [32]"})
    return {"model": variables["model"], "losses": variables["losses"], "written": written}


PIECE = Piece(
    repository="AladdinPerzon/Machine-Learning-Collection",
    commit="fa6ab9161ef62dfef90d2ae48c20b2af1255744a",
    path="ML/Pytorch/Basics/pytorch_tensorboard_.py",
    what="the script with batches of 32 random pictures",
    run=run,
    lint="ML/Pytorch/Basics/pytorch_tensorboard_.py",
)
