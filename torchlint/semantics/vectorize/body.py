"""The statements of a loop: temporaries, tensors filled at the loop's index, lists appended to, sums.

Any other statement, and any that one iteration could see of another, refuses the loop. What stays may run statement by
statement, each for all iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.vectorize import alignment, headers, indexing, stacking
from torchlint.semantics.vectorize.shapes import ATOM, SCALAR, SUM, Lifted, Rank, RefusedError

if TYPE_CHECKING:
    from torchlint.semantics.vectorize.lifting import Lifter

_AUGMENTED: dict[type[cst.BaseAugOp], str] = {
    cst.AddAssign: "+=",
    cst.SubtractAssign: "-=",
    cst.MultiplyAssign: "*=",
    cst.DivideAssign: "/=",
}
_ZEROS = ("0", "0.0", "0.")


@dataclass(frozen=True, slots=True)
class Line:
    """One statement of the batched code, the statement that it comes from, and the list of `rows` that it makes."""

    source: cst.CSTNode
    text: str
    rows: str | None = None


@dataclass(slots=True)
class Body:
    """What the statements of a loop become. `rows` are the lists from outside that the loop appends to."""

    lifter: Lifter
    lines: list[Line] = field(default_factory=list)
    rows: dict[str, Lifted] = field(default_factory=dict)
    receivers: dict[str, cst.Name] = field(default_factory=dict)
    exact: bool = True

    def run(self, statements: Sequence[cst.CSTNode]) -> None:
        for statement in statements:
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self._small(small, statement)
            elif isinstance(statement, cst.For):
                self._inner(statement)
            elif isinstance(statement, cst.BaseSmallStatement):
                self._small(statement, statement)
            else:
                raise RefusedError("the body of the loop branches or does more than compute")

    def _inner(self, loop: cst.For) -> None:
        if loop.orelse is not None or loop.asynchronous is not None:
            raise RefusedError("the loop has an else branch")
        with headers.entered(self.lifter, loop.target, loop.iter):
            self.run(loop.body.body)

    def _small(self, small: cst.CSTNode, statement: cst.CSTNode) -> None:
        if isinstance(small, cst.Pass) or (isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString)):
            return
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            self._assign(small.targets[0].target, small.value, statement)
        elif isinstance(small, cst.AugAssign):
            self._augment(small, statement)
        elif isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            self._append(small.value, statement)
        else:
            raise RefusedError("the loop does more than compute")

    def _emit(self, statement: cst.CSTNode, text: str, lifted: Lifted, rows: str | None = None) -> None:
        self.lines.append(Line(statement, text, rows))
        self.exact = self.exact and lifted.exact

    # names

    def _assign(self, target: cst.BaseExpression, value: cst.BaseExpression, statement: cst.CSTNode) -> None:
        if isinstance(target, cst.Subscript):
            self._fill(target, value, "=", statement)
            return
        if not isinstance(target, cst.Name):
            raise RefusedError("the loop assigns to more than names and elements")
        if isinstance(value, cst.List) and not value.elements:
            self.lifter.lists[target.value] = (len(self.lifter.context), None)
            return
        if isinstance(value, cst.BinaryOperation) and isinstance(value.left, cst.Name):
            carried = value.left.value == target.value and self._carries(target.value)
            if carried and isinstance(value.operator, (cst.Add, cst.Subtract)):
                sign = "+" if isinstance(value.operator, cst.Add) else "-"
                self._add(target, self.lifter.lift(value.right), f"= {target.value} {sign}", statement)
                return
        self._let(target, self.lifter.lift(value), statement)

    def _carries(self, name: str) -> bool:
        """Whether a name comes into the innermost loop from outside it."""
        depth = self.lifter.depths.get(name)
        return depth is None or depth < len(self.lifter.context)

    def _let(self, target: cst.Name, lifted: Lifted, statement: cst.CSTNode) -> None:
        lifter, name = self.lifter, target.value
        if lifted.pair or name in lifter.axes or name in lifter.sinks or name in lifter.lists:
            raise RefusedError(f"`{name}` is used for two things")
        if name in lifter.rows and lifter.depths[name] != len(lifter.context):
            raise RefusedError(f"an iteration reads `{name}` from the one before it")
        lifter.rows[name] = lifted.but(text=name, level=ATOM)
        lifter.depths[name] = len(lifter.context)
        lifter.starts[name] = lifted.text if lifted.number else ""
        self._emit(statement, f"{name} = {lifted.text}", lifted)

    def _augment(self, small: cst.AugAssign, statement: cst.CSTNode) -> None:
        sign = _AUGMENTED.get(type(small.operator))
        if sign is None:
            raise RefusedError("the loop updates something in place")
        if isinstance(small.target, cst.Subscript):
            self._fill(small.target, small.value, sign, statement)
        elif isinstance(small.target, cst.Name) and sign in ("+=", "-=") and self._carries(small.target.value):
            self._add(small.target, self.lifter.lift(small.value), sign, statement)
        else:
            raise RefusedError("the loop updates something in place")

    # sums

    def _add(self, target: cst.Name, addend: Lifted, sign: str, statement: cst.CSTNode) -> None:
        """A sum over the loops that the name comes into from outside."""
        lifter, name = self.lifter, target.value
        if not addend.tensor or addend.pair:
            raise RefusedError(f"what is added to `{name}` is not known to be a tensor")
        held = lifter.rows.get(name)
        depth = lifter.depths[name] if held is not None else 0
        if held is None:
            self._check_total(target, addend, sign)
        elif held.shares or (not held.number and sign[-1] == "="):
            raise RefusedError(f"`{name}` is changed in place")
        summed = self._summed(addend, depth)
        text = f"{name} {sign} {summed.within(SUM + (sign in ('-=', f'= {name} -')))}"
        if held is not None:
            self._add_to_row(target, held, addend, summed, sign, statement)
        else:
            lifter.totals.add(name)
            self._emit(statement, text, summed)

    def _summed(self, addend: Lifted, depth: int) -> Lifted:
        """The sum of an expression over the loops further in than `depth`."""
        if addend.axes != self.lifter.context:
            raise RefusedError("the same value is added in several iterations")
        places = list(range(depth, addend.count))
        spelled = str(places[0]) if len(places) == 1 else f"({', '.join(map(str, places))})"
        self.lifter.operations.add("reduction")
        return addend.but(
            text=f"{addend.atom}.sum({spelled})", level=ATOM, axes=addend.axes[:depth], dtype=addend.dtype.sum(),
            exact=False, shares=False, shape=None,
        )  # fmt: skip

    def _check_total(self, target: cst.Name, addend: Lifted, sign: str) -> None:
        """The name must hold a number or a tensor when the loop begins."""
        lifter = self.lifter
        facts = lifter.tensors.of(target, lifter.place)
        if facts.number:
            if facts.dtype.category != "float" and not addend.dtype.lasts:
                lifter.doubt("the dtype is not known, and a sum of integers has another than its terms")
        elif not facts.tensor:
            raise RefusedError(f"`{target.value}` is not known to be a number or a tensor")
        elif sign[0] != "=":
            lifter.added_in_place.append(target)

    def _add_to_row(
        self, target: cst.Name, held: Lifted, addend: Lifted, summed: Lifted, sign: str, statement: cst.CSTNode
    ) -> None:
        lifter, name = self.lifter, target.value
        if held.number and held.dtype.category != "float" and not addend.dtype.lasts:
            lifter.doubt("the dtype is not known, and a sum of integers has another than its terms")
        start = held.but(text=name)
        if lifter.starts.get(name) in _ZEROS and "-" not in sign and summed.dtype.inexact:
            result, text = summed, f"{name} = {summed.text}"
            self.lines = [line for line in self.lines if line.text != f"{name} = {lifter.starts[name]}"]
        else:
            together = alignment.broadcast(lifter, [start, summed])
            first, second = together.texts(SUM, SUM + 1)
            result = Lifted("", SUM, together.axes, together.rank, alignment.promoted(lifter, [start, summed]))
            text = f"{name} = {first} {'-' if '-' in sign else '+'} {second}"
        lifter.rows[name] = result.but(text=name, level=ATOM, exact=False, shares=False)
        self._emit(statement, text, summed)

    # elements

    def _fill(self, target: cst.Subscript, value: cst.BaseExpression, sign: str, statement: cst.CSTNode) -> None:
        """`out[i] = ...` and `out[i] += ...`."""
        lifter = self.lifter
        if not isinstance(target.value, cst.Name) or target.value.value not in lifter.sinks:
            raise RefusedError("the loop fills something that is not a tensor of its own")
        name = target.value.value
        lifted = self._element(value)
        if lifted.pair:
            raise RefusedError("a pair of values and indices is kept")
        base = lifter.sinks[name]
        reading = indexing.read(lifter, base, target.slice)
        inner = set(lifter.context) - set(reading.places)
        if inner and sign in ("+=", "-="):
            depth = len(reading.places)
            if reading.axes != lifter.context[:depth]:
                raise RefusedError(f"`{name}` is filled at an index of an inner loop alone")
            lifted = self._summed(lifted, depth)
        elif inner:
            raise RefusedError(f"an iteration overwrites what another wrote to `{name}`")
        lifter.accesses.append(indexing.Access(name, reading.dims, lifter.context, bool(inner), sign != "="))
        rank = base.rank.plus(reading.added - reading.dropped)
        text = self._placed(lifted, reading, lifter.tensors.settled(rank))
        self._emit(statement, f"{reading.text(name, sign)} {sign} {text}", lifted)

    def _element(self, value: cst.BaseExpression) -> Lifted:
        """What is assigned to an element. A number read back from a tensor is a tensor without its graph."""
        function = value.func if isinstance(value, cst.Call) and not value.args else None
        if not isinstance(function, cst.Attribute) or function.attr.value != "item" or not self.lifter.varies(value):
            return self.lifter.lift(value)
        read = self.lifter.tensor(function.value)
        if read.rank.known != 0:
            self.lifter.doubt(f"whether `{read.text}` is one number for each row is not known")
        return read.but(text=f"{read.atom}.detach()", level=ATOM)

    def _placed(self, lifted: Lifted, reading: indexing.Reading, rank: Rank) -> str:
        """A value with its dimensions where the tensor it is assigned to has them."""
        lifter = self.lifter
        if lifted.number or (not lifted.axes and lifted.rank == SCALAR):
            return lifted.text
        if not lifted.rank.at_most(rank):
            lifter.doubt_rank(lifted)
        placed = alignment.aligned(lifter, lifted, reading.axes, rank)
        move = indexing.moved(reading.places, back=True)
        if move and lifted.axes != reading.axes:
            lifter.doubt("an operand is the same for several elements")
        return placed.atom + move if move else placed.text

    # lists

    def _append(self, call: cst.Call, statement: cst.CSTNode) -> None:
        lifter, function = self.lifter, call.func
        if not isinstance(function, cst.Attribute) or not isinstance(function.value, cst.Name):
            raise RefusedError(f"`{lifter.code(function)}` may do anything")
        name = function.value.value
        if function.attr.value != "append" or len(call.args) != 1 or call.args[0].keyword or call.args[0].star:
            raise RefusedError(f"`{lifter.code(function)}` may do anything")
        element = lifter.lift(call.args[0].value)
        if not element.tensor or element.pair:
            raise RefusedError(f"what is appended to `{name}` is not known to be a tensor")
        if element.axes != lifter.context:
            raise RefusedError(f"the same value is appended to `{name}` in several iterations")
        if name in lifter.lists:
            self._append_to_inner(name, element, statement)
            return
        if name in lifter.written or name in self.rows:
            raise RefusedError(f"`{name}` is used for two things")
        if element.shares and lifter.sinks:
            lifter.doubt(f"what is appended to `{name}` may change later")
        self.rows[name] = element
        self.receivers[name] = function.value
        self._emit(statement, f"{name} = {stacking.of_its_own(element).text}", element, rows=name)

    def _append_to_inner(self, name: str, element: Lifted, statement: cst.CSTNode) -> None:
        depth, before = self.lifter.lists[name]
        if before is not None or depth != len(self.lifter.context) - 1:
            raise RefusedError(f"`{name}` collects from more than one loop")
        self.lifter.lists[name] = (depth, element.but(text=name, level=ATOM))
        self._emit(statement, f"{name} = {element.text}", element)
