"""XFER01: tensors that are made on the host and copied."""

from __future__ import annotations

import pytest

from tests.support import findings, fixed


@pytest.mark.parametrize(("device", "found"), [('f"cuda:{rank}"', 1), ('f"{kind}:{rank}"', 0), ('f"mps:{rank}"', 0)])
def test_devices_that_are_written_with_the_number_of_the_process(device: str, found: int) -> None:
    code = f"import torch\n\ndef totals(rank, kind):\n    return torch.zeros(2).to({device})\n"
    assert len(findings(code, "XFER01")) == found
    assert fixed(code, "XFER01").count(f"torch.zeros(2, device={device})") == found
