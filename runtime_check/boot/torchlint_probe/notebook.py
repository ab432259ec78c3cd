"""What IPython gives to a notebook and Python does not: the code of its cells runs as one program."""

from __future__ import annotations

import builtins
import sys

SUFFIX = ".ipynb"


def pretend() -> None:
    """Only where a notebook is the program. What a `!command` would give, which does not run, is `_`: None."""
    if any(word.endswith(SUFFIX) for word in getattr(sys, "orig_argv", sys.argv)[1:]):
        for name, value in {"display": print, "get_ipython": lambda: None, "_": None}.items():
            if not hasattr(builtins, name):
                setattr(builtins, name, value)
