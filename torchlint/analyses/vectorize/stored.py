"""Tensors that are no variables: attributes and entries of constant key, by their code.

A loop that computes and does no more calls nothing that could put another tensor there, so that for the loop they are
as good as variables, as long as it reads no part of them under another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.once import once_for_each
from torchlint.analyses.vectorize.purity import impurity
from torchlint.semantics.dataflow import text
from torchlint.semantics.tree import walk
from torchlint.word_set import word_set

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_LAST = re.compile(r"\.\w+$|\[[^\[\]]*\]$")
METADATA = word_set("shape dtype device size ndim dim")
_ASSIGNING = (cst.AssignTarget, cst.AnnAssign, cst.For, cst.NamedExpr, cst.AugAssign)
_HARMLESS = word_set("print list tuple dict set range zip enumerate reversed isinstance sum any all")
_RESIZING = word_set("append extend insert pop remove clear resize_ set_ squeeze_ unsqueeze_ t_ transpose_")
_VIEWS = word_set("T mT H mH real imag grad")


def code(node: cst.CSTNode) -> str:
    return text(node).strip()


def is_stored(node: cst.CSTNode) -> bool:
    """A variable, an attribute of one, an entry `x["key"]`, and so on."""
    while not isinstance(node, cst.Name):
        is_attribute = isinstance(node, cst.Attribute) and node.attr.value not in _VIEWS
        if not is_attribute and not (isinstance(node, cst.Subscript) and is_entry(node)):
            return False
        assert isinstance(node, (cst.Attribute, cst.Subscript))
        node = node.value
    return True


def is_entry(node: cst.Subscript) -> bool:
    """`x["key"]`."""
    index = node.slice[0].slice
    return len(node.slice) == 1 and isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString)


def filled(target: cst.Subscript, indices: frozenset[str]) -> tuple[cst.BaseExpression, list[cst.SubscriptElement]]:
    """What elements are taken from, and by which indices: those of `x[i][j]`, for loops of these indices, are i and
    j."""
    elements = list(target.slice)
    base: cst.BaseExpression = target.value
    while isinstance(base, cst.Subscript) and not is_entry(base) and _is_single(base, indices):
        elements = [*base.slice, *elements]
        base = base.value
    return base, elements


def _is_single(node: cst.Subscript, indices: frozenset[str]) -> bool:
    index = node.slice[0].slice
    if len(node.slice) != 1 or not isinstance(index, cst.Index):
        return False
    value = index.value
    return isinstance(value, cst.Integer) or (isinstance(value, cst.Name) and value.value in indices)


def indices_of(model: Model, root: cst.CSTNode) -> frozenset[str]:
    """The names that count in the loops of a statement."""
    found: set[str] = set()
    for loop in walk(root):
        if not isinstance(loop, cst.For) or not isinstance(loop.iter, cst.Call):
            continue
        target: cst.BaseExpression = loop.target
        if model.qualified(loop.iter.func) == "builtins.enumerate" and isinstance(target, cst.Tuple):
            target = target.elements[0].value
        elif model.qualified(loop.iter.func) != "builtins.range":
            continue
        if isinstance(target, cst.Name):
            found.add(target.value)
    return frozenset(found)


def other_names(model: Model, root: cst.CSTNode, key: str) -> Iterator[str]:
    """What a statement mentions that a tensor may be reached by beside its own name: what holds it, and parts of it."""
    for node in walk(root):
        if not isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)) or not is_stored(node):
            continue
        above = model.parent(node)
        is_part = isinstance(above, (cst.Attribute, cst.Subscript)) and above.value is node and is_stored(above)
        name = code(node)
        if is_part and above is not None and _is_called(model, above) and key.startswith(f"{name}["):
            is_part = False  # `x.get("key")`, a method of the dict
        if is_part or (isinstance(above, cst.Attribute) and above.attr is node):
            continue
        if isinstance(node, cst.Attribute) and node.attr.value in METADATA:
            continue
        if name != key and (key.startswith((f"{name}.", f"{name}[")) or name.startswith((f"{key}.", f"{key}["))):
            yield name


def _is_called(model: Model, node: cst.CSTNode) -> bool:
    call = model.parent(node)
    return isinstance(call, cst.Call) and call.func is node


def is_computed(model: Model, node: cst.CSTNode) -> bool:
    """Whether an attribute of the object at hand is a property of its class, which may give any tensor."""
    function = model.function(node)
    cls = next((each.cls for each in function.around() if each.cls is not None), None)
    return (
        cls is not None and isinstance(node, cst.Attribute) and any(node.attr.value in c.methods for c in cls.lineage())
    )


def names_alike(name: str, other: str) -> bool:
    """Whether two places have the same attribute or key, so that one object with two names is enough for them to be
    one."""
    return name != other and _LAST.search(name) is not None and other.endswith(_last(name))


def _last(name: str) -> str:
    found = _LAST.search(name)
    return found[0] if found is not None else name


class Made(NamedTuple):
    """The assignment that put a tensor where it is kept, and the statements since."""

    value: cst.BaseExpression
    statement: cst.CSTNode
    since: tuple[cst.CSTNode, ...]


def made_before(model: Model, node: cst.BaseExpression, place: cst.CSTNode) -> Made | None:
    """What an attribute or an entry surely is at a place: assigned in the same block, with nothing after it that can
    have put something else there."""
    block = model.parent(place)
    if is_computed(model, node) or not isinstance(block, (cst.IndentedBlock, cst.Module)) or place not in block.body:
        return None
    held, statements = code(node), list(block.body)
    since = statements.index(place)  # type: ignore[arg-type]
    for number in range(since - 1, -1, -1):
        statement = statements[number]
        for part in walk(statement):
            name = code(part.target) if isinstance(part, _ASSIGNING) else ""
            if name and (name == held or held.startswith((f"{name}.", f"{name}["))):
                value = _only_value(statement, node, name)
                return Made(value, statement, tuple(statements[number + 1 : since])) if value is not None else None
        if not _leaves_alone(model, statement):
            return None
    return None


def _only_value(statement: cst.CSTNode, node: cst.BaseExpression, name: str) -> cst.BaseExpression | None:
    """What a statement of one assignment puts at a node: the value, or of a dict the entry."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[_], value=value)]) if name == code(node):
            return value
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[_], value=cst.Dict(elements=elements))]):
            if not isinstance(node, cst.Subscript) or code(node.value) != name:
                return None
            found = [each for each in elements if isinstance(each, cst.DictElement)]
            named = [each.value for each in found if code(each.key) == code(node.slice[0])]
            return named[0] if len(found) == len(elements) and len(named) == 1 else None
    return None


def mentions(statement: cst.CSTNode, held: str) -> Iterator[cst.CSTNode]:
    """The places of a statement where what is kept under a name is mentioned, or may be under a name like it."""
    places = (part for part in walk(statement) if isinstance(part, (cst.Attribute, cst.Subscript)))
    return (part for part in places if code(part) == held or names_alike(held, code(part)))


@once_for_each
def _leaves_alone(model: Model, statement: cst.CSTNode) -> bool:
    """Whether nothing but tensors can change by a statement: all that it calls is torch's, or computes."""
    return all(
        (model.qualified(part.func) or "").startswith("torch.")
        or (model.qualified(part.func) or "").removeprefix("builtins.") in _HARMLESS
        or impurity(model, part) is None
        for part in walk(statement)
        if isinstance(part, cst.Call)
    )


def is_kept(binding: Binding) -> bool:
    """Whether an attribute is what the constructor made, and as long."""
    made = bool(binding.writes) and all(write.function.name == "__init__" for write in binding.writes)
    return made and not binding.methods & _RESIZING
