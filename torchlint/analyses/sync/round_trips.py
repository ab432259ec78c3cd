"""Batches that a step copies to the device and, unchanged, back to the host, which has had them all along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.conditions import conditions, exclude
from torchlint.analyses.devices.moves import moves_to_accelerator
from torchlint.analyses.loading.datasets import held_on_accelerator
from torchlint.analyses.loops.steps import Step, called_per_step, step_of
from torchlint.analyses.once import once
from torchlint.analyses.sync.readback import reads
from torchlint.semantics.dataflow import is_changed, parameter_of_function, writes_reaching
from torchlint.semantics.entities import Call, Function, Loop, Role
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Write
    from torchlint.semantics.model import Model

_SAME_METHODS = frozenset(
    """
    detach clone contiguous squeeze unsqueeze view reshape flatten permute transpose float double half long int bool
    byte short t items values pin_memory
    """.split()
)
_SAME_FUNCTIONS = frozenset(
    """
    torch.autograd.Variable torch.squeeze torch.unsqueeze torch.flatten torch.clone torch.detach builtins.tuple
    builtins.list builtins.dict builtins.zip
    """.split()
)
_BACK = ("cpu", "tolist")
_LIMIT = 60
_DEPTH = 2


class Trip(NamedTuple):
    """A tensor that one step copies to the host at `node` and to the device at `other`, before it or after it. `home`
    is the model of the file of `other`, where that is another one."""

    node: cst.Call
    other: Call
    step: Step
    home: Model | None = None


@once
def round_trips(model: Model) -> Iterator[Trip]:
    """Batches that come back to the host. Those that cost a wait of their own: beside a result, in one list, a batch
    only follows it there."""
    found: list[Trip] = []
    joined: set[cst.CSTNode | None] = set()  # lists with a result that is copied to the host
    for node, tensor, how in reads(model):
        step = step_of(model, node) if how in _BACK else None
        if step is None or model.value(tensor).place is Place.HOST or _is_sampled(model, node, step.loop):
            continue
        way = _Way(model, _round(step.loop))
        if not way.leads_home(tensor):
            joined.add(_list_around(model, node))
        elif way.there is None or (
            way.home is model and exclude(conditions(model, node), conditions(model, way.there.node))
        ):
            continue
        elif not _draws_from_device(model, step.loop):
            found.append(Trip(node, way.there, step, way.home if way.home is not model else None))
    yield from (trip for trip in found if _list_around(model, trip.node) not in joined - {None})


def has_not_left(model: Model, tensor: cst.BaseExpression, loop: Loop | None) -> bool:
    """Whether a tensor is what the loader yields, which nothing has copied to the device."""
    way = _Way(model, _round(loop))
    return loop is not None and way.leads_home(tensor) and way.there is None


def _round(loop: Loop | None) -> Loop | None:
    """The loop over the batches around one over the samples of a batch."""
    around = loop.around() if loop is not None else ()
    return next((outer for outer in around if outer.role in (Role.STEPS, Role.EVALUATION)), loop)


def _draws_from_device(model: Model, loop: Loop | None) -> bool:
    """Whether the samples of a loader are on the device already: to copy them there does nothing, and the host has
    none of them."""
    origins = loop.iterates.origins if loop is not None else ()
    loaders = (model.call(origin) for origin in origins if isinstance(origin, cst.Call))
    datasets = (loader.argument("dataset", 0).node for loader in loaders)
    return any(dataset is not None and held_on_accelerator(dataset, model) for dataset in datasets)


def _list_around(model: Model, node: cst.CSTNode) -> cst.CSTNode | None:
    """`[f(x.cpu()), f(out.cpu())]`, of which pictures are made; not what is taken apart into names again."""
    for above in model.ancestors(node):
        if isinstance(above, (cst.List, cst.Tuple)):
            return above if not isinstance(model.parent(above), cst.Assign) else None
        if isinstance(above, cst.BaseSmallStatement):
            return None
    return None


def _is_sampled(model: Model, node: cst.CSTNode, loop: Loop | None) -> bool:
    """`if step < 4:`, `if len(shown) < 9:`: in a few iterations only."""
    if loop is not None and _is_cut_short(model, loop):
        return True
    return any(
        isinstance(guard.test, cst.Comparison)
        and guard.branch == "body"
        and any(isinstance(target.operator, (cst.LessThan, cst.LessThanEqual)) for target in guard.test.comparisons)
        for guard in model.guards(node, inside=loop)
    )


def _is_cut_short(model: Model, loop: Loop) -> bool:
    """`if i == n - 1: break` in a loop that runs once: it looks at a few batches before or after the training."""
    if len(list(loop.around())) > 1 or called_per_step(model, loop.function) is not None:
        return False
    return any(
        isinstance(statement, cst.If)
        and isinstance(statement.test, cst.Comparison)
        and _is_counter(model, statement.test.left, loop)
        and isinstance(statement.body, cst.IndentedBlock)
        and isinstance(statement.body.body[-1], cst.SimpleStatementLine)
        and isinstance(statement.body.body[-1].body[-1], cst.Break)
        for statement in loop.body
    )


def _is_counter(model: Model, node: cst.BaseExpression, loop: Loop) -> bool:
    """`i` in `for i, batch in enumerate(loader)`."""
    binding = model.binding(node)
    return binding is not None and any(write.kind == "for" and write.loop is loop for write in binding.writes)


class _Way:
    """One walk from a tensor back to the copy that brought it to the device, past nothing that computes."""

    def __init__(self, model: Model, loop: Loop | None, depth: int = _DEPTH) -> None:
        self._model = model
        self._loop = loop
        self._depth = depth
        self._seen: set[cst.CSTNode] = set()
        self._work: list[cst.CSTNode] = []
        self.there: Call | None = None  # the copy to the device
        self.home = model  # of the file of that copy

    def leads_home(self, tensor: cst.CSTNode) -> bool:
        """Whether the tensor is just what the host has, or a copy of it."""
        self._work.append(tensor)
        while self._work and len(self._seen) < _LIMIT:
            node = self._work.pop()
            if node not in self._seen:
                self._seen.add(node)
                if not self._is_on_host(node) and not self._passes(node):
                    return False
        return not self._work

    def _is_on_host(self, node: cst.CSTNode) -> bool:
        value = self._model.value(node)
        if value.kind is Kind.BATCH:
            return value.place is not Place.ACCELERATOR
        return value.kind is Kind.TENSOR and value.place is Place.HOST

    def _passes(self, node: cst.CSTNode) -> bool:
        """Whether the node hands on what others made, which are then looked at in their turn."""
        match node:
            case cst.Call():
                return self._call(self._model.call(node))
            case cst.Attribute(value=inner) | cst.Subscript(value=inner) if self._model.binding(node) is None:
                self._work.append(inner)
                if isinstance(node, cst.Subscript):
                    self._work += [part for place in node.slice for part in self._tensors(place)]
            case cst.GeneratorExp(elt=inner) | cst.ListComp(elt=inner) | cst.DictComp(value=inner):
                self._work.append(inner)
            case cst.Tuple(elements=parts) | cst.List(elements=parts) | cst.Dict(elements=parts):
                self._work += [part.value for part in parts]
            case cst.IfExp(body=body, orelse=orelse):
                self._work += [body, orelse]
            case cst.Name() | cst.Attribute() if (binding := self._model.binding(node)) is not None:
                return self._variable(node, binding)
            case _:
                return False
        return True

    def _tensors(self, place: cst.SubscriptElement) -> Iterator[cst.CSTNode]:
        """`mask` of `x[mask]`: the host has what it picks where it has what picks."""
        for node in walk(place):
            if isinstance(node, (cst.Name, cst.Attribute)) and (
                self._model.value(node).is_(Kind.TENSOR, Kind.BATCH) or self._is_computed(node)
            ):
                yield node

    def _is_computed(self, node: cst.CSTNode) -> bool:
        """What code out of sight has made of tensors on the device, as the places that `nms` keeps."""
        if not self._model.value(node).is_(Kind.UNKNOWN) or (binding := self._model.binding(node)) is None:
            return False
        parts = (part for write in binding.writes if write.value is not None for part in walk(write.value))
        makers = (self._model.call(part) for part in parts if isinstance(part, cst.Call))
        unknown = (call for call in makers if call.value.kind is Kind.UNKNOWN)
        given = (self._model.value(arg.value) for call in unknown for arg in call.arguments)
        return any(value.is_(Kind.TENSOR, Kind.BATCH) and value.place is Place.ACCELERATOR for value in given)

    def _variable(self, node: cst.CSTNode, binding: Binding) -> bool:
        changed = [read for read in binding.reads if is_changed(self._model, read)]
        if binding.cls is not None or not all(self._entry(read) for read in changed):
            return False
        writes = writes_reaching(self._model, binding, node)
        return bool(writes) and all(
            self._given(binding) if write.kind == "parameter" else self._write(write) for write in writes
        )

    def _given(self, parameter: Binding) -> bool:
        """Whether every call in sight gives the function what the step around that call has copied to the device."""
        function = parameter.scope_function
        if not self._depth or self._loop is not None or function.passed_around:
            return False
        sites = [(self._model, call) for call in function.callers]
        sites += self._model.calls_elsewhere(function)
        ways = [self._way_to(home, call, parameter) for home, call in sites]
        first = ways[0] if ways else None
        if first is None or any(way is None for way in ways):
            return False
        self.there, self.home = first.there, first.home
        return True

    def _way_to(self, home: Model, call: Call, parameter: Binding) -> _Way | None:
        function = parameter.scope_function
        given = [arg for arg in call.arguments if parameter_of_function(call, function, arg) is parameter]
        loop = next((loop for loop in call.loops() if loop.role in (Role.STEPS, Role.EVALUATION)), None)
        if len(given) != 1 or loop is None:
            return None
        way = _Way(home, loop, self._depth - 1)
        is_home = way.leads_home(given[0].value) and way.there is not None
        return way if is_home and not _draws_from_device(home, loop) else None

    def _entry(self, read: cst.CSTNode) -> bool:
        """`inputs["mask"] = mask` changes no tensor, but is one more thing that `inputs` holds."""
        statement = self._model.small_statement(read)
        if self._model.value(read).kind is not Kind.DICT or not isinstance(statement, cst.Assign):
            return False
        self._work.append(statement.value)
        return True

    def _write(self, write: Write) -> bool:
        if write.kind == "for" and write.loop is not None and write.loop.iterable is not None:
            if not self._is_yielded(write):
                self._work.append(write.loop.iterable)
            return True
        if write.kind != "assign" or write.value is None:
            return False
        self._work.append(_part(self._model, write) if write.unpacked else write.value)
        return True

    def _is_yielded(self, write: Write) -> bool:
        """Whether the loop over the batches yields it, which the step then copies to the device."""
        value = self._model.value(write.target)
        return self._is_on_host(write.target) or (
            write.loop is self._loop and value.kind is Kind.UNKNOWN and value.place is not Place.ACCELERATOR
        )

    def _call(self, call: Call) -> bool:
        if call.method in ("to", "cuda") and call.receiver is not None and moves_to_accelerator(call, self._model):
            if self._loop is not None and self._loop not in call.loops():
                return False
            self.there = call
            self._work.append(call.receiver)
        elif call.callee in _SAME_FUNCTIONS:
            given = [arg.value for arg in call.arguments if arg.keyword is None]
            self._work += [node for node in given if self._model.value(node).kind is not Kind.NUMBER]  # the axis
        elif call.method in _SAME_METHODS and call.receiver is not None:
            self._work.append(call.receiver)
        else:
            return self._helper(call)
        return True

    def _helper(self, call: Call) -> bool:
        """A function of the project that does nothing but copy its first argument to the device."""
        function = call.target or call.foreign
        home = self._model if call.target is not None else self._model.home(call)
        if function is None or home is None or not self._depth or not call.arguments:
            return False
        if not _only_moves(home, function, self._depth - 1):
            return False
        self.there = call
        self._work.append(call.arguments[0].value)
        return True


class _Inside(_Way):
    """The same walk in a helper, which ends at its first parameter."""

    def __init__(self, model: Model, function: Function, depth: int) -> None:
        super().__init__(model, None, depth)
        offset = 1 if function.cls is not None and not function.is_static else 0
        self._first = function.scope.bindings.get(next(iter(function.params[offset:]), ""))

    def _is_on_host(self, node: cst.CSTNode) -> bool:
        return False

    def _variable(self, node: cst.CSTNode, binding: Binding) -> bool:
        return binding is self._first or super()._variable(node, binding)

    def _given(self, parameter: Binding) -> bool:
        return False


def _only_moves(model: Model, function: Function, depth: int) -> bool:
    if function.is_generator or not function.returns:
        return False
    ways = [_Inside(model, function, depth) for _ in function.returns]
    values = [statement.value for statement in function.returns]
    home = all(value is not None and way.leads_home(value) for way, value in zip(ways, values))
    return home and any(way.there is not None for way in ways)


def _part(model: Model, write: Write) -> cst.BaseExpression:
    """Of `x, y = x.cuda(), y.cuda()`, what is written to the one target; of other values, the whole."""
    assert write.value is not None
    statement = model.small_statement(write.target)
    if not isinstance(write.value, cst.Tuple):
        return write.value
    for target in statement.targets if isinstance(statement, cst.Assign) else ():
        names = target.target.elements if isinstance(target.target, cst.Tuple) else ()
        for name, part in zip(names, write.value.elements):
            if name.value is write.target and len(names) == len(write.value.elements):
                return part.value
    return write.value
