"""Calls of builtins, of torch and of other libraries, by their names, and of what is known by its name alone."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence

import libcst as cst

from torchlint.semantics import frameworks, numpy_results, tensor_methods, torch_results, transfer
from torchlint.semantics import vocabulary as words
from torchlint.semantics.entities import Call, Function
from torchlint.semantics.expressions import Expressions
from torchlint.semantics.hints import LOSS_NAMES
from torchlint.semantics.transfer import Arguments
from torchlint.semantics.tree import last_name
from torchlint.semantics.values import NONE, NUMBER, STRING, UNKNOWN, Grad, Kind, Place, Value

_DATA_PARALLEL = "torch.nn.parallel.data_parallel"
_DATES = frozenset({"time.ctime", "time.asctime", "time.strftime"})
_RECORDS = frozenset({"time.localtime", "time.gmtime", "time.strptime", "math.frexp", "math.modf"})
_OBJECTS_RECEIVED = re.compile(r"torch\.distributed\.\w*_object(_list)?")
_NEUTRAL = re.compile(r"(math|time|os|json|random|logging|re|sys)\.")


class LibraryCalls(Expressions):
    """Adds calls of named functions and classes that are not of the project."""

    @abstractmethod
    def _hand_over(self, target: Function, given: Arguments, *, bound: bool) -> None:
        """Note what the parameters of a function get."""

    @abstractmethod
    def _forwarded(self, call: Call, module: Value, returned: Value, given: Arguments) -> Value:
        """The result of a module's forward."""

    def _unknown_call(self, call: Call, given: Arguments) -> Value:
        if LOSS_NAMES.search(last_name(call.node.func)):
            return self._loss_like(given)
        return UNKNOWN

    def _loss_like(self, given: Arguments) -> Value:
        """A callable named for a loss, given something that carries a graph, returns something that does."""
        arguments = given.all()
        place = transfer.place_behind(arguments)
        if not any(value.carries for value in arguments):
            return Value(place=place)
        return Value(Kind.TENSOR, transfer.mixed_grad(arguments, self.grad), place)

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
        if name == "torch.autograd.grad":
            return self._gradients(given)
        if _OBJECTS_RECEIVED.fullmatch(name):
            self._receive(call)
        entry = words.function(name)
        if entry is not None:
            return torch_results.torch_function(entry, given, self.grad)
        kind = words.class_kind(name) or self._kind_in_project(name)
        if kind is not None:
            return self._constructed(call, name, kind, first, given)
        if words.is_module_factory(name) and (not words.makes_pipeline(name) or self._makes_pipeline(name)):
            return Value(Kind.MODULE, ref=name, origins=frozenset([call.node]))
        if (loaded := self._loaded(call, name, given)) is not None:
            return loaded
        if name == "torch.autograd.Variable" and first is not None:
            return self._variable(first, given)
        if name == "torch.utils.data.random_split":
            return Value(Kind.LIST, element=Value(Kind.DATASET, origins=frozenset([call.node])))
        if words.COUNTING_BARS.fullmatch(name):
            return self._builtin(call, "range", first, given)
        if words.ITERATION_WRAPPERS.fullmatch(name) and first is not None:
            if first.kind is Kind.LOADER:
                return first  # `loader = tqdm(loader)` is iterated, and measured, like the loader itself
            return Value(Kind.ITERATOR, element=self.elements(first), origins=first.origins)
        return self._library_call(call, name, first, given)

    @staticmethod
    def _gradients(given: Arguments) -> Value:
        """A tuple of gradients, each where its input is; they have a graph of their own where one is asked for."""
        asked = given.get("create_graph", 4)
        known = None if given.open else False if asked is None else asked.constant
        grad = {True: Grad.CARRIES, False: Grad.DETACHED}.get(known, Grad.UNKNOWN) if isinstance(known, bool) else None
        inputs = given.get("inputs", 1) or UNKNOWN
        parts = inputs.items or ((inputs.element,) if inputs.element is not None else (inputs,))
        places = {part.place for part in parts}
        place = places.pop() if len(places) == 1 else Place.UNKNOWN
        return Value(Kind.TUPLE, element=Value(Kind.TENSOR, grad or Grad.UNKNOWN, place))

    def _loaded(self, call: Call, name: str, given: Arguments) -> Value | None:
        """`nn.Embedding.from_pretrained(table)` makes an object of the class, which takes gradients only if told to."""
        cls, _, method = name.rpartition(".")
        if method not in words.LOADING or (words.class_kind(cls) or self._kind_in_project(cls)) is not Kind.MODULE:
            return None
        freeze = given.get("freeze", 1)
        may_train = not cls.startswith("torch.nn.") or (freeze is not None and freeze.constant is False)
        grad = Grad.UNKNOWN if may_train else Grad.DETACHED
        return Value(Kind.MODULE, grad, ref=cls, origins=frozenset([call.node]))

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

    def _makes_pipeline(self, name: str) -> bool:
        """Whether a function makes a pipeline, and not `TaggingPipeline.from_pretrained` a network of the project."""
        return words.makes_pipeline(name) and self._kind_in_project(name.rpartition(".")[0]) is not Kind.MODULE

    def _kind_in_project(self, name: str) -> Kind | None:
        return self.imports.kind_of_class(name) if self.imports is not None else None

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
        if kind is Kind.LOADER:
            option = given.get("pin_memory")
            is_pinned = option is not None and option.constant is True
            return Value(kind, ref=name, pinned=is_pinned, origins=origins)
        held = None
        if first is not None and name in ("torch.nn.ModuleList", "torch.nn.ModuleDict"):
            held = first.element if first.kind is Kind.DICT else self.elements(first)
        return Value(kind, ref=name, element=held if held and held.kind is Kind.MODULE else None, origins=origins)

    def _receive(self, call: Call) -> None:
        """`all_gather_object(found, mine)` puts what other processes have into a list."""
        for arg in call.node.args:
            binding = self.scopes.bindings.get(arg.value)
            if binding is not None and self.values[arg.value].kind is Kind.LIST:
                self.write(binding, self.values[arg.value].but(items=None, element=UNKNOWN))

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
            return numpy_results.function(name[6:], given)
        if name.startswith("torch.distributions."):
            return tensor_methods.distribution(name, given, self.grad).but(origins=frozenset([call.node]))
        if name == "itertools.chain.from_iterable" and first is not None:
            return self._chained([self.elements(first)], given)
        if name == "itertools.chain":
            return self._chained(given.positional, given)
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
            element = element or (self._second(first) if first is not None else None)
            starts_empty = element is None and (name.endswith("defaultdict") or not given.positional)
            return Value(Kind.DICT, element=element, fields=() if starts_empty else None)
        if name.endswith("collections.deque"):
            return Value(Kind.LIST, element=self.elements(first) if first is not None else None)
        if name.startswith(("math.", "time.")):
            return STRING if name in _DATES else UNKNOWN if name in _RECORDS else NUMBER
        if _NEUTRAL.match(name):
            return UNKNOWN
        last = name.rpartition(".")[2]
        if LOSS_NAMES.search(last) and not last[:1].isupper():
            return self._loss_like(given)
        if last[:1].isupper():
            return Value(Kind.INSTANCE, ref=name, origins=frozenset([call.node]))
        return UNKNOWN

    def _second(self, pairs: Value) -> Value | None:
        """What a dict holds that is made of pairs, `dict(model.named_parameters())`, or of another dict."""
        if pairs.kind is Kind.DICT:
            return pairs.element
        pair = self.elements(pairs)
        return pair.items[1] if pair.items is not None and len(pair.items) == 2 else None

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
                if not given.positional and len(given.starred) == 1:  # `zip(*loaders)`: one element of each
                    whole = self.elements(given.starred[0])
                    element = Value(Kind.TUPLE, element=self.elements(whole))
                    origins = whole.origins
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
                if first is not None:
                    return Value(Kind.DICT, element=self._second(first))
                return Value(Kind.DICT, fields=tuple(given.keywords.items()))
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
                if isinstance(name_value, str):
                    return self.attribute(first, name_value)
                return self.some_member(first) or UNKNOWN
            case _:
                return UNKNOWN

    def _chained(self, parts: Sequence[Value], given: Arguments) -> Value:
        """What goes over one after the other of what it is given."""
        if not parts or given.open:
            return Value(Kind.ITERATOR)
        origins = frozenset(origin for part in parts for origin in part.origins)
        return Value(Kind.ITERATOR, element=transfer.join_all([self.elements(part) for part in parts]), origins=origins)

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


def loss_and_others(source: cst.BaseExpression, value: Value, target: cst.CSTNode) -> Value:
    """`loss, accuracy = criterion(x, y)`: what a loss out of sight returns beside itself may have no graph."""
    if not isinstance(source, cst.Call) or not isinstance(target, (cst.Tuple, cst.List)):
        return value
    if not value.is_tensor or not value.carries or not LOSS_NAMES.search(last_name(source.func)):
        return value
    return _parts_of_loss(value, target)


def _parts_of_loss(value: Value, target: cst.Tuple | cst.List) -> Value:
    """Each name of a loss gets one, in `loss, (box_loss, class_loss), hits = criterion(x, y)` too."""
    parts = []
    for element in target.elements:
        if isinstance(element.value, (cst.Tuple, cst.List)):
            parts.append(_parts_of_loss(value, element.value))
        else:
            is_loss = LOSS_NAMES.search(last_name(element.value)) is not None
            parts.append(value if is_loss else Value(place=value.place))
    return Value(Kind.TUPLE, items=tuple(parts))
