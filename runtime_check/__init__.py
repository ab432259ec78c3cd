"""Runs a program before and after its rewrite and says whether it computes the same, and what the rewrite gained."""

if __name__ == "runtime_check":
    raise ImportError("import torchlint.runtime_check, not runtime_check")

from .check import verify_fixes, verify_trees
from .launch import CommandError
from .overlay import OverlayError
from .trials import Options
from .verdict import Candidate, FixStatus, FixVerdict, Overall, Verdict

__all__ = [
    "Candidate",
    "CommandError",
    "FixStatus",
    "FixVerdict",
    "Options",
    "Overall",
    "OverlayError",
    "Verdict",
    "verify_fixes",
    "verify_trees",
]
