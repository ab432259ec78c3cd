"""Rewrites that are hard to read are only shown to users; here they are applied, for they have to be right, too."""

from __future__ import annotations

import pytest

from torchlint.analyses.vectorize import edits


@pytest.fixture(autouse=True)
def applied_however_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "is_hard_to_read", lambda text: False)
