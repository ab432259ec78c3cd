"""A function that makes a tensor and returns it."""

from __future__ import annotations


def returning(expression: str) -> str:
    return f'import torch\n\ndef build(n, x, values, device="cuda"):\n    return {expression}\n'
