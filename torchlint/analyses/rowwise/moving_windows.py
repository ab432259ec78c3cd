"""`while` loops that copy windows of one length out of a tensor, whose ends move on by the same step every time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise.collecting import is_collected, is_stacked
from torchlint.analyses.rowwise.names import spelled
from torchlint.analyses.rowwise.nature import Nature, nature
from torchlint.analyses.tensor_writes import Written, mentions, written_at
from torchlint.semantics.tree import walk, without_subscripts

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.certainty import Certainty
    from torchlint.semantics.model import Model


def windowed_tensor(model: Model, certainty: Certainty, loop: cst.While) -> str | None:
    """The tensor of which the loop puts one window after the other, or what is computed of it, into rows of another or
    into a list that becomes one."""
    frames = _Frames(model, certainty, loop)
    for line in loop.body.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            source = frames.source(small)
            if source is not None:
                return spelled(source)
    return None


class _Frames:
    def __init__(self, model: Model, certainty: Certainty, loop: cst.While) -> None:
        self._model = model
        self._certainty = certainty
        self._loop = loop

    def source(self, small: cst.BaseSmallStatement) -> cst.BaseExpression | None:
        """x of `frames[count, :] = x[begin:end]` and of `frames.append(x[begin:end])`, where what is kept depends on
        nothing else that changes."""
        match small:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript() as target)], value=value):
                return self._windowed(value) if self._is_row(target) else None
            case cst.Expr(
                value=cst.Call(func=cst.Attribute(value=held, attr=cst.Name("append")), args=[cst.Arg(value)])
            ):
                source = self._windowed(value)
                return source if source is not None and self._is_stacked(held) else None
        return None

    def _is_stacked(self, held: cst.BaseExpression) -> bool:
        """Whether a list becomes a tensor of windows; what torch.cat joins may be batches, for want of memory."""
        return is_collected(self._model, self._loop, held) and is_stacked(self._model, held)

    def _is_row(self, target: cst.Subscript) -> bool:
        counter = target.slice[0].slice
        if not isinstance(counter, cst.Index) or not self._counts(counter.value):
            return False
        return self._certainty.is_tensor(without_subscripts(target), self._loop)

    def _windowed(self, value: cst.BaseExpression) -> cst.BaseExpression | None:
        window = next((node for node in walk(value) if isinstance(node, cst.Subscript)), None)
        part = window.slice[0].slice if window is not None else None
        if window is None or not isinstance(part, cst.Slice) or not self._is_window(part):
            return None
        source = without_subscripts(window)
        if self._is_written(source) or not self._certainty.is_tensor(source, self._loop) or self._is_changed(source):
            return None
        inside = set(walk(part))
        others = (node for node in walk(value) if isinstance(node, (cst.Name, cst.Call)) and node not in inside)
        return source if all(self._stays(node) for node in others) else None

    def _stays(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.Call):
            return nature(self._model.call(node)) in (Nature.PURE, Nature.HOST)
        return not self._is_written(node)

    def _is_window(self, part: cst.Slice) -> bool:
        """`begin:begin + n`, or `begin:end` of which the one is set to the other plus a length, or both move alike."""
        lower, upper = part.lower, part.upper
        if not isinstance(lower, cst.Name) or upper is None or part.step is not None or not self._steps(lower):
            return False
        if not isinstance(upper, cst.Name):
            return self._is_ahead(upper, lower)
        values = list(self._values(upper))
        is_set = bool(values) and all(value is not None and self._is_ahead(value, lower) for value in values)
        return is_set or (self._steps(upper) is not None and self._steps(upper) == self._steps(lower))

    def _is_ahead(self, value: cst.BaseExpression, of: cst.Name) -> bool:
        """`begin + length`"""
        match value:
            case cst.BinaryOperation(left=cst.Name(name), operator=cst.Add(), right=length):
                return name == of.value and self._is_fixed(length)
        return False

    def _counts(self, counter: cst.BaseExpression) -> bool:
        """Whether a number goes up by one, or starts anew."""
        if not isinstance(counter, cst.Name):
            return False
        values = [value for value in self._values(counter) if not isinstance(value, cst.Integer)]
        return bool(values) and all(self._step_of(value, counter) == "1" for value in values)

    def _steps(self, name: cst.Name) -> str | None:
        """By what a number goes on wherever the loop changes it."""
        steps = {self._step_of(value, name) for value in self._values(name)}
        return steps.pop() if len(steps) == 1 else None

    def _step_of(self, value: cst.BaseExpression | None, name: cst.Name) -> str | None:
        match value:
            case cst.BinaryOperation(left=cst.Name(left), operator=cst.Add(), right=step) if left == name.value:
                return spelled(step) if self._is_fixed(step) else None
        return None

    def _values(self, name: cst.Name) -> Iterator[cst.BaseExpression | None]:
        """What the loop assigns to a variable; `n += step` as `n + step`."""
        binding = self._model.binding(name)
        for write in binding.writes if binding is not None else ():
            if self._loop not in self._model.ancestors(write.target):
                continue
            match self._model.small_statement(write.target):
                case cst.AugAssign(operator=cst.AddAssign(), value=step):
                    yield cst.BinaryOperation(left=name, operator=cst.Add(), right=step)
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name())], value=value):
                    yield value
                case _:
                    yield None

    def _is_fixed(self, node: cst.BaseExpression) -> bool:
        parts = list(walk(node))
        return not any(
            isinstance(part, cst.Call) or (isinstance(part, cst.Name) and self._is_written(part)) for part in parts
        )

    def _is_written(self, node: cst.BaseExpression) -> bool:
        binding = self._model.binding(node)
        return binding is not None and any(self._loop in self._model.ancestors(w.target) for w in binding.writes)

    def _is_changed(self, tensor: cst.BaseExpression) -> bool:
        """Whether the loop writes to the tensor in place, so that a window may hold what an earlier round computed."""
        binding = self._model.binding(tensor)
        named = mentions(self._model, binding) if binding is not None else ()
        inside = (node for node in named if self._loop in self._model.ancestors(node))
        return any(written_at(self._model, node) is Written.SURELY for node in inside)
