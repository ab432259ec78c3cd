"""Files that work with CrypTen, which has modules, tensors and an autograd of its own that look like those of torch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_IMPORTED = re.compile(r"^\s*(import|from)\s+crypten\b", re.MULTILINE)


def has_other_autograd(model: Model) -> bool:
    """Whether what is called like a module of torch may be one of that package."""
    return model.once(_imports_crypten)


def _imports_crypten(model: Model) -> bool:
    return _IMPORTED.search(model.code_text) is not None
