"""What a decorator of the file makes of a function: whether calls still pass arguments on, and return the result."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from torchlint.semantics import vocabulary as words
from torchlint.semantics.entities import Call, Function
from torchlint.semantics.scopes import Scopes


class Wrapping(NamedTuple):
    """What a decorator leaves of the function it is put on."""

    keeps_arguments: bool
    keeps_result: bool


PLAIN = Wrapping(True, True)
_ANY = Wrapping(False, False)
_COMMANDS = ("click.", "hydra.", "gin.")
_OF_COMMANDS = frozenset({"command", "automain", "capture"})


class Decorators:
    """Decorators that are not of this file are taken for plain ones."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._by_name = {function.qualname: function for function in reversed(scopes.functions)}
        self._known: dict[Function, Wrapping] = {}
        self._classes = {cls.qualname for cls in scopes.classes}

    def of(self, function: Function) -> Wrapping:
        """Of all decorators of a function together."""
        if not function.decorators:
            return PLAIN
        found = [self._of_decorator(name) for name in function.decorators]
        keeps_arguments = all(one.keeps_arguments for one in found) and not _is_command(function)
        return Wrapping(keeps_arguments, all(one.keeps_result for one in found))

    def _of_decorator(self, name: str | None) -> Wrapping:
        if name in self._classes:
            return _ANY
        decorator = self._by_name.get(name) if name else None
        if decorator is None:
            return PLAIN
        if decorator not in self._known:
            self._known[decorator] = self._read(decorator)
        return self._known[decorator]

    def _read(self, decorator: Function) -> Wrapping:
        nested = [
            function
            for function in self._scopes.functions
            if function is not decorator and decorator in function.around()
        ]
        if not nested:
            return PLAIN  # it notes the function down and returns it
        calls = [call for function in nested for call in function.calls if self._calls_decorated(call, decorator)]
        if not calls:
            return _ANY
        return Wrapping(all(map(_hands_on, calls)), all(self._returns(call.function, calls) for call in calls))

    def _calls_decorated(self, call: Call, decorator: Function) -> bool:
        """A call of a parameter of one of the functions around."""
        binding = self._scopes.bindings.get(call.node.func)
        if binding is None or not binding.is_parameter or binding.scope_function is call.function:
            return False
        return decorator in binding.scope_function.around()

    def _returns(self, wrapper: Function, calls: list[Call]) -> bool:
        """Whether a wrapper returns nothing but what the decorated function returns."""
        nodes = {call.node for call in calls}
        if isinstance(wrapper.node, cst.Lambda):
            return wrapper.node.body in nodes
        return bool(wrapper.returns) and all(self._is_result(node.value, nodes) for node in wrapper.returns)

    def _is_result(self, node: cst.BaseExpression | None, calls: set[cst.Call]) -> bool:
        if node in calls:
            return True
        binding = self._scopes.bindings.get(node) if isinstance(node, cst.Name) else None
        writes = binding.writes if binding is not None else []
        return bool(writes) and all(write.value in calls and not write.unpacked for write in writes)


def runs_without_gradients(function: Function | None) -> bool:
    """Whether a decorator of torch switches autograd off for all that a function computes."""
    switches = [name for name in function.decorators if name in words.GRAD_SWITCHES] if function is not None else []
    return bool(switches) and all(name in words.GRAD_DISABLING for name in switches)


def _is_command(function: Function) -> bool:
    """Whether the command line or a file fills in parameters: by click, hydra and gin, `@app.command()` of typer, or
    `@experiment.automain` of sacred."""
    decorators = function.node.decorators if isinstance(function.node, cst.FunctionDef) else ()
    written = (item.decorator.func if isinstance(item.decorator, cst.Call) else item.decorator for item in decorators)
    return any((name or "").startswith(_COMMANDS) for name in function.decorators) or any(
        isinstance(node, cst.Attribute) and node.attr.value in _OF_COMMANDS for node in written
    )


def _hands_on(call: Call) -> bool:
    """Whether a wrapper calls with its own parameters, in their order."""
    if isinstance(call.function.node, cst.Module):
        return False
    given = [(arg.star, arg.value.value if isinstance(arg.value, cst.Name) else None) for arg in call.node.args]
    params = call.function.node.params
    taken = [("", param.name.value) for param in (*params.posonly_params, *params.params)]
    if isinstance(params.star_arg, cst.Param):
        taken.append(("*", params.star_arg.name.value))
    taken += [("", param.name.value) for param in params.kwonly_params]
    if params.star_kwarg is not None:
        taken.append(("**", params.star_kwarg.name.value))
    return given == taken
