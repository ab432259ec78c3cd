"""Objects that hold a clock: a method of theirs sets it, and another one says what has passed since."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.time.device_queue import is_wait
from torchlint.analyses.time.readings import is_reported, reading, reads_clock
from torchlint.semantics.dataflow import text
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model


def timer_calls(model: Model) -> Iterator[tuple[cst.Call, cst.Call]]:
    """`timer.tic()` and `timer.toc()`, of which the second waits for nothing and reports a time."""
    begun: dict[str, Call] = {}
    methods = _Methods(model)
    for call in model.calls:
        if call.receiver is None:
            continue
        sets_clock = methods.sets_clock(call)
        if not sets_clock and not begun:
            continue
        key = ", ".join(map(text, (call.receiver, *(arg.value for arg in call.arguments))))
        if sets_clock:
            begun[key] = call
        elif key in begun and begun[key].function is call.function and methods.reports(call):
            if not methods.tells(call) and _is_only_run(model, call.receiver, {begun[key].method, call.method}):
                continue
            yield begun[key].node, call.node


class _Methods:
    """What the methods that a file calls do with a clock, each looked at once."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._sets: dict[Function, bool] = {}
        self._differences: dict[Function, cst.BinaryOperation | None] = {}

    def sets_clock(self, call: Call) -> bool:
        """Whether a call puts a reading of the clock into its object."""
        home, method = self._entered(call)
        if home is None or method is None:
            return False
        if method not in self._sets:
            self._sets[method] = sets_clock(home, method)
        return self._sets[method]

    def reports(self, call: Call) -> bool:
        """Whether a call tells, or adds up, the time since its object got a reading."""
        home, method = self._entered(call)
        if home is None or method is None:
            return False
        if method not in self._differences:
            self._differences[method] = time_taken(home, method)
        difference = self._differences[method]
        if difference is None:
            return False
        return not isinstance(self._model.parent(call.node), cst.Expr) or is_kept(home, difference)

    def tells(self, call: Call) -> bool:
        """Whether a call gives the time to somebody, or prints it itself."""
        home, method = self._entered(call)
        if home is None or method is None or not isinstance(self._model.parent(call.node), cst.Expr):
            return True
        return any(isinstance(home.parent(inner.node), cst.Expr) for inner in method.calls)

    def _entered(self, call: Call) -> tuple[Model | None, Function | None]:
        """The method of a class that a call enters, in this file or in another, and the model of that file."""
        home, method = (
            (self._model, call.target) if call.target is not None else (self._model.elsewhere(call) or (None, None))
        )
        return (home, method) if method is not None and method.cls is not None else (None, None)


def _is_only_run(model: Model, timer: cst.BaseExpression, methods: AbstractSet[str | None]) -> bool:
    """Whether nothing asks an object for the time that it keeps: all that is done with a local variable, or with one
    entry of it, is to call these methods as statements, `timers["net"].tic()`."""
    name = timer.value if isinstance(timer, cst.Subscript) else timer
    binding = model.binding(name) if isinstance(name, cst.Name) else None
    if binding is None or binding.is_parameter or binding.is_global or binding.scope_function.is_module:
        return False
    own = text(timer)
    for read in binding.reads:
        above = model.parent(read)
        if isinstance(timer, cst.Subscript):
            if not isinstance(above, cst.Subscript) or above.value is not read:
                return False  # all entries may be asked, one after the other
            if text(above) != own:
                continue
            above = model.parent(above)
        site = model.parent(above) if isinstance(above, cst.Attribute) else None
        if not isinstance(site, cst.Call) or site.func is not above or not isinstance(model.parent(site), cst.Expr):
            return False
        if model.call(site).method not in methods:
            return False
    return True


def sets_clock(home: Model, method: Function) -> bool:
    """Whether a method puts a reading of the clock into its object."""
    readings = (home.parent(inner.node) for inner in method.calls if reads_clock(inner))
    return any(
        isinstance(kept, cst.Assign) and any(_is_held(home, target.target) for target in kept.targets)
        for kept in readings
    )


def time_taken(home: Model, method: Function) -> cst.BinaryOperation | None:
    """What a method subtracts from a reading of the clock and reports, unless it waits for the device first."""
    if any(map(is_wait, method.calls)):
        return None
    for node in walk(method.node):
        match node:
            case cst.BinaryOperation(left=left, operator=cst.Subtract(), right=right) if _is_held(home, right):
                if reading(home, left) is not None and is_reported(home, node):
                    return node
    return None


def _is_held(home: Model, node: cst.CSTNode) -> bool:
    """An attribute of the object, or an entry of one: `self.begun["forward"]`."""
    binding = home.binding(node.value if isinstance(node, cst.Subscript) else node)
    return binding is not None and binding.cls is not None


def is_kept(home: Model, difference: cst.BinaryOperation) -> bool:
    """Whether the object gets the time itself, or adds it to what it has."""
    statement = home.small_statement(difference)
    if isinstance(statement, cst.AugAssign):
        return _is_held(home, statement.target)
    return isinstance(statement, cst.Assign) and any(_is_held(home, target.target) for target in statement.targets)
