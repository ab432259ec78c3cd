"""The probe: a guest in the user's interpreter, so standard library and torch only, and Python 3.9 is enough.

It marks where training steps end, measures or observes them, stops the program after enough of them and writes one
JSON file per process. It never imports torch by itself: the program may set environment variables before it does.
"""

from __future__ import annotations

import os
import sys

from .guard import Guard
from .imports import after_import, redirect_imports
from .settings import Settings


def start() -> None:
    settings = Settings.from_environment()
    redirect_imports(settings)
    sys.addaudithook(Guard(settings))
    if not _is_helper_process():
        after_import("torch", lambda: _attach(settings))


def _attach(settings: Settings) -> None:
    from .attach import attach

    attach(settings)


def _is_helper_process() -> bool:
    """Workers of multiprocessing and the agents of distributed launchers train nothing themselves."""
    words = getattr(sys, "orig_argv", sys.argv)[1:4]
    if "--multiprocessing-fork" in words or any(word.startswith("from multiprocessing.") for word in words):
        return True
    launchers = ("torchrun", "accelerate", "deepspeed", "torch.distributed.run", "torch.distributed.launch")
    return any(os.path.basename(word) in launchers for word in words)
