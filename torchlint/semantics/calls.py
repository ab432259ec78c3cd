"""Evaluating calls: what is called, what it is given, what comes back, and what the call does to variables."""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import torch_results, transfer
from torchlint.semantics import vocabulary as words
from torchlint.semantics.class_bodies import is_placeholder, record_fields
from torchlint.semantics.decorators import Decorators, runs_without_gradients
from torchlint.semantics.entities import Call, Class, Function
from torchlint.semantics.method_calls import MethodCalls
from torchlint.semantics.names import Names, canonical
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.self_test import anywhere, calls_of_self_test
from torchlint.semantics.signatures import Signature
from torchlint.semantics.transfer import Arguments, element_of
from torchlint.semantics.values import NONE, UNKNOWN, Grad, Kind, Place, Value

if TYPE_CHECKING:
    from torchlint.semantics.foreign import Imports

_MOST_CLASSES = 6
_TOLD = (Kind.UNKNOWN, Kind.TENSOR, Kind.TUPLE, Kind.DICT)
_CALLABLE = (Kind.FUNCTION, Kind.PARTIAL)
_SEVERAL = Value(Kind.TUPLE, element=Value(Kind.TENSOR))
_HOOKING = {
    "register_forward_hook": (_SEVERAL, Value(Kind.TENSOR)),
    "register_forward_pre_hook": (_SEVERAL,),
    "register_full_backward_hook": (_SEVERAL, _SEVERAL),
    "register_backward_hook": (_SEVERAL, _SEVERAL),
}


class Calls(MethodCalls):
    """Adds calls to the evaluation of expressions."""

    def __init__(self, scopes: Scopes, names: Names, imports: Imports | None = None) -> None:
        super().__init__(scopes, names, imports)
        self.decorators = Decorators(scopes)
        self._signatures: dict[Function, Signature] = {}
        self._self_test = calls_of_self_test(scopes.module)

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
        if call.passes and call.target is None and call.foreign is None and not call.alternatives:
            for handed in call.passes:
                self.noted.note_call_grad(handed, self.grad)  # who gets it may call it at once
        call.value = value
        return value

    def _given(self, call: Call) -> Arguments:
        positional: list[Value] = []
        keywords: dict[str, Value] = {}
        starred: list[Value] = []
        is_uncounted = False
        for arg in call.node.args:
            value = self.eval(arg.value)
            if value.kind in _CALLABLE:
                call.passes += self.local_functions(value)
            if arg.keyword is not None:
                keywords[arg.keyword.value] = value
            elif not arg.star:
                if not is_uncounted:
                    positional.append(value)
            elif arg.star == "**" and value.fields is not None:
                keywords.update(value.fields)
            elif arg.star == "*" and value.items is not None and not is_uncounted:
                positional.extend(value.items)
            else:
                starred.append(value)
                is_uncounted |= arg.star == "*"
        return Arguments(positional, keywords, bool(starred), starred)

    # -- what is called ----------------------------------------------------------------------------------------------

    def _attribute_call(self, call: Call, func: cst.Attribute) -> Value:
        receiver = self.eval(func.value)
        method = func.attr.value
        call.receiver_value = receiver
        given = self._given(call)
        if method in _HOOKING and given.positional:
            self._hook(receiver, given, _HOOKING[method])
        super_target = self._super_method(func)
        if super_target is not None:
            return self._enter(call, super_target, given, bound=True)
        if method.startswith("from_") and self._makes_pipeline(name := f"{receiver.ref}.{method}"):
            return Value(Kind.MODULE, ref=name, origins=frozenset([call.node]))
        if receiver.kind in (Kind.NAMESPACE, Kind.FUNCTION, Kind.CLASS) and receiver.ref and not receiver.origins:
            self.values[func] = self.named(canonical(f"{receiver.ref}.{method}"))
            return self._apply(call, self.values[func], given)
        candidates = (receiver,) if receiver.ref is not None else self._objects(receiver)
        if candidates and (value := self._method_of_one(call, candidates, method, given)) is not None:
            return value
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
        module = self.module_by_use(func, self.attribute(receiver, method)) if self.scopes.modules else None
        if module is not None:
            self.values[func] = module
            return self._apply(call, module, given)
        return self._method(call, receiver, method, given)

    def _hook(self, module: Value, given: Arguments, passed: tuple[Value, ...]) -> None:
        """`layer.register_forward_hook(note)`: what the module passes to functions of this file. With `with_kwargs` it
        has what it was given by name behind what it was given."""
        hook = given.positional[0]
        named = given.keywords.get("with_kwargs")
        if named is not None and named.constant is not False:
            passed = (passed[0], Value(Kind.DICT), *passed[1:])
        if hook.kind is Kind.PARTIAL and (hook.items is None or hook.fields is None):
            return
        first, filled = hook.items or (), dict(hook.fields or ())  # of a partial
        function = hook.element if hook.kind is Kind.PARTIAL and hook.element is not None else hook
        owner = module if module.kind is Kind.MODULE else Value(Kind.MODULE)
        for target in self.local_functions(function):
            self._hand_over(target, Arguments([*first, owner, *passed], filled), bound=function.bound)

    def _objects(self, value: Value) -> tuple[Value, ...]:
        """What a value may be that is one of several objects, of different classes, which are made in sight.

        One alone would have kept its class: the value may then be something else, too.
        """
        if (
            value.kind not in (Kind.INSTANCE, Kind.MODULE)
            or value.ref is not None
            or len(value.origins) > _MOST_CLASSES
        ):
            return ()
        made = [self.values.get(origin, UNKNOWN) for origin in value.origins]
        objects = {each.ref: each.but(place=value.place) for each in made if each.kind is value.kind and each.ref}
        is_known = all(each.kind is value.kind and each.ref for each in made)
        return tuple(objects[ref] for ref in sorted(objects)) if is_known and len(objects) > 1 else ()

    def _method_of_one(self, call: Call, receivers: tuple[Value, ...], method: str, given: Arguments) -> Value | None:
        """What a method of one of these objects returns; None where the class of one is not of the project."""
        results: list[Value] = []
        entered: set[Function | None] = set()
        for receiver in receivers:
            call.target = call.foreign = None
            if receiver.kind is Kind.FUNCTION:
                return None
            if (cls := self.local_class(receiver)) is not None:
                results.append(self._method_of_class(call, receiver, cls, method, given))
            elif (cls := self.foreign_class(receiver)) is not None:
                results.append(self._method_of_foreign_class(call, receiver, cls, method, given))
            else:
                return None
            entered.add(call.target or call.foreign)
        if len(entered) > 1:
            call.target = call.foreign = None
        return transfer.join_all(results) if results else None

    def _super_method(self, func: cst.Attribute) -> Function | None:
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
        value = self._enter_one_of(call, targets, given, bound=target.takes_receiver(receiver))
        if method == "forward" and receiver.kind is Kind.MODULE:
            return self._forwarded(call, receiver, value, given)
        return transfer.computed_by(receiver, value)

    def _attribute_of_class(self, call: Call, receiver: Value, cls: Class, name: str, given: Arguments) -> Value:
        """Call what an attribute holds that is no method of this file."""
        foreign = next((base for base in self.foreign_bases(cls) if base.method(name) is not None), None)
        if foreign is not None and cls.method(name) is None:
            return self._method_of_foreign_class(call, receiver, foreign, name, given)
        if name in words.LOADING and receiver.kind is Kind.CLASS and cls.kind is Kind.MODULE:
            return Value(cls.kind, ref=cls.ref, origins=frozenset([call.node]))
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
        if target is not None and is_placeholder(target):
            return self._method(call, receiver, method, given)
        if target is None or target.is_property:
            held = self.imports.attribute(cls, method) if self.imports is not None else None
            if held is None or held.kind is Kind.UNKNOWN:
                return self._method(call, receiver, method, given) if target is None else UNKNOWN
            self.values[call.node.func] = held
            return self._apply(call, held, given)
        bound = target.takes_receiver(receiver)
        if method == "forward" and receiver.kind is Kind.MODULE:
            return self._forwarded(call, receiver, self._visit(call, target, given, bound=bound), given)
        call.callee = target.ref
        return transfer.computed_by(receiver, self._visit(call, target, given, bound=bound))

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
            given.starred,
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
        given = given if wrapping.keeps_arguments else Arguments(open=True)
        self._hand_over(target, anywhere(given) if call.node in self._self_test else given, bound=bound)
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
        if self._may_say_more(target, given, returned, bound=bound):
            returned = self.rehearse(target, given, self.grad, bound=bound)
        return transfer.detached(returned) if self.grad is False else returned

    def _may_say_more(self, target: Function, given: Arguments, returned: Value, *, bound: bool) -> bool:
        """Whether more may be known of what a function returns to this call alone. Networks have their own graphs."""
        if target.is_of_network or returned.kind not in _TOLD:
            return False
        handed = dict.get(self.known.parameters, target, {})  # unnoted: a change in them shows in what is returned
        return self._signatures[target].tells_more(given, handed, bound=bound)

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
        if found is None or found.kind is Kind.UNKNOWN:
            return element_of(value)
        is_own = value.kind is Kind.LOADER and found.kind is Kind.BATCH and not found.origins
        return found.but(origins=value.origins) if is_own else found

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
        call.callee = module.ref
        if (own := self.call_of_its_own(module)) is not None:
            return (self._enter if own.node in self.scopes.function_of else self._visit)(call, own, given, bound=True)
        for candidates in (module,), self._objects(module):
            results = [self._forward_of_class(call, candidate, given) for candidate in candidates]
            known = [result for result in results if result is not None]
            if len(candidates) > 1 or not known:  # what the call enters is not one function
                call.target = call.foreign = None
            if known and len(known) == len(results):
                return self._forwarded(call, module, transfer.join_all(known), given)
        kinds = {value.kind for value in given.all()}
        if module.ref is None and Kind.ARRAY in kinds and not kinds & {Kind.TENSOR, Kind.BATCH}:
            call.is_forward = False  # a network takes tensors: this is a wrapper of one
            return self._unknown_call(call, given)
        return self._forwarded(call, module, UNKNOWN, given)

    def _forward_of_class(self, call: Call, module: Value, given: Arguments) -> Value | None:
        """What the forward of a class of the project returns."""
        if (cls := self.local_class(module)) is not None:
            target = cls.method("forward") or cls.method("__call__")
            if target is None:
                return None
            return self._enter_one_of(call, self._implementations(module, cls, target), given, bound=True)
        foreign = self.foreign_class(module)
        target = foreign.method("forward") or foreign.method("__call__") if foreign is not None else None
        if target is None or is_placeholder(target):
            return None
        return self._visit(call, target, given, bound=True)

    def _forwarded(self, call: Call, module: Value, returned: Value, given: Arguments) -> Value:
        """The result of a module's forward; what is not known of it is taken for a tensor that carries a graph."""
        ref = module.ref or ""
        inputs = [*given.all()]
        if words.makes_pipeline(ref):
            return UNKNOWN
        is_loss = words.is_loss_module(ref) and all(value.kind is not Kind.MODULE for value in inputs)  # it may run it
        if is_loss and returned.is_container:
            return transfer.detached(returned) if self.grad is False else returned
        first = inputs[0] if inputs else UNKNOWN
        if is_loss:
            dtype = "float" if ref.startswith("torch.nn.") else None
            grad = transfer.mixed_grad(inputs, self.grad)
            rank = torch_results.rank_of_loss(module)
            return Value(Kind.TENSOR, grad, transfer.mixed_place(inputs), rank=rank, dtype=dtype)
        if words.is_parameter_free(ref):
            grad = transfer.mixed_grad(inputs, self.grad)
            return torch_results.module_result(module, first, grad, transfer.mixed_place(inputs))
        call.is_forward = True
        enabled = False if runs_without_gradients(call.target or call.foreign) else self.grad
        is_off = module.grad is Grad.DETACHED and not any(value.carries for value in inputs)
        may_carry = enabled and not is_off  # which somebody may have switched on again
        grad = Grad.DETACHED if enabled is False else (Grad.CARRIES if may_carry else Grad.UNKNOWN)
        place = transfer.mixed_place(inputs)
        place = place if place is Place.ACCELERATOR else module.place  # a wrapper may move what it is given
        if returned.kind is Kind.UNKNOWN:
            return torch_results.module_result(module, first, grad, place)
        if returned.kind is Kind.TENSOR:
            is_open = returned.place is Place.UNKNOWN or place is Place.HOST  # other callers may have it on the device
            return returned.but(grad=grad, place=place if is_open else returned.place)
        return transfer.detached(returned) if enabled is False else returned


_KIND_BY_BASE_NAME = (
    (re.compile(r".*(Module|LightningModule|PreTrainedModel|\bModel|Net|Network)$"), Kind.MODULE),
    (re.compile(r".*(Dataset|ImageFolder|Subset)$"), Kind.DATASET),
    (re.compile(r".*DataLoader$"), Kind.LOADER),
    (re.compile(r".*Sampler$"), Kind.SAMPLER),
    (re.compile(r".*(Optimizer|SGD|Adam|AdamW)$"), Kind.OPTIMIZER),
)


def ancestry(cls: Class, imports: Imports | None = None) -> tuple[str, ...]:
    """The names of all that a class of this file derives from, in and outside the file: of what the project defines in
    sight, what that derives from in turn."""
    in_sight = {ancestor.qualname for ancestor in cls.lineage() if None not in ancestor.bases}
    bases = [base for ancestor in cls.lineage() for base in ancestor.bases if base is not None]
    found: list[str] = []
    for base in bases:
        if words.class_kind(base) is None and imports is not None and imports.file_of(base) is not None:
            found += imports.bases(base)
        elif base not in in_sight:
            found.append(base)
    return tuple(found)


def class_kind(cls: Class) -> Kind:
    """What an object of a class is, by what it derives from; by its name alone where that is not known."""
    kinds = (kind for base in cls.ancestry if (kind := words.class_kind(base)) is not None)
    guesses = (kind for base in cls.ancestry for pattern, kind in _KIND_BY_BASE_NAME if pattern.fullmatch(base))
    return next(kinds, None) or next(guesses, Kind.INSTANCE)
