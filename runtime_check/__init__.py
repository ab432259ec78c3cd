"""Runs a program before and after its rewrite and says whether it computes the same, and what the rewrite gained."""

if __name__ == "runtime_check":
    raise ImportError("import torchlint.runtime_check, not runtime_check")

from .check import Options, verify_trees
from .launch import CommandError
from .overlay import OverlayError
from .verdict import Overall, Verdict

__all__ = ["CommandError", "Options", "Overall", "OverlayError", "Verdict", "verify_trees"]
