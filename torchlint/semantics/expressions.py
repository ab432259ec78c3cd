"""Evaluating expressions: every node gets a value from the values of its parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchlint.semantics import transfer
from torchlint.semantics.arguments import string_value
from torchlint.semantics.branches import no_tensors
from torchlint.semantics.entities import Binding, Function
from torchlint.semantics.lookup import Lookup
from torchlint.semantics.names import Names
from torchlint.semantics.rebinding import is_behind
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.tree import children
from torchlint.semantics.values import NONE, NUMBER, STRING, UNKNOWN, Grad, Kind, Place, Value, join

if TYPE_CHECKING:
    from torchlint.semantics.foreign import Imports
    from torchlint.semantics.transfer import Arguments

_CONSTANTS = {
    "None": NONE,
    "True": Value(Kind.NUMBER, dtype="bool", constant=True),
    "False": Value(Kind.NUMBER, dtype="bool", constant=False),
}


class Expressions(Lookup, ABC):
    """Evaluates expressions of one function at a time in `env`, the values of its variables at this point."""

    def __init__(self, scopes: Scopes, names: Names, imports: Imports | None = None) -> None:
        super().__init__(scopes, names, imports)
        self.values: dict[cst.CSTNode, Value] = {}
        self.rehearsing: tuple[Function, ...] = ()  # functions that are run for their result alone: nothing is kept
        self.function: Function = scopes.functions[0]
        self.pending: set[cst.CSTNode] = set()  # calls of functions of which nothing is known yet
        self._spent: dict[tuple[Binding, cst.CSTNode], bool] = {}
        self._evaluators: dict[type[Any], Callable[[Any], Value]] = {
            cst.Name: self._name,
            cst.Attribute: self._attribute,
            cst.Call: self._call,
            cst.Integer: lambda node: _integer(node.value),
            cst.Float: lambda node: _float(node.value),
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

    # -- names and subscripts ----------------------------------------------------------------------------------------

    def _name(self, node: cst.Name) -> Value:
        binding = self.scopes.bindings.get(node)
        if binding is None:
            if node.value in _CONSTANTS:
                return _CONSTANTS[node.value]
            qualified = self.names.qualified(node)
            return self.named(qualified) if qualified is not None else UNKNOWN
        imported = self.names.imported_before(node, binding)
        return self.named(imported) if imported is not None else self.read(binding)

    def _attribute(self, node: cst.Attribute) -> Value:
        owner = self.eval(node.value)
        binding = self.scopes.bindings.get(node)
        if binding is not None and (binding.writes or binding in self.env):
            return self.read(binding)
        value = self.attribute(owner, node.attr.value)
        if binding is None:
            return self.module_by_use(node, value) or value
        return self.read(binding) if value.kind is Kind.UNKNOWN else self.refined(binding, value)

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
            case Kind.TENSOR if index is not None and index.kind is Kind.STRING and self._is_one_of_several(node.value):
                return Value(place=owner.place)  # `loss, logs = net(x)`: no tensor, but a dict of whatever
            case Kind.TENSOR:
                pinned = owner.pinned and not self._picks(node)
                return owner.but(rank=self._indexed_rank(owner, node), optional=False, pinned=pinned)
            case Kind.STRING:
                return STRING
            case Kind.MODULE if owner.ref in ("torch.nn.ParameterList", "torch.nn.ParameterDict"):
                return transfer.element_of(owner.but(kind=Kind.PARAMETERS))
            case Kind.MODULE if owner.element is not None and index is not None:
                return owner.element.but(place=owner.place)
            case Kind.BATCH | Kind.ARRAY | Kind.MODULE | Kind.PARAMETERS:
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

    def _is_one_of_several(self, node: cst.BaseExpression) -> bool:
        """Whether a variable holds one of the results of a call, of which nothing else is known."""
        binding = self.scopes.bindings.get(node)
        return binding is not None and bool(binding.writes) and all(write.unpacked for write in binding.writes)

    def _picks(self, node: cst.Subscript) -> bool:
        """Whether a subscript may copy what it takes, as lists and tensors of places do; others make a view."""
        parts = [element.slice for element in node.slice]
        places = [self.values.get(part.value, UNKNOWN) for part in parts if isinstance(part, cst.Index)]
        return any(not place.is_(Kind.NUMBER, Kind.NONE) or place.dtype == "bool" for place in places)

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

    def _sequence(self, node: cst.Tuple | cst.List | cst.Set) -> Value:
        kind = {cst.Tuple: Kind.TUPLE, cst.List: Kind.LIST, cst.Set: Kind.SET}[type(node)]
        values: list[Value] = []
        starred: list[Value] = []
        for element in node.elements:
            value = self.eval(element.value)
            (starred if isinstance(element, cst.StarredElement) else values).append(value)
        if starred or len(values) > _MAX_ITEMS:
            return Value(kind, element=transfer.join_all([*values[:4], *map(transfer.element_of, starred)]))
        items = tuple(value.but(items=None) if _is_empty_list(value) else value for value in values)
        return Value(kind, items=items, origins=frozenset([node]) if kind is Kind.LIST else frozenset())

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
        left, right = self.eval(node.left), self.eval(node.right)
        if left.kind is Kind.UNKNOWN and isinstance(node.operator, cst.Or) and self._is_plain_object(right):
            return right  # `table or Table(keys)`: what comes in stands for it
        return join(left, right)

    def _is_plain_object(self, value: Value) -> bool:
        """Whether a value is an object of a class that is in sight and no module."""
        cls = (self.local_class(value) or self.foreign_class(value)) if value.kind is Kind.INSTANCE else None
        return cls is not None and cls.is_no_module

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
            value = self.refined(binding, value.but(grad=Grad.UNKNOWN) if self._goes_back(binding, value) else value)
        self.env[binding] = value
        self.noted.note_binding(binding, value)

    def _goes_back(self, binding: Binding, value: Value) -> bool:
        """Whether a tensor without a graph, as it seems, is all that its variable holds, and runs backward."""
        is_all = "backward" in binding.methods and len(binding.writes) == 1 and self.grad is not False
        return is_all and value.kind is Kind.TENSOR and value.grad is Grad.DETACHED

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
                self._store_attribute(target, value)
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

    def _store_attribute(self, target: cst.Attribute, value: Value) -> None:
        owner, binding = self.eval(target.value), self.scopes.bindings.get(target.value)
        if target.attr.value == "requires_grad" and owner.kind is Kind.TENSOR and binding is not None:
            known = Grad.CARRIES if value.constant is True else Grad.DETACHED
            grad = known if isinstance(value.constant, bool) else Grad.UNKNOWN
            self.write(binding, owner.but(grad=grad))
            return
        self._fill_batch(target.value, owner, value)
        is_switch = target.attr.value == "requires_grad" and value.constant is not False
        if is_switch or (owner.kind is Kind.MODULE and value.is_(Kind.MODULE, Kind.UNKNOWN, Kind.TENSOR)):
            self._loosen(target.value)

    def _loosen(self, owner: cst.BaseExpression) -> None:
        """A part of a module that was switched off has, or may have, something to train again."""
        while isinstance(owner, cst.Attribute) and self.scopes.bindings.get(owner) is None:
            owner = owner.value
        binding, value = self.scopes.bindings.get(owner), self.values.get(owner)
        if binding is not None and value is not None and value.kind is Kind.MODULE and value.grad is Grad.DETACHED:
            self.write(binding, value.but(grad=Grad.UNKNOWN))

    def _store_item(self, target: cst.Subscript, value: Value) -> None:
        owner = self.eval(target.value)
        for element in target.slice:
            self._eval_index(element.slice)
        self._fill_batch(target.value, owner, value)
        binding = self.scopes.bindings.get(target.value)
        if binding is None or owner.kind not in (Kind.DICT, Kind.LIST, Kind.TENSOR):
            return
        if owner.kind is Kind.TENSOR:
            if self.grad and value.is_(Kind.UNKNOWN, Kind.TENSOR) and value.grad is not owner.grad:
                self.write(binding, owner.but(grad=join(owner, value.but(kind=Kind.TENSOR)).grad))
            return
        self.write(binding, self.with_item(owner, target, value))

    def _fill_batch(self, node: cst.BaseExpression, owner: Value, value: Value) -> None:
        """A batch that is given a result, `batch["logits"] = self.head(x)`, has a graph where that has one."""
        binding = self.scopes.bindings.get(node)
        may_have_graph = self.grad is not False and transfer.mixed_grad((value,), self.grad) is not Grad.DETACHED
        if binding is not None and owner.kind is Kind.BATCH and owner.grad is Grad.DETACHED and may_have_graph:
            self.write(binding, owner.but(grad=Grad.UNKNOWN))

    def with_item(self, owner: Value, target: cst.Subscript, value: Value) -> Value:
        """A list or dict after `owner[...] = value`."""
        single = target.slice[0].slice if len(target.slice) == 1 else None
        key = self.values.get(single.value, UNKNOWN).constant if isinstance(single, cst.Index) else None
        element = value if owner.element is None else join(owner.element, value)
        if owner.kind is Kind.DICT:
            if not isinstance(key, str):
                entries = tuple((name, join(held, value)) for name, held in owner.known_fields)
                return owner.but(element=element, fields=None, entries=entries or None)
            filled = tuple({**dict(owner.known_fields), key: value}.items())  # a key that is there keeps its place
            is_whole = owner.fields is not None
            return owner.but(element=element, fields=filled if is_whole else None, entries=None if is_whole else filled)
        return self.extended(owner, value)

    @staticmethod
    def extended(owner: Value, value: Value) -> Value:
        """A list or set after one more `value` went into it."""
        if owner.element is None and not owner.items:
            return owner.but(element=value, items=None)
        return owner.but(element=join(transfer.element_of(owner), value), items=None)


_MAX_ITEMS = 32


@lru_cache(maxsize=1024)
def _integer(text: str) -> Value:
    return Value(Kind.NUMBER, dtype="int", constant=int(text, 0) if len(text) < 20 else None)


@lru_cache(maxsize=1024)
def _float(text: str) -> Value:
    return Value(Kind.NUMBER, dtype="float", constant=float(text))


def _is_empty_list(value: Value) -> bool:
    """Within another container it is there to be filled, under whatever name a loop gives it."""
    return value.kind is Kind.LIST and value.items == ()
