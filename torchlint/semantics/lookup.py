"""What names and attributes mean: variables, definitions of the file, and what comes from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import frameworks, numpy_results, tensor_methods, torch_api, transfer
from torchlint.semantics import vocabulary as words
from torchlint.semantics.class_bodies import goes_on_to_base, is_placeholder
from torchlint.semantics.entities import Binding, Class, Function
from torchlint.semantics.hints import refined
from torchlint.semantics.names import Names, canonical
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.summaries import Tables
from torchlint.semantics.values import UNKNOWN, Grad, Kind, Place, Value

if TYPE_CHECKING:
    from torchlint.semantics.foreign import Imports

Env = dict[Binding, Value]
_FALLBACKS = (Kind.NONE, Kind.NUMBER)  # what a name is set to where its import fails
_TENSORS_OF_MODULES = {
    "_parameters": Value(Kind.DICT, element=Value(Kind.TENSOR, Grad.CARRIES, ref="torch.nn.Parameter", optional=True)),
    "_buffers": Value(Kind.DICT, element=Value(Kind.TENSOR, Grad.DETACHED, optional=True)),
}
_PARAM_GROUPS = Value(  # of an optimizer: dicts of its parameters and of what holds for them
    Kind.LIST, element=Value(Kind.DICT, entries=(("params", Value(Kind.LIST, element=transfer.PARAMETER)),))
)
_NUMBER = re.compile(r"(math|numpy|torch)\.(pi|e|tau|inf|nan)")
_LIBRARIES = ("torch.", "numpy.", "builtins.", "math.", "os.")


class Lookup:
    """Reads names and attributes where `env` has the values of the variables at this point."""

    def __init__(self, scopes: Scopes, names: Names, imports: Imports | None = None) -> None:
        self.scopes = scopes
        self.names = names
        self.imports = imports
        self.known = Tables()  # of the previous round
        self.noted = Tables()  # of this round
        self.env: Env = {}
        self.unbound: set[Binding] = set()  # variables that were read where `env` lacks them
        self.grad: bool | None = True
        self.looks_elsewhere = True  # not inside a network: what its layers compute changes no finding there
        self.classes: dict[str, Class] = {cls.ref: cls for cls in reversed(scopes.classes)}
        self.functions: dict[str, Function] = {f.ref: f for f in reversed(scopes.functions)}
        self.annotated: dict[Binding, Value] = {}  # variables that are declared and not assigned
        self._imports: dict[Binding, Value | None] = {}
        self._named: dict[str, Value] = {}

    # -- names -------------------------------------------------------------------------------------------------------

    def read(self, binding: Binding) -> Value:
        value = self.env.get(binding)
        if value is None:
            self.unbound.add(binding)
        elif value.kind not in _FALLBACKS:
            return value
        imported = self._imported(binding)
        if imported is not None:
            return imported
        if value is not None:
            return value
        value = self.known.bindings.get(binding)
        if value is None:
            value = self.noted.bindings.get(binding)
        return self.refined(binding, value if value is not None else self._definition(binding))

    def refined(self, binding: Binding, value: Value) -> Value:
        """`value`, and what the use of its variable implies; of an object of which all is in sight, nothing."""
        if value.kind is not Kind.INSTANCE or value.ref is None:
            return refined(binding, value)
        cls = self.local_class(value) or self.foreign_class(value)
        names = (value.ref, *(cls.ancestry if cls is not None else ()))
        is_other = (cls is not None and cls.is_no_module) or any(map(words.is_pipeline_class, names))
        return value if is_other else refined(binding, value)

    def module_by_use(self, node: cst.Attribute, value: Value) -> Value | None:
        """`trainer.model`, of which nothing is known but that methods of a module are called on it."""
        if not self.scopes.modules or value.kind is not Kind.UNKNOWN:
            return None
        is_module = self.scopes.path(node) in self.scopes.modules
        return Value(Kind.MODULE, place=value.place, origins=value.origins) if is_module else None

    def _imported(self, binding: Binding) -> Value | None:
        if binding not in self._imports:
            name = self.names.imported(binding)
            self._imports[binding] = self.named(canonical(name)) if name is not None else None
        return self._imports[binding]

    def _definition(self, binding: Binding) -> Value:
        """A def or class that is read before, or outside of, the code that defines it; else what is declared."""
        for write in binding.writes:
            value = self.defined(write.target)
            if value is not None:
                return value
        return self.annotated.get(binding, UNKNOWN)

    def defined(self, node: cst.CSTNode) -> Value | None:
        if isinstance(node, cst.FunctionDef):
            return Value(Kind.FUNCTION, ref=self.scopes.function_of[node].ref, origins=frozenset([node]))
        if isinstance(node, cst.ClassDef):
            return Value(Kind.CLASS, ref=self.scopes.class_of[node].ref, origins=frozenset([node]))
        return None

    def named(self, qualified: str) -> Value:
        """The value of an imported thing: what the project says of it, else by the look of its name."""
        if qualified not in self._named:
            self._named[qualified] = self._find(qualified)
        return self._named[qualified]

    def _find(self, qualified: str) -> Value:
        if _NUMBER.fullmatch(qualified):
            return Value(Kind.NUMBER, dtype="float")
        if self.imports is not None and not qualified.startswith(_LIBRARIES) and words.class_kind(qualified) is None:
            found = self.imports.value(qualified)
            if found is not None:
                return found
        last = qualified.rpartition(".")[2]
        entry = torch_api.lookup(qualified)
        if entry is not None and entry.kind == "dtype":
            return Value(Kind.DTYPE, dtype=entry.dtype, ref=qualified)
        if last[:1].isupper():
            return Value(Kind.CLASS, ref=qualified)
        return Value(Kind.FUNCTION if "." in qualified else Kind.NAMESPACE, ref=qualified)

    def some_member(self, package: Value) -> Value | None:
        """What an option names of a package of torch, as in `getattr(torch.optim, args.optimizer)`."""
        name = words.SOME_MEMBER.get(package.ref or "")
        return self.named(name) if name is not None else None

    # -- classes and functions ---------------------------------------------------------------------------------------

    def local_class(self, value: Value) -> Class | None:
        """The class of this file that the value is, or is an object of."""
        return self.classes.get(value.ref) if value.ref is not None else None

    def foreign_class(self, value: Value) -> Class | None:
        """The class of another file of the project that the value is, or is an object of."""
        if self.imports is None or value.ref is None or not self.looks_elsewhere:
            return None
        return self.imports.cls(value)

    def foreign_function(self, value: Value) -> Function | None:
        """The function of another file of the project that the value is."""
        if self.imports is None or value.origins or not self.looks_elsewhere:
            return None
        return self.imports.function(value)

    def foreign_bases(self, cls: Class) -> Iterator[Class]:
        """Classes of other files that a class of this file derives from."""
        for ancestor in cls.lineage():
            for base in ancestor.bases:
                found = self.foreign_class(self.named(base)) if base is not None else None
                if found is not None:
                    yield found

    def call_of_its_own(self, module: Value) -> Function | None:
        """`__call__` of a class of the project that has no `forward` in sight: it may return anything, unless it goes
        on to that of a base."""
        cls = self.local_class(module) or self.foreign_class(module)
        lineage = [cls, *self.foreign_bases(cls)] if cls is not None else []
        if any(base.method("forward") is not None for base in lineage):
            return None
        own = next((method for base in lineage if (method := base.method("__call__")) is not None), None)
        return None if own is None or is_placeholder(own) or goes_on_to_base(own) else own

    def local_functions(self, value: Value) -> list[Function]:
        """The functions of this file that the value may be, in the order of the file."""
        if value.kind is Kind.PARTIAL and value.element is not None:
            return self.local_functions(value.element)
        if value.kind is not Kind.FUNCTION:
            return []
        of = self.scopes.function_of
        found = [of[node] for node in value.origins if node in of]
        return found if len(found) < 2 else sorted(found, key=self.scopes.functions.index)

    # -- attributes --------------------------------------------------------------------------------------------------

    def attribute(self, owner: Value, name: str) -> Value:
        if name == "_modules" and owner.kind is Kind.MODULE:  # where nn.Module keeps those of its attributes that are
            return Value(Kind.DICT, element=Value(Kind.MODULE))
        if name == "param_groups" and owner.kind is Kind.OPTIMIZER:
            return _PARAM_GROUPS
        if name == "__dict__" and (member := self.some_member(owner)) is not None:
            return Value(Kind.DICT, element=member)
        cls = self.local_class(owner) if owner.kind is not Kind.FUNCTION else None
        if cls is not None:
            found = self.class_attribute(cls, name, of_object=owner.kind is not Kind.CLASS)
            if found is not None:
                return found
        foreign = self.foreign_class(owner)
        if self.imports is not None and foreign is not None:
            found = self.imports.attribute(foreign, name)
            if found is not None:
                return found
        if owner.kind is Kind.INSTANCE and owner.ref is not None:
            own = frameworks.attribute(owner.ref, name)
            if own is not None:
                return own
        match owner.kind:
            case Kind.NAMESPACE | Kind.FUNCTION | Kind.CLASS if owner.ref is not None and not owner.origins:
                return self.named(canonical(f"{owner.ref}.{name}"))
            case Kind.TENSOR | Kind.BATCH:
                return self._tensor_attribute(owner, name)
            case Kind.MODULE:
                if name == "training":
                    return transfer.BOOLEAN
                if name == "device":
                    return Value(Kind.DEVICE, place=owner.place)
                if name in _TENSORS_OF_MODULES:
                    return _TENSORS_OF_MODULES[name]
                if name in ("model", "base_model"):  # of a class out of sight
                    return Value(Kind.MODULE, place=owner.place)
                return owner if name == "module" else Value(Kind.UNKNOWN, place=Place.UNKNOWN)
            case Kind.LOADER:
                known = {"dataset": Kind.DATASET, "sampler": Kind.SAMPLER, "batch_sampler": Kind.SAMPLER}
                return Value(known[name], origins=owner.origins) if name in known else UNKNOWN
            case Kind.ARRAY:
                return numpy_results.attribute(name)
            case Kind.DICT:
                return owner.field(name) or UNKNOWN
            case Kind.TUPLE:
                return tensor_methods.named_part(owner, name)
            case Kind.UNKNOWN:
                return self._unknown_attribute(owner, name)
            case _:
                return UNKNOWN

    def class_attribute(self, cls: Class, name: str, *, of_object: bool = True) -> Value | None:
        """Of an object of a class of this file, or of the class; None where it has no such attribute."""
        function = cls.method(name)
        if function is not None and function.is_property:
            return self.property_value(function) if of_object else UNKNOWN
        binding = cls.attribute(name)
        if binding is not None and binding.writes:
            return self.read(binding)
        variable = cls.variable(name)
        value = self.read(variable) if variable is not None else UNKNOWN
        if value.kind is not Kind.UNKNOWN:
            if value.kind is Kind.NUMBER:
                return value.but(constant=None)  # the objects may have been given others
            is_method = value.kind is Kind.FUNCTION and (function is None or not function.is_static)
            return value.but(bound=of_object or (function is not None and function.takes_class)) if is_method else value
        found = (self.imports.attribute(base, name) for base in self.foreign_bases(cls) if self.imports)
        inherited = next((value for value in found if value is not None), None)
        if inherited is None and binding is not None:
            return self.read(binding)
        return value if inherited is None and variable is not None else inherited

    def property_value(self, function: Function) -> Value:
        """What reading a property of this file gives."""
        self.noted.note_call_grad(function, self.grad)
        value = self.known.returns.get(function) or self.noted.returns.get(function, UNKNOWN)
        return transfer.detached(value) if self.grad is False else value

    @staticmethod
    def _tensor_attribute(owner: Value, name: str) -> Value:
        match name:
            case "shape":
                items = (transfer.INTEGER,) * owner.rank if owner.rank else None
                return transfer.SHAPE.but(items=items)
            case "grad":
                return Value(Kind.TENSOR, Grad.DETACHED, owner.place, rank=owner.rank, optional=True)
            case "device":
                return Value(Kind.DEVICE, place=owner.place)
            case "dtype":
                return Value(Kind.DTYPE, dtype=owner.dtype)
        return tensor_methods.tensor_attribute(owner, name)

    @staticmethod
    def _unknown_attribute(owner: Value, name: str) -> Value:
        if name == "device":
            return Value(Kind.DEVICE)
        if name in _TENSORS_OF_MODULES:
            return _TENSORS_OF_MODULES[name]
        if name == "shape":
            return transfer.SHAPE
        if name == "data":
            return Value(place=owner.place, grad=Grad.DETACHED)
        if name in ("saved_tensors", "saved_variables"):  # of the context of a torch.autograd.Function
            return Value(Kind.TUPLE, element=Value(Kind.TENSOR))
        return Value(place=owner.place)
