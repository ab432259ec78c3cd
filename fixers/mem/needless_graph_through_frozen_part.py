"""The same edits as where an evaluation records a graph: the statement goes under `torch.no_grad()`."""

from __future__ import annotations

from .missing_no_grad import fix

__all__ = ["fix"]
