"""The arguments of a call that come through a dict."""

from __future__ import annotations

import pytest

from tests.semantics.programs import model_of


def test_arguments_behind_a_dict_in_sight_are_found() -> None:
    model = model_of(
        """
        from torch.utils.data import DataLoader
        kwargs = {"num_workers": 4} if cuda else {}
        kwargs.update(pin_memory=True)
        kwargs["batch_size"] = 8
        loader = DataLoader(ds, **kwargs)
        """
    )
    call = model.calls_to("torch.utils.data.DataLoader")[0]
    states = {name: call.argument(name).state.value for name in ("num_workers", "pin_memory", "batch_size", "sampler")}
    assert states == {"num_workers": "given", "pin_memory": "given", "batch_size": "given", "sampler": "absent"}


@pytest.mark.parametrize(
    "prelude",
    [
        "def make(kwargs):",
        "def make(cfg):\n    kwargs = vars(cfg)",
        "def make():\n    kwargs = {'a': 1}\n    fill(kwargs)",
        "def make(k):\n    kwargs = {}\n    kwargs[k] = 1",
    ],
    ids=["parameter", "foreign call", "handed to a function that may write to it", "unknown key"],
)
def test_arguments_behind_a_dict_out_of_sight_are_hidden(prelude: str) -> None:
    model = model_of(f"from torch.utils.data import DataLoader\n{prelude}\n    return DataLoader(ds, **kwargs)\n")
    assert model.calls_to("torch.utils.data.DataLoader")[0].argument("pin_memory").hidden
