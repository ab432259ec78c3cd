"""Functions of the file that keep what they are given beyond their call: meters, trackers, helpers that fill lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.lifetime import lifetime, root
from torchlint.analyses.mem.graphs import carriers
from torchlint.analyses.mem.keeping import Keeping, Way, keepings
from torchlint.analyses.single_tensor import carries
from torchlint.semantics.dataflow import given_to
from torchlint.semantics.tree import is_name, walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call
    from torchlint.semantics.model import Model

_DEPTH = 3
# Methods whose result carries the graph of a tensor on.
_PASSING_METHODS = frozenset(
    "mean sum clone to cpu cuda float double half abs sqrt view reshape squeeze unsqueeze flatten".split()
)


@dataclass(frozen=True, slots=True)
class Keeper:
    """A parameter whose value a function keeps: `keeping` is the statement that does it, there or further down.

    `owner` is the variable of the function, or the object of its class where that is None, in which the value stays.
    """

    parameter: Binding
    keeping: Keeping
    owner: Binding | None

    def holder_at(self, model: Model, call: Call) -> Binding | None:
        """The variable that holds the value on after a call; None where a new object is made for it."""
        if self.owner is None:
            object_ = call.receiver if call.receiver is not None else call.node.func
            if call.targets_class is not None:
                return None
            is_own = is_name(object_, call.function.own_name)
            return root(model, self.keeping.holder if is_own else object_)
        if not self.owner.is_parameter:
            return self.owner
        return next((root(model, given) for given in given_to(call, self.owner)), None)


def keepers(model: Model) -> list[Keeper]:
    """Every parameter of the file whose value is kept, by its function or by others that it is handed on to."""
    found: dict[tuple[Binding, Keeping], Keeper] = {}
    fresh = [keeper for keeping in model.once(keepings) for keeper in _direct(model, keeping)]
    for _ in range(_DEPTH):
        fresh = [keeper for keeper in fresh if (keeper.parameter, keeper.keeping) not in found]
        found |= {(keeper.parameter, keeper.keeping): keeper for keeper in fresh}
        fresh = [outer for keeper in fresh for outer in _handing_on(model, keeper)]
    return list(found.values())


def _direct(model: Model, keeping: Keeping) -> Iterator[Keeper]:
    function = model.function(keeping.node)
    if function.is_module or model.grad_enabled(keeping.node) is False:
        return
    parameters = set(_passed(model, keeping.kept))
    holder = root(model, keeping.holder) if parameters else None
    if holder is None or not lifetime(model, holder, keeping.node, handed_in=keeping.way is Way.APPEND).beyond:
        return
    for parameter in parameters:
        needed = "backward" in parameter.methods or _is_looked_at(model, keeping.node, parameter)
        if parameter.scope_function is function and not needed:
            yield Keeper(parameter, keeping, None if holder.cls is not None else holder)


def _handing_on(model: Model, keeper: Keeper) -> Iterator[Keeper]:
    """The parameters of other functions that are given to the function of a keeper."""
    for call in keeper.parameter.scope_function.callers:
        if call.function.is_module or model.grad_enabled(call.node) is False:
            continue
        if is_given_back(model, call, keeper, model):
            continue
        holder = keeper.holder_at(model, call)
        if holder is None:
            continue
        owner = None if holder.cls is not None else holder
        if owner is not None and not owner.is_parameter and owner.scope_function is call.function:
            continue
        for given in given_to(call, keeper.parameter):
            for parameter in _passed(model, given):
                if parameter.scope_function is call.function and not _is_looked_at(model, call.node, parameter):
                    yield Keeper(parameter, keeper.keeping, owner)


def is_given_back(model: Model, call: Call, keeper: Keeper, home: Model) -> bool:
    """Whether a call's result, which the code works with, has the graph of what it gives to a keeper.

    home: the model of the file of the keeper.
    """
    if isinstance(model.parent(call.node), cst.Expr):
        return False
    returned = (statement.value for statement in keeper.parameter.scope_function.returns)
    return any(value is not None and keeper.parameter in _passed(home, value) for value in returned)


def _passed(model: Model, expression: cst.BaseExpression) -> Iterator[Binding]:
    """The parameters whose graphs are in the value of an expression, if their arguments have any."""
    for graph in carriers(model, expression):
        yield from parameters_in(model, graph)
    work = [expression]
    while work:
        match work.pop():
            case cst.Name() as name:
                parameter = _parameter_of(model, name)
                if parameter is not None:
                    yield parameter
            case cst.BinaryOperation(left=left, right=right):
                work += [left, right]
            case cst.UnaryOperation(operator=cst.Minus(), expression=inner) | cst.Subscript(value=inner):
                work.append(inner)
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                work += [element.value for element in elements]
            case cst.Dict(elements=entries):
                work += [entry.value for entry in entries]
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=method), value=receiver)):
                if method in _PASSING_METHODS:
                    work.append(receiver)


def parameters_in(model: Model, expression: cst.BaseExpression) -> Iterator[Binding]:
    """The parameters that an expression mentions, that are never written to, and that hold a graph."""
    for node in walk(expression):
        binding = model.binding(node) if isinstance(node, cst.Name) else None
        if binding is None or any(write.kind != "parameter" for write in binding.writes):
            continue
        if carries(model.value(node)):
            yield binding


def _parameter_of(model: Model, name: cst.Name) -> Binding | None:
    """The parameter that a name is, or is a part of: `value` in `for key, value in logs.items()`."""
    binding = model.binding(name)
    if binding is None or not binding.writes:
        return None
    kinds = {write.kind for write in binding.writes}
    if kinds == {"parameter"}:
        return binding
    loop = binding.writes[0].loop
    if kinds != {"for"} or len(binding.writes) != 1 or loop is None or loop.iterable is None:
        return None
    match loop.iterable:
        case cst.Name() as whole:
            source = whole
        case cst.Call(func=cst.Attribute(value=cst.Name() as whole, attr=cst.Name(value="values"))):
            source = whole
        case cst.Call(func=cst.Attribute(value=cst.Name() as whole, attr=cst.Name(value="items"))):
            match loop.target:
                case cst.Tuple(elements=[_, cst.Element(value=cst.Name(value=second))]) if second == name.value:
                    source = whole
                case _:
                    return None
        case _:
            return None
    parameter = model.binding(source)
    is_parameter = parameter is not None and all(write.kind == "parameter" for write in parameter.writes)
    return parameter if is_parameter else None


def _is_looked_at(model: Model, node: cst.CSTNode, parameter: Binding) -> bool:
    """Whether a node runs only after a look at what the parameter is: `else` of `if torch.is_tensor(value):`."""
    for guard in model.guards(node):
        if guard.kind == "handler":
            return True
        for test in walk(guard.test) if guard.test is not None else ():
            if isinstance(test, cst.Call) and any(
                _parameter_of(model, name) is parameter for name in walk(test) if isinstance(name, cst.Name)
            ):
                return True
    return False
