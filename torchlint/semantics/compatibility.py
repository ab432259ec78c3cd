"""Code that is kept for other releases of a library: fallbacks behind an exception or a look at a version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_VERSION_WORDS = re.compile(
    r"(?i)version|legacy|^(py)?torch_?(v|ge|gt|lt|le|is|has|\d)|^(is|has)_(py)?torch|^pt_?\d|0_4$"
)
_MISSING = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "NameError"})


def is_for_other_releases(model: Model, node: cst.CSTNode) -> bool:
    """Whether the node runs only with some releases: in the handler of a call that may not exist, or under a condition
    that looks at a version."""
    for guard in model.guards(node):
        if isinstance(guard.node, cst.ExceptHandler):
            if _catches_what_is_missing(guard.node):
                return True
        elif guard.test is not None and any(_VERSION_WORDS.search(word) for word in _words(guard.test)):
            return not _asks_itself(model, guard.test)
    return False


def _asks_itself(model: Model, test: cst.BaseExpression) -> bool:
    """`hasattr(self, "cached")`: whether a method has run before, and nothing about releases."""
    calls = [part for part in walk(test) if isinstance(part, cst.Call) and part.args]
    asked = [call.args[0].value for call in calls if isinstance(call.func, cst.Name) and call.func.value == "hasattr"]
    function = model.function(test)
    return bool(asked) and all(
        isinstance(node, cst.Name) and function.cls is not None and function.params[:1] == [node.value]
        for node in asked
    )


def _catches_what_is_missing(handler: cst.ExceptHandler) -> bool:
    return handler.type is not None and any(word in _MISSING for word in _words(handler.type))


def _words(node: cst.CSTNode) -> list[str]:
    found = []
    for part in walk(node):
        if isinstance(part, cst.Name):
            found.append(part.value)
        elif isinstance(part, cst.Call) and isinstance(part.func, cst.Name) and part.func.value == "hasattr":
            found.append("has_torch")
    return found
