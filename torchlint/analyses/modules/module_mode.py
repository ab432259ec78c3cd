"""In which mode a network can be where it runs: what `train()` and `eval()` on the way there have left."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchlint.analyses.conditions import holds_once
from torchlint.analyses.modules.call_order import InnerFirst
from torchlint.analyses.modules.evaluated_makers import hands_on_evaluated
from torchlint.analyses.modules.listed_networks import put_into_list
from torchlint.analyses.modules.mode_layers import mode_layer
from torchlint.analyses.modules.network_names import asked_for_mode, name_outside, unwrapped
from torchlint.semantics.dataflow import parameter_of_function, text, upstream
from torchlint.semantics.tree import arms, is_name, walk
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import EXITS

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function, Loop
    from torchlint.semantics.model import Model

_DEPTH = 6
_OTHERS = 4
_EVALUATED = re.compile(r"\.(eval|from_pretrained|pipeline)\s*\(|\.train\(\s*[^)\s]")
_LOADED = re.compile(r"(^|\.)load(_\w+)?\(")
# What code out of sight may be called that switches the mode of a network that it is given.
_TOGGLING = re.compile(
    r"(?i)(^|_)(eval|train|valid|test|infer|predict|fit|fine_?tun|freeze|drop|prepare_|set_)|(^|_)(mode|bn)(_|$)"
)
_CHAINED = frozenset("to cuda cpu float half bfloat16 eval train requires_grad_ parameters named_parameters".split())
_WITHOUT_EFFECT = re.compile(r"(torch|torchvision|builtins|copy|math|numpy|logging|accelerate|wandb|timm\.utils)\.")


class Mode(Enum):
    """Which mode a network is in."""

    ENTRY = "entry"  # as it was when the function was entered
    FRESH = "fresh"  # as it was made, with layers that are in sight
    TRAINING = "training"
    EVALUATION = "evaluation"
    UNKNOWN = "unknown"  # code out of sight may have switched it
    UNSEEN = "unseen"  # nothing has switched it since it came from out of sight


Modes = frozenset[Mode]
_NOWHERE: Modes = frozenset()
_LEARNING: Modes = frozenset({Mode.FRESH, Mode.TRAINING, Mode.UNSEEN})
_ENTRY: Modes = frozenset({Mode.ENTRY})
_TRAINING: Modes = frozenset({Mode.TRAINING})
_EVALUATION: Modes = frozenset({Mode.EVALUATION})
# Statements that hold no others, nor lead elsewhere.
_PLAIN = frozenset({cst.Expr, cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Assert, cst.Del, cst.Pass, cst.Import})


def modes_at(model: Model, call: Call, network: cst.BaseExpression) -> Modes:
    """The modes in which the network that a call runs can be, on every way to it that is in sight."""
    binding = model.binding(unwrapped(network))
    return _Ways(model).at(model, call.node, binding) if binding is not None else frozenset({Mode.UNKNOWN})


def is_evaluated_at(model: Model, forward: Call) -> bool:
    """Whether `eval()` was called on the network of a forward pass, on every way to it that is in sight."""
    network = model.binding(unwrapped(forward.node.func))
    if network is None:
        return False
    ways = _Ways(model)
    modes = ways.at(model, forward.node, network)
    if modes == {Mode.UNSEEN} and network.cls is not None:
        modes = ways.kept(model, network)
    return modes == {Mode.EVALUATION} and bool(ways.switches)


def switch_behind(model: Model, forward: Call, loops: Iterable[Loop]) -> tuple[Loop, Call] | None:
    """The first of some loops of which a later iteration runs a network in evaluation mode that runs in another in the
    first, and the `eval()` of this file, or else the forward pass, that does it."""
    binding = model.binding(unwrapped(forward.node.func))
    if binding is None:
        return None
    first = _Ways(model, frozenset()).at(model, forward.node, binding)
    if not first or not first <= _LEARNING:
        return None
    for loop in loops:
        ways = _Ways(model, frozenset({loop.node}))
        modes = ways.at(model, forward.node, binding)
        if Mode.EVALUATION in modes and modes <= first | {Mode.EVALUATION}:
            own = [call for call in ways.switches if call.function.module == model.name]
            return loop, own[-1] if own else forward
    return None


class _Ways:
    """Ways from callers to one forward pass; with `again`, on which those loops alone come to a second iteration."""

    def __init__(self, model: Model, again: frozenset[cst.CSTNode] | None = None) -> None:
        self._entered = {call.node: function for function in model.functions for call in function.foreign_callers}
        self._home = model
        self._after: dict[tuple[Function, Binding], Modes] = {}
        self._nesting = 0
        self._asked: dict[tuple[Function, Binding], int] = {}  # how many calls deep the callers have been asked
        self.again = again
        self.switches: list[Call] = []  # calls of `eval()` on the network, in the order in which they came

    def after(self, model: Model, function: Function, network: Binding, depth: int) -> Modes:
        """What a call of a function leaves."""
        key = function, network
        if key not in self._after:
            self._after[key] = _ENTRY  # where the function calls itself
            self._after[key] = _Walk(self, model, network, depth).after(function)
        return self._after[key]

    def kept(self, model: Model, network: Binding) -> Modes:
        """What the one method that writes an attribute leaves it in, where nothing else asks for training mode."""
        makers = {write.function for write in network.writes}
        if len(makers) != 1 or ".train(" in model.source.text:
            return frozenset({Mode.UNKNOWN})
        return _Walk(self, model, network).after(makers.pop()) - _ENTRY

    def at(self, model: Model, place: cst.CSTNode, network: Binding, depth: int = 0) -> Modes:
        """At a call or a statement of one of the files."""
        function = model.function(place)
        modes = self._before(model, function, network).get(place, _NOWHERE)
        if Mode.ENTRY not in modes:
            return modes
        return (modes - _ENTRY) | self._at_callers(model, function, network, depth)

    def _before(self, model: Model, function: Function, network: Binding) -> Mapping[cst.CSTNode, Modes]:
        """The modes before each call and statement of a function. What a search begins with is kept for others."""
        if self._after or self.switches or self._nesting:
            return _Walk(self, model, network).before(function)
        known, key = model.once(_known_walks), (self._home, self.again, function, network)
        if key not in known:
            known[key] = _Walk(self, model, network).before(function), dict(self._after), list(self.switches)
        before: Mapping[cst.CSTNode, Modes]
        before, after, switches = known[key]
        self._after, self.switches = dict(after), list(switches)
        return before

    def _at_callers(self, model: Model, function: Function, network: Binding, depth: int) -> Modes:
        callers = [(model, call) for call in function.callers]
        if model is self._home:
            callers += [found for call in function.foreign_callers if (found := model.caller(call)) is not None]
        if not callers or depth > _DEPTH:
            return frozenset({Mode.UNSEEN})
        if self._asked.get((function, network), depth + 1) <= depth:
            return _NOWHERE  # all that a search finds goes into one set
        self._asked[function, network] = depth
        modes: set[Mode] = set()
        for home, call in callers:
            given = name_outside(home, call, function, network, is_abroad=home is not model)
            modes |= self.at(home, call.node, given, depth + 1) if given is not None else {Mode.UNKNOWN}
        return frozenset(modes) if modes or depth else frozenset({Mode.UNSEEN})

    def of_others(self, model: Model, place: cst.CSTNode, networks: Iterable[Binding | None]) -> Modes:
        """What other networks, of which one is made or to which a name is given, are in."""
        modes = _NOWHERE
        for network in networks if self._nesting < _OTHERS else (None,):
            outer, self._asked = self._asked, {}
            self._nesting += 1
            modes |= self.at(model, place, network) if network is not None else frozenset({Mode.UNKNOWN})
            self._nesting -= 1
            self._asked = outer
        return modes

    def entered(self, model: Model, call: Call) -> tuple[Model, Function] | None:
        if call.node in self._entered:
            return self._home, self._entered[call.node]
        if call.target is not None:
            return model, call.target
        return model.elsewhere(call)


def _known_walks(_: Model) -> dict[object, Any]:
    return {}


class _Walk:
    """One run through a function, statement by statement, for one network."""

    def __init__(self, ways: _Ways, model: Model, network: Binding, depth: int = 0) -> None:
        self._ways, self._model, self._network, self._depth = ways, model, network, depth
        self._before: dict[cst.CSTNode, Modes] = {}
        self._left: Modes = _NOWHERE
        self._passed: Modes = _NOWHERE  # all modes that it was in within a try
        self._noted: dict[Binding, Modes] = {}
        self._broken: Modes = _NOWHERE
        self._continued: Modes = _NOWHERE
        self._writes: dict[cst.CSTNode | None, list[cst.BaseExpression]] = {}  # what makes the network, by statement
        for write in network.writes:
            if write.value is not None:
                self._writes.setdefault(model.small_statement(write.target), []).append(write.value)

    def before(self, function: Function) -> Mapping[cst.CSTNode, Modes]:
        self._run_function(function)
        return self._before

    def after(self, function: Function) -> Modes:
        return self._run_function(function) | self._left

    def _run_function(self, function: Function) -> Modes:
        node = function.node
        if isinstance(node, cst.Lambda):
            return self._calls(node.body, _ENTRY)
        return self._body(node.body, _ENTRY)

    def _body(self, body: cst.CSTNode | Sequence[cst.CSTNode], modes: Modes) -> Modes:
        statements: Iterable[cst.CSTNode] = getattr(body, "body", body)  # type: ignore[arg-type]
        for statement in statements:
            modes = self._statement(statement, modes)
        return modes

    def _statement(self, node: cst.CSTNode, modes: Modes) -> Modes:
        if type(node) in _PLAIN:
            self._pass(node, modes)
            return _NOWHERE if self._ends_program(node) else self._written(node, self._calls(node, modes))
        match node:
            case cst.SimpleStatementLine() | cst.SimpleStatementSuite():
                return self._body(node, modes)
            case cst.FunctionDef() | cst.ClassDef():
                return modes
            case cst.If(test=test, body=body, orelse=orelse):
                modes = self._calls(test, modes)
                then = self._body(body, modes - self._ruled_out(test, True))
                if self._ways.again is not None and holds_once(test):
                    return modes
                otherwise = modes - self._ruled_out(test, False)
                otherwise = self._statement(orelse, otherwise) if orelse is not None else otherwise
                kept = self._kept(test) if otherwise == _EVALUATION else None
                return then | otherwise if kept is None or then not in (_TRAINING, kept) else kept
            case cst.Else(body=body) | cst.Finally(body=body):
                return self._body(body, modes)
            case cst.For() | cst.While():
                return self._loop(node, modes)
            case cst.With(items=items, body=body):
                for item in items:
                    modes = self._calls(item.item, modes)
                return self._body(body, modes)
            case cst.Try() | cst.TryStar():
                return self._try(node, modes)
            case cst.Match(subject=subject, cases=cases):
                modes = self._calls(subject, modes)
                return modes.union(*(self._body(case.body, modes) for case in cases))
            case cst.Return() | cst.Raise():
                self._left |= self._calls(node, modes)
                return _NOWHERE
            case cst.Break():
                self._broken |= modes
                return _NOWHERE
            case cst.Continue():
                self._continued |= modes
                return _NOWHERE
        return self._written(node, self._calls(node, modes))

    def _ends_program(self, node: cst.CSTNode) -> bool:
        call = node.value if type(node) is cst.Expr else None
        return type(call) is cst.Call and self._model.call(call).callee in EXITS

    def _loop(self, node: cst.For | cst.While, modes: Modes) -> Modes:
        modes = self._calls(node.iter if isinstance(node, cst.For) else node.test, modes)
        outside = self._broken, self._continued
        self._broken = self._continued = _NOWHERE
        before = _NOWHERE if isinstance(node, cst.For) and self._is_filled(node.iter) else modes
        for _ in range(2 if self._ways.again is None or node in self._ways.again else 1):
            modes = before = before | self._body(node.body, modes) | self._continued
        after = self._statement(node.orelse, modes) if node.orelse is not None else modes
        after |= self._broken
        self._broken, self._continued = outside
        return after

    def _is_filled(self, iterable: cst.BaseExpression) -> bool:
        """`[generator, critic]`: the loop over it runs."""
        return bool(self._model.value(iterable).items)

    def _try(self, node: cst.Try | cst.TryStar, modes: Modes) -> Modes:
        """A return, break or continue in it goes through the last block; a handler may find what the body passed."""
        outside, passed = (self._left, self._broken, self._continued), self._passed
        if node.finalbody is not None:
            self._left = self._broken = self._continued = _NOWHERE
        self._passed = modes
        done = self._body(node.body, modes)
        caught = modes | done if self._passed <= modes | done else modes | done | {Mode.UNKNOWN}
        ends = [self._body(handler.body, caught) for handler in node.handlers]
        done = self._statement(node.orelse, done) if node.orelse is not None else done
        done = done.union(*ends)
        self._passed |= passed
        if (last := node.finalbody) is None:
            return done
        inside = self._left, self._broken, self._continued
        self._left, self._broken, self._continued = outside
        self._left |= self._finally(last, inside[0])
        self._broken |= self._finally(last, inside[1])
        self._continued |= self._finally(last, inside[2])
        return self._finally(last, done)

    def _finally(self, last: cst.Finally, modes: Modes) -> Modes:
        return self._body(last.body, modes) if modes else modes

    def _calls(self, node: cst.CSTNode, modes: Modes) -> Modes:
        """Past the calls of an expression, inner ones first."""
        node = node.value if isinstance(node, cst.Expr) else node
        if isinstance(node, cst.IfExp):
            modes = self._calls(node.test, modes)
            return self._calls(node.body, modes) | self._calls(node.orelse, modes)
        order = self._model.once(InnerFirst)
        for call in order.calls(node):
            self._before[call.node] = self._before.get(call.node, _NOWHERE) | modes
            if modes:
                after = self._call(call, modes)
                is_certain = after == modes or not order.is_optional(call.node, node)
                modes = after if is_certain else modes | after
                self._passed |= modes
        return modes

    def _pass(self, node: cst.CSTNode, modes: Modes) -> None:
        self._before[node] = self._before.get(node, _NOWHERE) | modes
        if isinstance(node, cst.Assign) and (of := asked_for_mode(node.value)) is not None and self._is(of):
            for target in node.targets:
                binding = self._model.binding(target.target)
                if binding is not None:
                    self._noted[binding] = self._noted.get(binding, _NOWHERE) | modes

    def _kept(self, node: cst.CSTNode | None) -> Modes | None:
        """The modes that a variable has noted: `was_training = net.training`. None: it is of something else."""
        binding = self._model.binding(node) if node is not None else None
        if binding is None:
            return None
        if binding in self._noted:
            return self._noted[binding]
        asked = any(write.value is not None and asked_for_mode(write.value) for write in binding.writes)
        return frozenset({Mode.UNKNOWN}) if asked else None

    def _ruled_out(self, test: cst.BaseExpression, holds: bool) -> Modes:
        """The modes that a network is not in where `net.training`, or `not net.training`, holds, or does not."""
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            return self._ruled_out(test.expression, not holds)
        of = asked_for_mode(test)
        if of is None or not self._is(of):
            return _NOWHERE
        return _EVALUATION if holds else _TRAINING | {Mode.FRESH}

    # -- what a call does to the network

    def _call(self, call: Call, modes: Modes) -> Modes:
        if call.method in ("eval", "train") and call.receiver is not None and call.target is None:
            same = self._is(call.receiver)
            if same is None:
                return frozenset({Mode.UNKNOWN})
            if same and call.method == "eval":
                self._ways.switches.append(call)
            kept = self._kept(call.argument("mode", 0).node) if same and call.method == "train" else None
            if kept is not None:
                return kept
            return frozenset({_switched(call)}) if same else modes
        entered = self._ways.entered(self._model, call)
        if entered is not None:
            return self._through(call, *entered, modes)
        named = (call.callee or call.method or "").rpartition(".")[2]
        if call.method == "apply" and call.receiver is not None and self._is(call.receiver) is not False:
            return modes | {Mode.UNKNOWN} if _TOGGLING.search(text(call.node)) else modes
        if _TOGGLING.search(named) and any(self._is(arg.value) for arg in call.arguments):
            return modes if _WITHOUT_EFFECT.match(call.callee or "") else modes | {Mode.UNKNOWN}
        return modes

    def _through(self, call: Call, model: Model, function: Function, modes: Modes) -> Modes:
        inner = self._inside(call, model, function)
        if inner is None or self._depth > _DEPTH:
            return modes
        if function.is_generator and "contextlib.contextmanager" in function.decorators:
            return modes | {Mode.UNKNOWN}
        after = self._ways.after(model, function, inner, self._depth + 1)
        return (after - _ENTRY) | (modes if Mode.ENTRY in after else _NOWHERE)

    def _inside(self, call: Call, model: Model, function: Function) -> Binding | None:
        """What the network is called in the function that a call enters."""
        for arg in call.arguments:
            if self._is(arg.value):
                parameter = parameter_of_function(call, function, arg)
                if parameter is not None:
                    return parameter
        return self._network if _outlives(self._network) and model is self._model else None

    # -- what is the network

    def _is(self, node: cst.CSTNode) -> bool | None:
        """Whether an expression is the network, or holds it. None: it may be."""
        node = unwrapped(node)
        if isinstance(node, cst.Call):
            chained = isinstance(node.func, cst.Attribute) and node.func.attr.value in _CHAINED
            return self._is(node.func.value) if chained else False  # type: ignore[attr-defined]
        binding = self._model.binding(node)
        if binding is self._network:
            return True
        if self._network.cls is not None and isinstance(node, cst.Attribute) and node.attr.value == self._network.name:
            return True
        if is_name(node, "self") and self._network.cls is not None:
            return True
        if binding is None:
            return False if isinstance(node, cst.Name) else self._of_part(node)
        ours, theirs = self._origins(), self._model.value(node).origins
        if ours and theirs:
            return bool(ours & theirs) or binding in self._sources
        if any(write.kind == "for" for write in binding.writes):
            return None
        if self._network in upstream(self._model, node) or binding in self._sources:
            return True
        return False if binding.scope_function is self._network.scope_function or binding.cls is not None else None

    def _of_part(self, node: cst.CSTNode) -> bool | None:
        """Of `models["G"]` or `self.ema.model`: a part of the network is not the network, another object may be."""
        first = node
        while isinstance(first, (cst.Attribute, cst.Subscript)):
            first = first.value
            if self._model.binding(first) is self._network:
                return None
        return False if isinstance(node, cst.Attribute) else None

    def _origins(self) -> frozenset[cst.CSTNode]:
        reads = self._network.reads
        return self._model.value(reads[0]).origins if reads else frozenset()

    @cached_property
    def _sources(self) -> set[Binding]:
        written = (write.value for write in self._network.writes)
        values = [value for value in written if value is not None and self._model.parent(value) is not None]
        return self._parts_given().union(*(upstream(self._model, value) for value in values))

    def _parts_given(self) -> set[Binding]:
        """Parameters through which a caller hands in a part of the network beside it: `draw(Sampler(net), net)`."""
        function = self._network.scope_function
        if not self._network.is_parameter:
            return set()
        callers = [(self._model, call) for call in function.callers]
        callers += [found for call in function.foreign_callers if (found := self._model.caller(call)) is not None]
        return {part for home, call in callers for part in self._given_beside(home, call, function)}

    def _given_beside(self, home: Model, call: Call, function: Function) -> Iterator[Binding]:
        given = {parameter_of_function(call, function, arg): arg.value for arg in call.arguments}
        whole = given.get(self._network)
        makers = upstream(home, whole) if whole is not None else set()
        for parameter, value in given.items():
            if parameter is not None and parameter is not self._network and home.binding(value) in makers:
                yield parameter

    def _written(self, node: cst.CSTNode, modes: Modes) -> Modes:
        """After a statement that may make the network."""
        for value in self._writes.get(node, ()) if modes else ():
            code = text(value)
            switches = list(filter(self._switches_inside, self._model.calls_in(value)))
            if switches or _EVALUATED.search(code) or (_LOADED.search(code) and not self._is_made_here(value)):
                self._ways.switches += switches
                return frozenset({Mode.EVALUATION})
            if self._network in upstream(self._model, value) and self._network.name in code:
                return modes
            parts = [part for node in walk(value) if (part := self._part(node)) is not None]
            if parts and isinstance(value, cst.Call):
                return self._ways.of_others(self._model, value, parts)
            same = [self._model.binding(unwrapped(name)) for name in arms(value)]
            if node is not None and None not in same:
                return self._ways.of_others(self._model, node, same)
            if put := put_into_list(self._model, value):
                return _NOWHERE.union(*(self._ways.of_others(self._model, each, (whose,)) for each, whose in put))
            made = mode_layer(self._model, self._model.value(value))
            return frozenset({Mode.FRESH if made is not None else Mode.UNSEEN})
        return modes

    def _switches_inside(self, call: Call) -> bool:
        """`make().eval()`, or a function in sight that calls `eval()` on what it makes."""
        entered = self._ways.entered(self._model, call)
        return call.method == "eval" or (entered is not None and hands_on_evaluated(*entered))

    def _part(self, node: cst.CSTNode) -> Binding | None:
        """Another network that the network is built around, as a sampler is around the model that it draws from."""
        if not isinstance(node, cst.Arg) or not self._model.value(node.value).is_(Kind.MODULE):
            return None
        binding = self._model.binding(node.value)
        return binding if binding is not self._network else None

    def _is_made_here(self, value: cst.CSTNode) -> bool:
        """Whether functions in sight make a network, and leave it in training mode."""
        made = [text(call.target.node) for call in self._model.calls_in(value) if call.target is not None]
        return bool(made) and not any(map(_EVALUATED.search, made))


def _switched(call: Call) -> Mode:
    state = call.argument("mode", 0)
    if call.method == "eval" or state.value.constant is False:
        return Mode.EVALUATION
    return Mode.TRAINING if state.absent or state.value.constant is True else Mode.UNKNOWN


def _outlives(binding: Binding) -> bool:
    """Whether functions other than its own can read it: a global, an attribute, a variable of a function around."""
    return binding.cls is not None or binding.is_global or binding.shared
