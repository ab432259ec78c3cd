"""What a program says outright of a variable, or shows by what it calls on it: that it is a tensor."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.once import once_for_each
from torchlint.analyses.vectorize.indexing import cuts
from torchlint.analyses.vectorize.reaching import Reaching
from torchlint.semantics.dataflow import text
from torchlint.semantics.tree import is_name, walk
from torchlint.semantics.values import Kind
from torchlint.word_set import word_set

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Write
    from torchlint.semantics.model import Model

_ANNOTATION = re.compile(r"[\"']?((\w+\.)*\w*Tensor|\w+\[(\w+\.)*Tensor, .*\])[\"']?")
_TENSOR_ONLY = word_set(
    """
    size dim unsqueeze detach cuda permute requires_grad_ numel expand type_as new_zeros new_tensor new_ones new_full
    bmm mm t matmul contiguous long unbind chunk gather scatter_ masked_fill masked_fill_ topk softmax log_softmax
    sigmoid tanh index_select add_ mul_ sub_ div_ zero_ unsqueeze_ squeeze_
    """
)
_LEAVING = (cst.Return, cst.Raise)
_ASKING = ("builtins.isinstance", "builtins.hasattr", "builtins.type", "torch.is_tensor")


class Use(NamedTuple):
    """A read of a variable, and the expression or statement around it that takes a tensor; `of_part`: of what
    `x[:, 1:4]` cuts out of the variable."""

    read: cst.CSTNode
    where: cst.CSTNode
    of_part: bool


@once_for_each
def uses_as_tensor(model: Model, binding: Binding) -> tuple[Use, ...]:
    """Where a method that only tensors have is called on a variable."""
    uses = (use for read in binding.reads if (use := _use_as_tensor(model, read)) is not None)
    return tuple(use for use in uses if model.value(use.read).kind is not Kind.INSTANCE)


def _use_as_tensor(model: Model, read: cst.CSTNode) -> Use | None:
    part, above = read, model.parent(read)
    if isinstance(above, cst.Subscript) and above.value is read and cuts(above):
        part, above = above, model.parent(above)
    if isinstance(above, cst.Attribute) and above.value is part:
        found = isinstance(model.parent(above), cst.Call) and above.attr.value in _TENSOR_ONLY
    elif part is not read and isinstance(above, cst.Assign) and len(above.targets) == 1:
        named = model.binding(above.targets[0].target)
        found = named is not None and len(named.writes) == 1 and bool(named.methods & _TENSOR_ONLY)
    else:
        return None
    return Use(read, above, part is not read) if found else None


def is_annotated(model: Model, write: Write) -> bool:
    """`def f(x: torch.Tensor)`."""
    parameter = model.parent(write.target)
    if not isinstance(parameter, cst.Param) or parameter.annotation is None:
        return False
    return _ANNOTATION.fullmatch(text(parameter.annotation.annotation).strip()) is not None


def is_of_autograd(model: Model, write: Write) -> bool:
    """What `backward` of a torch.autograd.Function is given, and what it has saved."""
    function = write.function
    if function.cls is None or "torch.autograd.Function" not in function.cls.bases or function.name != "backward":
        return False
    if write.kind == "parameter":
        return function.params.index(getattr(write.target, "value", "")) > 0 and not _has_default(model, write)
    value = write.value
    is_saved = isinstance(value, cst.Attribute) and value.attr.value == "saved_tensors"
    return write.kind == "assign" and write.unpacked and is_saved


def _has_default(model: Model, write: Write) -> bool:
    parameter = model.parent(write.target)
    return not isinstance(parameter, cst.Param) or parameter.default is not None


@once_for_each
def _questions(model: Model, binding: Binding) -> list[cst.Call]:
    """`isinstance(x, torch.Tensor)`"""
    above = ((read, model.parent(model.parent(read) or read)) for read in binding.reads)
    asking = [(read, call) for read, call in above if isinstance(call, cst.Call) and _asks_for_tensor(model, call)]
    return [call for read, call in asking if call.args[0].value is read]


def is_asserted(model: Model, reaching: Reaching, binding: Binding, place: cst.CSTNode) -> bool:
    """Whether the function goes on with a tensor alone: `assert isinstance(x, torch.Tensor)`, or what is none is made
    one, or leaves, in a branch before."""
    for call in _questions(model, binding):
        statement = model.statement(call)
        if model.function(call) is not model.function(place) or not reaching.surely_before(statement, place):
            continue
        negated = isinstance(model.parent(call), cst.UnaryOperation)
        if isinstance(statement, cst.If) and negated and statement.test is model.parent(call):
            return statement.orelse is None and _settles(model, statement, binding)
        small = model.small_statement(call)
        if isinstance(small, cst.Assert) and small.test is call:
            return len(binding.writes) == 1
    return False


def hangs_on_kind(model: Model, read: cst.CSTNode, place: cst.CSTNode) -> bool:
    """Whether a use says nothing of a variable at a place: the program has asked what it is, or minds an error."""
    around, name = set(model.ancestors(place)), text(read).strip()
    for node in takewhile(lambda above: above not in around, model.ancestors(read)):
        if isinstance(node, cst.Try):
            return True
        tests = [node.test] if isinstance(node, (cst.If, cst.IfExp)) else []
        tests += [node.left] if isinstance(node, cst.BooleanOperation) else []
        asked = (part for test in tests for part in walk(test) if isinstance(part, cst.Call) and part.args)
        if any(model.qualified(call.func) in _ASKING and is_name(call.args[0].value, name) for call in asked):
            return True
    return False


def _asks_for_tensor(model: Model, call: cst.Call) -> bool:
    named = model.qualified(call.func) == "builtins.isinstance" and len(call.args) == 2
    return named and model.qualified(call.args[1].value) == "torch.Tensor"


def _settles(model: Model, statement: cst.If, binding: Binding) -> bool:
    """Whether a branch for what is no tensor leaves, or makes it one by a function of torch."""
    last = statement.body.body[-1]
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
    if isinstance(small, _LEAVING):
        return len(binding.writes) == 1
    if (
        not isinstance(small, cst.Assign)
        or len(small.targets) != 1
        or not is_name(small.targets[0].target, binding.name)
    ):
        return False
    inside = [write for write in binding.writes if write.statement in set(walk(statement))]
    made = small.value
    is_made = isinstance(made, cst.Call) and model.qualified(made.func) in _MAKING
    return is_made and len(inside) == 1 and len(binding.writes) == 2 and binding.writes[0].kind == "parameter"


_MAKING = (
    "torch.tensor",
    "torch.as_tensor",
    "torch.from_numpy",
    "torch.Tensor",
    "torch.FloatTensor",
    "torch.LongTensor",
)
