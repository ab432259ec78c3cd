"""An LSTM that embeds voices, trained with the generalised end-to-end loss."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import torch

from tests.evidence.driving import inside, load, stand_in
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    stand_in("librosa")
    voices = torch.randn(20, 5, 30, 10)
    settings = {
        "device": "cpu",
        "data": Namespace(data_preprocessed=True, nmels=10),
        "model": Namespace(hidden=16, num_layer=2, proj=8),
        "train": Namespace(
            N=4,
            M=5,
            num_workers=0,
            lr=0.01,
            epochs=4,
            log_interval=2,
            log_file=str(checkout / "log"),
            checkpoint_interval=2,
            checkpoint_dir=str(checkout / "checkpoints"),
            restore=False,
        ),
    }
    stand_in("hparam", hparam=Namespace(**settings))
    stand_in("data_load", SpeakerDatasetTIMITPreprocessed=lambda: voices, SpeakerDatasetTIMIT=None)
    module = load(checkout, "train_speech_embedder")
    with inside(checkout) as printed:
        module.train("")
    lines = [
        line.split("\t", 1)[1] for line in printed.getvalue().splitlines() if "\t" in line
    ]  # each begins with the time
    saved = sorted((checkout / "checkpoints").iterdir())
    return {"printed": lines, "saved": {path.name: torch.load(path, weights_only=True) for path in saved}}


PIECE = Piece(
    repository="HarryVolek/PyTorch_Speaker_Verification",
    commit="10e159a8d3255503c0184cde4eb7097968857a31",
    path="train_speech_embedder.py",
    what="`train` for four epochs on random spectrograms, on the CPU",
    run=run,
)
