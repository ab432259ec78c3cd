"""Timers around code: `with Timer() as timer:`, and decorators that time each call of a function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.time.device_queue import is_wait
from torchlint.analyses.time.readings import is_reported, reading
from torchlint.analyses.time.timers import is_kept, sets_clock, time_taken
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Class, Function
    from torchlint.semantics.model import Model


def timed_blocks(model: Model) -> Iterator[tuple[cst.BaseExpression, cst.BaseSuite]]:
    """What names the timer, and the block whose time it reports without a wait for the device."""
    for block in model.nodes_of(cst.With):
        assert isinstance(block, cst.With)
        for item in block.items:
            if isinstance(item.item, cst.Call) and _takes_time(model, item.item, item.asname):
                yield item.item, block.body
    for function in model.functions:
        if isinstance(function.node, cst.FunctionDef) and not function.is_generator:
            for decorator in function.node.decorators:
                if _times_calls(model, decorator.decorator):
                    yield decorator.decorator, function.node.body


def _takes_time(model: Model, timer: cst.Call, name: cst.AsName | None) -> bool:
    call = model.call(timer)
    own = (model, call.targets_class) if call.targets_class is not None else None
    behind = own if own is not None else model.class_behind(call.callee or "")
    if behind is not None:
        return _does_object(*behind, is_named=name is not None)
    entered = (model, call.target) if call.target is not None else model.elsewhere(call)
    return entered is not None and _does_generator(*entered)


def _does_object(home: Model, cls: Class, *, is_named: bool) -> bool:
    """Whether an object tells the time of its block, or keeps it for those who have a name for the object."""
    enter, leave = cls.method("__enter__"), cls.method("__exit__")
    if enter is None or leave is None or not sets_clock(home, enter):
        return False
    taken = time_taken(home, leave)
    return taken is not None and (is_named or not is_kept(home, taken))


def _does_generator(home: Model, function: Function) -> bool:
    """Whether a function under `contextlib.contextmanager` tells the time that its `yield` took."""
    is_manager = any((name or "").endswith("contextmanager") for name in function.decorators)
    return is_manager and len(function.yields) == 1 and _tells_time_of(home, function, function.yields[0])


def _times_calls(model: Model, decorator: cst.BaseExpression) -> bool:
    """Whether a function that a decorator of another file puts around one tells the time that a call of it took. In
    this file, the readings themselves are found."""
    behind = model.function_behind(model.value(decorator))
    if behind is None or behind[0].path == model.path:
        return False
    home, maker = behind
    around = [function for function in home.functions if maker in function.around() and function is not maker]
    return any(
        _is_decorated(home, call) and _tells_time_of(home, wrapper, call.node)
        for wrapper in around
        for call in wrapper.calls
    )


def _is_decorated(home: Model, call: Call) -> bool:
    """`fn(*args)`, of the parameter of a function around."""
    binding = home.binding(call.node.func)
    return binding is not None and binding.is_parameter and binding.scope_function is not call.function


def _tells_time_of(home: Model, function: Function, part: cst.CSTNode) -> bool:
    """Whether a function reports the time between a reading of the clock before a part of it and one behind that, and
    waits for nothing."""
    if any(map(is_wait, function.calls)):
        return False
    inside = home.span(part)
    for node in walk(function.node):
        match node:
            case cst.BinaryOperation(left=left, operator=cst.Subtract(), right=right) if is_reported(home, node):
                start, end = reading(home, right), reading(home, left)
                if start is not None and end is not None and home.span(start) < inside < home.span(end):
                    return True
    return False
