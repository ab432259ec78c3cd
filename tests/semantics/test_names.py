"""The qualified names of what a file imports."""

from __future__ import annotations

import pytest

from tests.semantics.programs import binding_of, model_of


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("import torch.nn as nn\nthing = nn.DataParallel", "torch.nn.DataParallel"),
        ("from torch.nn.parallel import DataParallel as DP\nthing = DP", "torch.nn.DataParallel"),
        ("import torch as t\nthing = t.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("from torch.utils.data import *\nthing = DataLoader", "torch.utils.data.DataLoader"),
        ("try:\n    from torch import vmap\nexcept ImportError:\n    vmap = None\nthing = vmap", "torch.vmap"),
        ("from here import DataLoader\nthing = DataLoader", "here.DataLoader"),
        ("try:\n    from a import f\nexcept ImportError:\n    from b import f\nthing = f", None),
        ("try:\n    from a import C\nexcept ImportError:\n    C = object\nthing = C", "a.C"),
        ("try:\n    from a import C\nexcept KeyError:\n    C = object\nthing = C", None),
        ("from a import C\nC = object\nthing = C", None),
        ("try:\n    from a import f\nexcept ImportError:\n    def f(): ...\nthing = f", None),
        ("try:\n    from torch import vmap\nexcept ImportError:\n    vmap = map\nthing = vmap", None),
    ],
)
def test_qualified_names(spelling: str, name: str | None) -> None:
    model = model_of(spelling)
    value = binding_of(model, "thing").writes[0].value
    assert model.qualified(value) == name
