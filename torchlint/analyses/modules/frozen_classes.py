"""Classes of modules that switch off the gradients of all their own parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchlint.semantics.dataflow import text
from torchlint.semantics.tree import is_name

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Class
    from torchlint.semantics.model import Model

_FROZEN = re.compile(r"requires_grad_\(False\)|for (\w+) in self\.parameters\(\):\s+\1\.requires_grad\s*=\s*False")
# A method that is told whether: `for p in chain(self.parameters(), self.buffers()): p.requires_grad = state`.
_TOLD = r"self\.parameters\(\).*\brequires_grad(_\(|\s*=\s*){}\b"


def switches_itself_off(cls: Class, model: Model) -> bool:
    """Whether a class, whose file is that of the model, does so in a constructor, or anywhere in so many words."""
    if model.once(_switches_off_somewhere) and _FROZEN.search(text(cls.node)):
        return True
    builder = cls.methods.get("__init__")
    return builder is not None and any(_tells_to_switch_off(call, model) for call in builder.calls)


def _switches_off_somewhere(model: Model) -> bool:
    return _FROZEN.search(model.source.text) is not None


def _tells_to_switch_off(call: Call, model: Model) -> bool:
    """`self.set_requires_grad(False)`, of a method of the class or of a base in another file."""
    if not is_name(call.receiver, call.function.own_name) or len(call.arguments) != 1:
        return False
    if model.value(call.arguments[0].value).constant is not False:
        return False
    method = call.target or call.foreign
    if method is None or method.cls is None:
        return False
    told = call.arguments[0].keyword
    name = told.value if told is not None else next(iter(method.params[1:]), "")
    return re.search(_TOLD.format(re.escape(name)), text(method.node), re.DOTALL) is not None
