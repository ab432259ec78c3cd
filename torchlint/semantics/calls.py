"""Evaluating calls: what is called, what it is given, what comes back, and what the call does to variables."""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import frameworks, transfer
from torchlint.semantics import vocabulary as words
from torchlint.semantics.decorators import Decorators
from torchlint.semantics.entities import Call, Class, Function
from torchlint.semantics.expressions import Expressions
from torchlint.semantics.hints import LOSS_NAMES
from torchlint.semantics.names import Names, canonical
from torchlint.semantics.scopes import Scopes, is_placeholder, record_fields
from torchlint.semantics.signatures import Signature
from torchlint.semantics.transfer import Arguments, element_of
from torchlint.semantics.values import NONE, NUMBER, STRING, UNKNOWN, Grad, Kind, Place, Value, join

if TYPE_CHECKING:
    from torchlint.semantics.foreign import Imports

_ADDING_METHODS = frozenset({"append", "add", "appendleft", "insert"})
_TENSOR_ONLY_METHODS = frozenset(
    """
    detach view permute unsqueeze contiguous softmax log_softmax sigmoid float long half double expand
    masked_fill gather scatter_ zero_ requires_grad_ bmm mm unbind chunk argmax topk sub_ add_ mul_ div_
    clamp clamp_ relu log exp pow norm new_zeros new_ones index_select flatten
    """.split()
)
_PARAMETER_METHODS = frozenset({"parameters", "named_parameters", "buffers", "trainable_parameters"})
_CHILD_METHODS = frozenset({"children", "modules", "named_children", "named_modules"})
# Of what is imported or handed in, nothing is known but the name.
_VAGUE = (Kind.UNKNOWN, Kind.FUNCTION, Kind.NAMESPACE)
_DATA_PARALLEL = "torch.nn.parallel.data_parallel"
_NEUTRAL = re.compile(r"(math|time|os|json|random|logging|re|sys)\.")


class Calls(Expressions):
    """Adds calls to the evaluation of expressions."""

    def __init__(self, scopes: Scopes, names: Names, imports: Imports | None = None) -> None:
        super().__init__(scopes, names, imports)
        self.decorators = Decorators(scopes)
        self._signatures: dict[Function, Signature] = {}

    def _call(self, node: cst.Call) -> Value:
        call = self.scopes.call_of[node]
        if self.rehearsing:
            call = copy(call)
        call.grad_enabled = self.grad
        call.callee = call.target = call.foreign = None
        call.partial = frozenset()
        call.alternatives = []
        call.passes = []
        if isinstance(node.func, cst.Attribute):
            value = self._attribute_call(call, node.func)
        else:
            function = self.eval(node.func)
            value = self._apply(call, function, self._given(call))
        call.value = value
        return value

    def _given(self, call: Call) -> Arguments:
        positional: list[Value] = []
        keywords: dict[str, Value] = {}
        is_open = is_uncounted = False
        for arg in call.node.args:
            value = self.eval(arg.value)
            call.passes += self.local_functions(value)
            if arg.star == "**" and value.fields is not None:
                keywords.update(value.fields)
            elif arg.star == "*" and value.items is not None and not is_uncounted:
                positional.extend(value.items)
            elif arg.star:
                is_open = True
                is_uncounted |= arg.star == "*"
            elif arg.keyword is not None:
                keywords[arg.keyword.value] = value
            elif not is_uncounted:
                positional.append(value)
        return Arguments(positional, keywords, is_open)

    # -- what is called ----------------------------------------------------------------------------------------------

    def _attribute_call(self, call: Call, func: cst.Attribute) -> Value:
        receiver = self.eval(func.value)
        method = func.attr.value
        call.receiver_value = receiver
        given = self._given(call)
        super_target = self._super_method(call, func)
        if super_target is not None:
            return self._enter(call, super_target, given, bound=True)
        if receiver.kind in (Kind.NAMESPACE, Kind.FUNCTION, Kind.CLASS) and receiver.ref and not receiver.origins:
            self.values[func] = self.named(canonical(f"{receiver.ref}.{method}"))
            return self._apply(call, self.values[func], given)
        cls = self.local_class(receiver) if receiver.kind is not Kind.FUNCTION else None
        if cls is not None:
            return self._method_of_class(call, receiver, cls, method, given)
        foreign = self.foreign_class(receiver) if receiver.kind is not Kind.FUNCTION else None
        if foreign is not None:
            return self._method_of_foreign_class(call, receiver, foreign, method, given)
        binding = self.scopes.bindings.get(func)
        if binding is not None and binding.writes:
            self.values[func] = self.read(binding)
            return self._apply(call, self.values[func], given)
        if binding is not None and binding.cls is not None:
            target = binding.cls.method(method)
            if target is not None:
                return self._enter(call, target, given, bound=True)
            if binding.cls.is_module:
                receiver = Value(Kind.MODULE, ref=binding.cls.ref)
        return self._method(call, receiver, method, given)

    def _super_method(self, call: Call, func: cst.Attribute) -> Function | None:
        match func.value:
            case cst.Call(func=cst.Name(value="super")):
                cls = self.function.cls
                bases = cls.local_bases if cls is not None else []
                return next((found for base in bases if (found := base.method(func.attr.value))), None)
        return None

    def _method_of_class(self, call: Call, receiver: Value, cls: Class, method: str, given: Arguments) -> Value:
        attribute = cls.attribute(method)
        target = cls.method(method)
        if target is None or target.is_property or (attribute is not None and attribute.writes):
            return self._attribute_of_class(call, receiver, cls, method, given)
        targets = self._implementations(receiver, cls, target)
        value = self._enter_one_of(call, targets, given, bound=_is_bound(target, receiver))
        if method == "forward" and receiver.kind is Kind.MODULE:
            return self._forwarded(call, receiver, value, given)
        return value

    def _attribute_of_class(self, call: Call, receiver: Value, cls: Class, name: str, given: Arguments) -> Value:
        """Call what an attribute holds that is no method of this file."""
        foreign = next((base for base in self.foreign_bases(cls) if base.method(name) is not None), None)
        if foreign is not None and cls.method(name) is None:
            return self._method_of_foreign_class(call, receiver, foreign, name, given)
        attribute = cls.attribute(name)
        value = self.class_attribute(cls, name, of_object=receiver.kind is not Kind.CLASS) or UNKNOWN
        if value.kind is Kind.UNKNOWN and attribute is not None:
            value = self.read(attribute)  # its use says more than a base that leaves it to its subclasses
        if value.kind is not Kind.UNKNOWN or (attribute is not None and attribute.writes):
            self.values[call.node.func] = value
            return self._apply(call, value, given)
        return self._method(call, receiver, name, given)

    @staticmethod
    def _implementations(receiver: Value, cls: Class, target: Function) -> list[Function]:
        """The methods that may run: an object that was not made in sight may be of any class that derives."""
        if receiver.origins or not cls.subclasses:
            return [target]
        found = [target, *(sub.methods[target.name] for sub in cls.descendants() if target.name in sub.methods)]
        return [function for function in found if not is_placeholder(function)] or [target]

    def _method_of_foreign_class(self, call: Call, receiver: Value, cls: Class, method: str, given: Arguments) -> Value:
        target = cls.method(method)
        if target is None:
            return self._method(call, receiver, method, given)
        if target.is_property and self.imports is not None:
            return self._apply(call, self.imports.attribute(cls, method) or UNKNOWN, given)
        bound = _is_bound(target, receiver)
        if method == "forward" and receiver.kind is Kind.MODULE:
            return self._forwarded(call, receiver, self._visit(call, target, given, bound=bound), given)
        call.callee = target.ref
        return self._visit(call, target, given, bound=bound)

    def _visit(self, call: Call, target: Function, given: Arguments, *, bound: bool) -> Value:
        """A call to a function of another file: what it returns for these arguments."""
        assert self.imports is not None
        call.foreign = target
        call.is_forward = not (target.is_pass or target.is_step) and "forwards" in self.imports.effects(target)
        return self.imports.returned(target, given, self.grad, bound=bound)

    def _apply(self, call: Call, function: Value, given: Arguments) -> Value:
        """Call the value `function`."""
        if function.kind is Kind.FUNCTION and (foreign := self.foreign_function(function)) is not None:
            call.callee = foreign.ref
            return self._visit(call, foreign, given, bound=function.bound)
        if function.kind is Kind.CLASS and (foreign_class := self.foreign_class(function)) is not None:
            return self._construct_foreign(call, foreign_class, given)
        match function.kind:
            case Kind.FUNCTION if targets := self.local_functions(function):
                return self._enter_one_of(call, targets, given, bound=function.bound)
            case Kind.PARTIAL if function.element is not None:
                return self._apply_partial(call, function, function.element, given)
            case Kind.CLASS if (cls := self.local_class(function)) is not None and function.origins:
                return self._construct(call, cls, given)
            case Kind.FUNCTION | Kind.CLASS | Kind.NAMESPACE if function.ref is not None:
                call.callee = function.ref
                return self._named_call(call, function.ref, given)
            case Kind.MODULE:
                return self._forward(call, function, given)
            case Kind.INSTANCE if (cls := self.local_class(function)) is not None:
                target = cls.method("__call__")
                return self._enter(call, target, given, bound=True) if target is not None else UNKNOWN
            case Kind.INSTANCE if (cls := self.foreign_class(function)) is not None:
                return self._method_of_foreign_class(call, function, cls, "__call__", given)
            case Kind.TENSOR | Kind.NUMBER:
                return UNKNOWN
            case _:
                return self._unknown_call(call, given)

    def _construct(self, call: Call, cls: Class, given: Arguments) -> Value:
        call.callee = cls.qualname
        call.targets_class = cls
        init = cls.method("__init__")
        if init is not None:
            self._enter(call, init, given, bound=True)
        elif cls.is_record:
            self._fill(cls, given)
        return Value(cls.kind, ref=cls.ref, origins=frozenset([call.node]))

    def _fill(self, cls: Class, given: Arguments) -> None:
        """The fields of a dataclass and its like, which are given by position or by name."""
        fields = list(
            dict.fromkeys(name for ancestor in reversed([*cls.lineage()]) for name in record_fields(ancestor))
        )
        filled = {**dict(zip(fields, given.positional)), **given.keywords}
        for name in fields:
            variable = cls.variable(name)
            if variable is not None and (name in filled or given.open):
                self.noted.note_binding(variable, filled.get(name, UNKNOWN))

    def _construct_foreign(self, call: Call, cls: Class, given: Arguments) -> Value:
        call.callee = cls.ref
        init = cls.method("__init__")
        if init is not None:
            self._visit(call, init, given, bound=True)
        return Value(cls.kind, ref=cls.ref, origins=frozenset([call.node]))

    def _apply_partial(self, call: Call, partial: Value, function: Value, given: Arguments) -> Value:
        call.partial = partial.origins
        is_known = partial.items is not None and partial.fields is not None
        merged = Arguments(
            [*(partial.items or ()), *given.positional] if is_known else [],
            {**dict(partial.fields or ()), **given.keywords},
            given.open or not is_known,
        )
        return self._apply(call, function, merged)

    def _enter_one_of(self, call: Call, targets: list[Function], given: Arguments, *, bound: bool) -> Value:
        """A call to one of several functions of this file, be it not known to which."""
        if len(targets) == 1:
            return self._enter(call, targets[0], given, bound=bound)
        call.alternatives = targets
        call.passes += (target for target in targets if target not in call.passes)
        return transfer.join_all([self._hand_to(call, target, given, bound=bound) for target in targets])

    def _enter(self, call: Call, target: Function, given: Arguments, *, bound: bool) -> Value:
        call.target = target
        if call.callee is None:
            call.callee = target.qualname
        return self._hand_to(call, target, given, bound=bound)

    def _hand_to(self, call: Call, target: Function, given: Arguments, *, bound: bool) -> Value:
        """A call to a function of this file: hand the arguments over, take its summary."""
        if not self.rehearsing and call not in target.callers:
            target.callers.append(call)
        self.noted.note_call_grad(target, self.grad)
        wrapping = self.decorators.of(target)
        self._hand_over(target, given if wrapping.keeps_arguments else Arguments(open=True), bound=bound)
        if not wrapping.keeps_result:
            return UNKNOWN
        if self.rehearsing:
            return self.rehearse(target, given, self.grad, bound=bound)
        self.run_first(target)
        if target.is_procedure and not is_placeholder(target):
            return NONE
        returned = self.known.returns.get(target) or self.noted.returns.get(target)
        if returned is None:
            self.pending.add(call.node)
            return UNKNOWN
        self.pending.discard(call.node)
        return transfer.detached(returned) if self.grad is False else returned

    def run_first(self, function: Function) -> None:
        """Called where a function of this file is called: what it returns is asked for next."""

    def _hand_over(self, target: Function, given: Arguments, *, bound: bool) -> None:
        signature = self._signatures.get(target)
        if signature is None:
            signature = self._signatures[target] = Signature.of(target)
        for name, value in signature.filled(given, self.known.defaults, bound=bound):
            self.noted.note_parameter(target, name, value)

    # -- objects with protocols of their own -------------------------------------------------------------------------

    def elements(self, value: Value) -> Value:
        """What iterating over a value yields, by the class of the value where it says so."""
        if value.kind not in (Kind.INSTANCE, Kind.LOADER) or value.ref is None:
            return element_of(value)
        iterator = self._protocol(value, "__iter__")
        if iterator is None:
            found = self._protocol(value, "__getitem__") if value.kind is Kind.INSTANCE else None
        elif iterator.kind is Kind.INSTANCE:
            found = self._protocol(iterator, "__next__")
        else:
            found = element_of(iterator)
        return element_of(value) if found is None or found.kind is Kind.UNKNOWN else found

    def entered(self, value: Value, node: cst.BaseExpression) -> Value:
        """What `with node as name` gives the name."""
        call = self.scopes.call_of.get(node) if isinstance(node, cst.Call) else None
        function = (call.target or call.foreign) if call is not None else None
        if function is not None and function.is_generator:
            return element_of(value)
        found = self._protocol(value, "__enter__") if value.kind is Kind.INSTANCE else None
        return value if found is None or found.ref == value.ref else found

    def _protocol(self, value: Value, method: str) -> Value | None:
        """What a method that Python itself calls returns; None where the class of the value has none in sight."""
        cls = self.local_class(value)
        target = cls.method(method) if cls is not None else None
        if target is not None:
            self.noted.note_call_grad(target, self.grad)
            result: Value = self.known.returns.get(target) or self.noted.returns.get(target, UNKNOWN)
            return result
        foreign = self.foreign_class(value) if cls is None else None
        target = foreign.method(method) if foreign is not None else None
        if target is None or self.imports is None:
            return None
        return self.imports.returned(target, Arguments(), self.grad, bound=True)

    # -- modules -----------------------------------------------------------------------------------------------------

    def _forward(self, call: Call, module: Value, given: Arguments) -> Value:
        cls = self.local_class(module)
        call.callee = module.ref
        target = cls.method("forward") if cls is not None else None
        returned = UNKNOWN
        if cls is not None and target is not None:
            targets = self._implementations(module, cls, target)
            returned = self._enter_one_of(call, targets, given, bound=True)
        foreign = self.foreign_class(module) if cls is None else None
        if foreign is not None and (target := foreign.method("forward")) is not None:
            returned = self._visit(call, target, given, bound=True)
        return self._forwarded(call, module, returned, given)

    def _forwarded(self, call: Call, module: Value, returned: Value, given: Arguments) -> Value:
        """The result of a module's forward; what is not known of it is taken for a tensor that carries a graph."""
        ref = module.ref or ""
        inputs = [*given.all()]
        is_loss = words.is_loss_module(ref)
        if is_loss and returned.is_container:
            return transfer.detached(returned) if self.grad is False else returned
        if is_loss or words.is_parameter_free(ref):
            rank = 0 if is_loss else (inputs[0].rank if inputs and ref.startswith("torch.") else None)
            grad = transfer.mixed_grad(inputs, self.grad)
            dtype = "float" if rank == 0 and ref.startswith("torch.nn.") else None
            return Value(Kind.TENSOR, grad, transfer.mixed_place(inputs), rank=rank, dtype=dtype)
        call.is_forward = True
        grad = Grad.DETACHED if self.grad is False else (Grad.CARRIES if self.grad else Grad.UNKNOWN)
        place = transfer.mixed_place(inputs)
        place = place if place is Place.ACCELERATOR else module.place  # a wrapper may move what it is given
        if returned.kind is Kind.UNKNOWN:
            return Value(Kind.TENSOR, grad, place)
        if returned.kind is Kind.TENSOR:
            return returned.but(grad=grad, place=place if returned.place is Place.UNKNOWN else returned.place)
        return transfer.detached(returned) if self.grad is False else returned

    # -- methods -----------------------------------------------------------------------------------------------------

    def _method(self, call: Call, receiver: Value, method: str, given: Arguments) -> Value:
        match receiver.kind:
            case Kind.TENSOR | Kind.BATCH:
                call.callee = f"torch.Tensor.{method}"
                value = transfer.tensor_method(receiver, method, given, self.grad)
                target = given.get("device", 0)
                if method == "to" and target is not None and target.is_(*_VAGUE) and self._device_like(call):
                    return value.but(place=Place.ACCELERATOR)
                return value
            case Kind.MODULE:
                return self._module_method(call, receiver, method, given)
            case Kind.OPTIMIZER:
                call.callee = f"torch.optim.Optimizer.{method}"
                if method == "step" and given.all():  # what the closure returns
                    return transfer.join_all([self.known.returns.get(closure, UNKNOWN) for closure in call.passes])
                return NONE if method in ("step", "zero_grad") else UNKNOWN
            case Kind.SCALER:
                call.callee = f"torch.amp.GradScaler.{method}"
                return given.positional[0] if method == "scale" and given.positional else UNKNOWN
            case Kind.DICT:
                return self._dict_method(call, receiver, method, given)
            case Kind.LIST | Kind.SET:
                return self._list_method(call, receiver, method, given)
            case Kind.STRING:
                return Value(Kind.LIST, element=STRING) if method in ("split", "splitlines") else STRING
            case Kind.ARRAY:
                return NUMBER if method == "item" else Value(Kind.ARRAY, place=Place.HOST)
            case Kind.INSTANCE if (receiver.ref or "").startswith("torch.distributions."):
                call.callee = f"{receiver.ref}.{method}"
                return transfer.distribution_method(receiver, method, self.grad)
            case Kind.INSTANCE if (known := frameworks.method(receiver.ref or "", method, given)) is not None:
                return known
            case Kind.INSTANCE if method in ("cuda", "to", "cpu"):
                return self._unknown_method(call, receiver, method, given)
            case Kind.ITERATOR | Kind.LOADER:
                return self.elements(receiver) if method in ("next", "__next__") else receiver
            case Kind.UNKNOWN:
                return self._unknown_method(call, receiver, method, given)
            case _:
                return UNKNOWN

    def _module_method(self, call: Call, receiver: Value, method: str, given: Arguments) -> Value:
        call.callee = f"torch.nn.Module.{method}"
        entry = words.module_method(method)
        if entry is not None and entry.results == (("self",),):
            place = receiver.place
            if method in ("cuda", "cpu"):
                place = Place.ACCELERATOR if method == "cuda" else Place.HOST
            elif method == "to" and given.positional:
                place = transfer.place_of_target(given.positional[0]) or place
            return receiver.but(place=place)
        if method in _PARAMETER_METHODS:
            named = method == "named_parameters"
            return Value(Kind.ITERATOR, element=_named_parameter()) if named else Value(Kind.PARAMETERS)
        if method in _CHILD_METHODS:
            return Value(Kind.ITERATOR, element=Value(Kind.MODULE))
        if method == "state_dict":
            return Value(Kind.DICT, element=Value(Kind.TENSOR, Grad.DETACHED))
        if method == "clone":  # of learn2learn, to adapt it to one task
            return receiver
        if method == "forward":
            return self._forwarded(call, receiver, UNKNOWN, given)
        if entry is not None and entry.results == (("none",),):
            return NONE
        if entry is not None or method in ("backward", "step", "save_checkpoint", "append", "extend", "insert"):
            return UNKNOWN
        call.is_forward = method in ("generate", "sample", "predict", "encode", "decode")
        return Value(Kind.UNKNOWN, place=transfer.mixed_place(given.all()))

    def _dict_method(self, call: Call, receiver: Value, method: str, given: Arguments) -> Value:
        element = receiver.element if receiver.element is not None else UNKNOWN
        match method:
            case "items":
                return Value(Kind.ITERATOR, element=Value(Kind.TUPLE, items=(STRING, element)))
            case "values":
                return Value(Kind.ITERATOR, element=element)
            case "keys":
                return Value(Kind.ITERATOR, element=STRING)
            case "get" | "pop" | "setdefault":
                key = given.positional[0].constant if given.positional else None
                return (receiver.field(key) if isinstance(key, str) else None) or element
            case "copy":
                return receiver
            case "update":
                self._rewrite_receiver(call, self._updated(receiver, given))
                return NONE
            case _:
                return UNKNOWN

    @staticmethod
    def _updated(receiver: Value, given: Arguments) -> Value:
        added = [*given.keywords.items()]
        first = given.positional[0] if given.positional else None
        if first is not None and first.fields is not None:
            added.extend(first.fields)
        elif first is not None:
            return receiver.but(fields=None, element=join(receiver.element or UNKNOWN, first.element or UNKNOWN))
        names = {name for name, _ in added}
        kept = [(k, v) for k, v in receiver.fields or () if k not in names]
        element = transfer.join_all([*([receiver.element] if receiver.element else []), *(v for _, v in added)])
        return receiver.but(fields=(*kept, *added) if receiver.fields is not None else None, element=element)

    def _list_method(self, call: Call, receiver: Value, method: str, given: Arguments) -> Value:
        if method in _ADDING_METHODS and given.positional:
            self._rewrite_receiver(call, self.extended(receiver, given.positional[-1]))
            return NONE
        if method == "extend" and given.positional:
            self._rewrite_receiver(call, self.extended(receiver, element_of(given.positional[0])))
            return NONE
        if method in ("pop", "popleft"):
            return element_of(receiver)
        if method == "copy":
            return receiver
        return Value(Kind.NUMBER, dtype="int") if method in ("index", "count") else UNKNOWN

    def _rewrite_receiver(self, call: Call, value: Value) -> None:
        assert call.receiver is not None
        binding = self.scopes.bindings.get(call.receiver)
        if binding is not None:
            self.write(binding, value)
            return
        if isinstance(call.receiver, cst.Subscript):
            owner = self.scopes.bindings.get(call.receiver.value)
            if owner is not None and self.values[call.receiver.value].kind in (Kind.DICT, Kind.LIST):
                self.write(owner, self.with_item(self.values[call.receiver.value], call.receiver, value))

    def _unknown_method(self, call: Call, receiver: Value, method: str, given: Arguments) -> Value:
        name = self._last_name(call.receiver)
        match method:
            case "item":
                return NUMBER
            case "tolist":
                return Value(Kind.LIST, element=NUMBER)
            case "numpy":
                return Value(Kind.ARRAY, place=Place.HOST)
            case "cpu":
                return receiver.but(place=Place.HOST)
            case "cuda":
                return receiver.but(place=Place.ACCELERATOR)
            case "to":
                place = transfer.place_of_target(given.positional[0]) if given.positional else None
                if place is None and given.positional and self._device_like(call):
                    place = Place.ACCELERATOR
                return receiver if place is None else receiver.but(place=place)
            case "size":
                return transfer.INTEGER if given.positional else transfer.SHAPE
            case "dim" | "numel" | "nelement" | "ndimension":
                return transfer.INTEGER
            case "items":
                return Value(Kind.ITERATOR, element=Value(Kind.TUPLE, items=(UNKNOWN, Value(place=receiver.place))))
            case "values":
                return Value(Kind.ITERATOR, element=Value(place=receiver.place))
            case "backward":
                return NONE
            case "scale" if "scaler" in name.lower() and given.positional:
                return given.positional[0]
        if method in _TENSOR_ONLY_METHODS:
            return transfer.tensor_method(receiver.but(kind=Kind.TENSOR), method, given, self.grad)
        if LOSS_NAMES.search(method):
            return self._loss_like(given)
        return UNKNOWN

    @staticmethod
    def _last_name(node: cst.CSTNode | None) -> str:
        if isinstance(node, cst.Attribute):
            return node.attr.value
        return node.value if isinstance(node, cst.Name) else ""

    def _device_like(self, call: Call) -> bool:
        if not call.node.args:
            return False
        named = (arg for arg in call.node.args if arg.keyword is not None and arg.keyword.value == "device")
        name = self._last_name(next(named, call.node.args[0]).value).lower()
        return "dev" in name or "gpu" in name or "rank" in name

    # -- named functions and classes ---------------------------------------------------------------------------------

    def _unknown_call(self, call: Call, given: Arguments) -> Value:
        if LOSS_NAMES.search(self._last_name(call.node.func)):
            return self._loss_like(given)
        return UNKNOWN

    def _loss_like(self, given: Arguments) -> Value:
        """A callable named for a loss, given something that carries a graph, returns something that does."""
        arguments = given.all()
        if not any(value.carries for value in arguments):
            return Value(place=transfer.mixed_place(arguments))
        grad = transfer.mixed_grad(arguments, self.grad)
        return Value(Kind.TENSOR, grad, transfer.mixed_place(arguments))

    def _named_call(self, call: Call, name: str, given: Arguments) -> Value:
        first = given.positional[0] if given.positional else None
        if name.startswith("builtins."):
            return self._builtin(call, name[9:], first, given)
        if name in words.GRAD_SWITCHES or name == "contextlib.nullcontext":
            return Value(Kind.INSTANCE, ref=name, origins=frozenset([call.node]))
        if name in words.COMPILERS and first is not None and first.kind is not Kind.MODULE:
            return first
        if name in words.WRAPPERS and first is not None:
            return first.but(origins=first.origins | {call.node}) if first.kind is Kind.MODULE else Value(Kind.MODULE)
        if name == _DATA_PARALLEL and first is not None:
            return self._replicated(call, first, given)
        if name == "functools.partial" and first is not None:
            return self._partial(call, first, given)
        entry = words.function(name)
        if entry is not None:
            return transfer.torch_function(entry, given, self.grad)
        kind = words.class_kind(name) or self._kind_in_project(name)
        if kind is not None:
            return self._constructed(call, name, kind, first, given)
        if words.is_module_factory(name):
            return Value(Kind.MODULE, ref=name, origins=frozenset([call.node]))
        if name == "torch.autograd.Variable" and first is not None:
            return self._variable(first, given)
        if name == "torch.utils.data.random_split":
            return Value(Kind.LIST, element=Value(Kind.DATASET, origins=frozenset([call.node])))
        if words.ITERATION_WRAPPERS.fullmatch(name) and first is not None:
            if first.kind is Kind.LOADER:
                return first  # `loader = tqdm(loader)` is iterated, and measured, like the loader itself
            return Value(Kind.ITERATOR, element=self.elements(first), origins=first.origins)
        return self._library_call(call, name, first, given)

    def _replicated(self, call: Call, module: Value, given: Arguments) -> Value:
        """`data_parallel(model, inputs)` runs the model on the devices, on one input or on a tuple of them."""
        inputs = given.get("inputs", 1) or UNKNOWN
        parts = inputs.items if inputs.items is not None else (inputs,)
        return self._forwarded(call, module.but(kind=Kind.MODULE, place=Place.ACCELERATOR), UNKNOWN, Arguments(parts))

    @staticmethod
    def _partial(call: Call, function: Value, given: Arguments) -> Value:
        return Value(
            Kind.PARTIAL,
            element=function,
            items=tuple(given.positional[1:]) if not given.open else None,
            fields=tuple(given.keywords.items()),
            origins=frozenset([call.node]),
        )

    def _kind_in_project(self, name: str) -> Kind | None:
        if self.imports is None or not name.rpartition(".")[2][:1].isupper():
            return None
        return self.imports.kind_of_class(name)

    def _constructed(self, call: Call, name: str, kind: Kind, first: Value | None, given: Arguments) -> Value:
        origins = frozenset([call.node])
        if kind is Kind.DEVICE:
            place = Place.ACCELERATOR
            if first is not None and isinstance(first.constant, str):
                place = transfer.place_named(first.constant)
            return Value(Kind.DEVICE, place=place, constant=first.constant if first is not None else None)
        if name == "torch.nn.Parameter":
            rank = first.rank if first is not None else None
            return Value(Kind.TENSOR, Grad.CARRIES, rank=rank, ref=name, origins=origins)
        return Value(kind, ref=name, origins=origins)

    @staticmethod
    def _variable(first: Value, given: Arguments) -> Value:
        """`x.detach()`, or a new leaf."""
        wants = given.get("requires_grad", 1)
        is_leaf = wants is not None and wants.constant is not False
        return first.but(kind=Kind.TENSOR, grad=Grad.CARRIES if is_leaf else Grad.DETACHED)

    def _library_call(self, call: Call, name: str, first: Value | None, given: Arguments) -> Value:
        if name.startswith("deepspeed."):
            return frameworks.function(name, given) or UNKNOWN
        if name.startswith("numpy."):
            return Value(Kind.ARRAY, place=Place.HOST, element=NUMBER if name in words.NUMPY_ROWS else None)
        if name.startswith("torch.distributions."):
            return transfer.distribution(name, given, self.grad).but(origins=frozenset([call.node]))
        if name in ("copy.deepcopy", "copy.copy") and first is not None:
            return first
        if name in ("dataclasses.field", "attr.ib", "attrs.field"):
            factory = given.get("default_factory")
            made = self._made_by_class(call, factory) if factory is not None else None
            return made or given.get("default") or UNKNOWN
        if name.startswith(("collections.", "typing.")) and name.endswith(("defaultdict", "OrderedDict", "Counter")):
            inner = {"builtins.list": Value(Kind.LIST), "builtins.float": NUMBER, "builtins.int": NUMBER}
            element = inner.get(first.ref or "") if first is not None else None
            if element is None and first is not None and first.kind is Kind.CLASS:
                element = self._made_by_class(call, first)
            return Value(Kind.DICT, element=element, fields=() if element is None else None)
        if name.endswith("collections.deque"):
            return Value(Kind.LIST, element=self.elements(first) if first is not None else None)
        if name.startswith(("math.", "time.")):
            return NUMBER
        if _NEUTRAL.match(name):
            return UNKNOWN
        last = name.rpartition(".")[2]
        if LOSS_NAMES.search(last) and not last[:1].isupper():
            return self._loss_like(given)
        if last[:1].isupper():
            return Value(Kind.INSTANCE, ref=name, origins=frozenset([call.node]))
        return UNKNOWN

    def _made_by_class(self, call: Call, value: Value) -> Value | None:
        """An object of a class that something makes by itself, with no arguments."""
        name = value.ref or ""
        if name in ("builtins.list", "builtins.dict"):
            return Value(Kind.LIST, items=()) if name == "builtins.list" else Value(Kind.DICT, fields=())
        if (kind := words.class_kind(name)) is not None:
            return Value(kind, ref=name, origins=frozenset([call.node]))
        cls = self.local_class(value) or self.foreign_class(value)
        return Value(cls.kind, ref=value.ref, origins=frozenset([call.node])) if cls is not None else None

    def _builtin(self, call: Call, name: str, first: Value | None, given: Arguments) -> Value:
        match name:
            case "range":
                return Value(Kind.ITERATOR, element=transfer.INTEGER, ref="builtins.range")
            case "enumerate":
                inner = self.elements(first) if first is not None else UNKNOWN
                origins = first.origins if first is not None else frozenset()
                return Value(Kind.ITERATOR, element=Value(Kind.TUPLE, items=(transfer.INTEGER, inner)), origins=origins)
            case "zip":
                items = tuple(self.elements(value) for value in given.positional)
                origins = frozenset().union(*(value.origins for value in given.positional))
                element = Value(Kind.TUPLE, items=items) if not given.open else UNKNOWN
                return Value(Kind.ITERATOR, element=element, origins=origins)
            case "len" | "int" | "id" | "hash" | "ord":
                return transfer.INTEGER
            case "float":
                return Value(Kind.NUMBER, dtype="float")
            case "bool" | "isinstance" | "hasattr" | "callable" | "issubclass":
                return transfer.BOOLEAN
            case "str" | "repr" | "format" | "input":
                return STRING
            case "print" | "setattr" | "delattr":
                return NONE
            case "next":
                return (
                    transfer.join_all([self.elements(first), *given.positional[1:]]) if first is not None else UNKNOWN
                )
            case "iter" | "reversed" | "filter" | "map":
                return self._iterated(name, first, given)
            case "list" | "tuple" | "set" | "sorted":
                kind = {"tuple": Kind.TUPLE, "set": Kind.SET}.get(name, Kind.LIST)
                if first is None:
                    return Value(kind, items=() if kind is Kind.LIST else None, origins=frozenset([call.node]))
                return Value(kind, element=self.elements(first), items=first.items)
            case "dict":
                return Value(Kind.DICT, fields=tuple(given.keywords.items()) if not given.positional else None)
            case "sum":
                inner = self.elements(first) if first is not None else UNKNOWN
                return inner if inner.is_tensor or inner.kind is Kind.NUMBER else UNKNOWN
            case "max" | "min":
                values = given.positional if len(given.positional) > 1 else [self.elements(v) for v in given.positional]
                return transfer.join_all(values)
            case "abs" | "round" | "pow" | "divmod":
                return first if first is not None else UNKNOWN
            case "getattr" if first is not None and len(given.positional) > 1:
                name_value = given.positional[1].constant
                return self.attribute(first, name_value) if isinstance(name_value, str) else UNKNOWN
            case _:
                return UNKNOWN

    def _iterated(self, name: str, first: Value | None, given: Arguments) -> Value:
        if name in ("filter", "map"):
            second = given.positional[1] if len(given.positional) > 1 else UNKNOWN
            if name == "filter":
                return Value(Kind.ITERATOR, element=self.elements(second), origins=second.origins)
            functions = self.local_functions(first) if first is not None and first.kind is Kind.FUNCTION else []
            for function in functions:
                self._hand_over(function, Arguments([self.elements(second)]), bound=first is not None and first.bound)
            element = transfer.join_all([self.known.returns.get(function, UNKNOWN) for function in functions])
            return Value(Kind.ITERATOR, element=element)
        if first is None:
            return UNKNOWN
        return Value(Kind.ITERATOR, element=self.elements(first), origins=first.origins)


def _is_bound(target: Function, receiver: Value) -> bool:
    return not target.is_static and (target.takes_class or receiver.kind is not Kind.CLASS)


def _named_parameter() -> Value:
    parameter = Value(Kind.TENSOR, Grad.CARRIES, ref="torch.nn.Parameter")
    return Value(Kind.TUPLE, items=(STRING, parameter))


_KIND_BY_BASE_NAME = (
    (re.compile(r".*(Module|LightningModule|PreTrainedModel|\bModel|Net|Network)$"), Kind.MODULE),
    (re.compile(r".*(Dataset|ImageFolder|Subset)$"), Kind.DATASET),
    (re.compile(r".*DataLoader$"), Kind.LOADER),
    (re.compile(r".*Sampler$"), Kind.SAMPLER),
    (re.compile(r".*(Optimizer|SGD|Adam|AdamW)$"), Kind.OPTIMIZER),
)


def class_kind(cls: Class, imports: Imports | None = None) -> Kind:
    """What an object of a class of this file is, by its bases in and outside the file."""
    bases = [base for ancestor in cls.lineage() for base in ancestor.bases if base is not None]
    for base in bases:
        kind = words.class_kind(base) or (imports.kind_of_class(base) if imports is not None else None)
        if kind is not None:
            return kind
    for base in bases:
        for pattern, kind in _KIND_BY_BASE_NAME:
            if pattern.fullmatch(base):
                return kind
    return Kind.INSTANCE
