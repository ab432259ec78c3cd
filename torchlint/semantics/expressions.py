"""Evaluating expressions: every node gets a value from the values of its parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchlint.semantics import frameworks, torch_api, transfer
from torchlint.semantics import vocabulary as words
from torchlint.semantics.arguments import string_value
from torchlint.semantics.branches import no_tensors
from torchlint.semantics.entities import Binding, Class, Function
from torchlint.semantics.hints import refined
from torchlint.semantics.names import Names, canonical
from torchlint.semantics.rebinding import is_behind
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.summaries import Tables
from torchlint.semantics.tree import children
from torchlint.semantics.values import NONE, NUMBER, STRING, UNKNOWN, Grad, Kind, Place, Value, join

if TYPE_CHECKING:
    from torchlint.semantics.foreign import Imports
    from torchlint.semantics.transfer import Arguments

Env = dict[Binding, Value]
_CONSTANTS = {
    "None": NONE,
    "True": Value(Kind.NUMBER, dtype="bool", constant=True),
    "False": Value(Kind.NUMBER, dtype="bool", constant=False),
}
_FALLBACKS = (Kind.NONE, Kind.NUMBER)  # what a name is set to where its import fails


class Expressions(ABC):
    """Evaluates expressions of one function at a time in `env`, the values of its variables at this point."""

    def __init__(self, scopes: Scopes, names: Names, imports: Imports | None = None) -> None:
        self.scopes = scopes
        self.names = names
        self.imports = imports
        self.values: dict[cst.CSTNode, Value] = {}
        self.known = Tables()  # of the previous round
        self.noted = Tables()  # of this round
        self.env: Env = {}
        self.unbound: set[Binding] = set()  # variables that were read where `env` lacks them
        self.grad: bool | None = True
        self.rehearsing: tuple[Function, ...] = ()  # functions that are run for their result alone: nothing is kept
        self.function: Function = scopes.functions[0]
        self.looks_elsewhere = True  # not inside a network: what its layers compute changes no finding there
        self.classes: dict[str, Class] = {cls.ref: cls for cls in reversed(scopes.classes)}
        self.functions: dict[str, Function] = {f.ref: f for f in reversed(scopes.functions)}
        self.pending: set[cst.CSTNode] = set()  # calls of functions of which nothing is known yet
        self.annotated: dict[Binding, Value] = {}  # variables that are declared and not assigned
        self._imports: dict[Binding, Value | None] = {}
        self._spent: dict[tuple[Binding, cst.CSTNode], bool] = {}
        self._evaluators: dict[type[Any], Callable[[Any], Value]] = {
            cst.Name: self._name,
            cst.Attribute: self._attribute,
            cst.Call: self._call,
            cst.Integer: self._integer,
            cst.Float: self._float,
            cst.Imaginary: lambda node: Value(Kind.NUMBER, dtype="complex"),
            cst.SimpleString: lambda node: Value(Kind.STRING, constant=string_value(node)),
            cst.ConcatenatedString: self._parts_then(STRING),
            cst.FormattedString: self._parts_then(STRING),
            cst.BinaryOperation: self._binary,
            cst.UnaryOperation: self._unary,
            cst.BooleanOperation: self._boolean,
            cst.Comparison: self._comparison,
            cst.IfExp: self._conditional,
            cst.Subscript: self._subscript,
            cst.Tuple: self._sequence,
            cst.List: self._sequence,
            cst.Set: self._sequence,
            cst.Dict: self._dict,
            cst.ListComp: self._comprehension,
            cst.SetComp: self._comprehension,
            cst.GeneratorExp: self._comprehension,
            cst.DictComp: self._comprehension,
            cst.Lambda: self._lambda,
            cst.Await: lambda node: self.eval(node.expression),
            cst.NamedExpr: self._walrus,
            cst.Yield: self._yield,
        }

    def eval(self, node: cst.CSTNode) -> Value:
        evaluator = self._evaluators.get(type(node))
        if evaluator is None:
            self._eval_parts(node)
            value = UNKNOWN
        else:
            value = evaluator(node)
        self.values[node] = value
        return value

    def _eval_parts(self, node: cst.CSTNode) -> None:
        for child in children(node):
            if isinstance(child, cst.BaseExpression):
                self.eval(child)
            else:
                self._eval_parts(child)

    def _parts_then(self, value: Value) -> Callable[[cst.CSTNode], Value]:
        def evaluate(node: cst.CSTNode) -> Value:
            self._eval_parts(node)
            return value

        return evaluate

    # -- names -------------------------------------------------------------------------------------------------------

    def _name(self, node: cst.Name) -> Value:
        binding = self.scopes.bindings.get(node)
        if binding is None:
            if node.value in _CONSTANTS:
                return _CONSTANTS[node.value]
            qualified = self.names.qualified(node)
            return self.named(qualified) if qualified is not None else UNKNOWN
        imported = self.names.imported_before(node, binding)
        return self.named(imported) if imported is not None else self.read(binding)

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
        cls = (self.local_class(value) or self.foreign_class(value)) if value.kind is Kind.INSTANCE else None
        return value if cls is not None and cls.is_plain_callable else refined(binding, value)

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

    def local_functions(self, value: Value) -> list[Function]:
        """The functions of this file that the value may be, in the order of the file."""
        if value.kind is Kind.PARTIAL and value.element is not None:
            return self.local_functions(value.element)
        if value.kind is not Kind.FUNCTION:
            return []
        of = self.scopes.function_of
        found = [of[node] for node in value.origins if node in of]
        return found if len(found) < 2 else sorted(found, key=self.scopes.functions.index)

    # -- attributes and subscripts -----------------------------------------------------------------------------------

    def _attribute(self, node: cst.Attribute) -> Value:
        owner = self.eval(node.value)
        binding = self.scopes.bindings.get(node)
        if binding is not None and (binding.writes or binding in self.env):
            return self.read(binding)
        value = self.attribute(owner, node.attr.value)
        if binding is None:
            return value
        return self.read(binding) if value.kind is Kind.UNKNOWN else self.refined(binding, value)

    def attribute(self, owner: Value, name: str) -> Value:
        if name == "_modules" and owner.kind is Kind.MODULE:  # where nn.Module keeps those of its attributes that are
            return Value(Kind.DICT, element=Value(Kind.MODULE))
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
                return owner if name == "module" else Value(Kind.UNKNOWN, place=Place.UNKNOWN)
            case Kind.LOADER:
                known = {"dataset": Kind.DATASET, "sampler": Kind.SAMPLER, "batch_sampler": Kind.SAMPLER}
                return Value(known[name], origins=owner.origins) if name in known else UNKNOWN
            case Kind.ARRAY:
                return transfer.SHAPE if name == "shape" else Value(Kind.ARRAY, place=Place.HOST)
            case Kind.DICT:
                return owner.field(name) or UNKNOWN
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
                return Value(Kind.TENSOR, Grad.DETACHED, owner.place, rank=owner.rank)
            case "device":
                return Value(Kind.DEVICE, place=owner.place)
            case "dtype":
                return Value(Kind.DTYPE, dtype=owner.dtype)
        return transfer.tensor_attribute(owner, name)

    @staticmethod
    def _unknown_attribute(owner: Value, name: str) -> Value:
        if name == "device":
            return Value(Kind.DEVICE)
        if name == "shape":
            return transfer.SHAPE
        if name == "data":
            return Value(place=owner.place, grad=Grad.DETACHED)
        return Value(place=owner.place)

    def _subscript(self, node: cst.Subscript) -> Value:
        owner = self.eval(node.value)
        for element in node.slice:
            self._eval_index(element.slice)
        return self.item(owner, node)

    def _eval_index(self, part: cst.BaseSlice) -> None:
        if isinstance(part, cst.Index):
            self.eval(part.value)
        elif isinstance(part, cst.Slice):
            for bound in (part.lower, part.upper, part.step):
                if bound is not None:
                    self.eval(bound)

    def item(self, owner: Value, node: cst.Subscript) -> Value:
        """What `owner[...]` is."""
        single = node.slice[0].slice if len(node.slice) == 1 else None
        index = self.values.get(single.value) if isinstance(single, cst.Index) else None
        match owner.kind:
            case Kind.TENSOR if owner.rank == 0 and index is not None and index.kind is Kind.NUMBER:
                return Value(Kind.NUMBER, dtype=owner.dtype)  # `loss.data[0]`, before tensors without dimensions
            case Kind.TENSOR:
                return owner.but(rank=self._indexed_rank(owner, node), optional=False)
            case Kind.BATCH | Kind.ARRAY | Kind.MODULE | Kind.STRING | Kind.PARAMETERS:
                return owner
            case Kind.DICT:
                found = owner.field(index.constant) if index and isinstance(index.constant, str) else None
                return found or owner.element or UNKNOWN
            case Kind.LIST | Kind.TUPLE:
                return self._sequence_item(owner, single, index)
            case Kind.UNKNOWN:
                return Value(place=owner.place, grad=owner.grad)
            case Kind.DATASET:
                return Value(place=Place.HOST)
            case _:
                return UNKNOWN

    @staticmethod
    def _sequence_item(owner: Value, single: cst.BaseSlice | None, index: Value | None) -> Value:
        if isinstance(single, cst.Slice):
            return Value(owner.kind, element=transfer.element_of(owner))
        if owner.items is not None and index is not None and isinstance(index.constant, int):
            try:
                return owner.items[index.constant]
            except IndexError:
                return UNKNOWN
        return transfer.element_of(owner)

    def _indexed_rank(self, owner: Value, node: cst.Subscript) -> int | None:
        if owner.rank is None:
            return None
        rank = owner.rank
        for element in node.slice:
            part = element.slice
            if isinstance(part, cst.Slice) or (isinstance(part, cst.Index) and isinstance(part.value, cst.Ellipsis)):
                continue
            value = self.values.get(part.value, UNKNOWN) if isinstance(part, cst.Index) else UNKNOWN
            if value.kind is Kind.NUMBER and value.dtype != "bool":
                rank -= 1
            elif value.kind is Kind.NONE:
                rank += 1
            elif value.is_tensor and value.rank == 0 and value.dtype == "int":
                rank -= 1
            elif not (value.is_tensor and value.rank == 1):
                return None
        return max(rank, 0)

    # -- literals and operators --------------------------------------------------------------------------------------

    @staticmethod
    def _integer(node: cst.Integer) -> Value:
        return Value(Kind.NUMBER, dtype="int", constant=int(node.value, 0) if len(node.value) < 20 else None)

    @staticmethod
    def _float(node: cst.Float) -> Value:
        return Value(Kind.NUMBER, dtype="float", constant=float(node.value))

    def _sequence(self, node: cst.Tuple | cst.List | cst.Set) -> Value:
        kind = {cst.Tuple: Kind.TUPLE, cst.List: Kind.LIST, cst.Set: Kind.SET}[type(node)]
        values: list[Value] = []
        starred: list[Value] = []
        for element in node.elements:
            value = self.eval(element.value)
            (starred if isinstance(element, cst.StarredElement) else values).append(value)
        if starred or len(values) > _MAX_ITEMS:
            return Value(kind, element=transfer.join_all([*values[:4], *map(transfer.element_of, starred)]))
        return Value(kind, items=tuple(values), origins=frozenset([node]) if kind is Kind.LIST else frozenset())

    def _dict(self, node: cst.Dict) -> Value:
        fields: list[tuple[str, Value]] = []
        values: list[Value] = []
        plain = True
        for element in node.elements:
            value = self.eval(element.value)
            if isinstance(element, cst.DictElement):
                key = self.eval(element.key).constant
                values.append(value)
                if isinstance(key, str):
                    fields.append((key, value))
                else:
                    plain = False
            else:
                plain = False
        element_value = transfer.join_all(values) if values else None
        known = tuple(fields) if plain and len(fields) <= _MAX_ITEMS else None
        return Value(Kind.DICT, element=element_value, fields=known)

    def _binary(self, node: cst.BinaryOperation) -> Value:
        spine: list[cst.BinaryOperation] = []
        left: cst.BaseExpression = node
        while isinstance(left, cst.BinaryOperation):
            spine.append(left)
            left = left.left
        value = self.eval(left)
        for operation in reversed(spine):
            value = transfer.binary(type(operation.operator).__name__, value, self.eval(operation.right), self.grad)
            self.values[operation] = value
        return value

    def _unary(self, node: cst.UnaryOperation) -> Value:
        value = self.eval(node.expression)
        if isinstance(node.operator, cst.Not):
            return transfer.BOOLEAN
        return value.but(constant=None) if value.kind is not Kind.NUMBER else self._negated(node, value)

    @staticmethod
    def _negated(node: cst.UnaryOperation, value: Value) -> Value:
        if isinstance(node.operator, cst.Minus) and isinstance(value.constant, (int, float)):
            return value.but(constant=-value.constant)
        return value.but(constant=None)

    def _boolean(self, node: cst.BooleanOperation) -> Value:
        return join(self.eval(node.left), self.eval(node.right))

    def _comparison(self, node: cst.Comparison) -> Value:
        values = [self.eval(node.left), *(self.eval(target.comparator) for target in node.comparisons)]
        if any(isinstance(t.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for t in node.comparisons):
            return transfer.BOOLEAN
        return transfer.comparison(values)

    def _conditional(self, node: cst.IfExp) -> Value:
        self.eval(node.test)
        return join(self._where(node.body, node.test, True), self._where(node.orelse, node.test, False))

    def _where(self, branch: cst.BaseExpression, test: cst.BaseExpression, holds: bool) -> Value:
        """A branch of a conditional expression. What the test asks about may be its whole value: `x.item() if
        torch.is_tensor(x) else x`."""
        value = self.eval(branch)
        if value.is_tensor and any(branch.deep_equals(asked) for asked in no_tensors(test, holds, self.names)):
            self.values[branch] = value = NUMBER
        return value

    def _walrus(self, node: cst.NamedExpr) -> Value:
        value = self.eval(node.value)
        self.assign(node.target, value)
        return value

    def _yield(self, node: cst.Yield) -> Value:
        if isinstance(node.value, cst.From):
            produced = self.elements(self.eval(node.value.item))
        else:
            produced = self.eval(node.value) if node.value is not None else NONE
        self.noted.note_return(self.function, Value(Kind.ITERATOR, element=produced))
        return UNKNOWN

    def _lambda(self, node: cst.Lambda) -> Value:
        self.eval_defaults(node.params)
        function = self.scopes.function_of[node]
        return Value(Kind.FUNCTION, ref=function.ref, origins=frozenset([node]))

    def eval_defaults(self, params: cst.Parameters) -> None:
        for param in (*params.posonly_params, *params.params, *params.kwonly_params):
            if param.default is not None:
                self.noted.note_default(param.default, self.eval(param.default))

    def _comprehension(self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.DictComp) -> Value:
        clause: cst.CompFor | None = node.for_in
        while clause is not None:
            iterates = self.eval(clause.iter)
            if not self.rehearsing:
                self.scopes.loop_of[clause].iterates = iterates
            self.assign(clause.target, self.elements(iterates))
            for condition in clause.ifs:
                self.eval(condition.test)
            clause = clause.inner_for_in
        if isinstance(node, cst.DictComp):
            self.eval(node.key)
            return Value(Kind.DICT, element=self.eval(node.value))
        kind = {cst.ListComp: Kind.LIST, cst.SetComp: Kind.SET}.get(type(node), Kind.ITERATOR)
        return Value(kind, element=self.eval(node.elt))

    # -- for the subclasses ------------------------------------------------------------------------------------------

    @abstractmethod
    def rehearse(self, function: Function, given: Arguments, grad: bool | None, *, bound: bool) -> Value:
        """What the function returns when it is given these arguments."""

    @abstractmethod
    def _call(self, node: cst.Call) -> Value:
        """Evaluate a call; what it does to variables is noted on the way."""

    @abstractmethod
    def elements(self, value: Value) -> Value:
        """What iterating over the value yields."""

    def write(self, binding: Binding, value: Value, target: cst.CSTNode | None = None) -> None:
        if target is None or not self._is_spent(binding, value, target):
            value = self.refined(binding, value)
        self.env[binding] = value
        self.noted.note_binding(binding, value)

    def assign(self, target: cst.CSTNode, value: Value) -> None:
        """Bind `value` to an assignment target of any shape."""
        self.values[target] = value
        if type(target) is cst.Name:
            self._bind(target, value)
        elif isinstance(target, (cst.Tuple, cst.List)):
            parts = self._parts(value, target)
            for element, part in zip(target.elements, parts):
                starred = isinstance(element, cst.StarredElement)
                self.assign(element.value, Value(Kind.LIST, element=part) if starred else part)
        elif isinstance(target, cst.Subscript):
            self._store_item(target, value)
        else:
            if isinstance(target, cst.Attribute):
                self.eval(target.value)
            self._bind(target, value)

    def _bind(self, target: cst.CSTNode, value: Value) -> None:
        binding = self.scopes.bindings.get(target)
        if binding is not None:
            self.write(binding, value, target)
            self.values[target] = self.env[binding]

    @cached_property
    def _places(self) -> dict[cst.CSTNode, int]:
        """Nodes of the file in their order."""
        return {node: place for place, node in enumerate(self.scopes.contexts)}

    def _is_spent(self, binding: Binding, value: Value, target: cst.CSTNode) -> bool:
        """Whether it is not known if a value has a graph, and the backward passes of its variable are over."""
        is_vague = value.is_(Kind.UNKNOWN, Kind.TENSOR) and value.grad is Grad.UNKNOWN
        if not is_vague or "backward" not in binding.methods:
            return False
        key = binding, target
        if key not in self._spent:
            self._spent[key] = is_behind(self.scopes, self._places, binding, "backward", target)
        return self._spent[key]

    @staticmethod
    def _parts(value: Value, target: cst.Tuple | cst.List) -> list[Value]:
        """What each element of the target gets; of a starred one, what the elements of its list are."""
        starred = [isinstance(element, cst.StarredElement) for element in target.elements]
        items = value.items
        if items is None or sum(starred) != 1 or len(items) < len(starred) - 1:
            return transfer.unpacked(value, len(starred))
        before, behind = starred.index(True), len(starred) - starred.index(True) - 1
        end = len(items) - behind
        return [*items[:before], transfer.join_all(items[before:end]), *items[end:]]

    def _store_item(self, target: cst.Subscript, value: Value) -> None:
        owner = self.eval(target.value)
        for element in target.slice:
            self._eval_index(element.slice)
        binding = self.scopes.bindings.get(target.value)
        if binding is None or owner.kind not in (Kind.DICT, Kind.LIST, Kind.TENSOR):
            return
        if owner.kind is Kind.TENSOR:
            if value.carries and self.grad:
                self.write(binding, owner.but(grad=Grad.CARRIES))
            return
        self.write(binding, self.with_item(owner, target, value))

    def with_item(self, owner: Value, target: cst.Subscript, value: Value) -> Value:
        """A list or dict after `owner[...] = value`."""
        single = target.slice[0].slice if len(target.slice) == 1 else None
        key = self.values.get(single.value, UNKNOWN).constant if isinstance(single, cst.Index) else None
        element = value if owner.element is None else join(owner.element, value)
        if owner.kind is Kind.DICT:
            fields = None
            if isinstance(key, str) and owner.fields is not None:
                fields = tuple({**dict(owner.fields), key: value}.items())  # a key that is there keeps its place
            return owner.but(element=element, fields=fields)
        return self.extended(owner, value)

    @staticmethod
    def extended(owner: Value, value: Value) -> Value:
        """A list or set after one more `value` went into it."""
        if owner.element is None and not owner.items:
            return owner.but(element=value, items=None)
        return owner.but(element=join(transfer.element_of(owner), value), items=None)


_MAX_ITEMS = 32
_LIBRARIES = ("torch.", "numpy.", "builtins.", "math.", "os.")
