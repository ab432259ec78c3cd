"""Loaders that a file hands to functions, methods and classes of other files, and what these do with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import given_to, parameter_of, parameter_of_function
from torchlint.semantics.tree import arms, walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function, Loop, Write
    from torchlint.semantics.model import Model

HARMLESS = re.compile(
    r"(builtins\.(len|print|enumerate|zip|iter|next|isinstance|type|str|repr|bool|list|id|min|max|sum|range|hasattr)"
    r"|tqdm\b.*|math\..*|logging\..*|rich\..*)$"
)
_OF_ITSELF = re.compile(r"builtins\.(super|getattr|setattr|vars|dir|callable|hash)$")
_ASKED = re.compile(r"dataset|batch_size|__iter__|set_(postfix|description)(_str)?|update|close|refresh")  # or of a bar
_PLAIN_BASES = re.compile(r"(builtins\.)?object$|abc\.ABC$|torch\.nn\.Module$")
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class HandedOn:
    """An argument of a call, and the variable of another file that it arrives in: a parameter, or the attribute in
    which a class keeps it. `entered` is the function that the call runs."""

    given: cst.BaseExpression
    home: Model
    entered: Function
    kept: Binding

    @property
    def is_of_function(self) -> bool:
        return self.entered.cls is None

    def drawn_by(self) -> Iterator[Loop]:
        """The loops of that file that iterate over it."""
        for loop in self.home.loops:
            nodes = walk(loop.iterable) if loop.iterable is not None else ()
            if any(
                isinstance(node, (cst.Name, cst.Attribute)) and comes_from(node, self.kept, self.home, wrapped=True)
                for node in nodes
            ):
                yield loop

    def is_only_drawn_from(self) -> bool:
        """Whether that file does nothing with a loader but iterate over it and ask for its length."""
        if self.kept.cls is not None:
            bases = (base or "" for cls in self.kept.cls.lineage() for base in cls.bases)
            known = {cls.name for cls in self.home.classes}
            if not all(base.rpartition(".")[2] in known or _PLAIN_BASES.match(base) for base in bases):
                return False  # a base in a third file may do more
            if any(self._hands_itself_on(method) for cls in self.kept.cls.lineage() for method in cls.methods.values()):
                return False
        reads = [*self.kept.reads, *self._parameter_reads()]
        return bool(reads) and all(_only_draws(read, self.home) for read in reads)

    def _hands_itself_on(self, method: Function) -> bool:
        """`self.callbacks.begin(self, epoch)`"""
        owner = method.scope.bindings.get(method.own_name or "")
        given = (self.home.parent(read) for read in owner.reads) if owner is not None else ()
        sites = (self.home.parent(arg) for arg in given if isinstance(arg, cst.Arg))
        calls = (self.home.call(site) for site in sites if isinstance(site, cst.Call))
        return any(not (HARMLESS.match(call.callee or "") or _OF_ITSELF.match(call.callee or "")) for call in calls)

    def _parameter_reads(self) -> list[cst.CSTNode]:
        """Where the constructor reads what it keeps in an attribute."""
        if self.kept.cls is None:
            return []
        kept = (write.value for write in self.kept.writes)
        parameters = (binding for value in kept if value is not None and (binding := self.home.binding(value)))
        return [read for binding in parameters for read in binding.reads]


def handed_on(call: Call, is_meant: Callable[[cst.BaseExpression], bool], model: Model) -> Iterator[HandedOn]:
    """The arguments that are meant, where a call enters a function, a method or a class of another file."""
    elsewhere = model.elsewhere(call) or _named(call, model)
    if elsewhere is None or any(arg.star for arg in call.arguments):
        return
    home, function = elsewhere
    for arg in call.node.args:
        parameter = parameter_of_function(call, function, arg) if is_meant(arg.value) else None
        if parameter is not None:
            kept = _attribute_of(parameter, home) if function.name == "__init__" else None
            yield HandedOn(arg.value, home, function, kept or parameter)


def _named(call: Call, model: Model) -> tuple[Model, Function] | None:
    """The function that a name stands for, in a model that was made without a look into other files."""
    function = model.value(call.node.func)
    return model.function_behind(function) if call.target is None and function.kind is Kind.FUNCTION else None


def _attribute_of(parameter: Binding, home: Model) -> Binding | None:
    """`self.loader = loader`: the attribute, where it holds nothing else."""
    for read in parameter.reads:
        match home.parent(read):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as target)]):
                binding = home.binding(target)
                if binding is not None and binding.cls is not None and len(binding.writes) == 1:
                    return binding
    return None


def _only_draws(read: cst.CSTNode, home: Model, depth: int = 0) -> bool:
    if depth > _DEPTH:
        return False
    match home.parent(read):
        case cst.For() | cst.CompFor() | cst.From() | cst.ComparisonTarget() | cst.Comparison():
            return True
        case cst.Attribute(value=value, attr=cst.Name(value=name)) if value is read:
            return _ASKED.fullmatch(name) is not None
        case cst.IfExp(test=test) as choice:
            return test is read or _only_draws(choice, home, depth)
        case cst.Assign(targets=[cst.AssignTarget(target=target)]):
            binding = home.binding(target)
            return binding is not None and all(_only_draws(other, home, depth + 1) for other in binding.reads)
        case cst.Arg() as arg:
            site = home.parent(arg)
            return isinstance(site, cst.Call) and _call_only_draws(home.call(site), arg, home, depth)
    return False


def _call_only_draws(call: Call, arg: cst.Arg, home: Model, depth: int) -> bool:
    if call.is_forward or HARMLESS.match(call.callee or ""):
        return True
    parameter = parameter_of(call, arg)
    return parameter is not None and all(_only_draws(read, home, depth + 1) for read in parameter.reads)


def comes_from(node: cst.CSTNode | None, kept: Binding, home: Model, wrapped: bool, depth: int = 0) -> bool:
    """Whether an expression can be what a variable holds: itself, under another name, or a parameter that gets it.

    wrapped: a progress bar around it will do.
    """
    if node is None or depth > _DEPTH:
        return False
    if isinstance(node, cst.IfExp):
        return all(comes_from(arm, kept, home, wrapped, depth) for arm in arms(node))
    if isinstance(node, cst.Call):
        wraps = wrapped and node.args and (home.call(node).callee is not None or isinstance(node.func, cst.Name))
        return bool(wraps) and comes_from(node.args[0].value, kept, home, wrapped, depth)
    binding = home.binding(node)
    if binding is None or binding is kept:
        return binding is kept
    if binding.is_parameter and len(binding.writes) == 1:
        given = [part for caller in binding.scope_function.callers for part in given_to(caller, binding)]
        return any(comes_from(part, kept, home, wrapped, depth + 1) for part in given)
    if not binding.writes or any(write.kind != "assign" for write in binding.writes):
        return False
    sources = [_parts_returned(write, home) if write.unpacked else [write.value] for write in binding.writes]
    return all(parts and all(comes_from(part, kept, home, wrapped, depth + 1) for part in parts) for parts in sources)


def _parts_returned(write: Write, home: Model) -> list[cst.BaseExpression | None]:
    """What a function of the same file returns at the place of `loader` in `loader, _ = make_loaders()`."""
    call = home.call(write.value) if isinstance(write.value, cst.Call) else None
    match home.small_statement(write.target):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=elements))]) if call and call.target:
            places = [place for place, element in enumerate(elements) if element.value is write.target]
        case _:
            return []
    tuples = [returned.value for returned in call.target.returns if isinstance(returned.value, cst.Tuple)]
    if len(places) != 1 or len(tuples) != len(call.target.returns):
        return []
    return [tuple_.elements[places[0]].value if len(tuple_.elements) == len(elements) else None for tuple_ in tuples]
