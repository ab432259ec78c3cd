"""The nouns of the model: functions, classes, loops, bindings, calls and what is known about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import UNKNOWN, Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.foreign import ForeignCall
    from torchlint.semantics.frameworks import Hook


class Role(Enum):
    """What a loop is for."""

    EPOCHS = "epochs"  # each iteration is a whole pass: it contains a steps or an evaluation loop, here or in a callee
    STEPS = "steps"  # each iteration runs one training step: backward, here or in a callee
    EVALUATION = "evaluation"  # each iteration runs a model on one batch, and no backward
    MODULES = "modules"  # over modules, parameters, optimizers
    ELEMENTS = "elements"  # over an index range or the rows of a tensor
    PLAIN = "plain"


class ArgumentState(Enum):
    """Whether a call gives an argument. Where it is HIDDEN, rules about something that is missing stay silent."""

    GIVEN = "given"
    ABSENT = "absent"
    HIDDEN = "hidden"  # an unresolved * or ** may carry it


@dataclass(eq=False, slots=True)
class Scope:
    """The variables of a module, function, class body or comprehension, by their names."""

    kind: str  # module, function, class, comprehension
    parent: Scope | None
    function: Function
    cls: Class | None = None
    bindings: dict[str, Binding] = field(default_factory=dict)
    outer: dict[str, str] = field(default_factory=dict)  # names declared global or nonlocal


_PROPERTIES = frozenset(
    {"builtins.property", "functools.cached_property", "abc.abstractproperty", "cached_property.cached_property"}
)
_TRAINING = frozenset({"backward", "zero_grad", "eval"})
_CLASS_METHODS = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})


@dataclass(eq=False, slots=True)
class Function:
    """A def, a lambda, or the module body (`functions[0]`)."""

    node: cst.Module | cst.FunctionDef | cst.Lambda
    name: str
    qualname: str
    module: str = ""  # name of the file as others import it, where the project is known
    cls: Class | None = None
    parent: Function | None = None
    params: list[str] = field(default_factory=list)
    decorators: list[str | None] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    returns: list[cst.Return] = field(default_factory=list)
    callers: list[Call] = field(default_factory=list)
    parameters: dict[str, Value] = field(default_factory=dict)
    yields: list[cst.Yield] = field(default_factory=list)
    passed_around: bool = False  # the function object itself is stored, returned or handed to code that may call it
    foreign_callers: list[ForeignCall] = field(default_factory=list)  # in other files, where they were looked for
    is_step: bool = False  # one call is one training step: it runs backward outside of a loop
    hook: Hook | None = None  # how a framework calls it
    is_pass: bool = False  # one call is a pass over data: it holds a steps or an evaluation loop
    scope: Scope = field(init=False)

    @property
    def is_procedure(self) -> bool:
        """Whether a call gives None whatever happens: it returns nothing."""
        return not self.returns and not self.is_generator and isinstance(self.node, cst.FunctionDef)

    @property
    def results(self) -> list[cst.BaseExpression]:
        """The expressions whose values a call may give; of a lambda, its body."""
        if isinstance(self.node, cst.Lambda):
            return [self.node.body]
        return [node.value for node in self.returns if node.value is not None]

    @property
    def ref(self) -> str:
        """The name that no other function of the project has."""
        return f"{self.module}.{self.qualname}" if self.module else self.qualname

    @property
    def is_module(self) -> bool:
        return isinstance(self.node, cst.Module)

    @property
    def is_generator(self) -> bool:
        return bool(self.yields)

    @property
    def is_of_network(self) -> bool:
        """Whether it is a method that computes for a network whose class trains none, nor switches the mode of one."""
        if self.cls is None or not self.cls.is_module or self.cls.is_lightning:
            return False
        return not any(call.method in _TRAINING for method in self.cls.methods.values() for call in method.calls)

    @property
    def is_property(self) -> bool:
        return any(name in _PROPERTIES for name in self.decorators)

    @property
    def is_static(self) -> bool:
        return "builtins.staticmethod" in self.decorators

    @property
    def takes_class(self) -> bool:
        """Whether the first parameter of the method is the class."""
        return "builtins.classmethod" in self.decorators or self.name in _CLASS_METHODS

    def around(self) -> Iterator[Function]:
        """The function and those in which it is defined, the innermost first; the module body last."""
        function: Function | None = self
        while function is not None:
            yield function
            function = function.parent

    @property
    def own_name(self) -> str | None:
        """What a method calls its object, as does a function that is defined in it: `self`. None elsewhere."""
        method = next((function for function in self.around() if function.cls is not None), None)
        return method.params[0] if method is not None and method.params and not method.is_static else None

    @property
    def required(self) -> int:
        """How many arguments a call has to give; of a method, beside the object."""
        if not isinstance(self.node, cst.FunctionDef):
            return 0
        params = (*self.node.params.posonly_params, *self.node.params.params)
        return sum(param.default is None for param in params) - (self.cls is not None)

    def takes_receiver(self, receiver: Value) -> bool:
        """Whether what the method is called on, or its class, is the first of its parameters."""
        return not self.is_static and (self.takes_class or receiver.kind is not Kind.CLASS)

    def parameter(self, name: str) -> Value:
        """Join of what the calls in this file pass, or what the use of the parameter implies."""
        return self.parameters.get(name, UNKNOWN)


@dataclass(eq=False, slots=True)
class Class:
    """A class statement, what its body and its methods define, and what it derives from."""

    node: cst.ClassDef
    name: str
    qualname: str
    parent: Function  # in which it is defined: the module body, as a rule
    module: str = ""  # name of the file as others import it, where the project is known
    bases: list[str | None] = field(default_factory=list)  # qualified names, in the order of the text
    ancestry: tuple[str, ...] = ()  # the names of all that it derives from, in whatever files of the project
    methods: dict[str, Function] = field(default_factory=dict)
    attributes: dict[str, Binding] = field(default_factory=dict)  # `self.x`, by the name behind the dot
    local_bases: list[Class] = field(default_factory=list)  # those of this file
    subclasses: list[Class] = field(default_factory=list)  # of this file, that name the class as a base
    is_record: bool = False  # its annotated fields are the parameters of its constructor: a dataclass, a NamedTuple
    kind: Kind = Kind.INSTANCE  # what an object of the class is
    is_module: bool = False
    is_lightning: bool = False
    scope: Scope = field(init=False)

    @property
    def ref(self) -> str:
        """The name that no other class of the project has; `Value.ref` of its objects."""
        return f"{self.module}.{self.qualname}" if self.module else self.qualname

    @property
    def is_no_module(self) -> bool:
        """Whether objects are nothing of torch's however they are used: the class derives from others of the project
        alone, or from nothing, and has a method by which its objects are called."""
        is_in_sight = None not in self.bases and all(base == "builtins.object" for base in self.ancestry)
        derives = any(base != "builtins.object" for base in self.bases)
        return is_in_sight and (derives or ("__call__" in self.methods and "forward" not in self.methods))

    def lineage(self) -> Iterator[Class]:
        """The class and its bases of this file, nearest first."""
        return _nearest_first(self, lambda cls: cls.local_bases)

    def descendants(self) -> Iterator[Class]:
        """The classes of this file that derive from it."""
        return (cls for cls in _nearest_first(self, lambda cls: cls.subclasses) if cls is not self)

    def method(self, name: str) -> Function | None:
        if name in self.methods:
            return self.methods[name]
        return next((cls.methods[name] for cls in self.lineage() if name in cls.methods), None)

    def attribute(self, name: str) -> Binding | None:
        if name in self.attributes:
            return self.attributes[name]
        return next((cls.attributes[name] for cls in self.lineage() if name in cls.attributes), None)

    def variable(self, name: str) -> Binding | None:
        """What the body of the class, or of a base of this file, binds the name to."""
        return next((cls.scope.bindings[name] for cls in self.lineage() if name in cls.scope.bindings), None)


def _nearest_first(start: Class, neighbours: Callable[[Class], list[Class]]) -> Iterator[Class]:
    seen: set[Class] = set()
    queue = [start]
    while queue:
        cls = queue.pop(0)
        if cls not in seen:
            seen.add(cls)
            yield cls
            queue.extend(neighbours(cls))


@dataclass(eq=False, slots=True)
class Loop:
    """A for or while statement, or a `for` of a comprehension."""

    node: cst.For | cst.While | cst.CompFor
    function: Function
    parent: Loop | None  # the loop around it in the same function
    target: cst.BaseExpression | None = None  # `x` of `for x in xs`
    iterable: cst.BaseExpression | None = None  # `xs` of `for x in xs`
    iterates: Value = UNKNOWN  # what `xs` is
    role: Role = Role.PLAIN
    calls: list[Call] = field(default_factory=list)  # those in its inner loops included

    @property
    def body(self) -> Sequence[cst.CSTNode]:
        """Statements of the body; of a comprehension, nothing."""
        return () if isinstance(self.node, cst.CompFor) else self.node.body.body

    @property
    def is_comprehension(self) -> bool:
        return isinstance(self.node, cst.CompFor)

    def holds(self, inner: Loop | None) -> bool:
        """Whether the other loop is this one, or stands in it."""
        return inner is not None and self in inner.around()

    def around(self) -> Iterator[Loop]:
        """The loop and the loops around it in the same function, innermost first."""
        loop: Loop | None = self
        while loop is not None:
            yield loop
            loop = loop.parent


@dataclass(eq=False, slots=True)
class Write:
    """A place that gives a variable or an attribute what it holds."""

    target: cst.CSTNode  # the name that is written to
    kind: str  # assign augmented for with import parameter def class except walrus delete match buffer
    value: cst.BaseExpression | None
    statement: cst.CSTNode
    function: Function
    loop: Loop | None
    unpacked: bool = False  # `value` is unpacked, and the target is one part of it
    imported: str | None = None  # the dotted name that an import brings


@dataclass(eq=False, slots=True)
class Binding:
    """A variable of a scope, or an attribute `self.x` of a class, with every place that writes or reads it."""

    name: str
    scope_function: Function
    cls: Class | None = None
    writes: list[Write] = field(default_factory=list)
    reads: list[cst.Name | cst.Attribute] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)  # names of the methods called on it anywhere
    called: bool = False  # it is itself called somewhere
    joined: bool = False  # it is given to torch.stack or torch.cat somewhere
    counts: bool = False  # it is given to range somewhere
    sized: bool = False  # its size in a dimension is asked for somewhere: `x.size(0)`, `n, *rest = x.size()`
    shared: bool = False  # read or written by a function other than its own

    @property
    def is_parameter(self) -> bool:
        return bool(self.writes) and self.writes[0].kind == "parameter"

    @property
    def is_global(self) -> bool:
        return self.cls is None and self.scope_function.is_module


@dataclass(frozen=True, slots=True)
class Argument:
    """What a call gives under one name or at one place, be it in a dict behind `**` or through functools.partial."""

    state: ArgumentState
    node: cst.BaseExpression | None = None  # the expression that is given
    value: Value = UNKNOWN
    arg: cst.Arg | None = None  # where it stands among the arguments of a call
    dict_entry: cst.CSTNode | None = None  # where it stands in a dict that the call takes apart

    @property
    def given(self) -> bool:
        return self.state is ArgumentState.GIVEN

    @property
    def absent(self) -> bool:
        return self.state is ArgumentState.ABSENT

    @property
    def hidden(self) -> bool:
        return self.state is ArgumentState.HIDDEN


@dataclass(eq=False, slots=True)
class Call:
    """A call expression: what is called, on what, from where, and what comes of it."""

    node: cst.Call
    function: Function  # in which it is made
    loop: Loop | None  # the innermost one around it in that function
    callee: str | None = None  # qualified name: `torch.stack`, or that of a def or class of this file
    method: str | None = None  # `step` of `optimizer.step()`
    receiver: cst.BaseExpression | None = None  # `optimizer` of `optimizer.step()`
    receiver_value: Value = UNKNOWN
    target: Function | None = None  # the function of this file that is called
    targets_class: Class | None = None  # the class of this file of which it makes an object
    foreign: Function | None = None  # the function of another file of the project that is called
    value: Value = UNKNOWN  # what it returns
    grad_enabled: bool | None = True  # whether autograd records what it computes; None where that is not known
    is_forward: bool = False  # it runs a module
    is_backward: bool = False
    is_optimizer_step: bool = False
    is_zero_grad: bool = False
    alternatives: list[Function] = field(default_factory=list)  # functions of this file of which one is called
    partial: frozenset[cst.CSTNode] = frozenset()  # the functools.partial that is called
    passes: list[Function] = field(default_factory=list)  # those, and functions of this file that are arguments
    resolve: Callable[[Call, str, int | None], Argument] | None = field(default=None, repr=False)  # of `argument`

    @property
    def arguments(self) -> Sequence[cst.Arg]:
        return self.node.args

    def argument(self, name: str, position: int | None = None) -> Argument:
        """The argument called `name`, or at `position` (0-based, without self), wherever it was written."""
        assert self.resolve is not None
        return self.resolve(self, name, position)

    def loops(self) -> tuple[Loop, ...]:
        """The loops around the call in its function, innermost first."""
        return tuple(self.loop.around()) if self.loop is not None else ()


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that decides whether a node runs: the branch that the node is in, and what is asked for it."""

    node: cst.CSTNode  # the `if`, the conditional expression, the handler of an exception
    test: cst.BaseExpression | None  # None of a handler
    kind: str  # what it asks for: log phase rank handler optional other
    branch: str  # body or else


@dataclass(slots=True)
class Effects:
    """Calls by what they do, here or in the functions of this file that are called from here."""

    backward: list[Call] = field(default_factory=list)
    optimizer_steps: list[Call] = field(default_factory=list)
    zero_grads: list[Call] = field(default_factory=list)
    set_epochs: list[Call] = field(default_factory=list)
    forwards: list[Call] = field(default_factory=list)
    unscales: list[Call] = field(default_factory=list)
    clips: list[Call] = field(default_factory=list)
    syncs: list[Call] = field(default_factory=list)
    gradients: list[Call] = field(default_factory=list)  # torch.autograd.grad and the like: nothing accumulates
    opaque: list[Call] = field(default_factory=list)
    elsewhere: set[str] = field(default_factory=set)  # which of these also happen in functions of other files
    _known: dict[str, set[Call]] = field(default_factory=dict, repr=False, compare=False)  # the same calls

    @staticmethod
    def categories() -> tuple[str, ...]:
        return _CATEGORIES

    def has(self, category: str) -> bool:
        """Whether the effect happens, in this file or in another."""
        return bool(getattr(self, category)) or category in self.elsewhere

    def add(self, other: Effects) -> bool:
        """Merge `other` into this one; True if anything was new."""
        grown = not other.elsewhere <= self.elsewhere
        self.elsewhere |= other.elsewhere
        for name in self.categories():
            theirs: list[Call] = getattr(other, name)
            if not theirs:
                continue
            mine: list[Call] = getattr(self, name)
            known = self._known.get(name)
            if known is None:
                known = self._known[name] = set(mine)
            fresh = [call for call in theirs if call not in known]
            if fresh:
                mine.extend(fresh)
                known.update(fresh)
                grown = True
        return grown

    def without(self, categories: frozenset[str]) -> Effects:
        kept = Effects(elsewhere=self.elsewhere - categories)
        for name in _CATEGORIES:
            if name not in categories:
                getattr(kept, name).extend(getattr(self, name))
        return kept


_CATEGORIES = tuple(name for name in Effects.__slots__ if name not in ("elsewhere", "_known"))
