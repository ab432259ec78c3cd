"""Tensors that have no graph and that nothing else holds: new ones, and what an iteration draws from a loader."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.variable_wrapper import VARIABLE
from torchlint.semantics.dataflow import reaches, text
from torchlint.semantics.tree import arms, walk
from torchlint.semantics.values import Grad, Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Write
    from torchlint.semantics.model import Model

MAY_RETURN_THEMSELVES = frozenset(
    """
    contiguous to type type_as cuda cpu float double half bfloat16 long int short byte char bool positive real conj
    resolve_conj resolve_neg
    """.split()
)
_NEW = frozenset({"new", "new_zeros", "new_ones", "new_empty", "new_full"})
_CLASSES = re.compile(r"torch\.(cuda\.)?(\w*Tensor)")
_NOT_TENSORS = frozenset({Kind.NUMBER, Kind.ARRAY, Kind.LIST, Kind.TUPLE})
_DATA = re.compile(r"(?i)(load|data|batch|sampl|iter)|(^|_)dl$")
_ASKED = frozenset({"size", "shape", "dim", "ndim", "dtype", "device", "keys"})


def is_made_anew(node: cst.BaseExpression, model: Model) -> bool:
    """`x.new(3)`, `x.new(3).zero_()`, `x.data`, or `Tensor(3, 4)` where Tensor is one of two classes of tensors."""
    match node:
        case cst.Attribute(attr=cst.Name(value="data")):
            return model.value(node).grad is Grad.DETACHED
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="detach")), args=[]):
            return True
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value="zero_" | "normal_" | "uniform_"))):
            return is_made_anew(value, model)
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value="fill_")), args=[cst.Arg(value=number)]):
            return isinstance(number, (cst.Integer, cst.Float)) and is_made_anew(value, model)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) if name in _NEW:
            return True
        case cst.Call(func=cst.Name() as func):
            return is_tensor_class(func, model) and _makes_numbers(node, model)
    return False


def is_tensor_class(func: cst.BaseExpression, model: Model) -> bool:
    """`Tensor` of `Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor`."""
    binding = model.binding(func)
    made = [write.value for write in binding.writes] if binding is not None else []
    classes = [arm for value in made if value is not None for arm in arms(value)]
    return bool(made) and None not in made and all(_CLASSES.fullmatch(model.qualified(cls) or "") for cls in classes)


def _makes_numbers(call: cst.Call, model: Model) -> bool:
    """Whether a class of tensors is given sizes or numbers, and not a tensor."""
    if len(call.args) != 1 or call.args[0].star:
        return True
    return model.value(call.args[0].value).kind in _NOT_TENSORS


def is_drawn_alone(inner: cst.BaseExpression, call: cst.Call, model: Model) -> bool:
    """Whether `Variable(batch["x"].cuda())` takes what one iteration draws from a loader, which nothing reads later."""
    part = without_moves(inner, model)
    root = part
    while isinstance(root, cst.Subscript):
        root = root.value
    binding = model.binding(root) if isinstance(root, cst.Name) else None
    if not isinstance(root, cst.Name) or binding is None or binding.cls is not None or binding.shared:
        return False
    if not _is_drawn(binding, root, call, model):
        return False
    if part is root and binding in _targets(call, model):
        return True
    end, code = model.span(call)[1], text(part)
    later = (_whole(read, model) for read in binding.reads if model.span(read)[0] > end)
    return all(_is_asked(other, model) or _is_other_part(text(other), code) for other in later)


def _is_other_part(other: str, part: str) -> bool:
    """`batch[1]` beside `batch[0]`, but not `batch` nor `batch[0][1]`."""
    return not other.startswith(part) and not part.startswith(other)


def _is_drawn(binding: Binding, inner: cst.Name, call: cst.Call, model: Model) -> bool:
    loops = model.loops_around(call)
    writes = [write for write in binding.writes if write.kind != "for" or reaches(model, binding, write.target, inner)]
    if not any(write.kind == "for" for write in writes):  # it gets there through `x = x.cuda()`
        around = [loop.node for loop in loops]
        writes = [write for write in binding.writes if write.kind != "for" or write.statement in around]
    drawn = [write for write in writes if _draws(write, model)]
    return (
        bool(drawn)
        and all(write in drawn or _keeps(write, binding, model) for write in writes)
        and all(
            any(loop.node is write.statement for loop in loops[:1])
            if write.kind == "for"
            else model.loops_around(write.target) == loops
            for write in drawn
        )
    )


def _draws(write: Write, model: Model) -> bool:
    """A variable gets a batch of a loader, or a part of one."""
    if write.kind not in ("for", "assign") or write.value is None:
        return False
    value = model.value(write.target)
    if value.kind is Kind.BATCH:
        return True
    is_open = value.kind is Kind.UNKNOWN or (value.kind is Kind.TENSOR and value.grad is Grad.UNKNOWN)
    names = [node.value for node in walk(write.value) if isinstance(node, cst.Name)]
    return write.kind == "for" and is_open and any(_DATA.search(name) for name in names)


def _keeps(write: Write, binding: Binding, model: Model) -> bool:
    """`x = x.cuda()`, `x, y = Variable(x), Variable(y)`"""
    if write.kind != "assign" or write.value is None:
        return False
    given = write.value
    values = [element.value for element in given.elements] if isinstance(given, cst.Tuple) else [given]
    roots = {_unwrapped(value, model) for value in values}
    reads = [node for node in walk(write.value) if isinstance(node, cst.Name) and model.binding(node) is binding]
    return bool(reads) and all(read in roots for read in reads)


def _unwrapped(node: cst.BaseExpression, model: Model) -> cst.BaseExpression:
    """x of `Variable(x.cuda()).float()`."""
    moved = without_moves(node, model)
    while isinstance(moved, cst.Call) and model.call(moved).callee == VARIABLE and moved.args:
        moved = without_moves(moved.args[0].value, model)
    return moved


def is_cut_before(node: cst.BaseExpression, model: Model) -> bool:
    """`x.data.cuda()`, `x.detach().cuda()`: a tensor that stands for itself alone, or one made of it."""
    match without_moves(node, model):
        case cst.Attribute(attr=cst.Name(value="data")) as data:
            return data is not node and model.value(data.value).is_(Kind.TENSOR, Kind.BATCH)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="detach")), args=[]) as detached:
            return detached is not node
    return False


def without_moves(node: cst.BaseExpression, model: Model) -> cst.BaseExpression:
    """x of `x.float().cuda()`, which may be x itself."""
    while isinstance(node, cst.Call) and model.call(node).method in MAY_RETURN_THEMSELVES:
        node = model.call(node).receiver or node
    return node


def _targets(call: cst.Call, model: Model) -> set[Binding | None]:
    statement = model.small_statement(call)
    if not isinstance(statement, cst.Assign):
        return set()
    return {
        model.binding(node) for target in statement.targets for node in walk(target) if isinstance(node, cst.Name)
    } - {None}


def _whole(read: cst.CSTNode, model: Model) -> cst.CSTNode:
    """`batch["x"]` of a read of `batch`."""
    parent = model.parent(read)
    while isinstance(parent, cst.Subscript) and parent.value is read:
        read, parent = parent, model.parent(parent)
    return read


def _is_asked(node: cst.CSTNode, model: Model) -> bool:
    """`x.size(0)`, `len(x)`"""
    parent = model.parent(node)
    if isinstance(parent, cst.Attribute):
        return parent.attr.value in _ASKED
    above = model.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(above, cst.Call) and model.call(above).callee == "builtins.len"
