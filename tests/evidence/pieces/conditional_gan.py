"""A GAN of digits that is told which digit to draw."""

from __future__ import annotations

from pathlib import Path

from tests.evidence.driving import Pictures, run_script, stand_in, torchvision, without_times
from tests.evidence.piece import Piece, Values


class Digits(Pictures):
    """Small enough for a few steps."""

    shape = (1, 32, 32)
    counts = (40, 20)


def run(checkout: Path) -> Values:
    torchvision(MNIST=Digits)
    drawn = []
    stand_in("torchvision.utils", save_image=lambda pictures, path, **options: drawn.append(pictures.clone()))
    options = "--save drawn --epoch 2 --batch_size 8 --ngf 4 --ndf 4".split()
    variables, printed = run_script(checkout / PIECE.path, *options)
    return {"printed": without_times(printed), "drawn": drawn, **{name: variables[name] for name in ("gen", "dis")}}


PIECE = Piece(
    repository="SeungminHwang/CS492-MLCV",
    commit="ff7a655c7fcefb85fad34b52abdc23d7b4c445c5",
    path="coursework2/src/CGAN/train.py",
    what="the script with two epochs on random pictures and few channels",
    run=run,
    lint="coursework2/src/CGAN",
)
