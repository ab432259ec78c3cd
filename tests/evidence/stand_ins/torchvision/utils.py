"""Pictures as files."""

from __future__ import annotations

from typing import Any

import torch


def save_image(pictures: torch.Tensor, path: str, **options: Any) -> None:
    torch.save(pictures, path)
