"""Reads of `.data` that serve a write: an update in place, an initialisation, an exchange for a while."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.data_attribute.chain import VIEWS, Chain, is_stored, last_word
from torchlint.analyses.tensor_writes import Written, written_at
from torchlint.semantics.dataflow import parameter_of_function, writes_reaching
from torchlint.semantics.tree import is_name, walk

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_INITIALISER = re.compile(r"(^|_)init(_|$)")
# Likewise of a function whose result nobody takes.
_FILLING = re.compile(
    r"(?i)(^|_)(trunc\w*|normal|gaussian|uniform|xavier|glorot|kaiming|orthogonal|constant|fill\w*|zero\w*)(_|$)"
)


def serves_a_write(model: Model, node: cst.Attribute, chain: Chain) -> bool:
    """Whether the read is part of an in-place update or an initialisation: `p.data = 0.9 * p.data`, `init.x_(w.data)`,
    or of a variable that is changed in place later. That of another tensor, as by an average, is none."""
    if isinstance(model.parent(chain.end), cst.Arg) and written_at(model, node) is Written.SURELY:
        return True
    statement = model.small_statement(node)
    below: cst.CSTNode = node
    for parent in model.ancestors(node):
        if isinstance(parent, cst.Call) and isinstance(below, cst.Arg) and _is_filled_by(model, parent, below):
            return True
        if parent is statement:
            break
        below = parent
    if isinstance(statement, cst.Assign):
        targets: list[cst.CSTNode] = [target.target for target in statement.targets]
    elif isinstance(statement, (cst.AugAssign, cst.AnnAssign)):
        targets = [statement.target]
    else:
        return False
    return any(
        _is_update(model, target, node.value)
        if _is_data_target(target)
        else (_is_kept(statement, chain) and _is_filled(model, target, chain))
        or _is_put_back(model, target, node.value)
        for target in targets
    )


def _is_kept(statement: cst.Assign | cst.AnnAssign | cst.AugAssign, chain: Chain) -> bool:
    """Whether the target becomes what is read, which a sum that it is added to does not."""
    return statement.value is chain.end and not isinstance(statement, cst.AugAssign)


def _is_update(model: Model, target: cst.CSTNode, owner: cst.BaseExpression) -> bool:
    """Whether what is read is what the assignment to `.data` changes, or its gradient; a result is no such thing."""
    read = owner.value if isinstance(owner, cst.Attribute) and owner.attr.value == "grad" else owner
    written = [part.value for part in _written_parts(target) if isinstance(part, cst.Attribute) and _is_data(part)]
    return any(part.deep_equals(read) for part in written) and not _is_computed(model, read)


def _is_computed(model: Model, owner: cst.BaseExpression) -> bool:
    """Whether a tensor is what a network returns, and so no leaf that is trained."""
    binding = model.binding(owner)
    writes = [write.value for write in writes_reaching(model, binding, owner)] if binding else []
    return bool(writes) and all(isinstance(value, cst.Call) and model.call(value).is_forward for value in writes)


def _is_filled_by(model: Model, call: cst.Call, given: cst.Arg) -> bool:
    return _fills_arguments(model, call) or _is_called_to_fill(model, call, given)


def _fills_arguments(model: Model, call: cst.Call) -> bool:
    """A call that writes to a tensor it is given, or into the `.data` that it is called on."""
    name = model.call(call).callee or model.qualified(call.func) or ""
    if name.startswith(("torch.nn.init.", "torch.distributed.")):
        return True
    if _INITIALISER.search(last_word(call.func)):
        return True
    if isinstance(call.func, cst.Name):
        return call.func.value.endswith("_")
    if not isinstance(call.func, cst.Attribute) or not call.func.attr.value.endswith("_"):
        return False
    return _is_data_target(call.func.value) or model.qualified(call.func) is not None


def _is_called_to_fill(model: Model, call: cst.Call, given: cst.Arg) -> bool:
    """A call for its effect alone, of a function that changes in place what it is given, or is called so."""
    if not isinstance(model.parent(call), cst.Expr):
        return False
    if _FILLING.search(last_word(call.func)):
        return True
    called = model.call(call)
    function = called.target or called.foreign
    binding = parameter_of_function(called, function, given) if function is not None else None
    return binding is not None and any(method.endswith("_") for method in binding.methods)


def _is_data_target(node: cst.CSTNode) -> bool:
    """`p.data`, or a part of it."""
    return any(_is_data(part) for part in _written_parts(node))


def _is_data(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == "data"


def _written_parts(target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What an assignment reaches into: not what the index says of where, as in `kept[x.data == 0] = 1`."""
    yield target
    match target:
        case cst.Tuple() | cst.List():
            for element in target.elements:
                yield from _written_parts(element.value)
        case cst.Subscript() | cst.Attribute() | cst.StarredElement():
            yield from _written_parts(target.value)
        case cst.Call():
            yield from _written_parts(target.func)


def _is_filled(model: Model, target: cst.CSTNode, chain: Chain) -> bool:
    """A variable that takes `.data` as it is, and that is changed in place, here or in a function that it is given
    to."""
    binding = model.binding(target)
    if binding is None or any(method.endswith("()") and method[:-2] not in VIEWS for method in chain.steps):
        return False
    if any(name.endswith("_") and not name.startswith("__") for name in binding.methods):
        return True
    changed = (write.target for write in binding.writes if write.kind == "augmented")
    if any(written_at(model, mention) is Written.SURELY for mention in (*binding.reads, *changed)):
        return True
    return any(
        isinstance(item := model.parent(read), cst.Subscript) and item.value is read and is_stored(model, item)
        for read in binding.reads
    )


def is_self(model: Model, owner: cst.BaseExpression) -> bool:
    """Whether a class speaks of its own object: in one of tensors, `detach()` makes another object of the class."""
    return is_name(owner, model.function(owner).own_name)


def _is_put_back(model: Model, target: cst.CSTNode, owner: cst.BaseExpression) -> bool:
    """A variable that becomes the `.data` of the tensor: `new = p.data - step; p.data = new`."""
    binding = model.binding(target)
    above = [model.parent(read) for read in binding.reads] if binding is not None else []
    return any(
        isinstance(node, cst.Assign) and any(_is_update(model, t.target, owner) for t in node.targets) for node in above
    )


def is_exchanged(model: Model, owner: cst.BaseExpression) -> bool:
    """Whether the function gives the tensor another `.data`, as for a while: what is read is kept or put back."""
    binding = model.binding(owner)
    if binding is None or isinstance(owner, cst.Attribute):
        return False
    return any(
        isinstance(above := model.parent(read), cst.Attribute)
        and above.attr.value == "data"
        and isinstance(model.parent(above), cst.AssignTarget)
        and model.function(read) is model.function(owner)
        and not any(part.deep_equals(above) for part in walk(model.statement(above)) if part is not above)
        for read in binding.reads
    )
