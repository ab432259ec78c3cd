"""`Variable(x)` becomes the tensor that it returns, `x.data` becomes `x.detach()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.train.data_attribute import DataRead, Use, data_reads
from torchlint.analyses.train.owned_tensors import (
    MAY_RETURN_THEMSELVES,
    is_drawn_alone,
    is_made_anew,
    without_moves,
)
from torchlint.analyses.variable_wrapper import VARIABLE, Wrapper, is_false, wrapper_of
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rewrite import Rewriter
from torchlint.rule import NoFixError
from torchlint.semantics import torch_api
from torchlint.semantics.dataflow import text as text_of
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Grad, Kind
from torchlint.semantics.vocabulary import returns_tensor

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.entities import Binding, Call, Write
    from torchlint.semantics.model import Model

_OF_LEAVES = frozenset({"requires_grad", "requires_grad_", "grad", "retain_grad", "register_hook"})
_SHARED = "a change of the result in place may then make backward() raise, where it went unnoticed before"
_MAY_RETURN_THEIR_ARGUMENT = frozenset({"torch.as_tensor", "torch.asarray", "torch.atleast_1d", "torch.real"})
_RESHAPING = frozenset({"view", "reshape", "unsqueeze", "squeeze", "flatten", "long", "cpu", "cuda"})
_LIKE_ANOTHER = frozenset({"type_as", "view_as", "expand_as", "reshape_as"})
_BY_INDEX = frozenset({"gather", "index_select"})
_WITHOUT_GRADIENTS = frozenset({"int", "bool"})  # of these dtypes nothing can ask for gradients
_ELEMENT = "the value becomes a Python number, which waits for the device"


def fix(report: Report, model: Model) -> Fix:
    match report.facts:
        case DataRead():
            return _read(report.facts, model)
        case Wrapper():
            return _unwrap(report.facts, model)
    raise NoFixError("what is to run under `torch.no_grad()` is for you to say")


# -- reads of .data


def _read(read: DataRead, model: Model) -> Fix:
    beside = _reads_beside(read, model)
    rewriter = Rewriter(model)
    name = model.span(read.node.attr)
    if read.use in (Use.ELEMENT, Use.NUMBER):
        return _item(read, rewriter, model)
    bare = (
        read.use is Use.INDIFFERENT
        or _takes_no_gradient(read.node, model)
        or (_is_used_at_once(read, model) and _has_no_graph(read, model))
    )
    edit = Edit(model.span(read.owner)[1], name[1], "") if bare else Edit(*name, "detach()")
    if any(other.use is Use.SHARED for other in (read, *beside)):
        return Fix((edit,), Applicability.UNSAFE, _SHARED)
    if not all(other.certain for other in (read, *beside)):
        return Fix((edit,), Applicability.UNSAFE, f"`{model.code(read.owner)}` is a tensor for all that its use shows")
    return Fix((edit,), Applicability.SAFE)


def _item(read: DataRead, rewriter: Rewriter, model: Model) -> Fix:
    assert read.element is not None
    if read.use is Use.ELEMENT:
        edit = rewriter.replace(read.element, model.code(read.owner) + ".item()")
        return Fix((edit,), Applicability.UNSAFE, _ELEMENT)
    owner = read.owner
    if isinstance(owner, cst.Call) and model.call(owner).method == "cpu":
        owner = model.call(owner).receiver or owner
    edit = rewriter.replace(read.element, model.code(owner) + ".item()")
    return Fix((edit,), Applicability.SAFE, "`math` asks the tensor for its number all the same.")


def _is_used_at_once(read: DataRead, model: Model) -> bool:
    return read.use is Use.FRESH or isinstance(model.parent(read.node), cst.Arg)


def _has_no_graph(read: DataRead, model: Model) -> bool:
    """Whether the tensor is made in sight without a graph and, as far as the file goes, wants none."""
    value, root = model.value(read.owner), read.owner
    if not value.is_(Kind.TENSOR, Kind.BATCH) or value.grad is not Grad.DETACHED or _sees_leaves(model):
        return False
    while isinstance(root, cst.Subscript):
        root = root.value
    binding = model.binding(root)
    if binding is None:
        return _is_made_in_sight(root, model)
    return all(_is_drawn(write, model) or _is_made_in_sight(write.value, model) for write in binding.writes)


def _is_drawn(write: Write, model: Model) -> bool:
    """Whether a variable gets a batch of a data loader, or a part of one."""
    return write.kind != "parameter" and model.value(write.target).kind is Kind.BATCH


def _is_made_in_sight(node: cst.BaseExpression | None, model: Model) -> bool:
    if isinstance(node, cst.Call):
        call = model.call(node)
        return not call.is_forward and call.target is None and call.foreign is None
    return isinstance(node, cst.BinaryOperation)


def _reads_beside(read: DataRead, model: Model) -> list[DataRead]:
    """The other reads of `.data` in the statement, which keeps to one idiom."""
    found = {other.node: other for other in model.once(_all_reads)}
    statement = model.small_statement(read.node)
    beside = [node for node in _data_attributes(statement) if node is not read.node]
    if any(isinstance(model.parent(node), cst.AssignTarget) for node in beside):
        raise NoFixError("the statement writes to a `.data`, and two idioms in one help nobody")
    if not all(node in found for node in beside):
        raise NoFixError("another `.data` of the statement has to stay, and two idioms in one help nobody")
    if any(node not in found for twin in _twins(statement, model) for node in _data_attributes(twin)):
        raise NoFixError("the same in the line beside it has to stay, and two idioms in a row help nobody")
    return [found[node] for node in beside]


def _data_attributes(statement: cst.CSTNode | None) -> list[cst.Attribute]:
    nodes = walk(statement) if statement is not None else ()
    return [node for node in nodes if isinstance(node, cst.Attribute) and node.attr.value == "data"]


def _twins(statement: cst.CSTNode | None, model: Model) -> Iterator[cst.CSTNode]:
    """The assignments next to one that call the same function, or fill the same container."""
    line = model.statement(statement) if isinstance(statement, cst.Assign) else None
    siblings = list(getattr(model.parent(line), "body", ())) if line is not None else []
    if line not in siblings:
        return
    at = siblings.index(line)
    for beside in siblings[max(at - 1, 0) : at] + siblings[at + 1 : at + 2]:
        match beside:
            case cst.SimpleStatementLine(body=[cst.Assign() as other]) if _shapes(other) & _shapes(statement):
                yield other


def _shapes(statement: cst.CSTNode | None) -> set[tuple[str, str]]:
    """What function an assignment calls, and what container it fills."""
    match statement:
        case cst.Assign(value=cst.Call(func=cst.Name(value=name))):
            return {("call", name)}
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Name(value=name)))]):
            return {("fill", name)}
    return set()


def _all_reads(model: Model) -> list[DataRead]:
    return list(data_reads(model))


# -- Variable


def _unwrap(wrapper: Wrapper, model: Model) -> Fix:
    statement = model.small_statement(wrapper.call.node)
    beside = (call for call in model.calls_to(VARIABLE) if model.small_statement(call.node) is statement is not None)
    for each in (wrapper, *map(wrapper_of, beside)):
        _check(each, model)
    taken = _taken_together(wrapper.call, model)
    return Fix(tuple(_removal(wrapper.call, model) if taken else _replacement(wrapper, model)), Applicability.SAFE)


def _check(wrapper: Wrapper, model: Model) -> None:
    if not _is_understood(wrapper):
        raise NoFixError("not all arguments are in sight")
    if wrapper.asks_for_no_graph and model.grad_enabled(wrapper.call.node) is not False:
        raise NoFixError("what is to run under `torch.no_grad()` is for you to say")


def _is_understood(wrapper: Wrapper) -> bool:
    arguments = (wrapper.data, wrapper.requires_grad, wrapper.volatile)
    given = [argument.arg for argument in arguments if argument.given]
    return wrapper.data.given and None not in given and len(given) == len(wrapper.call.arguments)


def _removal(call: Call, model: Model) -> list[Edit]:
    edit = Rewriter(model).remove_statement(call.node)
    assert edit is not None
    if edit.text == "pass":
        raise NoFixError("nothing would be left of the block that it is all of")
    return [edit]


def _taken_together(call: Call, model: Model) -> set[Call]:
    """The uses of `x = Variable(x)` or `x, y = Variable(x), Variable(y)`, of which nothing would be left."""
    pairs = _pairs(model.small_statement(call.node))
    found = {
        model.call(value) for target, value in pairs if isinstance(value, cst.Call) and _is_itself(target, value, model)
    }
    return found if len(found) == len(pairs) else set()


def _pairs(statement: cst.CSTNode | None) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Targets and values of `x = y` or `x, y = y, x`."""
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return []
    target, value = statement.targets[0].target, statement.value
    if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple) and len(target.elements) == len(value.elements):
        return [(a.value, b.value) for a, b in zip(target.elements, value.elements)]
    return [(target, value)]


def _name_of(value: cst.BaseExpression, model: Model) -> Binding | None:
    """The variable that a value is assigned to."""
    pairs = _pairs(model.small_statement(value))
    return next((model.binding(target) for target, given in pairs if given is value), None)


def _is_itself(target: cst.BaseExpression, value: cst.Call, model: Model) -> bool:
    """Whether `target = value` would do nothing if `value` were not wrapped."""
    call = model.call(value)
    return (
        call.callee == VARIABLE
        and _asks_for_nothing(wrapper_of(call))
        and (wrapper_of(call).wraps_plain_tensor or _is_drawn_for_itself(value.args[0].value, value, model))
        and isinstance(target, (cst.Name, cst.Attribute))
        and model.code(target) == model.code(value.args[0].value)
        and not _takes_gradients(target, model)
    )


def _asks_for_nothing(wrapper: Wrapper) -> bool:
    """`Variable(x)` or `Variable(x, requires_grad=False)`"""
    asked = wrapper.requires_grad
    return wrapper.volatile.absent and (asked.absent or (asked.node is not None and is_false(asked.node)))


def _takes_gradients(target: cst.BaseExpression, model: Model) -> bool:
    """Whether a variable is made a leaf with gradients somewhere, which must not reach the tensor outside."""
    binding = model.binding(target)
    return binding is not None and _has_leaf(binding, model)


def _has_leaf(binding: Binding, model: Model) -> bool:
    users = [model.parent(read) for read in binding.reads]
    return any(isinstance(user, cst.Attribute) and user.attr.value in _OF_LEAVES for user in users)


def _replacement(wrapper: Wrapper, model: Model) -> list[Edit]:
    call, inner = wrapper.call.node, wrapper.data.node
    assert inner is not None
    text = model.source.text
    (start, end), (first, last) = model.span(call), model.span(inner)
    if "#" in text[start:first] + text[last:end]:
        raise NoFixError("a comment stands inside of the call")
    match inner:
        case cst.Attribute(value=owner, attr=cst.Name(value="data")) if model.value(owner).kind is Kind.TENSOR:
            last = model.span(owner)[1]
            cut = "" if is_made_anew(owner, model) else ".detach()"
        case _:
            cut = "" if _may_stand_bare(wrapper, model) else ".detach()"
    before, suffix = "", cut
    asked = wrapper.requires_grad.node
    if asked is not None and not is_false(asked):
        suffix += f".requires_grad_({'' if _is_true(asked) else model.code(asked)})"
    if not _holds_together(inner, suffix, model.parent(call)):
        before, suffix = "(", ")" + suffix
    aligned = Rewriter(model).moved_left(inner, first - start - len(before))
    return [Edit(start, first, before), *aligned, Edit(last, end, suffix)]


def _may_stand_bare(wrapper: Wrapper, model: Model) -> bool:
    """Whether the tensor itself can take the place of the new object that Variable makes of it.

    Not where something may set `requires_grad` or read `grad` of the one, and the other is still in use.
    """
    inner, call = wrapper.data.node, wrapper.call.node
    if inner is None:
        return False
    if is_made_anew(inner, model) or (_takes_no_gradient(call, model) and not _wants_gradients(wrapper)):
        return True
    if _wants_gradients(wrapper):
        return wrapper.wraps_plain_tensor and _is_temporary(inner, model) and not _is_changed_view(inner, call, model)
    if _is_cut_off_again(call, model) or _is_drawn_for_itself(inner, call, model):
        return True
    if not wrapper.wraps_plain_tensor:
        return False
    if wrapper.data.value.dtype in _WITHOUT_GRADIENTS:
        return True
    if isinstance(inner, cst.Subscript) and wrapper.data.value.kind is Kind.BATCH:
        return not _sees_leaves(model)
    if _is_temporary(inner, model):
        return not _is_changed_view(inner, call, model)
    held, end = without_moves(inner, model), _with_moves(call, model)
    if isinstance(held, cst.Attribute) and model.binding(held) is not None:
        return _is_used_up(end, model) and not _sees_leaves(model)
    if not isinstance(held, cst.Name):
        return False
    return _is_used_up(end, model) or _gets_a_name(end, held, model) or _is_handed_back(end, held, model)


def _is_drawn_for_itself(inner: cst.BaseExpression, call: cst.Call, model: Model) -> bool:
    """Whether a tensor of a loader has no other use, and takes no part in a graph of its own under its new name."""
    if not is_drawn_alone(inner, call, model):
        return False
    name = _name_of(_with_moves(call, model), model)
    return name is None or not (_changes(name, model) or _has_leaf(name, model))


def _is_changed_view(inner: cst.BaseExpression, call: cst.Call, model: Model) -> bool:
    return _is_view(inner, model) and _is_changed(call, model)


def _with_moves(node: cst.BaseExpression, model: Model) -> cst.BaseExpression:
    """`x.float().cuda()` around x, and the conditional expression around that."""
    parent = model.parent(node)
    call = model.parent(parent) if isinstance(parent, cst.Attribute) else None
    if isinstance(call, cst.Call) and call.func is parent and model.call(call).method in MAY_RETURN_THEMSELVES:
        return _with_moves(call, model)
    if isinstance(parent, cst.IfExp) and parent.test is not node:
        return _with_moves(parent, model)
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
    old, new = model.binding(held), _name_of(node, model)
    if old is None or new is None or new.cls is not None or _sees_leaves(model) or _changes(new, model):
        return False
    return old is new or not (old.is_global or old.shared or _changes(old, model))


def _is_handed_back(node: cst.BaseExpression, held: cst.Name, model: Model) -> bool:
    """Whether a function returns a tensor of its own."""
    binding = model.binding(held)
    return (
        isinstance(model.parent(node), cst.Return)
        and binding is not None
        and not (binding.is_parameter or binding.is_global or binding.shared or binding.cls is not None)
        and all(_is_temporary(write.value, model) or _is_moved(write.value, binding, model) for write in binding.writes)
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


def _sees_leaves(model: Model) -> bool:
    """Whether gradients of some tensor other than a parameter are asked for or switched, anywhere in the file."""
    return any(
        isinstance(node, cst.Attribute) and node.attr.value in _OF_LEAVES and not _is_parameter(node.value, model)
        for node in model.nodes_of(cst.Attribute)
    )


def _is_parameter(node: cst.BaseExpression, model: Model) -> bool:
    """`p` of `for p in net.parameters()`, or `net.weight`."""
    if isinstance(node, cst.Attribute):
        return node.attr.value in ("weight", "bias")
    binding = model.binding(node)
    loops = [write.value for write in binding.writes if write.kind == "for"] if binding is not None else []
    return binding is not None and len(loops) == len(binding.writes) > 0 and all(map(_yields_parameters, loops))


def _yields_parameters(node: cst.BaseExpression | None) -> bool:
    return any(
        isinstance(part, cst.Attribute) and part.attr.value in ("parameters", "named_parameters")
        for part in (walk(node) if node is not None else ())
    )


def _is_temporary(node: cst.BaseExpression | None, model: Model) -> bool:
    """Whether nothing else holds the tensor that an expression makes."""
    if isinstance(node, cst.BinaryOperation):
        return True
    if not isinstance(node, cst.Call):
        return False
    call = model.call(node)
    if call.receiver is not None and call.receiver_value.kind is Kind.TENSOR:
        if call.method in MAY_RETURN_THEMSELVES or (call.method or "").endswith("_"):
            return _is_temporary(call.receiver, model)
        return torch_api.method(call.method or "") is not None
    return returns_tensor(call.callee or "") and call.callee not in _MAY_RETURN_THEIR_ARGUMENT


def _is_view(node: cst.BaseExpression, model: Model) -> bool:
    """Whether an expression may look into the memory of a tensor that has a name: a change of it can reach that."""
    while isinstance(node, cst.Call) and model.call(node).receiver_value.kind is Kind.TENSOR:
        node = model.call(node).receiver or node
    return isinstance(node, (cst.Name, cst.Attribute, cst.Subscript))


def _is_changed(call: cst.Call, model: Model) -> bool:
    """Whether what a call makes gets a name, and is changed in place under it."""
    binding = _name_of(call, model)
    return _changes(binding, model) if binding is not None else not isinstance(model.parent(call), cst.Return)


def _changes(binding: Binding, model: Model) -> bool:
    """Whether a tensor is changed in place under the name of a variable."""
    if any(name.endswith("_") and not name.startswith("__") for name in binding.methods):
        return True
    stores = (model.parent(model.parent(read) or read) for read in binding.reads)
    return any(isinstance(model.small_statement(write.target), cst.AugAssign) for write in binding.writes) or any(
        isinstance(store, (cst.AssignTarget, cst.AugAssign)) for store in stores
    )


def _wants_gradients(wrapper: Wrapper) -> bool:
    return wrapper.requires_grad.given and not is_false(wrapper.requires_grad.node)


def _is_true(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "True"


def _takes_no_gradient(node: cst.CSTNode, model: Model) -> bool:
    """Whether a tensor is only the index of elements, or only tells a type or a shape: `x.gather(1, node.view(-1))`."""
    above = model.parent(node)
    call = model.parent(above) if isinstance(above, (cst.Attribute, cst.Arg)) else None
    if not isinstance(call, cst.Call):
        return False
    if isinstance(above, cst.Attribute):
        return above.attr.value in _RESHAPING and _takes_no_gradient(call, model)
    method = model.call(call).method
    if method in _LIKE_ANOTHER:
        return len(call.args) == 1
    return method in _BY_INDEX and len(call.args) == 2 and call.args[1] is above


def _holds_together(inner: cst.BaseExpression, suffix: str, parent: cst.CSTNode | None) -> bool:
    """Whether the expression needs no parentheses where the call was."""
    if inner.lpar:
        return True
    is_atom = isinstance(inner, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
    if isinstance(parent, cst.Arg):
        return is_atom or not suffix
    if not is_atom and (suffix or not isinstance(parent, (cst.Assign, cst.Return, cst.Element))):
        return False
    try:
        ast.parse(text_of(inner), mode="eval")
    except SyntaxError:  # it has line ends that only the parentheses of the call allowed
        return False
    return True
