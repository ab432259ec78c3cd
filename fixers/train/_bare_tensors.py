"""Whether a tensor can stand where `Variable` makes a new object of it, and nothing tells the two apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.order import is_before
from torchlint.analyses.tensor_writes import is_handed_on
from torchlint.analyses.train.owned_tensors import MAY_RETURN_THEMSELVES, is_drawn_alone, is_made_anew, without_moves
from torchlint.analyses.variable_wrapper import Wrapper
from torchlint.semantics import torch_api
from torchlint.semantics.dataflow import reaches, writes_reaching
from torchlint.semantics.parallel_assignment import target_of
from torchlint.semantics.tree import is_name
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import returns_tensor

from ._gradient_uses import OF_LEAVES, sees_leaves, takes_no_gradient

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_MAY_RETURN_THEIR_ARGUMENT = frozenset({"torch.as_tensor", "torch.asarray", "torch.atleast_1d", "torch.real"})


def may_stand_bare(wrapper: Wrapper, model: Model) -> bool:
    """Whether the tensor itself can take the place of the new object that Variable makes of it.

    Not where something may set `requires_grad` or read `grad` of the one, and the other is still in use.
    """
    inner, call = wrapper.data.node, wrapper.call.node
    if inner is None:
        return False
    if is_made_anew(inner, model) or (takes_no_gradient(call, model) and not wants_gradients(wrapper)):
        return True
    if wants_gradients(wrapper):
        is_alone = is_drawn_alone(inner, call, model) and not _has_other_holder(inner, call, model)
        if is_alone or _is_made_for_itself(inner, wrapper, model) or _is_used_last(inner, call, model):
            return True
        return wrapper.wraps_plain_tensor and is_temporary(inner, model) and not _is_changed_view(inner, call, model)
    if _is_cut_off_again(call, model) or _is_drawn_for_itself(inner, call, model):
        return True
    if not wrapper.wraps_plain_tensor:
        return False
    if wrapper.data.value.dtype in ("int", "bool"):  # of these dtypes nothing can ask for gradients
        return True
    if isinstance(inner, cst.Subscript) and wrapper.data.value.kind is Kind.BATCH:
        return not sees_leaves(model)
    if is_temporary(inner, model):
        return not _is_changed_view(inner, call, model)
    held, end = without_moves(inner, model), with_moves(call, model)
    if isinstance(held, cst.Attribute) and model.binding(held) is not None:
        return _is_used_up(end, model) and not sees_leaves(model)
    if not isinstance(held, cst.Name):
        return False
    return _is_used_up(end, model) or _gets_a_name(end, held, model) or _is_handed_back(end, held, model)


def _has_other_holder(inner: cst.BaseExpression, call: cst.Call, model: Model) -> bool:
    """Whether what is drawn gets another name first, under which it would ask for gradients, too: `raw = x`."""
    part = without_moves(inner, model)
    binding = model.binding(part)
    reads = binding.reads if binding is not None else []
    return any(is_before(model, read, call) and is_handed_on(model, read) for read in reads if read is not part)


def _is_made_for_itself(inner: cst.BaseExpression, wrapper: Wrapper, model: Model) -> bool:
    """`x = y.data` or `x = torch.rand(3)` above `x = Variable(x)`, with no other use of the first one."""
    binding = name_of(wrapper.call.node, model)
    if binding is None or model.binding(inner) is not binding:
        return False
    made = writes_reaching(model, binding, inner)
    others = [read for read in binding.reads if read is not inner]
    return bool(made) and all(
        write.value is not None
        and (is_made_anew(write.value, model) or (wrapper.wraps_plain_tensor and is_temporary(write.value, model)))
        and not any(reaches(model, binding, write.target, read) for read in others)
        for write in made
    )


def _is_used_last(inner: cst.BaseExpression, call: cst.Call, model: Model) -> bool:
    """Whether a function wraps a tensor of its own, made without a graph, which nothing holds or reads any more."""
    binding = model.binding(inner) if isinstance(inner, cst.Name) else None
    if binding is None or binding.is_parameter or binding.is_global or binding.shared or binding.cls is not None:
        return False
    loops = model.loops_around(call)
    made = [
        is_temporary(write.value, model) or _is_moved(write.value, binding, model)
        for write in binding.writes
        if model.loops_around(write.target) == loops
    ]
    others = [read for read in binding.reads if read is not inner]
    own = [read for read in others if any(model.statement(read) is write.statement for write in binding.writes)]
    return (
        bool(made)
        and len(made) == len(binding.writes)
        and all(made)
        and all(is_before(model, read, call) for read in others)
        and not any(is_handed_on(model, read) for read in others if read not in own)
    )


def _is_drawn_for_itself(inner: cst.BaseExpression, call: cst.Call, model: Model) -> bool:
    """Whether a tensor of a loader has no other use, and takes no part in a graph of its own under its new name."""
    if not is_drawn_alone(inner, call, model):
        return False
    name = name_of(with_moves(call, model), model)
    return name is None or not (_changes(name, model) or has_leaf(name, model))


def _is_changed_view(inner: cst.BaseExpression, call: cst.Call, model: Model) -> bool:
    return _is_view(inner, model) and _is_changed(call, model)


def with_moves(node: cst.BaseExpression, model: Model) -> cst.BaseExpression:
    """`x.float().cuda()` around x, and the conditional expression around that."""
    parent = model.parent(node)
    call = model.parent(parent) if isinstance(parent, cst.Attribute) else None
    if isinstance(call, cst.Call) and call.func is parent and model.call(call).method in MAY_RETURN_THEMSELVES:
        return with_moves(call, model)
    if isinstance(parent, cst.IfExp) and parent.test is not node:
        return with_moves(parent, model)
    return node


def _is_used_up(node: cst.BaseExpression, model: Model) -> bool:
    """Whether an operation or a module takes the tensor, so that nothing holds it under another name."""
    parent = model.parent(node)
    user = model.parent(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(user, cst.Call):
        is_module = model.call(user).is_forward or model.value(user.func).kind is Kind.MODULE
        return is_module or returns_tensor(model.call(user).callee or "")
    return isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation))


def _gets_a_name(node: cst.BaseExpression, held: cst.Name, model: Model) -> bool:
    """Whether a variable gets the tensor, so that one tensor has two names, and nothing tells it from two tensors."""
    old, new = model.binding(held), name_of(node, model)
    if old is None or new is None or new.cls is not None or sees_leaves(model) or _changes(new, model):
        return False
    return old is new or not (old.is_global or old.shared or _changes(old, model))


def _is_handed_back(node: cst.BaseExpression, held: cst.Name, model: Model) -> bool:
    """Whether a function returns a tensor of its own."""
    binding = model.binding(held)
    return (
        isinstance(model.parent(node), cst.Return)
        and binding is not None
        and not (binding.is_parameter or binding.is_global or binding.shared or binding.cls is not None)
        and all(is_temporary(write.value, model) or _is_moved(write.value, binding, model) for write in binding.writes)
    )


def _is_moved(node: cst.BaseExpression | None, binding: Binding, model: Model) -> bool:
    """`x = x.cuda()`, where x is the variable."""
    call = model.call(node) if isinstance(node, cst.Call) else None
    return (
        call is not None
        and call.method in MAY_RETURN_THEMSELVES
        and model.binding(call.receiver or call.node) is binding
    )


def _is_cut_off_again(node: cst.Call, model: Model) -> bool:
    """Whether all that is done with the result is to call its `detach()`."""
    attribute = model.parent(node)
    if not isinstance(attribute, cst.Attribute) or attribute.attr.value != "detach":
        return False
    call = model.parent(attribute)
    return isinstance(call, cst.Call) and call.func is attribute


def is_temporary(node: cst.BaseExpression | None, model: Model) -> bool:
    """Whether nothing else holds the tensor that an expression makes."""
    if isinstance(node, cst.BinaryOperation):
        return True
    if not isinstance(node, cst.Call):
        return False
    call = model.call(node)
    if call.receiver is not None and call.receiver_value.kind is Kind.TENSOR:
        if call.method in MAY_RETURN_THEMSELVES or (call.method or "").endswith("_"):
            return is_temporary(call.receiver, model)
        return torch_api.method(call.method or "") is not None
    return returns_tensor(call.callee or "") and call.callee not in _MAY_RETURN_THEIR_ARGUMENT


def _is_view(node: cst.BaseExpression, model: Model) -> bool:
    """Whether an expression may look into the memory of a tensor that has a name: a change of it can reach that."""
    while isinstance(node, cst.Call) and model.call(node).receiver_value.kind is Kind.TENSOR:
        node = model.call(node).receiver or node
    return isinstance(node, (cst.Name, cst.Attribute, cst.Subscript))


def _is_changed(call: cst.Call, model: Model) -> bool:
    """Whether what a call makes gets a name, and is changed in place under it."""
    binding = name_of(call, model)
    return _changes(binding, model) if binding is not None else not isinstance(model.parent(call), cst.Return)


def _changes(binding: Binding, model: Model) -> bool:
    """Whether a tensor is changed in place under the name of a variable."""
    if any(name.endswith("_") and not name.startswith("__") for name in binding.methods):
        return True
    stores = (model.parent(model.parent(read) or read) for read in binding.reads)
    return any(isinstance(model.small_statement(write.target), cst.AugAssign) for write in binding.writes) or any(
        isinstance(store, (cst.AssignTarget, cst.AugAssign)) for store in stores
    )


def wants_gradients(wrapper: Wrapper) -> bool:
    """Whether the new object is asked to take gradients."""
    return wrapper.requires_grad.given and not is_name(wrapper.requires_grad.node, "False")


def name_of(value: cst.BaseExpression, model: Model) -> Binding | None:
    """The variable that a value is assigned to."""
    target = target_of(model.small_statement(value), value)
    return model.binding(target) if target is not None else None


def has_leaf(binding: Binding, model: Model) -> bool:
    """Whether a variable is asked for what only a leaf has, such as `x.grad`."""
    users = [model.parent(read) for read in binding.reads]
    return any(isinstance(user, cst.Attribute) and user.attr.value in OF_LEAVES for user in users)
