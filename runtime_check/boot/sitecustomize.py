"""Python imports this at start-up because its folder is on PYTHONPATH; it starts the probe and nothing else."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys


def run_shadowed() -> None:
    """Ours comes first on the path: run the sitecustomize of the environment that it hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


try:
    run_shadowed()
finally:
    if os.environ.get("TORCHLINT_PROBE"):
        import torchlint_probe  # type: ignore[import-not-found]

        torchlint_probe.start()
