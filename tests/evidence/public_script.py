"""The scripts that `public_scripts.py` runs, how each is started, and the synthetic data that it finds."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

Data = Callable[[Path], None]


def no_data(checkout: Path) -> None:
    """For scripts that make their own."""


@dataclass(frozen=True)
class Script:
    """`command` is run in `folder` of the checkout; as a module, the script can import what lies in that folder."""

    name: str
    repository: str
    commit: str
    path: str
    arguments: tuple[str, ...] = ()
    data: Data = field(default=no_data)
    folder: str = "."
    steps: int = 30
    as_module: bool = False

    @property
    def checkout(self) -> str:
        return self.repository.replace("/", "__")

    @property
    def command(self) -> tuple[str, ...]:
        script = Path(self.path).relative_to(self.folder)
        program = ("-m", ".".join(script.with_suffix("").parts)) if self.as_module else (str(script),)
        return ("python", *program, *self.arguments)


def results(checkout: Path) -> None:
    """The folder for pictures, which git keeps for the file in it that it ignores."""
    (checkout / "vae" / "results").mkdir(exist_ok=True)


def texts(checkout: Path) -> None:
    """Three texts of words drawn at random, as word_language_model reads them."""
    draw = random.Random(0)
    folder = checkout / "word_language_model" / "texts"
    folder.mkdir()
    words = ("a", "of", "the", "net", "loss", "step", "graph", "tensor", "row", "batch")
    for part, count in (("train", 120), ("valid", 20), ("test", 20)):
        lines = (" ".join(draw.choices(words, k=12)) for _ in range(count))
        (folder / f"{part}.txt").write_text("\n".join(lines))


def characters(checkout: Path) -> None:
    """Tokens of 65 characters drawn at random, where nanoGPT looks for those of Shakespeare."""
    draw = np.random.default_rng(0)
    folder = checkout / "data" / "shakespeare_char"
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "val"):
        draw.integers(65, size=4000, dtype=np.uint16).tofile(folder / f"{part}.bin")
    (folder / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 65}))


def citations(checkout: Path) -> None:
    """A random graph of papers with seven topics, in the two files of the Cora data set."""
    draw = random.Random(0)
    folder = checkout / "data" / "cora"
    folder.mkdir(parents=True, exist_ok=True)
    papers = range(1500)
    content = (f"{paper} {' '.join(draw.choices('01', k=16))} topic{paper % 7}" for paper in papers)
    (folder / "cora.content").write_text("\n".join(content))
    cites = (f"{paper} {draw.choice(papers)}" for paper in papers for _ in range(2))
    (folder / "cora.cites").write_text("\n".join(cites))


EXAMPLES = ("pytorch/examples", "77f55b912142e11fcfdf5b530231fb9c52f181e8")
TUTORIAL = ("MorvanZhou/PyTorch-Tutorial", "dbe154a9e56635e51c6b0c2ccea8ae36cfb585a7")
NLP = ("graykode/nlp-tutorial", "d05e31ec81d56d70c1db89b99ab07e948f7ebc11")

SCRIPTS = (
    Script("mnist", *EXAMPLES, "mnist/main.py", ("--epochs", "2", "--test-batch-size", "40"), folder="mnist"),
    Script("vae", *EXAMPLES, "vae/main.py", ("--epochs", "2"), results, folder="vae"),
    Script(
        "word language model",
        *EXAMPLES,
        "word_language_model/main.py",
        tuple("--data texts --emsize 32 --nhid 32 --epochs 2 --bptt 12 --batch_size 8 --log-interval 5".split()),
        texts,
        "word_language_model",
    ),
    Script("painting GAN", *TUTORIAL, "tutorial-contents/406_GAN.py"),
    Script("batch normalisation", *TUTORIAL, "tutorial-contents/504_batch_normalization.py"),
    Script("dropout", *TUTORIAL, "tutorial-contents/503_dropout.py"),
    Script("translation with attention", *NLP, "4-2.Seq2Seq(Attention)/Seq2Seq(Attention).py"),
    Script("transformer", *NLP, "5-1.Transformer/Transformer.py"),
    Script("BERT", *NLP, "5-2.BERT/BERT.py"),
    Script(
        "graph attention",
        "Diego999/pyGAT",
        "3664f2dc90cbf971564c0bf186dc794f12446d0c",
        "train.py",
        ("--epochs", "12", "--nb_heads", "2"),
        citations,
        steps=10,
    ),
    Script(
        "latent ODE",
        "rtqichen/torchdiffeq",
        "657943acefa826ef04c025ebeb1ff5e9d60dc268",
        "examples/latent_ode.py",
        ("--niters", "12"),
        steps=10,
        as_module=True,
    ),
    Script(
        "nanoGPT",
        "karpathy/nanoGPT",
        "3adf61e154c3fe3fca428ad6bc3818b27a3b8291",
        "train.py",
        tuple(
            "config/train_shakespeare_char.py --device=cpu --compile=False --eval_interval=20 --eval_iters=4 "
            "--log_interval=1 --block_size=32 --batch_size=4 --n_layer=2 --n_head=2 --n_embd=32 --max_iters=40".split()
        ),
        characters,
    ),
    Script(
        "PPO",
        "vwxyzjn/cleanrl",
        "fe8d8a03c41a7ef5b523e2e354bd01c363e786bb",
        "cleanrl/ppo.py",
        ("--no-cuda", "--total-timesteps", "2048"),
    ),
)
