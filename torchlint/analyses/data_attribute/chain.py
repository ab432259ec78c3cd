"""What is done to the `.data` of a tensor where it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

# Methods whose result shares memory with what they are called on: in-place work behind them still writes to `.data`.
VIEWS = frozenset(
    """
    view view_as reshape squeeze unsqueeze narrow select t transpose permute expand expand_as unbind chunk split
    diagonal flatten detach contiguous
    """.split()
)


class Chain:
    """What is done to `.data` where it is read: `x.data.view(-1)[0].fill_(1)` ends at the call of `fill_`."""

    def __init__(self, model: Model, node: cst.Attribute) -> None:
        self.steps: list[str] = []  # methods as `name()`, attributes as `.name`, subscripts as `[]`
        self.nodes: list[cst.CSTNode] = []
        at: cst.CSTNode = node
        while (step := _step(model, at)) is not None:
            name, at = step
            self.steps.append(name)
            self.nodes.append(at)
        self.end = at
        self._is_stored = is_stored(model, at)

    @property
    def writes(self) -> bool:
        """Whether the tensor is changed through its `.data`."""
        for name in self.steps:
            if name.endswith("_()") and not name.startswith("__"):
                return True
            if not (name.startswith((".", "[")) or name.removesuffix("()") in VIEWS):
                return False
        return self._is_stored

    @property
    def element(self) -> cst.CSTNode | None:
        """`x.data[0]`, or `x.data.cpu().numpy()[0]`: the first of the values on the host."""
        steps = [(name, node) for name, node in zip(self.steps, self.nodes) if not _keeps_first(name, node)]
        return steps[0][1] if steps and steps[0][0] == "[]" and is_first(steps[0][1]) else None

    @property
    def before_element(self) -> list[str]:
        """What is done before the first of the values is taken; nothing where it is not."""
        return self.steps[: self.nodes.index(self.element)] if self.element is not None else []

    @property
    def methods(self) -> list[str]:
        """The methods called in a row, until an attribute that is no view leads elsewhere."""
        found: list[str] = []
        for name in self.steps:
            if name.endswith("()"):
                found.append(name[:-2])
            elif name not in ("[]", ".T", ".mT"):
                break
        return found


def _keeps_first(name: str, node: cst.CSTNode) -> bool:
    return name in ("cpu()", "numpy()", "squeeze()") and isinstance(node, cst.Call) and not node.args


def is_stored(model: Model, node: cst.CSTNode) -> bool:
    """Whether an expression is, or is a part of, the target of an assignment."""
    parent = model.parent(node)
    if isinstance(parent, (cst.AugAssign, cst.AnnAssign)):
        return parent.target is node
    return isinstance(parent, (cst.AssignTarget, cst.Del))


def _step(model: Model, node: cst.CSTNode) -> tuple[str, cst.CSTNode] | None:
    parent = model.parent(node)
    if isinstance(parent, cst.Subscript) and parent.value is node:
        return "[]", parent
    if isinstance(parent, cst.Attribute) and parent.value is node:
        above = model.parent(parent)
        if isinstance(above, cst.Call) and above.func is parent:
            return parent.attr.value + "()", above
        return "." + parent.attr.value, parent
    return None


def is_first(node: cst.CSTNode) -> bool:
    """`x[0]`"""
    match node:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0")))]):
            return True
    return False


def last_word(node: cst.CSTNode) -> str:
    """The last word of a variable, an attribute or what is called or indexed."""
    while isinstance(node, (cst.Call, cst.Subscript)):
        node = node.func if isinstance(node, cst.Call) else node.value
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def is_single(owner: cst.BaseExpression) -> bool:
    """Whether an expression is one element of several dimensions, for all that is in sight: `x[i, j]`."""
    parts = [part.slice for part in owner.slice] if isinstance(owner, cst.Subscript) else []
    return len(parts) > 1 and all(isinstance(part, cst.Index) for part in parts)
