"""`torchlint bench` as a user types it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.test_check import call
from torchlint.cli import command_names

ROOT = Path(__file__).resolve().parents[2]
TRAINING = f"{ROOT / 'examples' / 'bench.py'}:training"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "layers.py").write_text("from torch import nn\n\ndef layer(): return nn.Linear(4, 2)\n")


LAYER = ("layers.py:layer", "--input", "N,4", "--batch-size", "8", "--device", "cpu")
TOOLS = {
    "activations": LAYER,
    "amp": (*LAYER, "--steps", "2", "--blocks", "1", "--block-steps", "1", "--precisions", "bf16"),
    "batch-size": (*LAYER[:3], "--device", "cpu", "--memory", "1", "--largest", "4"),
    "environment": (),
    "loader": (TRAINING, "--batch-size", "8", "--device", "cpu", "--workers", "0", "--batches", "3"),
    "memory": LAYER,
    "rules": ("TRAIN01",),
    "transfer": ("--device", "cpu", "--sizes", "1,2", "--repeats", "1", "--plot", "curves.svg"),
}
SAYS = {
    "activations": "The forward pass keeps",
    "amp": "2 training steps on cpu",
    "batch-size": "4, the largest size tried, still fits into 1.00 MB.",
    "environment": "threads in an operator: ",
    "loader": "Best here: num_workers=0",
    "memory": "Budget for Adam: parameters 0.00 + gradients",
    "rules": "no program for TRAIN01",
    "transfer": "There is no GPU in this: data were copied within the host's memory.",
}


def test_every_tool_is_tried_here() -> None:
    assert set(command_names("torchlint.cli.bench")) == set(TOOLS) == set(SAYS)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_says_what_it_found(tool: str) -> None:
    done = call("bench", tool, *TOOLS[tool], "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")
    assert SAYS[tool] in done.stdout


def test_codes_of_rules_are_short_for_the_tool_that_takes_them() -> None:
    assert call("bench", "TRAIN01,TRAIN04", "--quiet").stdout == "no program for TRAIN01, TRAIN04\n"


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_as_json(tool: str) -> None:
    done = call("bench", tool, *TOOLS[tool], "--quiet", "--output-format", "json")
    found = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (found["schema"], found["tool"]) == ("torchlint.bench/1", tool)
    assert found["result"]
    if tool == "transfer":
        assert Path("curves.svg").read_text().startswith("<svg ")


WRONG = {
    "no such callable": (("memory", "layers.py:leyer"), "layers.py has no `leyer`; did you mean `layer`?"),
    "no data": (("activations", "layers.py:layer"), "gives a model without data"),
    "no such device": (("memory", *LAYER[:-1], "tpu"), "there is no device `tpu`"),
    "inputs that do not fit": (("activations", "layers.py:layer", "--input", "N,5"), "the forward pass fails"),
    "no batch size": (("batch-size", "layers.py:layer"), "takes no `batch_size`, which the search varies"),
    "no loader": (("loader", *LAYER), "gives no DataLoader"),
    "no such precision": (("amp", *LAYER, "--precisions", "fp4"), "there is no precision fp4"),
    "no such optimizer": (("memory", *LAYER, "--optimizer", "Adm"), "torch.optim has no Adm"),
    "no numbers": (("transfer", "--sizes", "big"), "big is no list of whole numbers"),
    "no such tool": (("ampp",), "no command `ampp`; did you mean `amp`?"),
    "no such rule": (("rules", "VEC99"), "no rule `VEC99`"),
    "no size": (("transfer", "--sizes", "0"), "--sizes needs at least one size, and no zero"),
    "no folder for the plot": (
        ("transfer", "--device", "cpu", "--sizes", "1", "--plot", "gone/a.svg"),
        "no plot in gone/a.svg",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_goes_wrong_is_said_in_a_sentence(case: str) -> None:
    words, message = WRONG[case]
    done = call("bench", *words)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize("tool", TOOLS)
def test_without_torch_a_sentence_says_how_to_install_it(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    done = call("bench", tool, *TOOLS[tool])
    assert done.exit_code == 2
    assert "python -m pip install 'torchlint[runtime]'" in done.stderr
