"""The progress bar: only at a terminal, only for work that takes a while, and gone at the end."""

from __future__ import annotations

import io
import sys

import pytest

from torchlint.running import progress
from torchlint.running.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "enabled", "patience", "is_drawn"),
    [
        pytest.param(Terminal(), True, 0.0, True, id="slow, at a terminal"),
        pytest.param(Terminal(), True, 60.0, False, id="quick"),
        pytest.param(Terminal(), False, 0.0, False, id="quiet"),
        pytest.param(io.StringIO(), True, 0.0, False, id="no terminal"),
    ],
)
def test_when_it_is_drawn(
    stream: io.StringIO, enabled: bool, patience: float, is_drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE", patience)
    with Progress(enabled) as bar:
        bar.update(1, 2)
    assert ("1/2 files" in stream.getvalue()) is is_drawn
    assert stream.getvalue().endswith("\r\x1b[2K") is is_drawn
