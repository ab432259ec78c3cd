"""Where a value ends up: read as a number and done with, sent backward, or handed to code out of sight."""

from __future__ import annotations

from enum import Flag, auto
from types import NoneType
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses import fate_words as words
from torchlint.analyses.fate_reports import only_reports
from torchlint.analyses.lifetime import root
from torchlint.analyses.once import once_for_each
from torchlint.semantics.dataflow import given_to, is_from_caller, parameter_of, parameter_of_function, reaches
from torchlint.semantics.effects import steps_on_a_loss
from torchlint.semantics.values import Grad, Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Class, Function
    from torchlint.semantics.model import Model


class Fate(Flag):
    """What can happen to a value, joined over all its uses. Empty: nothing ever reads it."""

    NONE = 0
    CONSUMED = auto()  # printed, compared, turned into a number: no gradient can come back through it
    BACKWARD = auto()  # backward(), autograd.grad, or a hook that waits for a gradient
    ESCAPES = auto()  # returned to callers, or given to code, that this file does not show


_DEPTH = 6
_MOST_SEEN = 3000  # uses, each as often as there are ways of calls to it


class Tracer:
    """Follows values through one file. Flow inside a function is not ordered: any read of a variable counts."""

    def __init__(self, model: Model, *, graphs_only: bool = True) -> None:
        self._model, self._graphs_only = model, graphs_only

    def of_expression(self, *expressions: cst.CSTNode) -> Fate:
        """Fate of the values of expressions."""
        return self._followed(expressions).fate

    def within(self, function: Function, *expressions: cst.CSTNode) -> Fate:
        """Fate of the values of expressions in a function, apart from what happens to what it returns."""
        return self._followed(expressions, function).fate

    def is_returned(self, function: Function, *expressions: cst.CSTNode) -> bool:
        """Whether a function returns the values of expressions in it, or what is computed of them."""
        return self._followed(expressions, function).is_returned

    def _followed(self, expressions: tuple[cst.CSTNode, ...], function: Function | None = None) -> _Trail:
        trail = _Trail(self._model, function)
        for expression in expressions:
            trail.on(expression)
        trail.run()
        return trail

    def of_binding(self, binding: Binding, written_at: cst.CSTNode | None = None) -> Fate:
        """Fate of what a variable or attribute holds; with `written_at`, of what is written there."""
        trail = _Trail(self._model, graphs_only=self._graphs_only)
        trail.enter(binding, written_at)
        if not isinstance(written_at, (cst.Assign, NoneType)):
            trail.enter_aliases(binding)
        return trail.run()


@once_for_each
def is_in_loss(model: Model, binding: Binding) -> bool:
    """Whether a backward pass begins at something computed of what a variable holds, which need not have a graph."""
    return Fate.BACKWARD in Tracer(model, graphs_only=False).of_binding(binding)


@once_for_each
def fate_of(model: Model, binding: Binding) -> Fate:
    """Fate of whatever a variable or attribute holds."""
    return Tracer(model).of_binding(binding)


def _named_attributes(model: Model) -> dict[str, list[cst.Attribute]]:
    """Every `x.name` of the file that is not `self.name`, by name."""
    found: dict[str, list[cst.Attribute]] = {}
    for node in model.nodes_of(cst.Attribute):
        if isinstance(node, cst.Attribute) and model.binding(node) is None:
            found.setdefault(node.attr.value, []).append(node)
    return found


class _Site(NamedTuple):
    """The call through which a value came into a function, and the one before that."""

    call: Call
    before: _Site | None
    depth: int


class _Trail:
    """One search: what was seen, what is left to look at, and the fate so far.

    `site` is the call through which the value at hand came into its function: what the function returns of it goes
    back there, not to all of its callers.
    """

    def __init__(
        self, model: Model, entered: Function | None = None, *, graphs_only: bool = True, is_abroad: bool = False
    ) -> None:
        self.model, self.is_abroad = model, is_abroad
        self.attributes = model.once(_named_attributes)
        self.entered = entered  # the function of this file through which a search of another file came in
        self.graphs_only = graphs_only
        self.is_returned = False
        self.kept_as: set[str] = set()  # attributes that hold the value
        self.changed: set[Binding | None] = set()  # what else holds an object that the value went into
        self.work: list[tuple[cst.CSTNode, _Site | None]] = []
        self.seen: set[object] = set()
        self.fate = Fate.NONE
        self.site: _Site | None = None

    def run(self) -> Fate:
        while self.work and Fate.BACKWARD not in self.fate:
            if len(self.seen) > _MOST_SEEN:
                return self.fate | Fate.ESCAPES
            node, self.site = self.work.pop()
            if self._is_graphless(node):
                self._final()
            else:
                self._use(node)
        return self.fate

    def _is_graphless(self, node: cst.CSTNode) -> bool:
        """What callers in its own file give a function says nothing of what another file gives it, nor what was put
        into an object of what was added to it under another name."""
        value = self.model.value(node)
        is_detached = self.graphs_only and value.grad is Grad.DETACHED and value.is_tensor and self.entered is None
        is_detached = is_detached and not (self.changed and root(self.model, node) in self.changed)
        return is_detached or value.is_(Kind.NUMBER, Kind.STRING, Kind.ARRAY)

    # -- moving on

    def on(self, node: cst.CSTNode | None) -> None:
        if node is not None and (node, self.site) not in self.seen:
            self.seen.add((node, self.site))
            self.work.append((node, self.site))

    def enter(self, binding: Binding | None, written_at: cst.CSTNode | None = None) -> None:
        """The value is now held by a variable or an attribute: all its reads follow."""
        if binding is None:
            self.fate |= Fate.ESCAPES
            return
        if (binding, written_at, self.site) in self.seen:
            return
        self.seen.add((binding, written_at, self.site))
        site = self.site
        if binding.shared:
            self.site = None
        for read in binding.reads:
            if written_at is None or reaches(self.model, binding, written_at, read):
                self.on(read)
        self._elsewhere(binding)
        self.site = site

    def _elsewhere(self, binding: Binding) -> None:
        """An attribute is read through other objects than self, too."""
        if binding.cls is not None:
            self.kept_as.add(binding.name)
            elsewhere = self.attributes.get(binding.name, ())
            for node in elsewhere:
                self.on(node)
            if self.entered is not None or self.is_abroad:
                return
            if not elsewhere and not any(map(self._looks_inside, binding.reads)):
                self.fate |= Fate.ESCAPES  # filled and emptied here, so what is in it is read in another file
            self._to_heirs(binding.cls, binding.name)

    def _to_heirs(self, cls: Class, name: str) -> None:
        """Into the classes of other files that have the attribute from one of this file."""
        for home, heir in self.model.heirs_elsewhere(cls):
            held = heir.attributes.get(name)
            if held is not None and held.reads:
                trail = _Trail(home, graphs_only=self.graphs_only, is_abroad=True)
                trail.enter(held)
                self.fate |= trail.run()

    def _looks_inside(self, read: cst.CSTNode) -> bool:
        parent = self.model.parent(read)
        return not isinstance(parent, cst.Attribute) or parent.attr.value not in {*words.FILLING_METHODS, "clear"}

    # -- one use

    def _use(self, node: cst.CSTNode) -> None:
        parent = self.model.parent(node)
        match parent:
            case cst.Attribute():
                self._attribute(parent)
            case cst.Arg():
                self._argument(parent)
            case cst.Subscript():
                self.on(parent)
            case cst.BinaryOperation():
                text = isinstance(parent.operator, cst.Modulo) and self.model.value(parent.left).is_(Kind.STRING)
                self._final() if text else self.on(parent)
            case (
                cst.UnaryOperation()
                | cst.BooleanOperation()
                | cst.Tuple()
                | cst.List()
                | cst.Set()
                | cst.Dict()
                | cst.DictElement()
                | cst.StarredElement()
                | cst.StarredDictElement()
                | cst.Await()
                | cst.ListComp()
                | cst.SetComp()
                | cst.GeneratorExp()
                | cst.DictComp()
            ):
                if isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Not):
                    self._final()
                else:
                    self.on(parent)
            case cst.Element():
                self._element(parent)
            case cst.IfExp():
                self._final() if node is parent.test else self.on(parent)
            case cst.NamedExpr():
                self._store(parent.target)
                self.on(parent)
            case cst.Assign():
                for target in parent.targets:
                    self._store(target.target)
            case cst.AnnAssign():
                self._store(parent.target)
            case cst.AugAssign():
                if node is parent.value:
                    self._store(parent.target)
                    self.enter_aliases(self.model.binding(parent.target))
            case cst.For() | cst.CompFor():
                if node is parent.iter:
                    self._store(parent.target)
            case cst.WithItem():
                if parent.asname is not None:
                    self._store(parent.asname.name)
            case cst.Return():
                self._returned(self.model.function(parent))
            case cst.Lambda():
                self._returned(self.model.function(node))
            case cst.Yield() | cst.From():
                self._yielded(self.model.function(parent))
            case cst.Expr() | cst.AssignTarget() | cst.Del():
                pass
            case _:  # a test, an assertion, an f-string, an index: it is read and forgotten
                self._final()

    def _final(self) -> None:
        self.fate |= Fate.CONSUMED

    def _attribute(self, node: cst.Attribute) -> None:
        name = node.attr.value
        call = self.model.parent(node)
        if isinstance(call, cst.Call) and call.func is node:
            if name in words.GRADIENT_METHODS:
                self.fate |= Fate.BACKWARD
            elif name in words.FINAL_METHODS:
                self._final()
            elif name not in words.FILLING_ONLY:
                self.on(call)
        elif name == "grad":
            self.fate |= Fate.BACKWARD
        elif name in words.FINAL_ATTRIBUTES:
            self._final()
        else:
            self.on(node)

    def _element(self, element: cst.Element) -> None:
        """An element of a tuple that is unpacked right away goes to one name only."""
        display = self.model.parent(element)
        assign = self.model.parent(display) if display is not None else None
        if not isinstance(assign, cst.Assign) or not isinstance(display, (cst.Tuple, cst.List)):
            self.on(display)
            return
        for target in assign.targets:
            names = target.target.elements if isinstance(target.target, (cst.Tuple, cst.List)) else ()
            if len(names) == len(display.elements):
                self._store(names[list(display.elements).index(element)].value)
            else:
                self._store(target.target)

    def _store(self, target: cst.CSTNode) -> None:
        match target:
            case cst.Name():
                self.enter(self.model.binding(target), target)
            case cst.Attribute():
                self.enter(self.model.binding(target))
            case cst.Subscript():
                self._into(target.value)
            case cst.Tuple() | cst.List():
                for element in target.elements:
                    self._store(element.value)
            case cst.StarredElement():
                self._store(target.value)

    def _into(self, holder: cst.CSTNode) -> None:
        """The value is now inside the object that an expression names."""
        while isinstance(holder, (cst.Subscript, cst.Attribute)) and self.model.binding(holder) is None:
            holder = holder.value
        if isinstance(holder, cst.Call):
            holder = holder.func.value if isinstance(holder.func, cst.Attribute) else holder
        binding = self.model.binding(holder)
        self.enter(binding)
        self.enter_aliases(binding)
        if binding is not None and any(write.kind == "for" for write in binding.writes):
            self.fate |= Fate.ESCAPES  # into one of several objects, whatever they are called elsewhere
        if binding is not None and binding.is_parameter:
            self._into_given(binding)

    def enter_aliases(self, binding: Binding | None) -> None:
        """The object in a variable has changed, and it may lie elsewhere under another name: `total = sums["total"]`,
        and then `total += loss`."""
        if binding is None or (binding, "aliases") in self.seen:
            return
        self.seen.add((binding, "aliases"))
        for write in binding.writes:
            if write.kind != "assign" or write.unpacked or self.model.value(write.target).is_(Kind.NUMBER, Kind.NONE):
                continue
            if isinstance(write.value, (cst.Name, cst.Attribute, cst.Subscript)):
                self.changed.add(root(self.model, write.value))
                self._into(write.value)

    def _into_given(self, parameter: Binding) -> None:
        """The value is now inside what callers gave: `outputs["depth"] = depth` fills the dict of whoever calls."""
        function = parameter.scope_function
        if parameter.name == function.own_name or (parameter, "given") in self.seen:
            return
        self.seen.add((parameter, "given"))
        given = [source for call in function.callers for source in given_to(call, parameter)]
        if not given or function.foreign_callers or not _is_entered(function):
            self.fate |= Fate.ESCAPES
        site, self.site = self.site, None
        for source in given:
            self._into(source)
        self.site = site

    # -- calls

    def _argument(self, arg: cst.Arg) -> None:
        site = self.model.parent(arg)
        if not isinstance(site, cst.Call):
            self.fate |= Fate.ESCAPES
            return
        call = self.model.call(site)
        name = call.callee or ""
        takes_gradients = name.startswith(words.GRADIENT_PACKAGES) and name != "torch.autograd.Variable"
        if call.is_backward or steps_on_a_loss(call) or takes_gradients:
            self.fate |= Fate.BACKWARD
        elif name in words.FINAL_FUNCTIONS:
            self._final()
        elif name in words.PASSING_FUNCTIONS or call.is_forward:
            self.on(site)
        elif (parameter := parameter_of(call, arg)) is not None:
            self._pass(call, parameter)
        elif call.alternatives:
            for function in call.alternatives:
                self._pass(call, parameter_of_function(call, function, arg))
        elif (abroad := self.model.elsewhere(call)) is not None and call.targets_class is None:
            self._cross(call, arg, *abroad)
        elif name.partition(".")[0] in words.READERS or name.startswith("torch.nn.utils.clip_grad"):
            self._final()
        elif words.GOING_BACK.search(call.method or name.rpartition(".")[2]):
            self.fate |= Fate.BACKWARD  # `optimizer.pc_backward(losses)` of a class out of sight
        elif self._is_effect_of_module(call):
            self.fate |= Fate.ESCAPES
        elif name.startswith("torch.") or call.targets_class is not None:
            self.on(site)
            if call.method is not None and call.method.endswith("_"):
                self._into(call.receiver) if call.receiver is not None else None
        else:
            self._method_argument(call, site)

    def _is_effect_of_module(self, call: Call) -> bool:
        """Whether a module of a class out of sight does something with its arguments: `critic.update(loss)`."""
        of_module = call.method is not None and call.receiver_value.kind is Kind.MODULE
        return of_module and call.callee is None and isinstance(self.model.parent(call.node), cst.Expr)

    def _pass(self, call: Call, parameter: Binding | None) -> None:
        site = self.site
        self.site = _Site(call, site, site.depth + 1 if site is not None else 1)
        if self.site.depth > _DEPTH or (parameter is not None and self._is_unfinished(parameter)):
            self.fate |= Fate.ESCAPES
        else:
            self.enter(parameter)
        self.site = site

    def _is_unfinished(self, parameter: Binding) -> bool:
        """Whether a function, of an exercise perhaps, reads nothing of what it is given, and says `return loss` of a
        `loss = None`: what it will do with it, nobody knows."""
        returned = parameter.scope_function.returns if not parameter.reads else ()
        return any(node.value is not None for node in returned) and all(
            node.value is None or self.model.value(node.value).kind is Kind.NONE for node in returned
        )

    def _cross(self, call: Call, arg: cst.Arg, model: Model, function: Function) -> None:
        """Into a function of another file, and back with what it returns or keeps in its object."""
        parameter = parameter_of_function(call, function, arg)
        if parameter is None or function.name == "__init__":
            self.fate |= Fate.ESCAPES
            return
        trail = _Trail(model, function)
        trail.enter(parameter)
        self.fate |= trail.run()
        if trail.is_returned:
            self.on(call.node)
        for name in sorted(trail.kept_as):
            reads = self.attributes.get(name, ())
            self.fate |= Fate.NONE if reads else Fate.ESCAPES
            for node in reads:
                self.on(node)

    def _method_argument(self, call: Call, site: cst.Call) -> None:
        method, receiver = call.method, call.receiver
        kind = call.receiver_value.kind
        if only_reports(self.model, call) or (method in words.SEARCHES and kind in (Kind.LIST, Kind.UNKNOWN)):
            self._final()
        elif kind is Kind.SCALER or call.receiver_value.is_tensor or kind is Kind.MODULE:
            self.on(site)
        elif method in words.FILLING_METHODS and receiver is not None and kind is not Kind.INSTANCE:
            if (not call.receiver_value.is_container and kind is not Kind.UNKNOWN) or (
                kind is Kind.UNKNOWN and method in ("update", "add", "put", "push", "put_nowait")
            ):
                self.fate |= Fate.ESCAPES
            self._into(receiver)
        elif method == "scale" and kind is Kind.UNKNOWN:
            self.on(site)
        elif call.value.is_tensor and is_from_caller(self.model, call.node.func):
            self.on(site)  # `self.criterion(outputs, labels)` makes a tensor of what it gets, and keeps nothing
        else:
            self.fate |= Fate.ESCAPES

    # -- leaving a function

    def _returned(self, function: Function) -> None:
        if self.site is None and function is self.entered:
            self.is_returned = True
            return
        if self.site is not None and (self.site.call.target is function or function in self.site.call.alternatives):
            call, self.site, _ = self.site
            self.on(call.node)
            return
        cls = function.cls
        if cls is not None and cls.is_lightning:
            self.fate |= Fate.BACKWARD
        if "builtins.property" in function.decorators and self._read_as(function):
            return
        if (
            not _is_entered(function)
            or function.passed_around
            or (cls is not None and cls.is_module and function.name == "forward")
        ):
            self.fate |= Fate.ESCAPES
        self._to_callers(function)

    def _read_as(self, prop: Function) -> bool:
        """Whether the file reads a property; what it returns goes there."""
        own = prop.cls.attribute(prop.name) if prop.cls is not None else None
        reads = [*self.attributes.get(prop.name, ()), *(own.reads if own is not None else ())]
        self.site = None
        for read in reads:
            self.on(read)
        return bool(reads)

    def _yielded(self, function: Function) -> None:
        if self.site is None and function is self.entered:
            self.is_returned = True
            return
        if not _is_entered(function):
            self.fate |= Fate.ESCAPES
        self._to_callers(function)

    def _to_callers(self, function: Function) -> None:
        self.site = None
        for caller in function.callers:
            self.on(caller.node)
        if self.entered is None and not self.is_abroad and (function, "abroad") not in self.seen:
            self.seen.add((function, "abroad"))
            self._to_callers_abroad(function)

    def _to_callers_abroad(self, function: Function) -> None:
        """In other files, where it is followed as far as it stays in the file."""
        for home, call in self.model.calls_elsewhere(function):
            trail = _Trail(home, graphs_only=self.graphs_only, is_abroad=True)
            trail.on(call.node)
            self.fate |= trail.run()


def _is_entered(function: Function) -> bool:
    """Whether a call of the function is in sight that it does not make itself."""
    return any(call.function is not function for call in function.callers)
