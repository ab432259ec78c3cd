"""Which calls copy data from the host to an accelerator, and from which data loader that data comes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.host_branch import is_for_host
from torchlint.analyses.once import once_for_each
from torchlint.semantics.dataflow import writes_reaching
from torchlint.semantics.tree import arms, children, is_name
from torchlint.semantics.values import UNKNOWN, Kind, Place, Value
from torchlint.semantics.vocabulary import is_tensor_method

if TYPE_CHECKING:
    from torchlint.semantics.entities import Argument, Call, Loop
    from torchlint.semantics.model import Model

# Names that mean a device where the value of the expression is not known: `args.device`, `self.local_rank`, `gpu_id`.
_DEVICE_NAME = re.compile(r"(device|gpu|cuda|rank|dev)s?(_?(id|ids|num|index))?\d*$", re.IGNORECASE)
_SAME_DATA = frozenset(
    "long int short bool float double view reshape flatten squeeze unsqueeze permute transpose contiguous".split()
)
_CONVERSIONS = re.compile(r"torch\.(cuda\.)?(tensor|as_tensor|from_numpy|\w*Tensor)")
_FROM_ARRAYS = re.compile(r"torch\.(from_numpy|tensor|\w+Tensor)")
_NOT_CUDA = ("cpu", "meta", "mps")


@dataclass(frozen=True, slots=True)
class Move:
    """A call that copies `source` to an accelerator."""

    call: Call
    source: cst.BaseExpression
    origins: frozenset[cst.CSTNode]  # where the batches in the source were made: the calls that built the loaders
    is_batch: bool  # the source is a batch, or a part of one; otherwise it is computed from one


def moves(model: Model) -> list[Move]:
    """Every call that copies a batch of a loader, or something computed from one, from the host to an accelerator."""
    found = []
    for call in model.calls:
        source = _source(call, model)
        if source is None or is_for_host(call.node, model):
            continue
        value = model.value(_underlying(source))
        if value.place is Place.ACCELERATOR:
            continue
        if value.is_(Kind.BATCH, Kind.TENSOR) and value.origins:
            found.append(Move(call, source, value.origins, True))
        else:
            origins = frozenset(origin for part in _batches_in(source, model) for origin in part.origins)
            if origins:
                found.append(Move(call, source, origins, False))
    return found


def moves_of_unknown_origin(calls: Iterable[Call], model: Model) -> Iterator[Call]:
    """Those of the calls that copy a batch of a loader that this file does not build."""
    for call in calls:
        source = _source(call, model)
        value = model.value(_underlying(source)) if source is not None else UNKNOWN
        if value.kind is Kind.BATCH and not value.origins and value.place is not Place.ACCELERATOR:
            yield call


def copies_conversion(call: Call, model: Model) -> bool:
    """Whether a call copies to an accelerator what was no tensor before: `torch.from_numpy(x).float().to(device)`."""
    source = _source(call, model)
    made = _underlying(source) if source is not None else None
    return isinstance(made, cst.Call) and _FROM_ARRAYS.fullmatch(model.call(made).callee or "") is not None


@once_for_each
def moves_something(model: Model, loop: Loop) -> bool:
    """Whether each iteration of a loop copies something to an accelerator."""
    return any(call.loop is loop and moves_to_accelerator(call, model) for call in loop.calls)


def places_itself(model: Model, run: Call) -> bool:
    """Whether a network that a call runs puts itself on a device where it is made: `self.cuda()` in the constructor of
    a class of another file."""
    name = model.value(run.receiver if run.method == "forward" and run.receiver is not None else run.node.func).ref
    behind = model.class_behind(name) if name is not None else None
    made = behind[1].method("__init__") if behind is not None else None
    if behind is None or made is None:
        return False
    own = (call for call in made.calls if is_name(call.receiver, made.own_name))
    return any(call.method in ("cuda", "to") and moves_to_accelerator(call, behind[0]) for call in own)


def _underlying(node: cst.BaseExpression) -> cst.BaseExpression:
    """`y` of `y.long().view(-1)`: the same tensor, where the type is the right one already."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _SAME_DATA:
        node = node.func.value
    return node


def moves_to_accelerator(call: Call, model: Model) -> bool:
    """Whether a call copies its receiver to an accelerator, or makes a tensor there."""
    if call.method in ("cuda", "to"):
        return _source(call, model) is not None
    device = call.argument("device")
    return (call.callee or "").startswith("torch.") and device.given and is_accelerator(device.node, model)


def _batches_in(node: cst.CSTNode, model: Model) -> Iterator[Value]:
    """Values of the names below a node that are batches of tensors on the host, and that its numbers come from."""
    stack = [(node, True)]
    seen: set[cst.CSTNode] = set()
    while stack:
        part, proven = stack.pop()
        if isinstance(part, cst.Name):
            value = model.value(part)
            if proven and value.kind is Kind.BATCH and value.place is not Place.ACCELERATOR:
                yield value
            elif proven and value.kind is Kind.TENSOR and value.place is Place.HOST and not value.origins:
                computed = [source for source in _computations(part, model) if source not in seen]
                seen.update(computed)
                stack.extend((source, True) for source in computed)
        elif not _asks_for_size(part):
            inner = _takes_tensors(model.call(part)) if isinstance(part, cst.Call) else proven
            match part:  # of what it goes through, a comprehension holds no more than it says of each
                case cst.Subscript(value=held) | cst.ListComp(elt=held) | cst.GeneratorExp(elt=held):
                    parts: Sequence[cst.CSTNode] = [held]
                case _:
                    parts = children(part)
            stack.extend((child, inner) for child in parts)
            if proven and isinstance(part, cst.Call) and (entered := model.call(part).target) is not None:
                returned = [node.value for node in entered.returns if node.value is not None]
                stack.extend((source, True) for source in returned if source not in seen)
                seen.update(returned)


def _computations(name: cst.Name, model: Model) -> list[cst.BaseExpression]:
    """What a variable holds where it is read, if that is always one of the expressions assigned to it."""
    binding = model.binding(name)
    reaching = writes_reaching(model, binding, name) if binding is not None else []
    values = [write.value for write in reaching if write.kind == "assign" and not write.unpacked]
    return [value for value in values if value is not None] if len(values) == len(reaching) else []


def _takes_tensors(call: Call) -> bool:
    """A function of torch that computes with tensors. What is made into a tensor may be anything before."""
    name = call.callee or ""
    if name.startswith("torch.Tensor."):  # of a batch that is taken for one
        return is_tensor_method(name.rpartition(".")[2])
    return name.startswith("torch.") and _CONVERSIONS.fullmatch(name) is None


def _asks_for_size(node: cst.CSTNode) -> bool:
    match node:
        case cst.Attribute(attr=cst.Name(value="shape" | "dtype" | "device")):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size" | "dim" | "numel")) | cst.Name(value="len")):
            return True
    return False


def is_accelerator(node: cst.BaseExpression | None, model: Model) -> bool:
    """Whether an expression names a device that may be a CUDA GPU. What only looks like a device counts too."""
    match node:
        case None:
            return False
        case cst.IfExp(body=body, orelse=orelse):
            return is_accelerator(body, model) or is_accelerator(orelse, model)
        case (
            cst.BinaryOperation(left=start)
            | cst.Call(func=cst.Attribute(value=cst.SimpleString() as start, attr=cst.Name(value="format")))
        ):  # "cuda:%d" % rank, "cuda:" + str(rank), "cuda:{}".format(rank)
            return isinstance(start, cst.SimpleString) and str(start.evaluated_value).startswith("cuda")
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="get_device"))):
            return True
    value = model.value(node)
    match value.kind:
        case Kind.DEVICE:
            return value.place is not Place.HOST and not str(value.constant).startswith(_NOT_CUDA)
        case Kind.STRING if isinstance(value.constant, str):
            return not value.constant.startswith(_NOT_CUDA)
        case Kind.STRING if isinstance(node, cst.FormattedString):
            first = node.parts[0] if node.parts else None
            return isinstance(first, cst.FormattedStringText) and first.value.startswith("cuda")
        case Kind.NUMBER:
            return value.dtype != "bool" and (value.constant is not None or _looks_like_device(node))
        case Kind.UNKNOWN | Kind.STRING | Kind.INSTANCE | Kind.FUNCTION | Kind.NAMESPACE:
            return _looks_like_device(node)
        case _:
            return False


def _source(call: Call, model: Model) -> cst.BaseExpression | None:
    """What a call copies to an accelerator, if it does."""
    match call.method:
        case "cuda":
            return call.receiver
        case "to":
            return call.receiver if _names_accelerator(call.argument("device", 0), model) else None
        case "type":
            return call.receiver if names_cuda_type(call.argument("dtype", 0).node, model) else None
        case "copy_":
            return call.argument("src", 0).node if call.receiver_value.place is Place.ACCELERATOR else None
    if call.callee in ("torch.tensor", "torch.as_tensor") and call.arguments:
        device = call.argument("device")
        return call.arguments[0].value if device.given and is_accelerator(device.node, model) else None
    return None


def _names_accelerator(argument: Argument, model: Model) -> bool:
    return argument.given and is_accelerator(argument.node, model)


def _looks_like_device(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return _DEVICE_NAME.search(name) is not None
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]):
            return _DEVICE_NAME.search(str(key.evaluated_value)) is not None
        case cst.Subscript():
            return _looks_like_device(node.value)
        case cst.Call(func=called, args=[]):  # `x.to(dist.get_rank())`
            return _looks_like_device(called)
    return False


def names_cuda_type(node: cst.BaseExpression | None, model: Model) -> bool:
    """`torch.cuda.FloatTensor`, by itself or as one of the two things that an alias or an import may stand for."""
    binding = model.binding(node) if node is not None else None
    if binding is not None and any((write.imported or "").startswith("torch.cuda.") for write in binding.writes):
        return True
    candidates = [write.value for write in binding.writes] if binding is not None else [node]
    classes = (arm for candidate in candidates if candidate is not None for arm in arms(candidate))
    return any((model.qualified(named) or "").startswith("torch.cuda.") for named in classes)
