"""Names for numbers that are read from the device once."""

from __future__ import annotations

import builtins
import keyword
from itertools import count
from typing import TYPE_CHECKING

from torchlint.spelling import is_free

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.model import Model


def new_name(model: Model, wish: str, at: cst.CSTNode) -> str:
    """The name, or the name with a number, that means nothing at a place yet."""
    for number in count(1):
        name = wish if number == 1 else f"{wish}_{number}"
        if is_free(model, name, at) and not hasattr(builtins, name) and not keyword.iskeyword(name):
            return name
    raise AssertionError
