"""A fix is only shown where a comment above the function or class says that it is copied."""

from __future__ import annotations

import pytest

from tests.support import findings, fixed
from torchlint.finding import Applicability

MADE = """\
import torch


{above}
class Rotary(torch.nn.Module):
    {inside}
    def forward(self, x):
        return torch.arange(0, 8, 2).to(x.device) + 1
"""


@pytest.mark.parametrize(
    ("above", "inside", "is_copy"),
    [
        ("# Copied from transformers.models.llama.modeling_llama.Rotary", "", True),
        ("# This code is taken from https://example.org/rotary.py", "", True),
        ("", "# Copied from other.Rotary.forward", True),
        ("# Copied from other.Rotary and modified", "", False),
        ("# Adapted from other.Rotary", "", False),
        ("# copy from https://example.org/rotary.py", "", True),
        ("# A copy of Rotary from other", "", True),
        ("# Copy the frequencies from the host to the device", "", False),
        ("# a copy of the input comes back", "", False),
        ("", "", False),
    ],
)
def test_what_says_where_it_is_copied_from_stays_a_copy(above: str, inside: str, is_copy: bool) -> None:
    code = MADE.format(above=above, inside=inside)
    [finding] = findings(code, "XFER01")
    assert finding.fix is not None
    assert (finding.fix.applicability is Applicability.DISPLAY) is is_copy
    assert ("device=x.device" in fixed(code, "XFER01", unsafe=True)) is not is_copy
