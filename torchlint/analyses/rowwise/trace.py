"""Reading the body of a loop: what every value depends on, which operations work on rows, what is kept of an iteration.

The body is read once, in the order of the text, as one iteration runs it. A name that is read before the iteration has
assigned it holds what an earlier one left there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise import headers
from torchlint.analyses.rowwise.expressions import Expressions
from torchlint.analyses.rowwise.names import MASKING, MASKING_ASSIGN, Names, is_block, spelled, sum_onto
from torchlint.analyses.rowwise.state import Depends, Fault, Kept, Path, Seen, Sink, Trace, together
from torchlint.semantics.dataflow import comes_round
from torchlint.semantics.tree import prefixes, walk, without_subscripts
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.certainty import Certainty
    from torchlint.semantics.model import Model

_HARMLESS = (cst.Pass, cst.Continue, cst.Import, cst.ImportFrom)
_MODES = re.compile(r"torch\.(no_grad|inference_mode|enable_grad|autocast|amp\.autocast|(cuda|cpu)\.amp\.autocast)")


def trace_of(model: Model, certainty: Certainty, loop: cst.For, *, draws_at_once: bool = False) -> Trace:
    """draws_at_once: as if the random numbers of all iterations were drawn before the loop."""
    reader = _Reader(model, certainty, loop, draws_at_once)
    reader.run()
    return reader.trace


def trace_of_comprehension(model: Model, certainty: Certainty, node: cst.ListComp | cst.GeneratorExp) -> Trace:
    """What a comprehension does, as the trace of the loop that it stands for."""
    expressions = Expressions(model, certainty, model.statement(node), Names.none(), Trace())
    expressions.trace.kept.append(Kept(Sink.APPEND, "", node, expressions.comprehension(node), value=node.elt))
    return expressions.trace


class _Reader:
    def __init__(self, model: Model, certainty: Certainty, loop: cst.For, draws_at_once: bool) -> None:
        self._model = model
        self._loop = loop
        self._names = Names.of(loop)
        self._path: Path = ()
        self._once = False  # only one of the iterations comes here
        self._views: dict[str, str] = {}  # of names for a row: the tensor that it is a row of
        self.trace = Trace()
        self._expressions = Expressions(model, certainty, loop, self._names, self.trace)
        self._expressions.draws_at_once = draws_at_once

    def run(self) -> None:
        headers.enter(self._expressions, self._loop, self._loop.target, self._loop.iter)
        self._expressions.counter = Seen(Depends.INDEX, axes=frozenset((self._loop,)))
        self._block(self._loop.body.body)

    # statements

    def _block(self, statements: Sequence[cst.CSTNode]) -> None:
        for statement in statements:
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self._small(small)
            elif isinstance(statement, cst.BaseSmallStatement):
                self._small(statement)
            else:
                self._compound(statement)

    def _compound(self, statement: cst.CSTNode) -> None:
        if isinstance(statement, cst.If):
            self._branch(statement)
        elif isinstance(statement, cst.For) and statement.orelse is None:
            headers.enter(self._expressions, statement, statement.target, statement.iter)
            self._hand_on(statement)
            self._block(statement.body.body)
        elif isinstance(statement, cst.With) and self._is_mode(statement):
            self._block(statement.body.body)
        else:
            self.trace.fault(Fault.STATE, "it holds more than assignments and branches")

    def _hand_on(self, inner: cst.For) -> None:
        """Notes what an inner loop goes on with: `h` of `for t in range(n): h = f(h)`."""
        loop, local = self._model.loop_of(inner), self._expressions.local
        named = {node.value: node for node in walk(inner.body) if isinstance(node, cst.Name) and node.value in local}
        for name, node in named.items():
            binding = self._model.binding(node)
            if loop is not None and binding is not None and comes_round(self._model, binding, loop):
                local[name] = replace(local[name], handed_on=True)

    def _is_mode(self, statement: cst.With) -> bool:
        """`with torch.no_grad():`, which changes nothing about what depends on what."""
        calls = [item.item.func if isinstance(item.item, cst.Call) else None for item in statement.items]
        return all(_MODES.fullmatch(self._model.qualified(call) or "") for call in calls)

    def _branch(self, statement: cst.If) -> None:
        test = self._expressions.of(statement.test)
        if test.varies:
            self.trace.tests.append(test)
        path = self._path
        self._path = path if test.varies else (*path, (statement, True))
        guarded = self._expressions.guarded
        self._expressions.guarded = guarded or test.varies
        before = dict(self._expressions.local)
        once, self._once = self._once, self._once or self._is_of_one(statement.test)
        self._block(statement.body.body)
        self._once = once
        after = self._expressions.local
        self._expressions.local = before
        self._path = path if test.varies else (*path, (statement, False))
        if isinstance(statement.orelse, cst.If):
            self._branch(statement.orelse)
        elif statement.orelse is not None:
            self._block(statement.orelse.body.body)
        self._path = path
        ends = bool(statement.body.body) and _leaves(statement.body)
        self._expressions.local = (
            self._expressions.local if ends else self._joined(after, self._expressions.local, test)
        )
        self._expressions.guarded = guarded or (ends and test.depends >= Depends.ROW)

    def _is_of_one(self, test: cst.BaseExpression) -> bool:
        """`if i == 0`, of the number of the iteration."""
        match test:
            case cst.Comparison(
                left=cst.Name() as left, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=other)]
            ):
                counted = self._expressions.quiet(left)
                is_number = counted.depends is Depends.INDEX and counted.axes == {self._loop}
                return is_number and not self._expressions.quiet(other).varies
        return False

    def _joined(self, left: dict[str, Seen], right: dict[str, Seen], test: Seen) -> dict[str, Seen]:
        """Names that only one branch has assigned hold, after the other, what an earlier iteration left."""
        found = {}
        for name in {**left, **right}:
            if name in left and name in right:
                same = left[name] == right[name]
                found[name] = left[name] if same else together(left[name], right[name], test)
        return found

    def _small(self, small: cst.CSTNode) -> None:
        match small:
            case cst.Assign(targets=targets, value=value):
                self._assign([target.target for target in targets], value)
            case cst.AnnAssign(target=target, value=value) if value is not None:
                self._assign([target], value)
            case cst.AugAssign():
                self._augment(small)
            case cst.Expr(value=cst.Call() as call):
                self._call(call)
            case cst.Expr(value=cst.BaseString()):
                return
            case cst.Assert(test=test):
                self._expressions.quiet(test)
            case cst.Break() | cst.Return() | cst.Raise():
                self.trace.fault(Fault.STOPS)
            case _ if isinstance(small, _HARMLESS):
                return
            case _:
                self.trace.fault(Fault.STATE, "it holds more than assignments and branches")

    def _assign(self, targets: Sequence[cst.BaseExpression], value: cst.BaseExpression) -> None:
        if len(targets) == 1 and isinstance(targets[0], cst.Name) and targets[0].value in self._names.totals:
            longer = sum_onto(value, targets[0].value)
            assert longer is not None
            if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, MASKING):
                self._note_mask(targets[0])
            seen = together(*(self._expressions.of(term) for term in longer.terms))
            self._total(targets[0], seen, longer.terms[0] if len(longer.terms) == 1 else None)
            return
        if len(targets) == 1 and isinstance(targets[0], cst.Name) and targets[0].value in self._names.counters:
            return
        if len(targets) == 1 and isinstance(targets[0], cst.Name) and targets[0].value in self._names.grown:
            self._grow(value)
            return
        seen = self._expressions.of(value)
        for target in targets:
            self._bind(target, value, seen)

    def _grow(self, value: cst.BaseExpression) -> None:
        """`rows = torch.cat((rows, e))`, or what `rows` starts with."""
        self.trace.fault(Fault.GROWS)
        first = value.args[0].value if isinstance(value, cst.Call) and value.args else None
        if not isinstance(first, (cst.Tuple, cst.List)):
            self._expressions.of(value)
            return
        for element in first.elements[1:]:
            self._expressions.of(element.value)

    def _bind(self, target: cst.BaseExpression, value: cst.BaseExpression, seen: Seen) -> None:
        if isinstance(target, cst.Name):
            self._expressions.local[target.value] = seen
            self._note_view(target.value, value, seen)
            if isinstance(value, (cst.List, cst.Dict)) and not value.elements:
                self._expressions.own_lists.add(target.value)
        elif isinstance(target, (cst.Tuple, cst.List)):
            values = value.elements if isinstance(value, (cst.Tuple, cst.List)) else ()
            apart = len(values) == len(target.elements)
            for index, element in enumerate(target.elements):
                part = values[index].value if apart else value
                self._bind(element.value, part, self._expressions.quiet(part) if apart else seen)
        elif isinstance(target, cst.Subscript):
            self._fill(target, value, seen, adds=False)
        else:
            self.trace.fault(Fault.STATE, f"`{spelled(target)}` is assigned")

    def _note_view(self, name: str, value: cst.BaseExpression, seen: Seen) -> None:
        self._views.pop(name, None)
        if seen.varies and isinstance(value, cst.Subscript):
            self._views[name] = spelled(without_subscripts(value))

    def _augment(self, small: cst.AugAssign) -> None:
        if isinstance(small.operator, cst.AddAssign) and isinstance(small.value, (cst.List, cst.ListComp)):
            self._extend(small.target, small.value)
            return
        seen = self._expressions.of(small.value)
        target = small.target
        if isinstance(target, cst.Subscript):
            self._fill(target, small.value, seen, adds=True)
        elif isinstance(target, cst.Name) and target.value in self._names.counters:
            return
        elif isinstance(target, cst.Name) and target.value in self._expressions.local:
            self._expressions.local[target.value] = together(self._expressions.local[target.value], seen)
        elif isinstance(target, cst.Name) and target.value in self._names.totals:
            if isinstance(small.operator, MASKING_ASSIGN):
                self._note_mask(target)
            self._total(target, seen, small.value)
        elif isinstance(target, cst.Name):
            self.trace.fault(Fault.CARRIED, f"`{target.value}` is carried from one iteration to the next")
        else:
            self.trace.fault(Fault.STATE, f"`{spelled(target)}` is changed")

    def _total(self, target: cst.Name, seen: Seen, value: cst.BaseExpression | None) -> None:
        self.trace.kept.append(Kept(Sink.TOTAL, target.value, target, seen, value=value, path=self._path))

    def _fill(self, target: cst.Subscript, value: cst.BaseExpression, seen: Seen, *, adds: bool) -> None:
        """`out[i] = ...`: of a tensor from outside the loop, or of one that this iteration made."""
        place = self._block_of(target) if seen.is_row and not adds else None
        place = place or self._expressions.index(target)
        if self._once and not place.varies:
            place = self._expressions.counter
        root = without_subscripts(target)
        if isinstance(root, cst.Name) and root.value in self._expressions.local:
            self.trace.changes_rows |= self._expressions.local[root.value].gathered
            self._expressions.local[root.value] = together(self._expressions.local[root.value], seen, place)
            self._note_handing_over(self._views.get(root.value), seen)
            return
        name = spelled(root)
        self._note_handing_over(name, seen)
        if place.depends is Depends.NOTHING or self._loop not in place.axes:
            kind = Fault.CARRIED
            if adds and self._model.value(root).kind is Kind.TENSOR and name not in self._names.read_whole:
                self.trace.kept.append(Kept(Sink.TOTAL, name, root, seen, path=self._path))
            else:
                self.trace.fault(kind, f"several iterations write the same element of `{name}`")
            return
        if place.depends is Depends.INDEX and self._goes_round(target):
            self.trace.fault(Fault.CARRIED, f"several iterations write the same element of `{name}`")
            return
        if place.depends >= Depends.ROW and self._is_at_numbers(target) and self._reads_elements_of(name):
            self.trace.fault(Fault.CARRIED, f"an iteration may read what another wrote into `{name}`")
        is_tensor = self._expressions.is_tensor(root)
        if adds and is_tensor:
            seen = self._expressions.changed(target, place, seen)
        sink = Sink.FILL if is_tensor else Sink.COUNT
        if sink is Sink.COUNT and (len(target.slice) > 1 or isinstance(target.value, cst.Subscript)):
            seen = together(seen, place)  # a table counts which values meet
        self.trace.kept.append(Kept(sink, name, root, seen, place, value, self._path, self._expressions.guarded))

    def _note_handing_over(self, tensor: str | None, seen: Seen) -> None:
        """`row = x[i]`, then `row[:, 3] = answers`: what is read of `x` after that needs the iteration before."""
        if tensor is not None and seen.depends is Depends.CARRIED:
            self._expressions.handed_over.add(tensor)

    def _goes_round(self, target: cst.Subscript) -> bool:
        """`out[i % n]`, which comes back to a place, unlike `out[i // n, i % n]` and `out[i, i % n]`."""
        slices = (part.slice for subscript in prefixes(target) for part in subscript.slice)
        varying = [
            part for part in slices if isinstance(part, cst.Index) and self._expressions.quiet(part.value).varies
        ]
        return bool(varying) and all(
            isinstance(part.value, cst.BinaryOperation) and isinstance(part.value.operator, cst.Modulo)
            for part in varying
        )

    def _is_at_numbers(self, target: cst.Subscript) -> bool:
        """`out[b, n]` with `b = int(batch[i])`: several rows may say the same place."""
        indices = (part.slice.value for part in target.slice if isinstance(part.slice, cst.Index))
        return any(isinstance(index, cst.Name) and index.value in self._expressions.local for index in indices)

    def _reads_elements_of(self, name: str) -> bool:
        """Whether the loop reads elements of what it fills."""
        return any(
            isinstance(node, cst.Subscript)
            and not isinstance(self._model.parent(node), (cst.AssignTarget, cst.AugAssign, cst.Subscript))
            and not self._is_added_to(node)
            and spelled(without_subscripts(node)) == name
            for node in walk(self._loop)
        )

    def _is_added_to(self, element: cst.Subscript) -> bool:
        """`counts[c] = counts[c] + 1`"""
        total = self._model.parent(element)
        if not isinstance(total, cst.BinaryOperation) or not isinstance(total.operator, (cst.Add, cst.Subtract)):
            return False
        put = self._model.parent(total)
        targets = put.targets if isinstance(put, cst.Assign) else ()
        return any(spelled(target.target) == spelled(element) for target in targets)

    def _block_of(self, target: cst.Subscript) -> Seen | None:
        """`out[i * n : (i + 1) * n] = x[i]`, which repeats each row."""
        counter = self._loop.target
        if isinstance(counter, cst.Name) and len(target.slice) == 1 and is_block(target.slice[0].slice, counter.value):
            return self._expressions.counter
        return None

    def _call(self, call: cst.Call) -> None:
        function = call.func
        if isinstance(function, cst.Attribute) and function.attr.value in ("append", "extend") and len(call.args) == 1:
            self._append(function.value, call.args[0].value)
            return
        self._expressions.of(call, statement=True)

    def _note_mask(self, target: cst.Name) -> None:
        """`mask |= x[i] > 0`, of a tensor and not of a set."""
        if not self._expressions.is_tensor(target):
            self.trace.fault(Fault.CARRIED, f"`{target.value}` is carried from one iteration to the next")

    def _extend(self, receiver: cst.BaseExpression, value: cst.List | cst.ListComp) -> None:
        """`rows += [x[i], -x[i]]`"""
        for element in (part.value for part in value.elements) if isinstance(value, cst.List) else (value,):
            self._append(receiver, element)

    def _append(self, receiver: cst.BaseExpression, element: cst.BaseExpression) -> None:
        if isinstance(receiver, cst.Subscript):
            self._expressions.index(receiver)
        seen = self._expressions.of(element)
        if isinstance(receiver, cst.Name) and receiver.value in self._expressions.local:
            local = self._expressions.local
            local[receiver.value] = together(local[receiver.value], seen)
            return
        name = spelled(receiver)
        if name in self._names.read_whole:
            self.trace.fault(Fault.CARRIED, f"`{name}` is read while it grows")
        if self._expressions.guarded:
            self.trace.fault(Fault.RAGGED, f"not every iteration appends to `{name}`")
        guarded = self._expressions.guarded
        kept = Kept(Sink.APPEND, name, receiver, seen, value=element, path=self._path, guarded=guarded)
        self.trace.kept.append(kept)


def _leaves(suite: cst.BaseSuite) -> bool:
    """Whether a block surely ends the iteration."""
    last = suite.body[-1]
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, (cst.Continue, cst.Break, cst.Return, cst.Raise))
