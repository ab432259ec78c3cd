"""Sets of words, as the tables of names are written."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())
