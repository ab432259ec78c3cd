"""The examples are real training scripts: each runs on the CPU, learns, and prints the same figures twice."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.forked.process import Forks

Run = Callable[..., str]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHORT_RUN = {
    "image_classifier.py": ("--epochs", "1", "--samples", "256"),
    "mimo_channel.py": ("--steps", "100", "--batch", "4"),
    "gan.py": ("--steps", "250", "--batch", "64"),
}


@pytest.fixture
def run(forks: Forks) -> Run:
    def run(script: str, *options: str) -> str:
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        return forks.run([sys.executable, "-W", "error", str(EXAMPLES / script), *options], environment)

    return run


def test_every_example_has_a_short_run() -> None:
    scripts = [path for path in EXAMPLES.glob("*.py") if "__main__" in path.read_text(encoding="utf-8")]
    assert {path.name for path in scripts} == set(SHORT_RUN)


@pytest.mark.parametrize("script", SHORT_RUN)
def test_two_runs_print_the_same_figures(run: Run, script: str) -> None:
    first, second = (run(script, *SHORT_RUN[script]) for _ in range(2))
    assert re.search(r"\d\.\d", first)
    assert first == second


@pytest.mark.parametrize("script", SHORT_RUN)
def test_every_example_explains_its_options(run: Run, script: str) -> None:
    assert "--seed" in run(script, "--help")
