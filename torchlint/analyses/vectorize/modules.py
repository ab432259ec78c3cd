"""Modules of torch.nn that work on the last dimensions of whatever they are given, so that a batch of rows is one more
dimension in front."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize.shapes import ATOM, UNKNOWN_DTYPE, Lifted, Unmoved
from torchlint.semantics.values import Kind
from torchlint.word_set import word_set

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter
    from torchlint.semantics.model import Model

# Each element of the result depends on one element.
_POINTWISE = word_set(
    """
    ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Sigmoid Tanh Softplus Softsign LogSigmoid Hardtanh Hardsigmoid
    Hardswish Tanhshrink Softshrink Hardshrink Identity
    """
)
_LAST = word_set("Linear LayerNorm")
_HOOKING = re.compile(r"register_\w*hook|spectral_norm|\bsetattr\(")
_EXTENDING = word_set("append extend insert add_module register_module")
_OF_PARAMETERS = word_set("weight bias data grad requires_grad training")


def applied(lifter: Lifter, node: cst.Call) -> Lifted | None:
    """A call of such a module; None for any other."""
    made = _made(lifter, node.func)
    if made is None or len(node.args) != 1 or node.args[0].keyword or node.args[0].star or lifter.varies(node.func):
        return None
    parts = _parts(lifter, made)
    if parts is None or not lifter.varies(node.args[0].value):
        return None
    operand = lifter.tensor(node.args[0].value)
    products = "Linear" in parts
    if not parts <= _POINTWISE:
        lifter.tensors.learn_least(operand.rank, 1)
        if lifter.mask is not None:
            lifter.fails_for_none(f"`{lifter.code(node.func)}` takes rows of one dtype")
    lifter.operations.add("layer" if products else "pointwise")
    text, unmoved, name = f"{lifter.one_line(node.func)}({operand.text})", None, lifter.one_line(node.func)
    kept = operand.where_it_is(operand.unmoved.dimension) if operand.unmoved is not None else None
    if kept is not None and operand.unmoved is not None and operand.rank.least > operand.unmoved.dimension:
        unmoved = Unmoved(text, operand.unmoved.dimension, f"{name}({kept})")  # the last dimension is another
    return operand.but(
        text=text,
        level=ATOM,
        unmoved=unmoved,
        dtype=operand.dtype if operand.dtype.inexact and not products else UNKNOWN_DTYPE,
        shares=False,
        exact=False,
        shape=None,
    )


def _made(lifter: Lifter, function: cst.BaseExpression) -> cst.Call | None:
    """The one call that makes a module."""
    value = lifter.model.value(function)
    if value.kind is not Kind.MODULE or value.optional or len(value.origins) != 1:
        return None
    (made,) = value.origins
    return made if isinstance(made, cst.Call) and not _is_altered(lifter.model, function) else None


def _is_altered(model: Model, function: cst.BaseExpression) -> bool:
    """Whether a file puts something else in the place of a module or of a part of it, or hooks into its calls."""
    if _HOOKING.search(model.source.text):
        return True
    name, own = _name(function), model.binding(function)

    def is_it(node: cst.BaseExpression) -> bool:
        return _name(node) == name and model.binding(node) in (own, None)

    for target in model.nodes_of(cst.AssignTarget):
        assert isinstance(target, cst.AssignTarget)
        first, *inner = _chain(target.target)
        if isinstance(first, cst.Attribute) and is_it(first) and model.binding(first) is None:
            return True
        if any(map(is_it, inner)) and not any(_name(part) in _OF_PARAMETERS for part in (first, *inner)):
            return True
    extended = (call.receiver for call in model.calls if call.method in _EXTENDING)
    return any(is_it(part) for receiver in extended if receiver is not None for part in _chain(receiver))


def _chain(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """`self.net[0].act`, `self.net[0]`, `self.net` and `self`"""
    yield node
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
        yield node


def _name(node: cst.BaseExpression) -> str | None:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else None


def _parts(lifter: Lifter, made: cst.Call, *, first: bool = True) -> frozenset[str] | None:
    """The classes that a module is made of, one after the other; None where another one is among them."""
    name = (lifter.model.qualified(made.func) or "").removeprefix("torch.nn.")
    if any(argument.star for argument in made.args):
        return None
    if name == "Sequential":
        found: set[str] = set()
        for place, argument in enumerate(made.args):
            part = argument.value if isinstance(argument.value, cst.Call) and argument.keyword is None else None
            classes = _parts(lifter, part, first=first and place == 0) if part is not None else None
            if classes is None:
                return None
            found |= classes
        return frozenset(found) or None
    if name == "LayerNorm":
        shape = made.args[0].value if made.args else None
        return frozenset([name]) if not isinstance(shape, (cst.Tuple, cst.List, cst.Attribute)) else None
    if name in _POINTWISE:
        in_place = any(argument.keyword is not None and argument.keyword.value == "inplace" for argument in made.args)
        bare = not made.args or not first or name in ("LeakyReLU", "ELU", "Softplus", "CELU", "Hardtanh")
        return frozenset([name]) if bare and not (in_place and first) and (len(made.args) < 2 or not first) else None
    return frozenset([name]) if name in _LAST else None
