"""What writes to the memory of a tensor, under any of its names, here or in a function that it goes to."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices import host_calls
from torchlint.analyses.once import once_for_each
from torchlint.semantics import torch_api
from torchlint.semantics.dataflow import parameter_of_function, writes_reaching
from torchlint.semantics.parallel_assignment import target_of
from torchlint.semantics.tree import last_name
from torchlint.semantics.vocabulary import is_loss_module
from torchlint.word_set import word_set

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Loop
    from torchlint.semantics.model import Model

_DEPTH = 3
_COMPUTED = (cst.Call, cst.BinaryOperation, cst.UnaryOperation)
_READERS = frozenset(
    f"builtins.{name}" for name in word_set("print float int str repr round format bool isinstance type")
)
# Methods in place that leave the numbers as they are.
_ABOUT_GRAPH = frozenset({"requires_grad_", "detach_", "share_memory_"})


class Written(IntEnum):
    """Whether something writes to a tensor. PERHAPS: it goes where nobody can see what happens to it."""

    NEVER = 0
    PERHAPS = 1
    SURELY = 2


def written(model: Model, binding: Binding, depth: int = _DEPTH) -> Written:
    """Whether anything in the function of a variable, or in one that it is handed to, writes to what it holds."""
    return max((written_at(model, node, depth) for node in mentions(model, binding)), default=Written.NEVER)


@once_for_each
def writing_mentions(model: Model, binding: Binding) -> list[tuple[cst.CSTNode, Written]]:
    """Where a variable is mentioned and what it holds is, or may be, written to."""
    found = ((node, written_at(model, node)) for node in mentions(model, binding))
    return [(node, how) for node, how in found if how is not Written.NEVER]


def mentions(model: Model, binding: Binding) -> Iterator[cst.CSTNode]:
    """Where a variable, or another name of the memory that it holds, is read or changed in place."""
    for name in _names_of_memory(model, binding):
        yield from name.reads
        yield from (write.target for write in name.writes if write.kind == "augmented")


def memory_of(model: Model, tensor: cst.BaseExpression) -> Binding | None:
    """The variable that holds the memory of a tensor, which may be a view of it: `out` of `out.detach()[0]`."""
    return next((model.binding(base) for base in _viewed(model, tensor)), None)


def written_at(model: Model, node: cst.CSTNode, depth: int = _DEPTH) -> Written:
    """What the place where a tensor is mentioned does to its memory. What is done under another name of a variable of
    the same function is done where that one is mentioned."""
    parent = model.parent(node)
    match parent:
        case cst.Attribute():
            return _of_attribute(model, parent, depth)
        case cst.Subscript():
            return written_at(model, parent, depth) if parent.value is node else Written.NEVER
        case cst.AugAssign():
            return Written.SURELY if parent.target is node else Written.NEVER
        case cst.AssignTarget():
            return Written.NEVER if isinstance(node, cst.Name) else Written.SURELY
        case cst.Arg():
            return _of_argument(model, parent, depth)
        case cst.IfExp() | cst.BooleanOperation():
            return written_at(model, parent, depth)
        case cst.Element():
            arg = model.parent(model.parent(parent) or parent)
            return _of_argument(model, arg, depth) if isinstance(arg, cst.Arg) else Written.PERHAPS
        case cst.BinaryOperation() | cst.UnaryOperation() | cst.Comparison() | cst.ComparisonTarget():
            return Written.NEVER
        case cst.FormattedStringExpression() | cst.Expr() | cst.If() | cst.While() | cst.Assert() | cst.Index():
            return Written.NEVER
    return Written.NEVER if _new_name(model, node) is not None else Written.PERHAPS


def is_handed_on(model: Model, node: cst.CSTNode) -> bool:
    """Whether a tensor gets another name where it is mentioned, or goes where nobody can see what holds it then."""
    return _new_name(model, _end_of_views(model, node)) is not None or written_at(model, node) is Written.PERHAPS


def is_its_own(model: Model, tensor: cst.BaseExpression, loop: Loop, depth: int = _DEPTH) -> bool:
    """Whether a tensor that each iteration makes anew shares its memory with no other, and nothing writes to it."""
    if isinstance(tensor, (cst.BinaryOperation, cst.UnaryOperation)):
        return True
    if isinstance(tensor, cst.Call):
        call = model.call(tensor)
        entry = torch_api.lookup(call.callee) if call.callee is not None else None
        if entry is not None:
            return not any(entry.may(flag) for flag in ("view", "inplace"))
        return is_loss_module(model.value(tensor.func).ref or last_name(tensor.func))
    binding = model.binding(tensor) if isinstance(tensor, cst.Name) else None
    if binding is None or binding.shared or not depth or any(write.kind != "assign" for write in binding.writes):
        return False
    held = writes_reaching(model, binding, tensor)
    if not held or not all(loop.node in model.ancestors(write.target) for write in held):
        return False
    if written(model, binding) is not Written.NEVER:
        return False
    made = [write.value for write in held if write.value is not None]
    if "backward" in binding.methods and all(isinstance(value, _COMPUTED) for value in made):
        return True
    is_unpacked = any(write.unpacked for write in held)
    return not is_unpacked and all(is_its_own(model, value, loop, depth - 1) for value in made)


def _of_attribute(model: Model, attribute: cst.Attribute, depth: int) -> Written:
    name, call = attribute.attr.value, model.parent(attribute)
    if not isinstance(call, cst.Call) or call.func is not attribute:
        entry = torch_api.attribute(name)
        is_other = entry is not None and "view" not in entry.flags
        return Written.NEVER if is_other else written_at(model, attribute, depth)
    method = torch_api.method(name)
    if method is None:
        return Written.PERHAPS
    if "inplace" in method.flags:
        return Written.NEVER if name in _ABOUT_GRAPH else Written.SURELY
    return written_at(model, call, depth) if method.may("view") else Written.NEVER


def _of_argument(model: Model, arg: cst.Arg, depth: int) -> Written:
    site = model.parent(arg)
    if not isinstance(site, cst.Call):
        return Written.PERHAPS
    call = model.call(site)
    entry = torch_api.lookup(call.callee or "")
    if entry is not None and not call.is_forward:
        return _of_torch(model, call, entry, arg, depth)
    if (call.target or call.foreign) is not None:
        return _inside(model, call, arg, depth)
    is_reader = (
        (call.callee or "").startswith("math.")
        or call.callee in _READERS
        or call.method in ("backward", "scale")
        or host_calls.writes(call)
        or is_loss_module(model.value(site.func).ref or last_name(site.func))
    )
    return Written.NEVER if is_reader else Written.PERHAPS


def _of_torch(model: Model, call: Call, entry: torch_api.Entry, arg: cst.Arg, depth: int) -> Written:
    of_receiver = (call.callee or "").startswith("torch.Tensor.")  # that is what a method in place writes to
    in_place = entry.may("inplace") and not of_receiver
    if entry.may("writes") or in_place or (arg.keyword is not None and arg.keyword.value == "out"):
        return Written.SURELY
    if entry.takes("inplace"):
        return Written.PERHAPS
    return written_at(model, call.node, depth) if entry.may("view") else Written.NEVER


def _inside(model: Model, call: Call, arg: cst.Arg, depth: int) -> Written:
    """What a function of the project does to what it is given."""
    function = call.target or call.foreign
    home = model if call.target is not None else model.home(call)
    if function is None or home is None or not depth or call.alternatives:
        return Written.PERHAPS
    parameter = parameter_of_function(call, function, arg)
    return written(home, parameter, depth - 1) if parameter is not None else Written.PERHAPS


# -- other names of the same memory -----------------------------------------------------------------------------------


def _names_of_memory(model: Model, binding: Binding) -> list[Binding]:
    """The variable itself, what views of it are assigned to, and what its own value is a view of."""
    names = [binding]
    for name in names:  # it grows while the loop runs
        viewed = (model.binding(base) for write in name.writes for base in _viewed(model, write.value))
        viewing = (_new_name(model, _end_of_views(model, read)) for read in name.reads)
        names.extend(other for other in {*viewed, *viewing} if other is not None and other not in names)
    return names


def _new_name(model: Model, node: cst.CSTNode) -> Binding | None:
    """The variable that an expression is assigned to."""
    target = target_of(model.small_statement(node), node)
    return model.binding(target) if isinstance(target, cst.Name) else None


def _end_of_views(model: Model, node: cst.CSTNode) -> cst.CSTNode:
    """`x.detach()[0]` of the x in it."""
    parent = model.parent(node)
    match parent:
        case cst.Subscript(value=value) if value is node:
            return _end_of_views(model, parent)
        case cst.Attribute(attr=cst.Name(value=name)):
            call = model.parent(parent)
            if isinstance(call, cst.Call) and call.func is parent:
                return _end_of_views(model, call) if _may_view(torch_api.method(name)) else node
            return _end_of_views(model, parent) if _may_view(torch_api.attribute(name)) else node
    return node


def _viewed(model: Model, node: cst.CSTNode | None) -> Iterator[cst.CSTNode]:
    """The x of `x.detach()[0]`, and `x` itself."""
    match node:
        case cst.Name():
            yield node
        case cst.Subscript(value=value):
            yield from _viewed(model, value)
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value=name))) if _may_view(torch_api.method(name)):
            yield from _viewed(model, value)
        case cst.Attribute(value=value, attr=cst.Name(value=name)) if _may_view(torch_api.attribute(name)):
            yield from _viewed(model, value)


def _may_view(entry: torch_api.Entry | None) -> bool:
    return entry is not None and (entry.may("view") or entry.may("inplace"))
