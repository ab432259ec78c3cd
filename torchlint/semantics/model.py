"""The semantic model of one file: what rules and fixers read.

A rule never walks the tree. It asks for calls, loops, functions and bindings, and for the value, the regions and the
guards of the nodes that they mention. Nodes are LibCST nodes and compare by identity.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import libcst as cst

from torchlint.semantics import frameworks
from torchlint.semantics import vocabulary as words
from torchlint.semantics.arguments import ArgumentFinder
from torchlint.semantics.calls import ancestry, class_kind
from torchlint.semantics.collecting import collect
from torchlint.semantics.effects import EffectTable, classify
from torchlint.semantics.entities import Binding, Call, Class, Effects, Function, Guard, Loop, Scope
from torchlint.semantics.evaluate import Evaluator
from torchlint.semantics.guards import Guards, never_holds
from torchlint.semantics.names import Names
from torchlint.semantics.regions import Switch
from torchlint.semantics.roles import RoleFinder
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.spans import Span, Spans
from torchlint.semantics.transfer import Arguments
from torchlint.semantics.tree import deep_recursion
from torchlint.semantics.values import UNKNOWN, Kind, Value
from torchlint.source import Source

if TYPE_CHECKING:
    from torchlint.semantics.foreign import ForeignCall, Imports

_COMMENT = re.compile(r"#.*")
_FUNCTIONS = (cst.FunctionDef, cst.Lambda)
_Found = TypeVar("_Found")


class Model:
    """Facts about one file, found by one walk and one evaluation. Built by `Model.build`."""

    def __init__(self, source: Source, module: cst.Module, imports: Imports | None = None) -> None:
        self.source = source
        self.module = module
        self._imports = imports
        self._scopes: Scopes = collect(module, imports.own_name if imports is not None else "")
        self._names = Names(self._scopes, imports)
        self._describe_classes()
        self._evaluator = Evaluator(self._scopes, self._names, imports)
        self._arguments = ArgumentFinder(self._scopes, self.value)
        for call in self._scopes.calls:
            call.resolve = self._arguments
        self._note_functions_passed_around()
        if imports is not None:
            imports.prepare(self._scopes.functions)
        self._evaluator.run()
        for call in self._scopes.calls:
            if call.callee is None:
                call.callee = self._names.qualified(call.node.func)
            classify(call, self.parent(call.node))
        abroad = imports.effects if imports is not None else None
        self._effects = EffectTable(self._scopes.functions, abroad, keeps_off="enable_grad" not in source.text)
        RoleFinder(self._scopes.functions, self._scopes.loops, self._effects)
        frameworks.note_functions(self._scopes.calls)
        self._computed: dict[object, object] = {}
        self._effects_of: dict[Loop | Call | cst.CSTNode, Effects] = {}
        self._guards = Guards(self._scopes)
        self._grads: dict[cst.CSTNode, bool | None] = {}
        self._calls_in: dict[Function, dict[cst.CSTNode, list[Call]]] = {}  # by the nodes that hold them

    @classmethod
    def build(cls, source: Source, module: cst.Module, imports: Imports | None = None) -> Model:
        """`imports` is the file's view of its project; without it nothing is known of other files.

        Raises RecursionError on code nested beyond any reason.
        """
        with deep_recursion():
            return cls(source, module, imports)

    def _describe_classes(self) -> None:
        for cls in self._scopes.classes:
            cls.bases = [self._names.qualified(base.value) for base in cls.node.bases]
            makers = {*cls.bases, *(self._decorator(item.decorator) for item in cls.node.decorators)}
            cls.is_record = bool(makers & words.RECORDS)
        for cls in self._scopes.classes:
            cls.ancestry = ancestry(cls, self._imports)
            cls.kind = class_kind(cls)
            cls.is_module = cls.kind is Kind.MODULE
            cls.is_lightning = any("Lightning" in base for base in cls.ancestry)
        frameworks.note_methods(self._scopes.classes)
        for function in self._scopes.functions:
            if isinstance(function.node, cst.FunctionDef):
                function.decorators = [self._decorator(item.decorator) for item in function.node.decorators]

    def _decorator(self, node: cst.BaseExpression) -> str | None:
        return self._names.qualified(node.func if isinstance(node, cst.Call) else node)

    def _note_functions_passed_around(self) -> None:
        """A function whose name is read other than to call it may be called from anywhere."""
        for node, binding in self._scopes.bindings.items():
            if not isinstance(node, (cst.Name, cst.Attribute)) or not binding.writes:
                continue
            function = self._scopes.function_of.get(binding.writes[0].target)
            parent = self._scopes.parents.get(node)
            if function is None or (isinstance(parent, cst.Call) and parent.func is node):
                continue
            if node in binding.reads:
                function.passed_around = True

    @property
    def name(self) -> str:
        """Of the file as others import it, where the project is known."""
        return self._scopes.functions[0].module

    @property
    def path(self) -> Path:
        """Of the file below the root of its project, where that is known."""
        return self._imports.path if self._imports is not None else self.source.path

    @cached_property
    def line_length(self) -> int:
        """How many characters the lines of the file may have, for what a fix writes."""
        configured = self._imports.line_length if self._imports is not None else None
        return configured or self.source.customary_length

    # -- what the file holds -----------------------------------------------------------------------------------------

    @property
    def functions(self) -> list[Function]:
        """The module body first, then every def and lambda in source order."""
        return self._scopes.functions

    @property
    def classes(self) -> list[Class]:
        return self._scopes.classes

    @property
    def loops(self) -> list[Loop]:
        """Loops of statements and comprehensions, outer ones before inner ones."""
        return self._scopes.loops

    @property
    def calls(self) -> list[Call]:
        """Every call expression, an outer call before the calls in its arguments."""
        return self._scopes.calls

    @cached_property
    def frameworks(self) -> frozenset[str]:
        """Training frameworks that the file imports; transformers counts where its Trainer does."""
        variables = self._scopes.functions[0].scope.bindings.values()
        imported = [write.imported for binding in variables for write in binding.writes if write.imported is not None]
        found = frameworks.packages(imported, (call.callee for call in self._scopes.calls), words.FRAMEWORKS)
        return frozenset(found if "Trainer" in self.source.text else found - {"transformers"})

    @cached_property
    def uses_accelerator(self) -> bool:
        """Whether the file can run on a GPU: it mentions one, be it commented out, or moves things to a device."""
        return words.ACCELERATOR.search(self.source.text) is not None or bool(self.frameworks & frameworks.PLACE)

    @cached_property
    def code_text(self) -> str:
        """The text without comments: what is commented out says nothing of what runs."""
        return _COMMENT.sub("", self.source.text)

    def nodes_of(self, *types: type[cst.CSTNode]) -> list[cst.CSTNode]:
        """Every node of exactly these classes, in source order but for the parts of assignment targets."""
        found = [numbered for kind in types for numbered in self._nodes_by_type.get(kind, ())]
        return [node for _, node in (found if len(types) == 1 else sorted(found, key=itemgetter(0)))]

    @cached_property
    def _nodes_by_type(self) -> dict[type[cst.CSTNode], list[tuple[int, cst.CSTNode]]]:
        found: defaultdict[type[cst.CSTNode], list[tuple[int, cst.CSTNode]]] = defaultdict(list)
        for numbered in enumerate(self._scopes.contexts):
            found[type(numbered[1])].append(numbered)
        return found

    def home(self, call: Call) -> Model | None:
        """The model of the file of the project in which the function that a call reaches stands, if it is another."""
        return self._imports.model_of(call.foreign) if call.foreign is not None and self._imports is not None else None

    def class_behind(self, dotted: str) -> tuple[Model, Class] | None:
        """The class of this file, or of another of the project, that a dotted name stands for here, and its model."""
        own = next((cls for cls in self.classes if dotted in (cls.ref, cls.qualname)), None)
        if own is not None:
            return self, own
        return self._imports.class_behind(dotted) if self._imports is not None else None

    def function_behind(self, value: Value) -> tuple[Model, Function] | None:
        """The function of another file that a value is, and the model of that file."""
        return self._imports.function_behind(value.ref) if self._imports is not None and value.ref else None

    def neighbours(self) -> Iterator[Source]:
        """The files of the project that this one imports, and those from which something of it can be reached."""
        return self._imports.nearby.neighbours() if self._imports is not None else iter(())

    def companions(self) -> Iterator[Source]:
        """The files of the project that import this one, and those that they import, too."""
        return self._imports.nearby.companions() if self._imports is not None else iter(())

    def imported_by(self, source: Source) -> Iterator[Source]:
        """The files of the project that another file imports something of, be it through a package."""
        return self._imports.nearby.imported_by(source) if self._imports is not None else iter(())

    def names_taken(self, file: str) -> dict[str, str]:
        """The names that stand in another file for something of this one, with the names that they have here."""
        return self._imports.nearby.names_of_this(file) if self._imports is not None else {}

    def files_beside(self) -> Iterator[Source]:
        """All other files of the project; where there are too many, those near by."""
        return self._imports.nearby.files_beside() if self._imports is not None else iter(())

    def classes_beside(self, methods: Set[str]) -> Iterator[tuple[Source, str]]:
        """The classes at the top level of those files that define these methods themselves."""
        return self._imports.nearby.classes_beside(methods) if self._imports is not None else iter(())

    def is_module_class(self, source: Source, name: str) -> bool:
        """Whether a class at the top level of another file is an nn.Module, by its bases in whatever files they are."""
        file = os.path.abspath(source.path)
        return self._imports is not None and self._imports.project.kind_of_own(file, name) is Kind.MODULE

    def model_of(self, source: Source) -> Model | None:
        """Of another file of the project, made without a look at the files around it."""
        return self._imports.project.model(os.path.abspath(source.path)) if self._imports is not None else None

    def users(self) -> tuple[Source, ...]:
        """The files of the project from which this one can be reached, however far they are."""
        return self._imports.nearby.users if self._imports is not None else ()

    def once_of(self, source: Source, compute: Callable[[Source], _Found]) -> _Found:
        """What a function says of the text of another file, asked once in a run."""
        return self._imports.project.once(source, compute) if self._imports is not None else compute(source)

    def once(self, compute: Callable[[Model], _Found]) -> _Found:
        """What a function says of this model. Rules that ask for the same facts share one computation."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        return self._computed[compute]  # type: ignore[return-value]

    # -- navigation --------------------------------------------------------------------------------------------------

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._scopes.parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What a node stands in, the innermost first; the module last."""
        return self._scopes.ancestors(node)

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The innermost logical line or compound statement that holds the node."""
        while not isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement, cst.Module)):
            node = self._scopes.parents[node]
        return node

    def small_statement(self, node: cst.CSTNode) -> cst.BaseSmallStatement | None:
        """The assignment, return, expression... that holds the node; None in the header of a compound statement."""
        current: cst.CSTNode | None = node
        while current is not None and not isinstance(current, (cst.BaseCompoundStatement, cst.Module)):
            if isinstance(current, cst.BaseSmallStatement):
                return current
            current = self._scopes.parents.get(current)
        return None

    def function(self, node: cst.CSTNode) -> Function:
        """The function whose body holds the node; of a def, the function around it."""
        return self._scopes.contexts[node].function

    def scope(self, node: cst.CSTNode) -> Scope:
        """The scope in which a name at the node is looked up."""
        return self._scopes.contexts[node].scope

    def function_of(self, node: cst.CSTNode) -> Function | None:
        """The function that a def or lambda node defines."""
        return self._scopes.function_of.get(node)

    def class_of(self, node: cst.CSTNode) -> Class | None:
        """The class that a class statement defines."""
        return self._scopes.class_of.get(node)

    def loop(self, node: cst.CSTNode) -> Loop | None:
        """The innermost loop of the same function that runs the node once per iteration."""
        return self._scopes.contexts[node].loop

    def loop_of(self, node: cst.CSTNode) -> Loop | None:
        """The loop that a for, while or comprehension clause is."""
        return self._scopes.loop_of.get(node)

    def loops_around(self, node: cst.CSTNode) -> tuple[Loop, ...]:
        loop = self.loop(node)
        return tuple(loop.around()) if loop is not None else ()

    # -- facts -------------------------------------------------------------------------------------------------------

    def value(self, node: cst.CSTNode) -> Value:
        """What the expression is; of a loop target, what it is in each iteration."""
        return self._evaluator.values.get(node, UNKNOWN)

    def qualified(self, node: cst.CSTNode | None) -> str | None:
        """`torch.nn.DataParallel` for whatever spelling of it; the qualname of a def or class of this file."""
        return self._names.qualified(node)

    def call(self, node: cst.Call) -> Call:
        return self._scopes.call_of[node]

    def calls_to(self, *names: str) -> list[Call]:
        """Calls whose qualified callee is one of `names`, or whose method is one of those with a leading dot."""
        if len(names) == 1:
            return self._calls_by_name.get(names[0], [])
        return self.in_order(call for name in names for call in self._calls_by_name.get(name, ()))

    def in_order(self, calls: Iterable[Call]) -> list[Call]:
        """Each of the calls once, in the order of `calls`."""
        return sorted(set(calls), key=self._positions.__getitem__)

    @cached_property
    def _positions(self) -> dict[Call, int]:
        return {call: index for index, call in enumerate(self._scopes.calls)}

    @cached_property
    def _calls_by_name(self) -> dict[str, list[Call]]:
        found: dict[str, list[Call]] = {}
        for call in self._scopes.calls:
            if call.callee is not None:
                found.setdefault(call.callee, []).append(call)
            if call.method is not None:
                found.setdefault("." + call.method, []).append(call)
        return found

    def binding(self, node: cst.CSTNode) -> Binding | None:
        """Of a variable, or of an attribute of the first parameter of a method."""
        return self._scopes.bindings.get(node)

    def grad_enabled(self, node: cst.CSTNode) -> bool | None:
        """Whether autograd records at the node. False: a with, a decorator, a switch or every caller turned it off."""
        way: list[cst.CSTNode] = []
        current = node
        while current not in self._grads:
            way.append(current)
            parent = self._scopes.parents.get(current)
            if current in self._evaluator.grads:
                enabled = self._evaluator.grads[current]
                break
            if parent is None or type(current) in _FUNCTIONS or type(parent) in _FUNCTIONS:
                enabled = self._evaluator.base_grad(self.function(node))
                break
            current = parent
        else:
            enabled = self._grads[current]
        self._grads.update(dict.fromkeys(way, enabled))
        return enabled

    def grad_switch(self, function: Function) -> Switch:
        """What a function of this file does to autograd as a context manager."""
        return self._evaluator.grad_modes.of_function(function)

    def guards(self, node: cst.CSTNode, inside: Loop | None = None) -> list[Guard]:
        """Conditions between the node and the loop `inside` (or its function), innermost first."""
        return list(self._guards.around(node, inside))

    def never_runs(self, node: cst.CSTNode) -> bool:
        """Whether a node stands under `if False:`, in its function."""
        return any(map(never_holds, self.guards(node)))

    def is_log_gated(self, node: cst.CSTNode) -> bool:
        """Whether the node runs only at some iterations of its innermost loop: every n steps, or when logging is on."""
        return any(guard.kind in ("log", "handler") for guard in self.guards(node, self.loop(node)))

    def effects(self, of: Function | Loop | Call | cst.CSTNode) -> Effects:
        """What a function, a loop, a call or any node does, through the functions of this file that it calls."""
        if isinstance(of, cst.CSTNode):
            of = self._scopes.function_of.get(of, of)
        if isinstance(of, Function):
            return self._effects.of_function(of)
        if of not in self._effects_of:
            calls = [of] if isinstance(of, Call) else of.calls if isinstance(of, Loop) else self.calls_in(of)
            self._effects_of[of] = self._effects.of_calls(calls)
        return self._effects_of[of]

    def calls_in(self, node: cst.CSTNode) -> tuple[Call, ...]:
        """Calls inside the node, those of functions defined in it left out."""
        function = self.function(node)
        if function not in self._calls_in:
            self._calls_in[function] = self._calls_by_holder(function)
        return tuple(self._calls_in[function].get(node, ()))

    def _calls_by_holder(self, function: Function) -> dict[cst.CSTNode, list[Call]]:
        """The calls of a function, by each node that holds them."""
        held: dict[cst.CSTNode, list[Call]] = {}
        parents = self._scopes.parents
        for call in function.calls:
            above: cst.CSTNode | None = call.node
            while above is not None:
                held.setdefault(above, []).append(call)
                above = parents.get(above) if above is not function.node else None
        return held

    @property
    def asks_for_callers(self) -> bool:
        """Whether calls from other files could change what is found in this one."""
        return self._imports is not None and self._imports.has_callers()

    def is_taken_elsewhere(self, name: str) -> bool | None:
        """Whether another file of the project takes a name from this one; None where the project is not known."""
        return self._imports.is_taken_elsewhere(name) if self._imports is not None else None

    def imports_of_project(self) -> Iterator[tuple[str, str]]:
        """The names that the file imports from files of its project, as written, and the file that each is from."""
        if self._imports is None:
            return
        for binding in self._scopes.functions[0].scope.bindings.values():
            for write in binding.writes:
                file = self._imports.file_of(write.imported) if write.imported is not None else None
                if write.imported is not None and file is not None:
                    yield write.imported, file

    def elsewhere(self, call: Call) -> tuple[Model, Function] | None:
        """The function of another file that the call enters, and the model of that file; None for all other calls.

        The model answers for its own nodes and was made without a look at the files around it.
        """
        if call.foreign is None or self._imports is None:
            return None
        return self._imports.model_of(call.foreign), call.foreign

    def caller(self, call: ForeignCall) -> tuple[Model, Call] | None:
        """A call of a function of this file as the model of the other file knows it."""
        model = self._imports.caller(call) if self._imports is not None else None
        return (model, model.call(call.node)) if model is not None and isinstance(call.node, cst.Call) else None

    def calls_elsewhere(self, function: Function) -> Iterator[tuple[Model, Call]]:
        """Calls of a function of this file in others, as the models of those files know them."""
        if self._imports is not None:
            yield from self._imports.calls_of(function)

    def heirs_elsewhere(self, cls: Class) -> Iterator[tuple[Model, Class]]:
        """The classes of other files that derive from one of this file, with the models of those files."""
        if self._imports is not None:
            yield from self._imports.heirs_of(cls)

    # -- for the models of other files -------------------------------------------------------------------------------

    def member(self, name: str) -> Value:
        """What a name of the top level of this file is, or an attribute of one."""
        first, *rest = name.split(".")
        binding = self._scopes.functions[0].scope.bindings.get(first)
        value = self._evaluator.read(binding) if binding is not None else UNKNOWN
        for attribute in rest:
            value = self._evaluator.attribute(value, attribute)
        return value

    def class_attribute(self, cls: Class, name: str) -> Value | None:
        """Of an object of a class of this file; None where it has no such attribute."""
        return self._evaluator.class_attribute(cls, name)

    def returned(self, function: Function, given: Arguments, grad: bool | None, *, bound: bool) -> Value:
        """What a function of this file returns when it is given these arguments."""
        return self._evaluator.rehearse(function, given, grad, bound=bound)

    def given(self, call: Call, value: Callable[[cst.BaseExpression], Value]) -> Arguments:
        """What `value` knows of the arguments of a call."""
        plain = [arg for arg in call.node.args if not arg.star]
        return Arguments(
            [value(arg.value) for arg in plain if arg.keyword is None],
            {arg.keyword.value: value(arg.value) for arg in plain if arg.keyword is not None},
            len(plain) < len(call.node.args),
            [value(arg.value) for arg in call.node.args if arg.star],
        )

    # -- text --------------------------------------------------------------------------------------------------------

    @cached_property
    def _spans(self) -> Spans:
        return Spans(self.module, self.source.text, self.source.line_starts, self._scopes.parents)

    def span(self, node: cst.CSTNode) -> Span:
        """Character offsets of the text: from a statement's first token, with an expression's own parentheses.

        Raises SourceMismatchError where the tree does not print as the text.
        """
        return self._spans[node]

    def code(self, node: cst.CSTNode) -> str:
        return self.source.text[slice(*self.span(node))]

    def line(self, node: cst.CSTNode) -> int:
        """1-based line of the text on which the node begins."""
        return self.source.line_number(self.span(node)[0])

    def place(self, node: cst.CSTNode) -> str:
        """Where a message points a reader: `line 3`, in a notebook `line 3 of cell 5`."""
        cell, line, _ = self.source.locate(self.span(node)[0])
        return f"line {line}" if cell is None else f"line {line} of cell {cell}"
