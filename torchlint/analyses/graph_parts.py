"""The graph behind an expression: the variables that hold parts of it, and whether it outlives one iteration."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.computations import (
    GRAPHLESS_ATTRIBUTES,
    MOVES,
    computes_of_given,
    computes_of_module,
    is_of_module,
)
from torchlint.analyses.single_tensor import carries, is_graphless
from torchlint.semantics.dataflow import reaches, sources
from torchlint.semantics.entities import Binding, Call, Class, Function, Loop, Write
from torchlint.semantics.tree import children, last_name, walk
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import HARMLESS_PACKAGES, is_tensor_method

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_OBJECTS = (Kind.MODULE, Kind.PARAMETERS, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER, Kind.LOADER, Kind.SAMPLER,
            Kind.DATASET, Kind.FUNCTION, Kind.CLASS, Kind.NAMESPACE)  # fmt: skip
_ADDING = frozenset(["append", "appendleft", "extend", "insert", "add", "update", "setdefault"])
_STATE = re.compile(r"(?i)hidden|memory|reset|detach|(?<!load_)state(?!_dict)|repackage|carry")
_CARRIED_NAMES = re.compile(r"(?i)fake|gen|recon|hidden|state|feat|emb|latent|loss|cost|logit|output|^z$|^h$|^c$")
_DATA = re.compile(
    r"(?i)sample|batch|next|load|read|choice|preprocess|transform|augment|mask|shuffle|index|random|onehot|one_hot|noise|label"
)
_TOLD = (cst.Call, cst.AssignTarget)
_LIMIT = 600
_DEPTH = 4


class GraphParts:
    """Walks backwards from what one backward pass starts from.

    `writes`: where the variables on the way get their values. `reused`: a part of the graph was, or may have been,
    built outside of the iteration, or of the call of the function, that the backward pass belongs to. `handed_in`: the
    parameters with which callers, which are all in sight, bring a graph. `ends`: variables behind which the pass does
    not go back.
    """

    def __init__(
        self, model: Model, source: cst.BaseExpression, loop: Loop | None, ends: frozenset[Binding] = frozenset()
    ) -> None:
        self._model = model
        self._ends = ends
        self._loop = loop
        self._home = model.function(source)
        self.writes: set[cst.CSTNode] = set()
        self.reused = self._is_of_function_around(source) or self._is_kept_by_object(source)
        self.handed_in: list[Binding] = []
        self._seen: set[cst.CSTNode] = set()
        self._work: list[cst.CSTNode] = [source]
        while self._work:
            self._visit(self._work.pop())
            if len(self._seen) > _LIMIT:
                self.reused = True
                return

    def _visit(self, node: cst.CSTNode) -> None:
        if node in self._seen:
            return
        self._seen.add(node)
        model = self._model
        if isinstance(node, cst.BaseExpression):
            value = model.value(node)
            if is_graphless(value) or (value.kind in _OBJECTS and not isinstance(node, cst.Call)):
                return
        binding = model.binding(node)
        if binding is not None:
            if binding not in self._ends:
                self._read(node, binding)
            return
        match node:
            case cst.Attribute():
                if node.attr.value not in GRAPHLESS_ATTRIBUTES:
                    self._work.append(node.value)
            case cst.Call():
                self._call(model.call(node))
            case cst.Lambda() | cst.Name():
                pass
            case cst.Subscript():
                self._work.append(node.value)
            case _:
                self._work.extend(children(node))

    def _is_of_function_around(self, source: cst.CSTNode) -> bool:
        """Whether a closure, which may be called again and again, begins with what the function around it computed."""
        binding = self._model.binding(source) if isinstance(source, cst.Name) else None
        if binding is None or binding.cls is not None:
            return False
        made = [write.function for write in binding.writes if write.kind != "parameter"]
        return bool(made) and not any(function is self._home or function.is_module for function in made)

    def _is_kept_by_object(self, source: cst.BaseExpression, depth: int = _DEPTH) -> bool:
        """Whether a pass begins with what an object was handed, through which each call of the method goes again."""
        model, binding = self._model, self._model.binding(source)
        if isinstance(source, (cst.List, cst.Tuple)):
            return any(self._is_kept_by_object(element.value, depth) for element in source.elements)
        if binding is None or not depth:
            return False
        if binding.cls is not None:
            writes = binding.writes
            return all(write.function is not self._home for write in writes) and any(
                _is_handed_in(model, write) for write in writes
            )
        made = (write for write in binding.writes if write.kind == "assign" and write.function is self._home)
        return any(
            write.value is not None
            and reaches(model, binding, write.target, source)
            and self._is_kept_by_object(write.value, depth - 1)
            for write in made
        )

    # -- calls

    def _call(self, call: Call) -> None:
        if call.grad_enabled is False:
            return
        self._work.extend(arg.value for arg in call.arguments)
        self.reused = self.reused or any(arg.star and self._may_hold_graph(arg.value) for arg in call.arguments)
        if call.receiver is not None:
            self._work.append(call.receiver)
            self._note_asked(call)
        is_in_sight = call.target is not None and not call.target.is_generator
        is_network = call.is_forward or call.receiver_value.kind is Kind.MODULE
        is_asked = is_network and _is_asked(call)
        if is_network and not (is_asked and is_in_sight):
            self.reused = self.reused or is_asked or self._has_state(call)
        elif call.target is not None and is_in_sight:
            self._work.extend(call.target.results)
        elif call.partial:
            self._work.append(call.node.func)

    def _may_hold_graph(self, unpacked: cst.BaseExpression) -> bool:
        """Whether a function was handed the arguments of a call, of which nobody can see what they are: the result of
        another network may be among them, with which all blocks of a reversible network are called."""
        binding = self._model.binding(unpacked)
        if binding is None or not binding.is_parameter or binding.scope_function is not self._home:
            return False
        return not (self._home.callers or _DATA.search(binding.name) or is_graphless(self._model.value(unpacked)))

    def _note_asked(self, call: Call) -> None:
        """`rollout.loss(discount=0.9)` is computed of what the object holds, as its other losses are."""
        model, holder = self._model, call.receiver
        binding = model.binding(holder) if isinstance(holder, cst.Name) else None
        if holder is None or binding is None or not call.receiver_value.is_(Kind.UNKNOWN, Kind.INSTANCE):
            return
        tensors = (Kind.TENSOR, Kind.BATCH)
        if any(arg.keyword is None or model.value(arg.value).is_(*tensors) for arg in call.arguments):
            return
        made = (write for write in binding.writes if write.kind == "assign" and write.function is self._home)
        self.writes.update(write.target for write in made if reaches(model, binding, write.target, holder))

    def _has_state(self, call: Call) -> bool:
        """Whether the module may hand a part of its last graph to the next one, as one with a hidden state does."""
        module = (
            call.receiver if call.method is not None and call.receiver_value.kind is Kind.MODULE else call.node.func
        )
        ref = self._model.value(module).ref if module is not None else None
        cls = next((cls for cls in self._model.classes if cls.ref == ref), None)
        if cls is not None and not _keeps_tensors(self._model, cls):
            return False
        if self._loop is None:
            return False
        resets = list(self._resets(module)) if module is not None else []
        inside = any(self._loop in self._model.loops_around(place) for place in resets)
        return not inside and (bool(resets) or cls is not None)

    def _resets(self, module: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Where a module is told to begin anew, or is given a state: `net.reset()`, `net.hidden = hidden.detach()`"""
        model, binding = self._model, self._model.binding(module)
        for read in binding.reads if binding is not None else ():
            attribute = model.parent(read)
            if not isinstance(attribute, cst.Attribute) or not isinstance(model.parent(attribute), _TOLD):
                continue
            if attribute.value is read and _STATE.search(attribute.attr.value):
                yield attribute

    # -- variables

    def _read(self, node: cst.CSTNode, binding: Binding) -> None:
        model = self._model
        function = model.function(node)
        if not binding.writes and binding.cls is not None and _CARRIED_NAMES.search(binding.name):
            self.reused = True  # a base in another file has put it there
        own = [write for write in binding.writes if write.function is function]
        for write in own or binding.writes:
            if write.kind in ("import", "def", "class", "delete", "except"):
                continue
            if write.function is function and not reaches(model, binding, write.target, node):
                continue
            self._write(write, node, function)
        self._contents(binding, function)

    def _write(self, write: Write, read: cst.CSTNode, function: Function) -> None:
        model = self._model
        if write.kind == "parameter":
            self._parameter(write, function)
            return
        if write.value is None or is_leaf(model, write.value):
            return
        if write.kind == "for":
            if write.loop is None or self._loop is None or write.loop not in self._loop.around():
                self._work.append(write.value)
            else:
                self.reused = self.reused or self._shares_graph(write.target, write.value)
            return
        foreign = write.function is not function
        here = self._loop is None or function is not self._loop.function or self._loop.holds(write.loop)
        if foreign or not here:
            # A closure may be called again and again.
            is_around = foreign and isinstance(read, cst.Name) and not write.function.is_module
            unknown = is_around or (not foreign and _is_worked_on(model, read))
            brings = _brings_graph(model, write.value, unknown=unknown)
            self.reused = self.reused or brings or _is_kept_loss(model, write)
            if not foreign:
                self._work.append(write.value)
            return
        if self._comes_round(write, read):
            is_state = any(model.binding(node) is model.binding(read) for node in walk(write.value))
            self.reused = self.reused or _may_have_graph(model, write.value, unknown=is_state)
        if write.target in self._seen:
            return
        self._seen.add(write.target)
        if function is self._home and _may_have_graph(model, write.value, unknown=True):
            self.writes.update((write.target, write.value) if write.unpacked else (write.target,))
        self._work.append(write.value)
        if write.kind == "augmented":
            binding = model.binding(write.target)
            if binding is not None:
                self._read(write.target, binding)

    def _shares_graph(self, target: cst.CSTNode, iterable: cst.BaseExpression) -> bool:
        """Whether each iteration gets a part of what was computed before the loop, also through a function that says
        nothing about its parts: `zip(chunked(prediction), targets)`."""
        value = self._model.value(target)
        if carries(value) or is_graphless(value):
            return carries(value)
        return any(carries(self._model.value(read)) for read in sources(self._model, iterable))

    def _comes_round(self, write: Write, read: cst.CSTNode) -> bool:
        """Whether a value reaches the read from the iteration before."""
        if self._loop is None or self._loop.function is not write.function or write.kind == "with":
            return False
        binding = self._model.binding(read)
        return binding is not None and not _is_written_before(self._model, binding, read, self._loop)

    def _parameter(self, write: Write, function: Function) -> None:
        """An argument: where no call shows what it is, its name decides whether it may come with a graph. Of a function
        that a call on the way has entered, the arguments are followed already."""
        if function is not self._home:
            return
        assert isinstance(write.target, cst.Name)
        name = write.target.value
        value = function.parameter(name)
        if is_graphless(value) or value.kind in _OBJECTS:
            return
        may_carry = carries(value) or value.kind is Kind.TENSOR
        if may_carry and function.callers and not (function.foreign_callers or function.passed_around):
            self.handed_in.append(function.scope.bindings[name])
        elif carries(value) or (not function.callers and _CARRIED_NAMES.search(name)):
            self.reused = True
        else:
            self.reused = self.reused or _is_cut_off_beside(function, name)

    def _contents(self, binding: Binding, function: Function) -> None:
        """What is put into a list, a dict or a tensor that the variable holds."""
        for place, value in _put_into(self._model, binding, function):
            if is_graphless(self._model.value(value)):
                continue
            loop, around = self._loop, self._model.loops_around(place)
            if loop is not None and loop.function is function and loop not in around:
                self.reused = self.reused or _brings_graph(self._model, value, unknown=True)
            elif loop is not None and loop in around:
                fresh = any(loop.holds(write.loop) for write in binding.writes if write.kind == "assign")
                if not fresh and _may_have_graph(self._model, value):
                    self.reused = True
            if function is self._home and _may_have_graph(self._model, value, unknown=True):
                self.writes.add(place)
            self._work.append(value)


def _is_cut_off_beside(function: Function, name: str) -> bool:
    """Whether another method of the class detaches what it is given under a name: `critic(fake.detach())`."""
    siblings = [method for method in function.cls.methods.values() if name in method.params] if function.cls else []
    cuts = (call.receiver for sibling in siblings for call in sibling.calls if call.method == "detach")
    return any(isinstance(cut, cst.Name) and cut.value == name for cut in cuts)


def _is_kept_loss(model: Model, write: Write) -> bool:
    """Whether an object keeps what it was handed, of which no call shows more than the name: `self.losses = losses`."""
    name = write.value.value if isinstance(write.value, cst.Name) else ""
    return _CARRIED_NAMES.search(name) is not None and _is_handed_in(model, write)


def _is_handed_in(model: Model, write: Write) -> bool:
    """Whether an attribute is set to a parameter that may have a graph."""
    binding = model.binding(write.value) if isinstance(write.value, cst.Name) else None
    if binding is None or not binding.is_parameter:
        return False
    value = write.function.parameter(binding.name)
    return not is_graphless(value) and value.kind not in _OBJECTS


def _is_asked(call: Call) -> bool:
    """`encoder.kl_divergence()`, of what the module keeps of an earlier pass, and may give to others, too."""
    return call.receiver is not None and call.method not in (None, "forward") and not call.arguments


def _is_written_before(model: Model, binding: Binding, read: cst.CSTNode, loop: Loop) -> bool:
    """Whether every way through an iteration of a loop writes a variable before a read."""
    targets = {write.target for write in binding.writes if write.kind != "augmented"}
    here = read
    for outer in model.ancestors(read):
        if isinstance(outer, (cst.IndentedBlock, cst.Module, cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            body: list[cst.CSTNode] = [*outer.body]
            before = body[: body.index(here)] if here in body else []
            if any(_always_writes(statement, targets) for statement in before):
                return True
        elif isinstance(outer, cst.For) and here is outer.body and _binds(outer.target, targets):
            return True
        if outer is loop.node:
            break
        here = outer
    return False


def _always_writes(node: cst.CSTNode | None, targets: set[cst.CSTNode]) -> bool:
    match node:
        case cst.IndentedBlock() | cst.SimpleStatementLine() | cst.SimpleStatementSuite():
            return any(_always_writes(part, targets) for part in node.body)
        case cst.Assign():
            return any(_binds(target.target, targets) for target in node.targets)
        case cst.AnnAssign():
            return node.value is not None and _binds(node.target, targets)
        case cst.With() | cst.Try() | cst.Else():
            return _always_writes(node.body, targets)
        case cst.If():
            return _always_writes(node.body, targets) and _always_writes(node.orelse, targets)
    return False


def _binds(target: cst.CSTNode, targets: set[cst.CSTNode]) -> bool:
    return any(node in targets for node in walk(target))


def is_leaf(model: Model, value: cst.BaseExpression, depth: int = _DEPTH) -> bool:
    """A tensor that a graph begins with, also where it is moved or kept in a list: it holds none itself, other than
    what a network, or a computation, makes of it. A function may call itself: so deep it is followed."""
    match value:
        case cst.List() | cst.Tuple():
            return all(is_leaf(model, element.value, depth) for element in value.elements)
        case cst.ListComp() | cst.SetComp() | cst.GeneratorExp():
            return is_leaf(model, value.elt, depth)
        case cst.IfExp():
            return is_leaf(model, value.body, depth) and is_leaf(model, value.orelse, depth)
        case cst.Call():
            return _makes_leaf(model, model.call(value), depth)
    return model.value(value).ref == "torch.nn.Parameter"


def _makes_leaf(model: Model, call: Call, depth: int) -> bool:
    callee = call.callee or ""
    if call.method == "requires_grad_":
        return not carries(call.receiver_value)
    if callee in ("torch.autograd.Variable", "torch.nn.Parameter"):
        return True
    if call.argument("requires_grad").given and callee.startswith("torch."):
        return True
    if call.target is not None and not call.is_forward:
        parts = [node.value for node in call.target.returns] if depth else []
        return bool(parts) and all(part is not None and is_leaf(model, part, depth - 1) for part in parts)
    if call.receiver is None or call.receiver_value.kind is Kind.MODULE or call.method not in MOVES:
        return False
    return is_leaf(model, call.receiver, depth)


def _may_have_graph(model: Model, value: cst.BaseExpression, *, unknown: bool = False) -> bool:
    """Whether a value brings a graph. With `unknown`, what comes out of code out of sight may, unless it is data."""
    if carries(model.value(value)):
        return True
    made = value.elt if isinstance(value, (cst.ListComp, cst.SetComp, cst.GeneratorExp)) else value
    if is_graphless(model.value(made)):
        return False
    for node in walk(value):
        if isinstance(node, cst.Call) and model.call(node).grad_enabled is not False:
            call = model.call(node)
            if call.callee == "torch.autograd.grad" and call.argument("create_graph", 4).value.constant is True:
                return True
            if is_graphless(call.value):
                continue
            if call.targets_class is not None and _keeps_tensors(model, call.targets_class):
                return True
            runs_model = call.is_forward or (call.target is not None and bool(model.effects(call.target).forwards))
            if runs_model or call.receiver_value.kind is Kind.MODULE or (unknown and _is_out_of_sight(call)):
                return True
        elif isinstance(node, (cst.Name, cst.Attribute)) and carries(model.value(node)):
            return model.value(node).ref != "torch.nn.Parameter"
    return computes_of_module(model, value)


def _brings_graph(model: Model, value: cst.BaseExpression, *, unknown: bool) -> bool:
    """Whether what was made before the passes of a loop, or by another function, has a graph that they share."""
    if isinstance(value, cst.Attribute) and model.value(value).is_tensor and is_of_module(model, value):
        return not is_leaf(model, value)
    return _may_have_graph(model, value, unknown=unknown) or computes_of_given(model, value)


def _is_worked_on(model: Model, read: cst.CSTNode) -> bool:
    """Whether something is taken for a tensor: `x.sum()`"""
    above = model.parent(read)
    while isinstance(above, cst.Subscript):
        above = model.parent(above)
    return isinstance(above, cst.Attribute) and is_tensor_method(above.attr.value)


def _is_out_of_sight(call: Call) -> bool:
    package = (call.callee or "").partition(".")[0]
    if call.target is not None or package in ("torch", "torchvision", *HARMLESS_PACKAGES) or call.method in MOVES:
        return False
    return not _DATA.search(call.method or last_name(call.node.func))


def _put_into(model: Model, binding: Binding, function: Function) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """Places where a function adds something to what a variable holds, and what it adds."""
    for read in binding.reads:
        if model.function(read) is not function:
            continue
        above = model.parent(read)
        node: cst.CSTNode = read
        while isinstance(above, cst.Subscript) and above.value is node:
            node, above = above, model.parent(above)
        if isinstance(above, cst.AssignTarget) and node is not read:
            assign = model.parent(above)
            if isinstance(assign, cst.Assign):
                yield above, assign.value
        elif isinstance(above, cst.AugAssign) and above.target is node and node is not read:
            yield above, above.value
        elif isinstance(above, cst.Attribute) and above.attr.value in _ADDING:
            call = model.parent(above)
            if isinstance(call, cst.Call) and call.func is above:
                for arg in call.args:
                    yield call, arg.value


def _keeps_tensors(model: Model, cls: Class) -> bool:
    """Whether a module, or another object, of this file stores a tensor with a graph in itself: in a pass, or to begin
    with."""
    for attribute in cls.attributes.values():
        for write in attribute.writes:
            is_read = bool(attribute.reads) or not cls.is_module  # of other objects, from outside as well
            if write.function.cls is not cls or write.value is None or not is_read:
                continue
            if write.function.name == "__init__":
                is_kept = carries(model.value(write.value)) and not is_leaf(model, write.value)
            else:
                is_kept = _may_have_graph(model, write.value)
            if is_kept:
                return True
    return False
