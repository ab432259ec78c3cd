"""The Python interface: `torchlint.lint`."""

from __future__ import annotations

from pathlib import Path

import torchlint
from torchlint.config import Settings
from torchlint.source import Source

TEXT = "import torch\nx = 1  # torchlint: ignore[NOPE]\n"


def test_text_is_linted() -> None:
    (finding,) = torchlint.lint(TEXT)
    assert (finding.code, finding.line, finding.column) == ("LINT03", 2, 8)


def test_a_source_carries_its_path_and_settings_choose_the_rules() -> None:
    source = Source.from_bytes(TEXT.encode(), Path("src/a.py"))
    assert torchlint.lint(source)[0].path == "src/a.py"
    assert torchlint.lint(source, Settings.selecting("MEM01")) == []
