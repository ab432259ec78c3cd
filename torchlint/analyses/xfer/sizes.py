"""Classes of tensors that are called with sizes, `torch.FloatTensor(n, 3)`, or with data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.variable_wrapper import VARIABLE
from torchlint.analyses.xfer.agreement import DRAWING, FILLING
from torchlint.semantics.dataflow import text
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

SIZED_CLASSES = {
    "torch.Tensor": None,
    "torch.FloatTensor": "torch.float32",
    "torch.DoubleTensor": "torch.float64",
    "torch.HalfTensor": "torch.float16",
    "torch.BFloat16Tensor": "torch.bfloat16",
    "torch.LongTensor": "torch.int64",
    "torch.IntTensor": "torch.int32",
    "torch.ShortTensor": "torch.int16",
    "torch.CharTensor": "torch.int8",
    "torch.ByteTensor": "torch.uint8",
    "torch.BoolTensor": "torch.bool",
}


HOST_CLASSES = frozenset(SIZED_CLASSES) - {"torch.Tensor"}  # wherever tensors are made by default


def is_given_sizes(call: Call, model: Model) -> bool:
    """Whether `torch.FloatTensor(...)` gets sizes, or nothing. A single list, tuple or array is data, unless it is
    filled over."""
    if any(arg.star == "**" for arg in call.arguments):
        return False
    if has_sizes(call, model):
        return True
    only = call.arguments[0]
    if only.keyword is not None or model.value(only.value).kind is not Kind.UNKNOWN:
        return False
    return (
        _is_filled_over(call.node, model)
        or _is_filled_over_next(call, model)
        or text(only.value) in model.once(_sizes_among_others)
    )


def _sizes_among_others(model: Model) -> frozenset[str]:
    """What a file gives as one of several sizes: `opt.batch` of `torch.FloatTensor(opt.batch, 3)` is no list."""
    calls = (call for call in model.calls_to(*SIZED_CLASSES) if len(call.arguments) > 1)
    return frozenset(text(arg.value) for call in calls for arg in call.arguments if arg.keyword is None)


def _is_filled_over(node: cst.CSTNode, model: Model) -> bool:
    """`x.fill_(1)`, `x.data.normal_()` of what a node gives: whatever it was made of, it keeps the shape alone."""
    above = model.parent(node)
    if isinstance(above, cst.Attribute) and above.attr.value == "data":
        above = model.parent(above)
    return isinstance(above, cst.Attribute) and above.attr.value in FILLING | DRAWING


def _is_filled_over_next(call: Call, model: Model) -> bool:
    """Whether the next statement fills the variable that a tensor is put into."""
    inner: cst.CSTNode = call.node
    while isinstance(arg := model.parent(inner), cst.Arg):
        wrapper = model.parent(arg)
        if not isinstance(wrapper, cst.Call) or model.call(wrapper).callee != VARIABLE:
            return False
        inner = wrapper
    match model.parent(inner):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]):
            binding, line = model.binding(target), model.statement(inner)
            body = getattr(model.parent(line), "body", ())
            after = body[body.index(line) + 1 :][:1] if line in body else ()
            reads = binding.reads if binding is not None else ()
            return any(model.statement(read) in after and _is_filled_over(read, model) for read in reads)
    return False


def has_sizes(call: Call, model: Model) -> bool:
    """Whether all arguments of a class of tensors are sizes for sure."""
    if not call.arguments:
        return True
    if any(arg.keyword is not None for arg in call.arguments):
        return [arg.keyword.value for arg in call.arguments if arg.keyword is not None] == ["size"]
    if len(call.arguments) > 1:
        return True
    only = call.arguments[0].value
    value = model.value(only)
    if call.arguments[0].star == "*":
        return not (value.element is not None and value.element.is_(Kind.TENSOR, Kind.ARRAY, Kind.BATCH, Kind.LIST))
    return _is_torch_size(only, model) or (value.kind is Kind.NUMBER and value.dtype == "int")


def _is_torch_size(node: cst.BaseExpression, model: Model) -> bool:
    """`x.size()`, and `x.shape` of what is a tensor: the shape of an array or of a space is data."""
    match node:
        case cst.Attribute(value=owner, attr=cst.Name(value="shape")):
            return model.value(owner).is_tensor
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[]):
            return True
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            parts = (left, right)
            plain = all(_is_torch_size(part, model) or isinstance(part, cst.Tuple) for part in parts)
            return plain and any(_is_torch_size(part, model) for part in parts)
    return False
