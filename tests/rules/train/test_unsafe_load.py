"""TRAIN11: what is put in the place of `torch.load`, and what only looks like it."""

from __future__ import annotations

import pytest

from tests.support import findings, fixed

LOAD = "import torch\n\nstate = torch.load('model.pt')\n"


def test_a_load_is_found() -> None:
    assert [finding.line for finding in findings(LOAD, "TRAIN11")] == [3]


@pytest.mark.parametrize(("line", "expected"), [("torch.load = restricted", []), ("args.load = ''", [3])])
def test_only_another_torch_load_makes_it_safe(line: str, expected: list[int]) -> None:
    code = f"{LOAD}\ndef prepare(args, restricted):\n    {line}\n"
    assert [finding.line for finding in findings(code, "TRAIN11")] == expected


NET = "import torch\n\nnet = torch.nn.Linear(2, 2)\n\n"
WEIGHTS = NET + "state = torch.load('a.pt')\nnet.load_state_dict(state['state_dict'])\n"


@pytest.mark.parametrize(
    "use",
    [
        "net = state['arch']\nnet.load_state_dict(state['state_dict'])\n",
        "net.load_state_dict(state['model'].float().state_dict())\n",
        "other = state['net']\nnet.load_state_dict(state['state_dict'])\nprint(other(torch.ones(1, 2)))\n",
    ],
)
def test_a_checkpoint_with_a_network_in_it_is_no_dict_of_tensors(use: str) -> None:
    code = NET + "state = torch.load('a.pt')\n" + use
    assert "whole pickled module" in findings(code, "TRAIN11")[0].message
    assert fixed(code, "TRAIN11") == code


def test_where_one_load_of_a_file_gets_a_network_no_other_is_restricted() -> None:
    whole = "\ndef restored():\n    return torch.load('b.pt')['model'].eval()\n"
    assert fixed(WEIGHTS, "TRAIN11") == WEIGHTS.replace("a.pt')", "a.pt', weights_only=True)")
    assert fixed(WEIGHTS + whole, "TRAIN11") == WEIGHTS + whole


def test_weights_whose_names_are_cut_are_weights() -> None:
    code = (
        NET
        + "state = torch.load('a.pt')\nstate = {k[7:]: state[k] for k in state.keys()}\nnet.load_state_dict(state)\n"
    )
    assert "weights_only=True" in fixed(code, "TRAIN11")


@pytest.mark.parametrize(
    ("condition", "lines"),
    [
        pytest.param('hasattr(args.training, "pretrained")', [5], id="a setting of the project"),
        pytest.param('hasattr(args, "pretrained")', [5], id="an argument"),
        pytest.param('hasattr(torch.serialization, "safe_globals")', [], id="a later addition to torch"),
        pytest.param('not hasattr(torch, "compile")', [], id="an earlier release"),
    ],
)
def test_only_what_torch_has_tells_releases_apart(condition: str, lines: list[int]) -> None:
    code = f"""
        import torch

        def restore(model, args):
            if {condition}:
                model.load_state_dict(torch.load(args.path)["state_dict"])
    """
    assert [finding.line for finding in findings(code, "TRAIN11")] == lines
