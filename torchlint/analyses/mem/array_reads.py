"""Outputs that are read as arrays: `numpy()` raises on a tensor that requires a gradient, so these carry no graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Write
    from torchlint.semantics.model import Model

# What a tensor becomes by them carries the graph that it carried.
_KEEPING_GRAPH = frozenset(
    "cpu float double half squeeze unsqueeze view reshape flatten permute transpose t contiguous mean sum".split()
)


# Functions that a tensor with a graph cannot be given, and that make a tensor of what a method returned otherwise.
_TAKING_ARRAYS = frozenset({"torch.from_numpy", "numpy.array", "numpy.asarray"})
_MAKING_TENSORS = frozenset({"torch.Tensor", "torch.FloatTensor", "torch.LongTensor"})


def is_read_as_array(model: Model, value: cst.CSTNode) -> bool:
    """Whether `numpy()` is called on a value, or on a variable that holds nothing without its graph, undetached; or
    whether it is given to a function that takes arrays."""
    end, is_array = _becomes(model, value)
    if is_array or _is_given_as_array(model, end, value):
        return True
    assign = model.parent(end)
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return False
    target = assign.targets[0].target
    parts = [part.value for part in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
    # Of several parts one may be without a graph by itself, as the action is that a policy draws.
    return all(_is_array(model, model.binding(part), end) for part in parts)


def _is_array(model: Model, binding: Binding | None, made: cst.CSTNode) -> bool:
    """Whether `numpy()` is called on a variable that holds what was made, or a part of it, and nothing else."""
    if binding is None or not all(
        write.value is made or _is_made_of(model, write, binding) for write in binding.writes
    ):
        return False
    return any(_becomes(model, read)[1] for read in binding.reads)


def _is_given_as_array(model: Model, end: cst.CSTNode, value: cst.CSTNode) -> bool:
    """`np.array(net(x))`, and `torch.Tensor(booster.predict(x))`, of a model that is no network."""
    argument = model.parent(end)
    taker = model.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(taker, cst.Call) or taker.args[0] is not argument:
        return False
    callee = model.call(taker).callee or ""
    is_method = isinstance(value, cst.Call) and model.call(value).method not in (None, "forward")
    return callee in _TAKING_ARRAYS or (is_method and callee in _MAKING_TENSORS)


def _is_made_of(model: Model, write: Write, binding: Binding) -> bool:
    """`out = torch.tanh(out)`"""
    reads = [node for node in walk(write.value) if node in binding.reads] if write.value is not None else []
    return bool(reads) and model.value(write.target).carries


def _becomes(model: Model, node: cst.CSTNode) -> tuple[cst.CSTNode, bool]:
    """What is made of a value step by step, its graph kept; and whether `numpy()` is called on that."""
    while True:
        match parent := model.parent(node):
            case cst.Subscript(value=inner) if inner is node:
                node = parent
            case cst.Attribute(value=inner, attr=cst.Name(value=name)) if inner is node:
                call = model.parent(parent)
                if not isinstance(call, cst.Call) or call.func is not parent:
                    return node, False
                if name == "numpy":
                    return call, True
                if name not in _KEEPING_GRAPH:
                    return node, False
                node = call
            case _:
                return node, False
