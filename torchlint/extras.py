"""What is installed beside torchlint for those who want more of it than linting."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """The command that brings what the tool lacks here, for the end of a message."""
    return f"python -m pip install 'torchlint[{extra}]' (from a checkout: '.[{extra}]')"
