"""Code for other libraries than torch, and for other releases of it: fallbacks behind an exception or a look at a
version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.arguments import string_value
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_VERSION_WORDS = re.compile(
    r"(?i)version|legacy|^_?(py)?torch_?(v|ge|gt|greater|lt|le|less|is|has|\d)|^_?(is|has)_(py)?torch|^pt_?\d|0_4$"
)
_OTHER_LIBRARY = re.compile(r"(?m)^\s*(import|from) (mxnet|tensorflow|paddle|jax|mindspore)\b")
_OTHER_AUTOGRAD = re.compile(r"(?m)^\s*(import|from)\s+crypten\b")
_TORCH = re.compile(r"(?m)^\s*(import|from)\b.*torch")
_MISSING = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "NameError"})


def is_of_another_library(model: Model) -> bool:
    """Whether a file works with the tensors of another library than torch."""
    text = model.source.text
    return _OTHER_LIBRARY.search(text) is not None and _TORCH.search(text) is None


def has_other_autograd(model: Model) -> bool:
    """Whether what is called like a module of torch may be one of CrypTen, which has an autograd of its own."""
    return model.once(_imports_crypten)


def _imports_crypten(model: Model) -> bool:
    return _OTHER_AUTOGRAD.search(model.code_text) is not None


def is_for_other_releases(model: Model, node: cst.CSTNode) -> bool:
    """Whether the node runs only with some releases: in the handler of a call that may not exist, or under a condition
    that looks at a version."""
    for guard in model.guards(node):
        if isinstance(guard.node, cst.ExceptHandler):
            if _catches_what_is_missing(guard.node):
                return True
        elif guard.test is not None and _looks_at_release(model, guard.test):
            return True
    return False


def _looks_at_release(model: Model, test: cst.BaseExpression) -> bool:
    return any(_VERSION_WORDS.search(word) for word in _words(test)) or any(
        isinstance(part, cst.Call) and _asks_for_later_addition(model, part) for part in walk(test)
    )


def _asks_for_later_addition(model: Model, call: cst.Call) -> bool:
    """`hasattr(torch, "compile")`: not of an object of the project's own, and for nothing that Python itself looks
    for."""
    if not isinstance(call.func, cst.Name) or call.func.value != "hasattr" or len(call.args) != 2:
        return False
    asked, name = call.args[0].value, string_value(call.args[1].value) or ""
    is_of_torch = (model.qualified(asked) or "").startswith("torch") or model.value(asked).is_tensor
    return is_of_torch and not name.startswith("__")


def _catches_what_is_missing(handler: cst.ExceptHandler) -> bool:
    return handler.type is not None and any(word in _MISSING for word in _words(handler.type))


def _words(node: cst.CSTNode) -> list[str]:
    return [part.value for part in walk(node) if isinstance(part, cst.Name)]
