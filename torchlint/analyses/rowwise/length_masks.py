"""Loops that fill a mask sample by sample up to a length, or from it on, or copy so much of another tensor: what one
comparison does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise.nature import Nature, nature
from torchlint.semantics.tree import bound_names, walk, without_subscripts
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.certainty import Certainty
    from torchlint.semantics.model import Model

_FILLS = ("torch.ones", "torch.zeros", "torch.ones_like", "torch.zeros_like", "builtins.float", "builtins.bool")
_NUMBERS = ("builtins.int", "builtins.max", "builtins.min")
_SAME = frozenset(["item", "long", "int", "detach", "cpu", "numpy", "tolist"])


def length_mask(model: Model, certainty: Certainty, loop: cst.For) -> str | None:
    """The name of the tensor that `loop` fills with nothing but constants, or what another has in the same place, in
    each row over a part of its own."""
    index = _index(model, loop)
    if index is None or not isinstance(loop.body, cst.IndentedBlock):
        return None
    reader = _Body(model, index, set(bound_names(loop.target)) - {index})
    if not reader.only_fills(loop.body) or len(reader.filled) != 1:
        return None
    (mask,) = reader.filled.values()
    return mask.value if certainty.is_tensor(mask, loop) else None


def _index(model: Model, loop: cst.For) -> str | None:
    """`i` of `for i in range(n)` and `for i, length in enumerate(lengths)`."""
    call = model.call(loop.iter) if isinstance(loop.iter, cst.Call) else None
    match loop.target:
        case cst.Name(value=name) if call is not None and call.callee == "builtins.range" and len(call.arguments) == 1:
            return name
        case cst.Tuple(elements=[cst.Element(value=cst.Name(value=name)), _]) if (
            call is not None and call.callee == "builtins.enumerate" and len(call.arguments) == 1
        ):
            return name
    return None


class _Body:
    """`lengths`: the names that hold a number of the sample."""

    def __init__(self, model: Model, index: str, lengths: set[str]) -> None:
        self._model = model
        self._index = index
        self._lengths = lengths
        self.filled: dict[str, cst.Name] = {}

    def only_fills(self, block: cst.BaseSuite) -> bool:
        """Whether the block does nothing but fill parts of rows, some of them on a condition."""
        return all(self._line(line) for line in block.body)

    def _line(self, line: cst.CSTNode) -> bool:
        if isinstance(line, cst.If):
            return line.orelse is None and isinstance(line.test, cst.Comparison) and self.only_fills(line.body)
        return isinstance(line, cst.SimpleStatementLine) and all(self._small(small) for small in line.body)

    def _small(self, small: cst.BaseSmallStatement) -> bool:
        match small:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
                return self._gives_length(name, value)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript() as part)], value=value):
                return (self._is_constant(value) or self._is_same_part(part, value)) and self._fills(part)
            case cst.Expr(value=cst.Call(func=cst.Attribute(value=part, attr=cst.Name(value=name)), args=args)):
                fills = name == "zero_" or (name == "fill_" and len(args) == 1 and self._is_constant(args[0].value))
                return fills and self._fills(part)
        return False

    def _gives_length(self, name: str, value: cst.BaseExpression) -> bool:
        """`length = length.item()`, `n = lengths[i]`"""
        if not self._is_length(value):
            return False
        self._lengths.add(name)
        return True

    def _is_constant(self, value: cst.BaseExpression) -> bool:
        if isinstance(value, cst.Call) and self._model.call(value).callee in _FILLS:
            return True
        given = self._model.value(value)
        return given.constant is not None or (given.kind is Kind.NUMBER and not list(self._names(value)))

    def _is_same_part(self, part: cst.Subscript, value: cst.BaseExpression) -> bool:
        """`kept[i, :n] = x[i, :n]`, of `kept` that was made in the shape of `x`; another may be padded like that."""
        if not isinstance(value, cst.Subscript) or not isinstance(value.value, cst.Name):
            return False
        is_same = len(part.slice) == len(value.slice) and all(
            one.slice.deep_equals(other.slice) for one, other in zip(part.slice, value.slice)
        )
        binding, name = self._model.binding(part.value), value.value.value
        made = [write.value for write in binding.writes] if binding is not None else []
        return is_same and bool(made) and all(node is not None and _has_shape_of(name, node) for node in made)

    def _fills(self, part: cst.BaseExpression) -> bool:
        """`mask[i, :length]`, `mask[i][length:]`, `mask[i].narrow(0, length, rest)`"""
        root, slices = _filled(part), 0
        indices = any(isinstance(at, cst.Name) and at.value == self._index for at in _indices(part))
        for node in walk(part):
            if isinstance(node, cst.Slice):
                slices += any(bound is not None and self._is_length(bound) for bound in (node.lower, node.upper))
            elif isinstance(node, cst.Call):
                narrows = isinstance(node.func, cst.Attribute) and node.func.attr.value == "narrow"
                slices += narrows and any(self._is_length(arg.value) for arg in node.args)
        if not isinstance(root, cst.Name) or root.value in self._lengths or not slices or not indices:
            return False
        self.filled[root.value] = root
        return True

    def _is_length(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is computed from a number of the sample alone, or from one that is drawn for it."""
        match node:
            case cst.Name(value=name):
                return name in self._lengths
            case cst.Subscript(value=cst.Name() | cst.Attribute(), slice=[cst.SubscriptElement(slice=cst.Index(at))]):
                return isinstance(at, cst.Name) and at.value == self._index
            case cst.BinaryOperation(left=left, right=right):
                return self._is_length(left) or self._is_length(right)
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name)), args=()) if name in _SAME:
                return self._is_length(inner)
            case cst.Call(args=args) if self._model.call(node).callee in _NUMBERS:
                return any(self._is_length(arg.value) for arg in args)
            case cst.Call():
                return nature(self._model.call(node)) is Nature.RANDOM
        return False

    def _names(self, node: cst.CSTNode) -> Iterator[cst.Name]:
        return (part for part in walk(node) if isinstance(part, cst.Name))


def _has_shape_of(name: str, made: cst.BaseExpression) -> bool:
    """`torch.zeros_like(x)`, `x.clone()`, `x.data.new(*x.size())`, `torch.zeros(x.shape)` for `x`."""
    for node in walk(made):
        match node:
            case cst.Call(func=cst.Attribute(value=source, attr=cst.Name(value="clone")), args=()):
                found = _is_named(source, name)
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=function)), args=[cst.Arg(value=first), *_]):
                found = _is_named(first, name) if function.endswith("_like") else _is_shape_of(first, name)
            case _:
                continue
        if found:
            return True
    return False


def _is_shape_of(node: cst.BaseExpression, name: str) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(value=source, attr=cst.Name(value="size")), args=()):
            return _is_named(source, name)
        case cst.Attribute(value=source, attr=cst.Name(value="shape")):
            return _is_named(source, name)
    return False


def _is_named(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _filled(part: cst.BaseExpression) -> cst.BaseExpression:
    """`mask` of `mask[i, :length]` and `mask[i].narrow(0, length, rest)`."""
    match part:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="narrow"))):
            return without_subscripts(inner)
    return without_subscripts(part)


def _indices(part: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """`i` of `mask[i, :n]`, `mask[i][:n]` and `mask[i].narrow(0, n, 1)`, but not of `mask[:lengths[i]]`."""
    node: cst.CSTNode = part
    while isinstance(node, (cst.Subscript, cst.Attribute, cst.Call)):
        if isinstance(node, cst.Subscript):
            yield from (at.slice.value for at in node.slice if isinstance(at.slice, cst.Index))
        node = node.func if isinstance(node, cst.Call) else node.value


def of_mask(name: str) -> str:
    return (
        f"This loop fills `{name}` sample by sample, each up to a length of its own, or from it on. Compare the "
        "positions with the lengths, in one call: `torch.arange(n)[None] < lengths[:, None]`, or `>=`."
    )
