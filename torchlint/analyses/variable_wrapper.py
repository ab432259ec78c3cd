"""`torch.autograd.Variable(x)`: since torch 0.4 another way to write `x.detach()`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.compatibility import is_for_other_releases
from torchlint.semantics.dataflow import writes_reaching
from torchlint.semantics.tree import is_name
from torchlint.semantics.values import Grad, Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Argument, Binding, Call
    from torchlint.semantics.model import Model

VARIABLE = "torch.autograd.Variable"
_MAKES_VARIABLE = re.compile(r"(?i)var|^v$")
_COPYING = frozenset("cuda cpu to type type_as float double half long contiguous view unsqueeze squeeze".split())


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A call of `Variable`, and its arguments."""

    call: Call
    data: Argument
    requires_grad: Argument
    volatile: Argument

    @property
    def cuts_graph(self) -> bool:
        """Whether what it wraps has a graph, which ends here."""
        return self.data.value.carries

    @property
    def wraps_plain_tensor(self) -> bool:
        """Whether what it wraps is known to have no graph and to want none."""
        value = self.data.value
        return value.is_(Kind.TENSOR, Kind.BATCH) and value.grad is Grad.DETACHED

    @property
    def asks_for_no_graph(self) -> bool:
        """Always, or on a condition that is not known here."""
        return self.volatile.given and not is_name(self.volatile.node, "False")

    @property
    def never_has_graph(self) -> bool:
        return is_name(self.volatile.node, "True")


def wrappers(model: Model) -> Iterator[Wrapper]:
    """Calls of Variable, but for those that only older releases run."""
    for call in model.calls_to(VARIABLE):
        if not is_for_other_releases(model, call.node):
            yield wrapper_of(call)


def derived_calls(model: Model) -> Iterator[Call]:
    """Calls of classes of this file or another that derive from Variable: `class Variable(autograd.Variable)`."""
    for call in model.calls:
        behind = model.class_behind(call.callee) if call.value.kind is Kind.INSTANCE and call.callee else None
        if behind is not None and VARIABLE in behind[1].bases and not is_for_other_releases(model, call.node):
            yield call


def wrapper_of(call: Call) -> Wrapper:
    """A call of Variable, with its arguments by their names."""
    return Wrapper(call, call.argument("data", 0), call.argument("requires_grad", 1), call.argument("volatile", 2))


def questions(model: Model) -> list[cst.Call]:
    """`isinstance(x, Variable)`, which holds for every tensor since torch 0.4, and `type(x) == Variable`, which holds
    for none."""
    asked = (call for call in model.calls_to("builtins.isinstance") if len(call.node.args) == 2)
    found = [call.node for call in asked if _names_variable(call.node.args[1].value, model)]
    return [*found, *(call.node for call in model.calls_to("builtins.type") if _is_told_apart(call.node, model))]


def _is_told_apart(kind: cst.Call, model: Model) -> bool:
    """Whether `type(x)` is compared with the class."""
    match model.parent(kind):
        case cst.Comparison(comparisons=[cst.ComparisonTarget(comparator=other)]):
            return _names_variable(other, model)
    return False


def _names_variable(kinds: cst.BaseExpression, model: Model) -> bool:
    parts = [part.value for part in kinds.elements] if isinstance(kinds, cst.Tuple) else [kinds]
    return any(model.qualified(part) == VARIABLE for part in parts)


def volatile_calls(model: Model) -> Iterator[Call]:
    """Calls such as `as_variable(x, volatile=True)`, of a function that hands the wish on to Variable."""
    return (call for call in model.calls if _asks_helper_for_no_graph(model, call))


def _asks_helper_for_no_graph(model: Model, call: Call) -> bool:
    home, function = model.elsewhere(call) or (model, call.target)
    if function is None:
        return _asks_out_of_sight(call)
    if "volatile" not in function.params:
        return False
    wish = call.argument("volatile").node or call.argument("volatile", function.params.index("volatile")).node
    if not isinstance(wish, cst.Name) or wish.value != "True":
        return False
    parameter = function.scope.bindings.get("volatile")
    made = (wrapper_of(inner) for inner in home.calls_to(VARIABLE) if inner.function is function)
    handed_on = [wrapper.volatile.node for wrapper in made if wrapper.volatile.node is not None]
    return parameter is not None and any(home.binding(node) is parameter for node in handed_on)


def _asks_out_of_sight(call: Call) -> bool:
    """`utils.variable(x, volatile=True)`, of a file that cannot be read: it may be of an older Python. Loads of
    kernels may be volatile, too: `tl.load(x, volatile=True)`."""
    if call.callee == VARIABLE or call.targets_class is not None or call.is_forward or len(call.arguments) < 2:
        return False
    if not _MAKES_VARIABLE.search(call.method or (call.callee or "").rpartition(".")[2]):
        return False
    asked = (arg for arg in call.arguments if arg.keyword is not None and arg.keyword.value == "volatile")
    return any(is_name(arg.value, "True") for arg in asked)


def volatile_writes(model: Model) -> Iterator[cst.Attribute]:
    """Targets of `x.volatile = True`."""
    for node in model.nodes_of(cst.Attribute):
        assert isinstance(node, cst.Attribute)
        target = model.parent(node)
        if node.attr.value != "volatile" or not isinstance(target, cst.AssignTarget):
            continue
        statement = model.parent(target)
        if (
            isinstance(statement, cst.Assign)
            and isinstance(statement.value, cst.Name)
            and statement.value.value == "True"
            and model.value(node.value).is_(Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN)
        ):
            yield node


def is_volatile_pass(model: Model, call: Call) -> bool:
    """Whether an argument was made with `volatile=True`: nothing of the result could ever be sent backward."""
    return any(_asks_for_no_graph(model, part) for arg in call.node.args for part in _elements(arg.value))


def _asks_for_no_graph(model: Model, argument: cst.BaseExpression, seen: tuple[cst.CSTNode, ...] = ()) -> bool:
    binding = model.binding(argument)
    if binding is None:
        return _is_volatile(model, argument, seen)
    if argument in seen:
        return False  # what the last iteration has made of it
    made = [write.value for write in writes_reaching(model, binding, argument)]
    if isinstance(argument, cst.Attribute) and (last := _stored_just_before(model, binding, argument)) is not None:
        made = [last]
    return bool(made) and all(value is not None and _is_volatile(model, value, (*seen, argument)) for value in made)


def _stored_just_before(model: Model, binding: Binding, read: cst.Attribute) -> cst.BaseExpression | None:
    """What an attribute gets in the lines right before it is read, where no method of the object is called between."""
    line = model.statement(read)
    block = model.parent(line)
    body: list[cst.CSTNode] = [*block.body] if isinstance(block, cst.IndentedBlock) else []
    stored = {model.statement(write.target): write for write in binding.writes if write.kind == "assign"}
    for above in reversed(body[: body.index(line)] if line in body else []):
        if above in stored:
            return None if stored[above].unpacked else stored[above].value
        calls_own = any(
            call.receiver is not None and call.receiver.deep_equals(read.value) for call in model.calls_in(above)
        )
        if calls_own or not isinstance(above, cst.SimpleStatementLine):
            return None
    return None


def _is_volatile(model: Model, node: cst.BaseExpression, seen: tuple[cst.CSTNode, ...]) -> bool:
    """`Variable(x, volatile=True)`, and what a method makes of a tensor that holds one: `x.cuda()`."""
    call = model.call(node) if isinstance(node, cst.Call) else None
    if call is None:
        return False
    if call.callee == VARIABLE:
        return wrapper_of(call).never_has_graph
    if _asks_helper_for_no_graph(model, call):
        return True
    return call.method in _COPYING and call.receiver is not None and _asks_for_no_graph(model, call.receiver, seen)


def _elements(value: cst.BaseExpression) -> Sequence[cst.BaseExpression]:
    return [element.value for element in value.elements] if isinstance(value, (cst.List, cst.Tuple)) else [value]
