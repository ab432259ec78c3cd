"""Datasets whose samples are listed where they are made, as in `Photos([path])`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loading.datasets import class_of, leaves
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Class
    from torchlint.semantics.model import Model


def listed_samples(node: cst.BaseExpression | None, model: Model) -> int | None:
    """How many samples a dataset has that takes them out of a list which is written where it is made, of variables: one
    of constants stands for a longer one in an example."""
    sources = list(leaves(node, model)) if node is not None else []
    call = model.call(sources[0]) if len(sources) == 1 and isinstance(sources[0], cst.Call) else None
    cls = class_of(call, model) if call is not None else None
    if call is None or cls is None:
        return None
    lists = (_given(call, cls, attribute) for attribute in _indexed(cls))
    counts = [len(found.elements) for found in lists if isinstance(found, cst.List) and _is_of_variables(found)]
    return counts[0] if counts else None


def _indexed(cls: Class) -> list[str]:
    """`files`, of which `__getitem__(self, index)` takes `self.files[index]`."""
    getitem = cls.method("__getitem__")
    if getitem is None or len(getitem.params) != 2:
        return []
    found = []
    for node in walk(getitem.node):
        match node:
            case cst.Subscript(
                value=cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=attribute)),
                slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(value=index)))],
            ) if [owner, index] == getitem.params:
                found.append(attribute)
    return found


def _given(call: Call, cls: Class, attribute: str) -> cst.BaseExpression | None:
    """What a call that makes an object hands in for an attribute of it."""
    binding = cls.attribute(attribute)
    write = binding.writes[0] if binding is not None and len(binding.writes) == 1 else None
    if write is None or not isinstance(write.value, cst.Name) or write.function.name != "__init__":
        return None
    name, params = write.value.value, write.function.params
    return call.argument(name, params.index(name) - 1).node if name in params else None


def _is_of_variables(found: cst.List) -> bool:
    return all(isinstance(element, cst.Element) and _names(element.value) for element in found.elements)


def _names(node: cst.BaseExpression) -> bool:
    return any(isinstance(part, cst.Name) for part in walk(node))
