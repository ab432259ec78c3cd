"""The probe: a guest in the user's interpreter, so standard library and torch only, and Python 3.9 is enough.

It marks where training steps end, measures or observes them, stops the program after enough of them and writes one
JSON file per process. It never imports torch by itself: the program may set environment variables before it does.
"""

from __future__ import annotations

import os
import sys

from .guard import Guard
from .imports import after_import, redirect_imports
from .notebook import pretend
from .settings import Settings


def start() -> None:
    settings = Settings.from_environment()
    redirect_imports(settings)
    pretend()
    sys.addaudithook(Guard(settings))
    if not _is_launcher():
        after_import("torch", lambda: _attach(settings))


def _attach(settings: Settings) -> None:
    from .attach import attach

    attach(settings)


def _is_launcher() -> bool:
    """The agents of distributed launchers train nothing themselves. A process of multiprocessing may: it counts once an
    optimizer steps in it."""
    words = getattr(sys, "orig_argv", sys.argv)[1:4]
    launchers = ("torchrun", "accelerate", "deepspeed", "torch.distributed.run", "torch.distributed.launch")
    return any(os.path.basename(word) in launchers for word in words)
