"""Regions of code in which autograd is off: what context managers and decorators do to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics import vocabulary as words
from torchlint.semantics.entities import Call, Class, Function
from torchlint.semantics.names import Names
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.values import UNKNOWN, Kind, Value

_MANAGERS = ("contextlib.contextmanager", "contextlib.asynccontextmanager")
_DEPTH = 4
_SWITCHES = frozenset(name.removeprefix("torch.") for name in words.GRAD_SWITCHES)
# Of these packages no decorator switches autograd.
_PLAIN_DECORATORS = (
    "builtins.",
    "functools.",
    "abc.",
    "contextlib.",
    "typing.",
    "typing_extensions.",
    "pytest.",
    "click.",
    "typer.",
    "sacred.",
    "hydra.",
    "tenacity.",
    "beartype.",
    "typeguard.",
    "jaxtyping.",
    "overrides.",
    "torch.jit.",
    "torch.compile",
    "torch.autocast",
    "torch.amp.",
    "torch.cuda.amp.",
    "torch.cuda.nvtx.",
    "torch.profiler.",
    "torch.distributed.",
    "dataclasses.",
    "numba.",
)


class Switch(NamedTuple):
    """Whether something switches autograd, and the state it switches to; None when that is not known."""

    switches: bool
    enabled: bool | None = None


KEEPS = Switch(False)
OFF = Switch(True, False)
ON = Switch(True, True)
UNSURE = Switch(True)


def _either(states: Iterable[Switch]) -> Switch:
    """One of several context managers, it is not known which."""
    found = set(states)
    if len(found) == 1:
        return found.pop()
    return UNSURE if found else KEEPS


class GradModes:
    """Answers for one file. `of_foreign` does for functions of other files."""

    def __init__(
        self,
        scopes: Scopes,
        names: Names,
        value_of: Callable[[cst.CSTNode], Value],
        of_foreign: Callable[[Function], Switch] | None = None,
    ) -> None:
        self._scopes = scopes
        self._names = names
        self._value_of = value_of
        self._of_foreign = of_foreign
        self._functions = {function.qualname: function for function in reversed(scopes.functions)}

    def of_context(self, node: cst.BaseExpression, depth: int = 0) -> Switch:
        """Of what a with statement enters."""
        value = self._value_of(node)
        if value.kind not in (Kind.UNKNOWN, Kind.INSTANCE, Kind.ITERATOR) or depth > _DEPTH:
            return KEEPS
        made = [origin for origin in value.origins if isinstance(origin, cst.Call)]
        if not made and value.ref in words.GRAD_DISABLING:
            return OFF
        if not made and isinstance(node, cst.Call):
            return self.of_call(node, depth)
        states = [self.of_call(call, depth) for call in made]
        in_sight = value.kind is Kind.INSTANCE or made == [node]
        return _either(states) if in_sight else _either([*states, KEEPS])

    def of_call(self, node: cst.Call, depth: int = 0) -> Switch:
        """Of the context manager that a call makes."""
        call = self._scopes.call_of.get(node)
        name = self._names.qualified(node.func) or (call.callee if call is not None else None)
        if name in words.GRAD_DISABLING:
            return ON if name == "torch.inference_mode" and self._constant(node) is False else OFF
        if name == "torch.enable_grad":
            return ON
        if name == "torch.set_grad_enabled":
            state = self._constant(node)
            return Switch(True, state if isinstance(state, bool) else None)
        names = set(self._alternatives(node.func)) if name is None else set()
        if names & words.GRAD_SWITCHES:
            return OFF if names <= words.GRAD_DISABLING else UNSURE
        if call is None:
            return KEEPS
        if call.targets_class is not None:
            return self._of_class(call.targets_class)
        if call.foreign is not None and self._of_foreign is not None:
            return self._of_foreign(call.foreign)
        targets = [call.target] if call.target is not None else call.alternatives
        if not targets and name is None and call.method in _SWITCHES:
            return UNSURE  # of a torch that was handed in, perhaps
        return _either(self.of_function(target, depth + 1) for target in targets)

    def _alternatives(self, node: cst.BaseExpression, depth: int = 0) -> Iterator[str]:
        """The names of what is called, where it is one of several: `no_grad if evaluating else nullcontext`."""
        if isinstance(node, cst.IfExp):
            yield from self._alternatives(node.body, depth)
            yield from self._alternatives(node.orelse, depth)
            return
        name = self._names.qualified(node)
        binding = self._scopes.bindings.get(node)
        if name is not None or binding is None or depth > _DEPTH:
            yield name or ""
            return
        for write in binding.writes:
            if write.kind == "assign" and write.value is not None and not write.unpacked:
                yield from self._alternatives(write.value, depth + 1)
            else:
                yield ""

    def _constant(self, node: cst.Call) -> object:
        return self._value_of(node.args[0].value).constant if node.args else None

    def of_function(self, function: Function, depth: int = 0) -> Switch:
        """Of a generator function that contextlib makes a context manager of: the state in which it yields."""
        if not function.yields or not any(name in _MANAGERS for name in function.decorators) or depth > _DEPTH:
            return KEEPS
        if any(self._names.qualified(call.node.func) == "torch.set_grad_enabled" for call in function.calls
               if isinstance(self._scopes.parents.get(call.node), cst.Expr)):  # fmt: skip
            return UNSURE
        return _either(self._around(node, depth) for node in function.yields)

    def _around(self, node: cst.CSTNode, depth: int) -> Switch:
        """Of the with statements of the same function around a node."""
        parents = self._scopes.parents
        child, parent = node, parents.get(node)
        while parent is not None and not isinstance(parent, cst.FunctionDef):
            if isinstance(parent, cst.With) and child is parent.body:
                states = (self.of_context(item.item, depth + 1) for item in reversed(parent.items))
                found = next((state for state in states if state.switches), None)
                if found is not None:
                    return found
            child, parent = parent, parents.get(parent)
        return KEEPS

    def _of_class(self, cls: Class) -> Switch:
        """Of the objects of a class of this file as context managers."""
        if any(base in words.GRAD_DISABLING for ancestor in cls.lineage() for base in ancestor.bases):
            return OFF
        entering = [method for name in ("__init__", "__enter__") if (method := cls.method(name)) is not None]
        switches = [call for method in entering for call in method.calls if self._is_switch(call)]
        states = {self._names.qualified(call.node.func): self.of_call(call.node) for call in switches}
        return (
            states["torch.set_grad_enabled"] if [*states] == ["torch.set_grad_enabled"] else UNSURE if states else KEEPS
        )

    def of_construction(self, method: Function) -> Switch:
        """Of what the constructor of a class leaves behind when it is done, before any other method runs."""
        maker = method.cls.method("__init__") if method.cls is not None and method.name != "__init__" else None
        lines = maker.node.body.body if maker is not None and isinstance(maker.node, cst.FunctionDef) else ()
        for line in reversed(lines):
            match line:
                case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call() as call)]):
                    if self._names.qualified(call.func) == "torch.set_grad_enabled":
                        return self.of_call(call)
        return KEEPS

    def _is_switch(self, call: Call) -> bool:
        name = self._names.qualified(call.node.func) or ""
        return name in words.GRAD_SWITCHES or name.startswith("torch._C._set_grad")

    # -- decorators --------------------------------------------------------------------------------------------------

    def of_decorators(self, function: Function) -> Switch:
        """Of all decorators of a function; the one next to it has the last word."""
        if not isinstance(function.node, cst.FunctionDef):
            return KEEPS
        for item, name in zip(reversed(function.node.decorators), reversed(function.decorators)):
            state = self._of_decorator(item.decorator, name)
            if state.switches:
                return state
        return KEEPS

    def _of_decorator(self, node: cst.BaseExpression, name: str | None) -> Switch:
        if isinstance(node, cst.Call):
            state = self.of_call(node)
            if state.switches:
                return state
        elif name in words.GRAD_DISABLING:
            return OFF
        elif name == "torch.enable_grad":
            return ON
        if name is not None and name in self._functions:
            return KEEPS if self._keeps(self._functions[name]) else UNSURE
        if isinstance(node, cst.Attribute) and node.attr.value in ("setter", "deleter", "getter"):
            return KEEPS
        names = [name or "", *self._kinds_of_owner(node)]
        return KEEPS if any(known.startswith(_PLAIN_DECORATORS) for known in names) else UNSURE

    def _keeps(self, decorator: Function) -> bool:
        """Whether neither a decorator of this file nor the functions in it switch autograd."""
        inside = (function for function in self._scopes.functions if decorator in function.around())
        return not any(self._is_switch(call) for function in inside for call in function.calls)

    def _kinds_of_owner(self, node: cst.BaseExpression) -> Iterator[str]:
        """`app` of `@app.command()` is an object of what class?"""
        func = node.func if isinstance(node, cst.Call) else node
        if isinstance(func, cst.Attribute):
            yield (self._value_of(func.value) or UNKNOWN).ref or ""
