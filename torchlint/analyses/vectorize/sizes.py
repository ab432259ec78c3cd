"""Integers: which dimension of which tensor an expression is, wherever it stands."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize.reaching import Reaching
from torchlint.analyses.vectorize.shapes import Size
from torchlint.analyses.vectorize.stored import is_kept
from torchlint.semantics import dataflow
from torchlint.semantics.tree import integer, walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.tensors import Tensors
    from torchlint.semantics.entities import Binding, Write
    from torchlint.semantics.model import Model

_DEPTH = 8


class Sizes:
    """The lengths that integer expressions of a file stand for."""

    def __init__(self, model: Model, reaching: Reaching, tensors: Tensors) -> None:
        self._model = model
        self._reaching = reaching
        self._tensors = tensors

    def _code(self, node: cst.CSTNode) -> str:
        return dataflow.text(node).strip()

    def of(self, node: cst.BaseExpression, place: cst.CSTNode, depth: int = 0) -> Size | None:
        """An integer expression as it is evaluated at `place`; None for what may be no integer."""
        text = self._code(node)
        if depth > _DEPTH:
            return None
        constant = self._model.value(node).constant
        if isinstance(node, cst.Integer) or (isinstance(constant, int) and not isinstance(constant, bool)):
            number = int(node.value, 0) if isinstance(node, cst.Integer) else int(constant)  # type: ignore[call-overload]
            return Size(number, None, text, number >= 0)
        if isinstance(node, cst.Name):
            return self._size_of_name(node, place, depth)
        owner = self.measured(node)
        if owner is not None:
            return self._length(*owner, node, place, depth)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
            step = integer(node.right)
            left = self.of(node.left, place, depth + 1)
            if step is None or left is None:
                return None
            step = step if isinstance(node.operator, cst.Add) else -step
            natural = left.natural and step >= 0
            return Size(left.offset + step, left.key, text, natural, step, left.assumed)
        constant = setting(self._model, node) if isinstance(node, cst.Attribute) else None
        if constant is not None or self._model.value(node).kind is Kind.NUMBER:
            return Size(0, constant or f"{text}@{id(place)}", text, False, assumed=constant is not None)
        return None

    def _size_of_name(self, node: cst.Name, place: cst.CSTNode, depth: int) -> Size | None:
        binding = self._model.binding(node)
        write = self._reaching.reaching(binding, place) if binding is not None else None
        if write is None:
            return Size(0, f"{node.value}@{id(place)}", node.value, self._is_always_measured(binding))
        found: Size | None = None
        if write.kind == "assign" and write.value is not None:
            if write.unpacked:
                found = self._unpacked_length(write, depth)
            else:
                found = self.of(write.value, write.statement, depth + 1)
        if found is not None:
            return replace(found, text=node.value)
        return Size(0, f"{node.value}@{id(write.target)}", node.value, False)

    def _is_always_measured(self, binding: Binding | None) -> bool:
        """Whether each branch writes a length: `n = x[0].shape[0]`, `n = len(x)`."""
        writes = binding.writes if binding is not None else []
        return bool(writes) and all(
            write.kind == "assign" and not write.unpacked and write.value is not None and self.measured(write.value)
            for write in writes
        )

    def _unpacked_length(self, write: Write, depth: int) -> Size | None:
        """Of `n` in `b, n = x.shape`."""
        target, owner = self._model.parent(write.target), shape_owner(write.value)
        pattern = self._model.parent(target) if target is not None else None
        if owner is None or not isinstance(pattern, cst.Tuple):
            return None
        for index, element in enumerate(pattern.elements):
            if isinstance(element, cst.StarredElement):
                return None
            if element is target:
                return self._length(owner, index, write.target, write.statement, depth)
        return None

    def measured(self, node: cst.BaseExpression) -> tuple[cst.BaseExpression, int] | None:
        """(x, k) of `x.size(k)`, `x.shape[k]` and `len(x)`."""
        if isinstance(node, cst.Call) and len(node.args) == 1 and node.args[0].keyword is None:
            argument = node.args[0].value
            if self._model.qualified(node.func) == "builtins.len":
                return argument, 0
            if isinstance(node.func, cst.Attribute) and node.func.attr.value == "size":
                index = integer(argument)
                return (node.func.value, index) if index is not None else None
        if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
            owner, index = shape_owner(node.value), integer(node.slice[0].slice.value)
            return (owner, index) if owner is not None and index is not None else None
        return None

    def _length(self, owner: cst.BaseExpression, index: int, node: cst.CSTNode, place: cst.CSTNode, depth: int) -> Size:
        key, offset = self._tensors.of(owner, place, depth + 1).dimension(index)
        return Size(offset, key, self._code(node))


def shape_owner(node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """x of `x.shape` and `x.size()`."""
    if isinstance(node, cst.Attribute) and node.attr.value == "shape":
        return node.value
    if isinstance(node, cst.Call) and not node.args and isinstance(node.func, cst.Attribute):
        return node.func.value if node.func.attr.value == "size" else None
    return None


def setting(model: Model, node: cst.Attribute) -> str | None:
    """What stands for `args.count` or `self.count` wherever it is read, if nothing but a constructor assigns it."""
    binding, root = model.binding(node), node.value
    if binding is not None:
        return f"{binding.name}@{id(binding)}" if is_kept(binding) else None
    owner = model.binding(root) if isinstance(root, cst.Name) else None
    if owner is None or len(owner.writes) != 1 or node.attr.value in model.once(_assigned):
        return None
    return f"{node.attr.value} of {id(owner)}"


def _assigned(model: Model) -> set[str]:
    """The names of all attributes that a file assigns."""
    return {
        part.attr.value
        for target in model.nodes_of(cst.AssignTarget, cst.AugAssign, cst.AnnAssign)
        if isinstance(target, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))
        for part in walk(target.target)
        if isinstance(part, cst.Attribute)
    }
