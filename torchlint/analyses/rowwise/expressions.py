"""What an expression in the body of a loop depends on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise import headers
from torchlint.analyses.rowwise.collecting import JOINING, is_host_value
from torchlint.analyses.rowwise.extracts import REDUCTIONS, alone, picked, placed, reduced
from torchlint.analyses.rowwise.indices import (
    has_bounds,
    has_key,
    index_of,
    is_along_cut,
    is_number,
    left_out,
    slices_of,
)
from torchlint.analyses.rowwise.names import (
    Names,
    asks_membership,
    at_several_places,
    difference,
    index_text,
    is_block,
    spelled,
)
from torchlint.analyses.rowwise.nature import (
    Nature,
    changes_elements,
    draws_numbers,
    fills_with_draws,
    is_comparing,
    is_factory,
    is_metadata,
    nature,
    of_method,
)
from torchlint.analyses.rowwise.places import takes_several
from torchlint.analyses.rowwise.single_rows import adds_batch, has_literal_sizes, makes_batch, repeats_batch
from torchlint.analyses.rowwise.state import (
    NOTHING,
    Depends,
    Fault,
    Kept,
    Seen,
    Sink,
    Step,
    Trace,
    are_pairs,
    matched,
    together,
)
from torchlint.semantics.tree import children, expressions_below, integer, prefixes, without_subscripts
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import is_boolean, is_tensor_method

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.certainty import Certainty
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

_ATTRIBUTES = ("shape", "dtype", "device", "ndim", "is_cuda", "requires_grad", "layout")
_OPERATORS = {cst.MatrixMultiply: "@", cst.Subtract: "arithmetic -"}
_SCALING = ("arithmetic", "mul", "add", "div")
_SEVERAL = (Kind.TENSOR, Kind.BATCH, Kind.ARRAY, Kind.LIST)
_SELECTING = (cst.Comparison, cst.BooleanOperation)


class Expressions:
    """`local`: what the names have that this iteration has assigned. `guarded`: not every iteration comes here.
    `draws_at_once`: random numbers are taken for drawn before the loop."""

    def __init__(self, model: Model, certainty: Certainty, place: cst.CSTNode, names: Names, trace: Trace) -> None:
        self.draws_at_once = False
        self.model = model
        self.trace = trace
        self.local: dict[str, Seen] = {}
        self.own_lists: set[str] = set()
        self.handed_over: set[str] = set()  # tensors whose rows get what an earlier iteration left
        self.guarded = False
        self.counter = NOTHING
        self.certainty = certainty
        self._place = place
        self._names = names
        self._silent = False

    # what is known of expressions from outside the loop

    def is_inner(self, loop: cst.CSTNode) -> bool:
        """Whether a loop is another one than that whose iterations are read."""
        return loop is not self._place

    def is_tensor(self, node: cst.BaseExpression) -> bool:
        return self.certainty.is_tensor(node, self._place)

    def believed_tensor(self, node: cst.BaseExpression) -> bool:
        return self.model.value(node).kind is Kind.TENSOR

    def name_of(self, node: cst.BaseExpression) -> str:
        return " ".join(spelled(node).split())

    def assigned_call(self, name: cst.Name) -> cst.Call | None:
        """The call whose result a name from outside the loop holds."""
        binding = self.model.binding(name)
        if binding is None or len(binding.writes) != 1 or binding.writes[0].unpacked:
            return None
        value = binding.writes[0].value
        return value if isinstance(value, cst.Call) else None

    # expressions

    def quiet(self, node: cst.BaseExpression) -> Seen:
        """The same without noting any operation."""
        before, self._silent = self._silent, True
        seen = self.of(node)
        self._silent = before
        return seen

    def of(self, node: cst.BaseExpression, *, statement: bool = False) -> Seen:
        match node:
            case cst.Name():
                return self._name(node)
            case cst.Subscript():
                return self._subscript(node)
            case cst.Attribute():
                return self._attribute(node)
            case cst.Call():
                return self._call(node, statement=statement)
            case cst.BinaryOperation():
                return self._binary(node)
            case cst.Comparison() | cst.UnaryOperation() | cst.BooleanOperation():
                return self._operator(node)
            case cst.IfExp():
                return self._conditional(node)
            case cst.ListComp() | cst.GeneratorExp():
                return self.comprehension(node)
            case cst.Lambda() | cst.Await() | cst.Yield() | cst.DictComp() | cst.SetComp() | cst.NamedExpr():
                return Seen(Depends.OPAQUE) if self._varies(node) else NOTHING
        return together(*(self.of(part) for part in expressions_below(node)))

    def _varies(self, node: cst.CSTNode) -> bool:
        parts = [node]
        while parts:
            part = parts.pop()
            if isinstance(part, cst.Name) and self._name(part).varies:
                return True
            parts.extend(children(part))
        return False

    def _name(self, node: cst.Name) -> Seen:
        name = node.value
        if name in self.local:
            return self.local[name]
        if name in self._names.counters:
            return self.counter
        if name in self._names.fills and name in self._names.read_whole:
            return self._carried(name)
        if name in self._names.written:
            return self._carried(name)
        return NOTHING

    def _carried(self, name: str) -> Seen:
        self.trace.fault(Fault.CARRIED, f"`{name}` is carried from one iteration to the next")
        return Seen(Depends.CARRIED)

    def _attribute(self, node: cst.Attribute) -> Seen:
        if node.attr.value in _ATTRIBUTES:
            return self._shape_of(node.value)
        name = spelled(node) if isinstance(node.value, cst.Name) else ""
        if name in self._names.fills and name in self._names.read_whole:
            return self._carried(name)
        return self.of(node.value)

    def _shape_of(self, node: cst.BaseExpression) -> Seen:
        """Rows of a tensor all have the same shape."""
        if spelled(without_subscripts(node)) in self._names.fills:
            return NOTHING
        seen = self.quiet(node)
        return NOTHING if seen.depends <= Depends.ROW or seen.maybe else replace(reduced(seen), size=True)

    # subscripts

    def index(self, node: cst.Subscript) -> Seen:
        """What the index of a subscript depends on, of nested ones all of them."""
        parts = [(part.slice, len(subscript.slice) > 1) for subscript in prefixes(node) for part in subscript.slice]
        of_row = len(parts) > 1 or self.quiet(without_subscripts(node)).varies
        return together(*(self._slice(part, several, of_row) for part, several in parts))

    def _slice(self, part: cst.BaseSlice, several: bool, of_row: bool) -> Seen:
        """`several`: it is one of several indices. `of_row`: what is cut differs from iteration to iteration."""
        if isinstance(part, cst.Index):
            seen = self.of(part.value)
            if seen.depends is Depends.INDEX and takes_several(self.model, part.value):
                return seen.at_least(Depends.FOREIGN)
            if seen.maybe and is_number(part.value, several):
                seen = replace(seen, depends=Depends.ROW, maybe=False)
            return picked(seen) if seen.varies and self._is_mask(part.value, seen) else seen
        assert isinstance(part, cst.Slice)
        ends = [end for end in (part.lower, part.upper, part.step) if end is not None]
        seen = together(*(self.of(end) for end in ends))
        if not seen.varies:
            return seen
        if self._is_window(part):
            self.trace.blocks |= any(
                is_block(part, name) for name, of in self.local.items() if of.depends is Depends.INDEX
            )
            if seen.is_row and part.lower is not None:
                self._step(part.lower, ".narrow", [seen])
            return seen
        is_length = (len(ends) == 1 or integer(part.lower) == 0) and (
            seen.is_row or (of_row and seen.depends is Depends.FOREIGN)
        )
        return replace(seen, depends=Depends.RAGGED, masked=True) if is_length else picked(seen)

    def _is_mask(self, node: cst.BaseExpression, seen: Seen) -> bool:
        return seen.mask or isinstance(node, _SELECTING) or self.model.value(node).dtype == "bool"

    def _is_window(self, part: cst.Slice) -> bool:
        """`x[i : i + 3]`, `x[start[i] : end[i]]` with `end = start + 3`: as many elements in every iteration."""
        if part.upper is not None and integer(part.lower) == 0 and self.quiet(part.upper).varies:
            return False
        lower, upper = part.lower, self._defined(part.upper)
        starts: cst.BaseExpression | None = None
        if isinstance(lower, cst.Subscript) and isinstance(upper, cst.Subscript):
            if index_text(lower) != index_text(upper):
                return False
            lower = starts = without_subscripts(lower)
            upper = self._defined(without_subscripts(upper))
        if lower is None or upper is None or part.step is not None:
            return False
        rest = difference(upper, lower)
        if starts is not None and (starts in rest or any(self.model.value(term).is_(*_SEVERAL) for term in rest)):
            return False
        return not any(self.quiet(term).varies for term in rest)

    def _defined(self, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
        """What a name of this iteration was assigned, if that is one assignment."""
        binding = self.model.binding(node) if isinstance(node, cst.Name) else None
        if binding is None or len(binding.writes) != 1:
            return node
        return binding.writes[0].value or node

    def _subscript(self, node: cst.Subscript) -> Seen:
        root = without_subscripts(node)
        name = spelled(root)
        place = self.index(node)
        if has_key(node):
            return place.at_least(Depends.FOREIGN)
        if name in self._names.fills and name not in self.local:
            fills = self._names.fills[name]
            moved = at_several_places(fills.values(), self._names.written)
            if moved or not any(index_text(part) in fills for part in prefixes(node)):
                return self._carried(name)
            if not self.is_tensor(root):
                return place.at_least(Depends.FOREIGN)
            self._note_subject(root, place)
            return place.at_least(Depends.ROW)
        if name in self.handed_over and name not in self.local:
            return self._carried(name)
        base = self.of(root)
        if place.varies and not base.varies:
            root = self._same_in_all(node)
        if base.varies:
            return alone(together(base, place)) if adds_batch(node) else together(base, place)
        if not place.varies:
            return base
        if not self.is_tensor(root) and not (len(node.slice) > 1 and self.believed_tensor(root)):
            part = self._unproven(root, place, array=len(node.slice) > 1)
            gathered = len(node.slice) > 1 and not has_bounds(node)
            return replace(part, gathered=gathered, looked_up=place.is_row and is_host_value(index_of(node)))
        self._note_subject(root, place)
        self.trace.picks |= place.is_row and not self._silent and not slices_of(node)
        row = replace(place.at_least(Depends.ROW), gathered=True)
        return alone(row) if adds_batch(node) else row

    def _same_in_all(self, node: cst.Subscript) -> cst.BaseExpression:
        """`features[layer]` of `features[layer][i]`: what is the same in every iteration."""
        before, self._silent = self._silent, True
        parts = [prefix for prefix in prefixes(node) if self.index(prefix).varies]
        self._silent = before
        return parts[-1].value

    def _unproven(self, root: cst.BaseExpression, place: Seen, *, array: bool) -> Seen:
        """A part of something that is not known to be a tensor."""
        if place.depends <= Depends.ROW and headers.holds_rows(self, root):
            self._note_subject(root, place)
            return place.at_least(Depends.ROW)
        if place.depends is Depends.INDEX and headers.lists_numbers(self, root):
            return place
        kind = self.model.value(root).kind
        is_place = place.depends <= Depends.ROW or (array and place.maybe)
        maybe = is_place and kind in (Kind.UNKNOWN, Kind.ARRAY, Kind.BATCH)
        return replace(place.at_least(Depends.FOREIGN), maybe=maybe, array=array or kind is Kind.ARRAY)

    def _note_subject(self, root: cst.BaseExpression, place: Seen) -> None:
        if (place.depends <= Depends.ROW or place.masked) and not self._silent:
            self.trace.subjects.setdefault(self.name_of(root), root)

    def changed(self, target: cst.Subscript, place: Seen, given: Seen) -> Seen:
        """What becomes of `x[i]` where it is read, changed and written back: `x[i] *= w[i]`."""
        self._note_subject(without_subscripts(target), place)
        operands = [place.at_least(Depends.ROW), given]
        self._step(target, "arithmetic", operands)
        return _inputs("arithmetic", operands)

    # operators

    def _binary(self, node: cst.BinaryOperation) -> Seen:
        sides = [self.of(node.left), self.of(node.right)]
        name = _OPERATORS.get(type(node.operator), "arithmetic")
        seen = _inputs(name, sides)
        if isinstance(node.operator, (cst.BitAnd, cst.BitOr, cst.BitXor)):
            seen = replace(seen, mask=any(side.mask for side in sides))
        if seen.depends >= Depends.ROW:
            self._step(node, name, sides)
        return seen

    def _operator(self, node: cst.BaseExpression) -> Seen:
        parts = [self.of(part) for part in expressions_below(node)]
        seen = together(*parts)
        if asks_membership(node) or self._names_text(node):
            return seen.at_least(Depends.FOREIGN) if seen.varies else seen
        if isinstance(node, cst.Comparison):
            seen = matched(*parts)
        if seen.depends >= Depends.ROW:
            self._step(node, "arithmetic", [seen])
        return replace(seen, mask=isinstance(node, cst.Comparison) or seen.mask)

    def _names_text(self, node: cst.BaseExpression) -> bool:
        """`name == "dummy"`, which no row of a tensor is."""
        sides = [node.left, *(each.comparator for each in node.comparisons)] if isinstance(node, cst.Comparison) else []
        return any(self.model.value(side).kind is Kind.STRING for side in sides)

    def _conditional(self, node: cst.IfExp) -> Seen:
        return together(self.of(node.test), self.of(node.body), self.of(node.orelse))

    def comprehension(self, node: cst.ListComp | cst.GeneratorExp) -> Seen:
        before = dict(self.local)
        clause: cst.CompFor | None = node.for_in
        filtered = NOTHING
        while clause is not None:
            headers.enter(self, clause, clause.target, clause.iter)
            filtered = together(filtered, *(self._filter(test.test) for test in clause.ifs))
            if clause.asynchronous is not None:
                filtered = filtered.at_least(Depends.OPAQUE)
            clause = clause.inner_for_in
        seen = self.of(node.elt)
        self.local = before
        if not filtered.varies:
            return seen
        self.trace.tests.append(filtered)
        self.trace.chosen = seen
        return together(seen, filtered.at_least(Depends.RAGGED))

    def _filter(self, test: cst.BaseExpression) -> Seen:
        """Of a condition of a comprehension. `if j != i` leaves out one, as often as there is another."""
        seen = self.of(test)
        is_unequal = isinstance(test, cst.Comparison) and isinstance(test.comparisons[0].operator, cst.NotEqual)
        return NOTHING if is_unequal and seen.depends is Depends.INDEX and len(seen.axes) == 2 else seen

    # calls

    def _call(self, node: cst.Call, *, statement: bool) -> Seen:
        call = self.model.call(node)
        function = node.func
        receiver = call.receiver if isinstance(function, cst.Attribute) and not self._is_imported(call) else None
        if receiver is not None and is_metadata(call.method):
            return together(self._shape_of(receiver), *(self.of(argument.value) for argument in node.args))
        if call.callee == "builtins.len" and len(node.args) == 1:
            return self._shape_of(node.args[0].value)
        if receiver is None and self.of(function).varies:
            return self._refused(node, Nature.OPAQUE, Seen(Depends.OPAQUE))
        given = [self.of(argument.value) for argument in node.args]
        if receiver is not None and call.target is None and call.foreign is None:
            held = self.of(receiver)
            if held.varies or self.believed_tensor(receiver) or (not statement and self._is_pure_method(call)):
                return self._method(node, call, held, given)
        if receiver is not None and self.of(receiver).varies and not self._is_imported(call):
            return self._refused(node, Nature.OPAQUE, together(self.of(receiver), *given))
        return self._function(node, call, given)

    def _is_pure_method(self, call: Call) -> bool:
        """Of something unknown: a method that tensors have, and that changes nothing."""
        method = call.method or ""
        return call.receiver_value.kind is Kind.UNKNOWN and is_tensor_method(method) and not method.endswith("_")

    def _is_imported(self, call: Call) -> bool:
        return call.receiver_value.kind in (Kind.NAMESPACE, Kind.FUNCTION, Kind.CLASS)

    def _method(self, node: cst.Call, call: Call, held: Seen, given: list[Seen]) -> Seen:
        """Of a row, of anything else that differs from iteration to iteration, or of a tensor from outside."""
        method = call.method or ""
        if not is_tensor_method(method):
            return self._refused(node, Nature.OPAQUE, together(held, *given))
        kind = of_method(method)
        if self.draws_at_once and fills_with_draws(method) and isinstance(call.receiver, cst.Call) and not held.varies:
            return replace(self.counter.at_least(Depends.ROW), drawn=True)  # whatever the numbers are that it is given
        if kind in (Nature.OPAQUE, Nature.RANDOM):
            return self._refused(node, kind, together(held, *given))
        inputs = [held, *given]
        seen = self._shaped(node, method, inputs) if kind is Nature.SHAPED else _inputs(f".{method}", inputs)
        if kind is Nature.RAGGED and seen.varies:
            seen = picked(seen) if method == "masked_select" else placed(seen)
        if method == "item" and seen.places:
            seen = replace(seen, depends=Depends.ROW, places=False)  # it is one number, or an error
        if method in REDUCTIONS and (not node.args or is_along_cut(node)):
            seen = reduced(seen)
        if method.endswith("_") and not method.endswith("__"):
            self._in_place(call, held, seen)
        if makes_batch(node, method, 0):
            seen = alone(seen)
        elif repeats_batch(node):
            seen = replace(seen, alone=False)
        if seen.depends >= Depends.ROW:
            self._step(node, f".{method}", [held, *given])
        return replace(seen, mask=is_boolean(method))

    def _in_place(self, call: Call, held: Seen, seen: Seen) -> None:
        root = without_subscripts(call.receiver) if call.receiver is not None else None
        if held.is_row:
            name = next(iter(self.trace.subjects), "")
            self.trace.kept.append(Kept(Sink.FILL, name, call.node, seen, held))
        elif root is not None and not held.varies:
            if spelled(root) in self._names.read_whole:
                self.trace.fault(Fault.CARRIED, f"`{spelled(root)}` is changed in place")
            self.trace.kept.append(Kept(Sink.TOTAL, spelled(root), call.node, seen))

    def _function(self, node: cst.Call, call: Call, given: list[Seen]) -> Seen:
        kind = nature(call)
        name = call.callee or call.method or ""
        seen = _inputs(name, given)
        if self.draws_at_once and draws_numbers(name) and seen.depends <= Depends.ROW:
            return replace(together(seen, self.counter), drawn=True)
        if kind is Nature.NETWORK:
            self.trace.fault(Fault.NETWORK, f"`{self.name_of(node.func)}` may treat the rows of a batch as one")
            self._step(node, "forward", [seen])
            return seen
        if kind in (Nature.OPAQUE, Nature.RANDOM, Nature.FORWARD):
            if kind is Nature.FORWARD:
                self._step(node, "forward", [seen])
            return self._refused(node, kind, seen)
        if kind is Nature.SHAPED:
            seen = self._shaped(node, name, given)
            given = [*given, seen]
        elif kind is Nature.RAGGED and seen.varies:
            seen = picked(seen) if name == "torch.masked_select" else placed(seen)
        elif name.removeprefix("torch.") in REDUCTIONS and (len(node.args) == 1 or is_along_cut(node)):
            seen = reduced(seen)
        elif seen.depends is Depends.RAGGED and name in JOINING:
            seen = self._without_one(node) or seen
        if name == "torch.from_numpy" and seen.depends is Depends.FOREIGN:
            return seen
        seen = alone(seen) if makes_batch(node, name.rpartition(".")[2], 1) else seen
        if seen.depends >= Depends.ROW and kind is not Nature.HOST:
            self._step(node, name, given)
        return seen

    def _without_one(self, node: cst.Call) -> Seen | None:
        """Two pieces of a row between which one element is left out."""
        found = left_out(node)
        if found is None:
            return None
        row = together(self.quiet(found.row), *map(self.quiet, found.others))
        seen = together(row, self.quiet(found.place))
        is_row = row.is_row or self.is_tensor(without_subscripts(found.row))
        return seen.at_least(Depends.ROW) if row.varies and is_row and seen.depends <= Depends.ROW else None

    def _shaped(self, node: cst.Call, name: str, given: list[Seen]) -> Seen:
        """Of an operation whose arguments behind the first say what shape the result has."""
        seen = together(*given)
        sizes = given if is_factory(name) else given[1:]
        is_sized = name.rpartition(".")[2] in ("view", "reshape") and has_literal_sizes(node, self.local)
        if is_sized and seen.depends is Depends.FOREIGN and not headers.are_batches(seen):
            return alone(Seen(Depends.ROW, axes=seen.axes))
        return seen.at_least(Depends.RAGGED) if together(*sizes).varies else seen

    def _refused(self, node: cst.Call, kind: Nature, seen: Seen) -> Seen:
        text = f"`{self.name_of(node.func)}`"
        if kind is Nature.RANDOM:
            self.trace.fault(Fault.RANDOM, f"{text} draws random numbers")
        else:
            self.trace.fault(Fault.OPAQUE, f"{text} may do anything")
        return seen.at_least(Depends.OPAQUE)

    def _step(self, node: cst.BaseExpression, name: str, operands: list[Seen]) -> None:
        if not self._silent:
            step = Step(node, name, _inputs(name, operands), self.guarded, are_pairs(operands))
            self.trace.steps.append(step)


def _inputs(name: str, operands: list[Seen]) -> Seen:
    if changes_elements(name):
        return matched(*operands, scaled=True)
    if name != "arithmetic" and name not in _OPERATORS.values() and not is_comparing(name):
        return together(*operands)
    return matched(*operands, scaled=name.rpartition(".")[2] in _SCALING)
