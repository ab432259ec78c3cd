"""The statements of a loop: temporaries, tensors filled at the loop's index, lists appended to, sums.

Any other statement, and any that one iteration could see of another, refuses the loop. What stays may run statement by
statement, each for all iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize import (
    alignment,
    branches,
    counting,
    filling,
    headers,
    indexing,
    layout,
    stacking,
    stored,
)
from torchlint.analyses.vectorize.shapes import (
    ATOM,
    SCALAR,
    SUM,
    DType,
    Lifted,
    Rank,
    RefusedError,
)
from torchlint.analyses.vectorize.sizes import shape_owner
from torchlint.semantics.tree import integer, walk
from torchlint.semantics.values import Place

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter

_AUGMENTED: dict[type[cst.BaseAugOp], str] = {
    cst.AddAssign: "+=",
    cst.SubtractAssign: "-=",
    cst.MultiplyAssign: "*=",
    cst.DivideAssign: "/=",
}
_IN_PLACE = {"+=": "add_", "-=": "sub_", "*=": "mul_", "/=": "div_"}
_NUMBERS = ("builtins.int", "builtins.float")
_ZEROS = ("0", "0.0", "0.")


@dataclass(frozen=True, slots=True)
class Line:
    """One statement of the batched code, the statement that it comes from, and the list of `rows` that it makes.

    `indented`: it is under the condition of the line before it.
    """

    source: cst.CSTNode
    text: str
    rows: str | None = None
    indented: bool = False


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
                    self.small(small, statement)
            elif isinstance(statement, cst.For):
                self._inner(statement)
            elif isinstance(statement, cst.If):
                branches.take(self, statement)
            elif isinstance(statement, cst.BaseSmallStatement):
                self.small(statement, statement)
            else:
                raise RefusedError("the body of the loop branches or does more than compute")

    def _inner(self, loop: cst.For) -> None:
        if loop.orelse is not None or loop.asynchronous is not None:
            raise RefusedError("the loop has an else branch")
        with headers.entered(self.lifter, loop.target, loop.iter):
            self.run(loop.body.body)

    def small(self, small: cst.CSTNode, statement: cst.CSTNode) -> None:
        if isinstance(small, cst.Pass) or (isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString)):
            return
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            self._assign(small.targets[0].target, small.value, statement)
        elif isinstance(small, cst.AnnAssign) and small.value is not None and isinstance(small.target, cst.Name):
            self._assign(small.target, small.value, statement)
        elif isinstance(small, cst.AugAssign):
            self._augment(small, statement)
        elif isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
            self._append(small.value, statement)
        else:
            raise RefusedError("the loop does more than compute")

    def emit(self, statement: cst.CSTNode, text: str, lifted: Lifted, rows: str | None = None) -> None:
        self.lines.append(Line(statement, text, rows))
        self.exact = self.exact and lifted.exact

    # names

    def _assign(self, target: cst.BaseExpression, value: cst.BaseExpression, statement: cst.CSTNode) -> None:
        if isinstance(target, cst.Subscript):
            self._fill(target, value, "=", statement)
            return
        if isinstance(target, cst.Tuple):
            self._unpack(target, value, statement)
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
                self._add(target, self.lifter.value(value.right), f"= {target.value} {sign}", statement)
                return
        self._let(target, self.lifter.value(value), statement)

    def _unpack(self, target: cst.Tuple, value: cst.BaseExpression, statement: cst.CSTNode) -> None:
        """`values, places = x[i].max(0)`, `h, w = x[i].shape`, `a, b = x[i], y[i]`."""
        names = [element.value for element in target.elements]
        plain = [name for name in names if isinstance(name, cst.Name)]
        if len(plain) < len(names):
            raise RefusedError("the loop assigns to more than names and elements")
        spelled = [name.value for name in plain]
        if isinstance(value, cst.Tuple):
            read = {part.value for part in walk(value) if isinstance(part, cst.Name)}
            if len(value.elements) != len(names) or read & set(spelled):
                raise RefusedError("the loop assigns to more than names and elements")
            for name, element in zip(plain, value.elements):
                self._let(name, self.lifter.value(element.value), statement)
            return
        owner = shape_owner(value)
        if owner is not None and self.lifter.varies(owner):
            row = self.lifter.of_rank(self.lifter.tensor(owner), len(names))
            for place, name in enumerate(plain):
                self._let(name, layout.size(self.lifter, row, place), statement)
            return
        several = self.lifter.value(value)
        if not several.pair or len(several.members) != len(names):
            raise RefusedError("the loop assigns to more than names and elements")
        before = len(self.lines)
        for name, member in zip(plain, several.members):
            binding = self.lifter.model.binding(name)
            is_read = binding is None or bool(binding.reads)
            self._let(name, self.lifter.part(several, member) if is_read else several.part(member), statement)
        del self.lines[before:]
        self.emit(statement, f"{', '.join(spelled)} = {several.text}", several)

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
        lifter.rows[name] = lifted if lifted.counts else lifted.but(text=name, level=ATOM)
        lifter.depths[name] = len(lifter.context)
        if lifted.counts:
            return
        lifter.starts[name] = lifted.text if lifted.number else ""
        self.emit(statement, f"{name} = {lifted.text}", lifted)

    def _augment(self, small: cst.AugAssign, statement: cst.CSTNode) -> None:
        sign = _AUGMENTED.get(type(small.operator))
        if sign is None:
            raise RefusedError("the loop updates something in place")
        if isinstance(small.target, cst.Subscript):
            self._fill(small.target, small.value, sign, statement)
        elif isinstance(small.target, cst.Name) and sign in ("+=", "-=") and self._reads_back(small.value):
            self._add_numbers(small.target, small.value, sign, statement)
        elif isinstance(small.target, cst.Name) and sign in ("+=", "-=") and self._carries(small.target.value):
            self._add(small.target, self.lifter.value(small.value), sign, statement)
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
        if held is not None and (held.shares or (not held.number and sign[-1] == "=")):
            raise RefusedError(f"`{name}` is changed in place")
        start = held.dtype if held is not None and held.number else self.start(target, sign) if held is None else None
        if start is not None and start.category != "float":
            addend = self._named_terms(addend, statement)
        summed = self._summed(addend, depth, to_number=start is not None and start.category != "float")
        if held is not None:
            self._add_to_row(target, held, summed, sign, statement)
        else:
            lifter.totals.add(name)
            self.emit(statement, f"{name} {sign} {summed.within(SUM + (sign in ('-=', f'= {name} -')))}", summed)

    def _reads_back(self, value: cst.BaseExpression) -> bool:
        """`x[i].item()`, `int(x[i])`, `float(x[i])`."""
        if not isinstance(value, cst.Call) or not self.lifter.varies(value):
            return False
        function = value.func
        is_item = isinstance(function, cst.Attribute) and function.attr.value == "item" and not value.args
        return is_item or (self.lifter.model.qualified(function) in _NUMBERS and len(value.args) == 1)

    def _add_numbers(self, target: cst.Name, value: cst.BaseExpression, sign: str, statement: cst.CSTNode) -> None:
        """A sum of numbers that are read back one by one. Each was read from a tensor of one element."""
        lifter, name = self.lifter, target.value
        assert isinstance(value, cst.Call)
        inner = value.args[0].value if value.args else None
        cast = lifter.code(value.func) if inner is not None else ""
        if inner is None:
            assert isinstance(value.func, cst.Attribute)
            inner = value.func.value
        read = lifter.certain(lifter.value(inner), inner)
        if name in lifter.rows or read.axes != lifter.context or self.start(target, sign) is None:
            raise RefusedError(f"`{name}` is not known to be a number")
        if lifter.model.qualified(value.func) == "builtins.int" and read.dtype.category not in ("int", "bool"):
            raise RefusedError(f"`{lifter.code(value)}` rounds each number")
        lifter.operations.add("reduction")
        lifter.totals.add(name)
        lifter.adds = True
        summed = f"{read.atom}.sum()"
        text = f"{cast}({summed})" if cast else f"{summed}.item()"
        self.emit(statement, f"{name} {sign} {text}", read.but(exact=False))

    def _named_terms(self, terms: Lifted, statement: cst.CSTNode) -> Lifted:
        """The terms of a sum under a name, where their dtype has to be asked for."""
        if terms.dtype.lasts or self.lifter.spelled_dtype(terms) is not None:
            return terms
        name = self.lifter.unused("terms")
        self.emit(statement, f"{name} = {terms.text}", terms)
        return terms.but(text=name, level=ATOM)

    def _summed(self, addend: Lifted, depth: int, *, to_number: bool = False) -> Lifted:
        """The sum of an expression over the loops further in than `depth`."""
        if addend.axes != self.lifter.context:
            raise RefusedError("the same value is added in several iterations")
        return stacking.summed(self.lifter, addend, list(range(depth, addend.count)), to_number=to_number)

    def start(self, target: cst.Name, sign: str) -> DType | None:
        """The dtype of the number that the name must hold when the loop begins; None for a tensor."""
        lifter = self.lifter
        facts = lifter.tensors.of(target, lifter.place)
        if facts.number:
            return facts.dtype
        if not facts.tensor:
            raise RefusedError(f"`{target.value}` is not known to be a number or a tensor")
        if sign[0] != "=":
            lifter.added_in_place.append(target)
        return None

    def _add_to_row(self, target: cst.Name, held: Lifted, summed: Lifted, sign: str, statement: cst.CSTNode) -> None:
        lifter, name = self.lifter, target.value
        start = held.but(text=name)
        if lifter.starts.get(name) in _ZEROS and "-" not in sign and summed.dtype.inexact:
            result, text = summed, f"{name} = {summed.text}"
            self.lines = [line for line in self.lines if line.text != f"{name} = {lifter.starts[name]}"]
        else:
            together = alignment.broadcast(lifter, [start, summed], in_front=True)
            first, second = together.texts(SUM, SUM + 1)
            result = Lifted("", SUM, together.axes, together.rank, alignment.promoted(lifter, [start, summed]))
            text = f"{name} = {first} {'-' if '-' in sign else '+'} {second}"
        lifter.rows[name] = result.but(text=name, level=ATOM, exact=False, shares=False)
        self.emit(statement, text, summed)

    # elements

    def _fill(self, target: cst.Subscript, value: cst.BaseExpression, sign: str, statement: cst.CSTNode) -> None:
        """`out[i] = ...` and `out[i] += ...`."""
        lifter = self.lifter
        whole, elements = stored.filled(target, lifter.indices)
        base = lifter.sink(whole)
        if base is None:
            raise RefusedError("the loop fills something that is not a tensor of its own")
        name = base.text
        lifted = self._element(value)
        if lifted.pair:
            raise RefusedError("a pair of values and indices is kept")
        if not lifted.axes and any(map(_takes_element, walk(value))):
            lifter.fails_for_none(f"`{lifter.code(value)}` may not be there")
        reading = indexing.read(lifter, base, elements)
        if _may_be_elsewhere(lifter, whole, elements):
            reading.bring(f"{name}.device")
        lifted = lifted.but(exact=lifted.exact and reading.exact)
        if lifted.counts:
            listed = lifter.mask is not None or bool(reading.picked)
            lifted = counting.filled(lifter, lifted, name, sign, listed=listed)
        if lifted.axes and not lifted.tensor and not lifted.rank.known:
            raise RefusedError(f"`{lifter.code(value)}` may be a number of numpy, of which one by one is taken")
        if reading.scattered:
            self._scatter(name, reading, lifted, sign, statement)
            return
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
        rank = lifter.tensors.settled(rank)
        if self._broadcasts(lifted, reading, rank):
            self._fill_from_behind(name, lifted, reading, sign, statement)
            return
        text = self._placed(lifted, reading, rank, sign)
        if (lifter.mask is not None or reading.picked) and not lifted.number:
            text = self._cast(name, lifted.but(text=text, level=min(lifted.level, SUM)))
        self.emit(statement, f"{self._filled(name, reading, sign)} {sign} {text}", lifted)

    def _broadcasts(self, lifted: Lifted, reading: indexing.Reading, rank: Rank) -> bool:
        """Whether a value may have fewer dimensions than what it is assigned to, and nobody knows how many."""
        if lifted.number or not lifted.axes or rank.known in (0, 1):
            return False
        if lifted.rank.at_most(rank) and alignment.difference(rank, lifted.rank) is not None:
            return False
        in_front = list(reading.places.values()) == list(range(reading.count)) and not reading.picked
        return in_front and lifted.axes == reading.axes == self.lifter.context

    def _fill_from_behind(
        self, name: str, lifted: Lifted, reading: indexing.Reading, sign: str, statement: cst.CSTNode
    ) -> None:
        """With the loops' axes behind, the other dimensions broadcast as they do in one iteration."""
        move, mask = alignment.to_back(reading.count), self.lifter.mask
        value = lifted if lifted.rank == SCALAR else lifted.but(text=lifted.atom + move, level=ATOM)
        text = value.text if mask is None else self._cast(name, value)
        filled = f"{reading.text(name)}{move}"
        if mask is None and sign in _IN_PLACE:
            self.emit(statement, f"{filled}.{_IN_PLACE[sign]}({text})", lifted)
            return
        chosen = "..." if mask is None else f"..., {mask}"
        self.emit(statement, f"{filled}[{chosen}] {sign} {text}", lifted)

    def _cast(self, name: str, value: Lifted) -> str:
        """A value in the dtype of the tensor that is filled, which an assignment to listed elements asks for."""
        known = value.dtype.token is not None and value.dtype == self.lifter.sinks[name].dtype
        return value.text if known else f"{value.atom}.to({name}.dtype)"

    def _filled(self, name: str, reading: indexing.Reading, sign: str) -> str:
        """The elements that are assigned to, as the target of an assignment."""
        mask = self.lifter.mask
        if mask is None:
            return reading.text(name, sign)
        if reading.picked or reading.places != {self.lifter.context[0]: 0}:
            raise RefusedError("the body of the loop branches")
        return f"{reading.text(name)}[{mask}]"

    def _scatter(self, name: str, reading: indexing.Reading, lifted: Lifted, sign: str, statement: cst.CSTNode) -> None:
        """`counts[label[i]] += ...`: what is added to the same element adds up."""
        lifter = self.lifter
        if sign == "=" and lifted.number and lifter.mask is None and reading.rest is None:
            lifter.accesses.append(indexing.Access(name, {}, lifter.context, summed=True))
            self.emit(statement, f"{reading.text(name)} = {lifted.text}", lifted.but(exact=reading.exact))
            return
        if sign not in ("+=", "-="):
            raise RefusedError(f"several iterations may write the same element of `{name}`")
        if lifter.mask is not None or set(lifter.context) != reading.scattered or reading.rest is not None:
            raise RefusedError(f"`{name}` is filled at places that are picked by value")
        rank = lifter.tensors.settled(lifter.sinks[name].rank.plus(-reading.dropped))
        if len(reading.entries) != reading.dropped:
            raise RefusedError(f"`{name}` is filled at places that are picked by value")
        lifter.accesses.append(indexing.Access(name, {}, lifter.context, summed=True, reads=True))
        if lifted.number:
            value = Lifted(f"{name}.new_tensor({lifted.text})", ATOM, (), SCALAR)
        elif lifter.guarded and rank.known is None and lifted.rank == SCALAR and lifted.count == 1:
            text = f"{lifted.atom}.view(-1, *[1] * ({name}.dim() - {reading.dropped}))"
            value = lifted.but(text=text, level=ATOM)
            value = value.but(text=self._cast(name, value), level=ATOM)
        else:
            if rank.known == 0:
                lifted = lifter.of_rank(lifted, 0)
            value = lifted.but(text=self._placed(lifted, reading, rank, sign), level=min(lifted.level, SUM))
            value = value.but(text=self._cast(name, value), level=ATOM)
        text = value.text if sign == "+=" else f"-{value.atom}"
        lifter.cautions.add("what is added to one element comes in another order")
        places = f"({', '.join(reading.entries)}{',' if len(reading.entries) == 1 else ''})"
        self.emit(statement, f"{name}.index_put_({places}, {text}, accumulate=True)", lifted.but(exact=False))

    def _element(self, value: cst.BaseExpression) -> Lifted:
        """What is assigned to an element. A number read back from a tensor is a tensor without its graph."""
        function = value.func if isinstance(value, cst.Call) and not value.args else None
        if not isinstance(function, cst.Attribute) or function.attr.value != "item" or not self.lifter.varies(value):
            return self.lifter.value(value)
        read = self.lifter.certain(self.lifter.value(function.value), function.value)
        if read.rank.known != 0:
            read = self._fitted(read, SCALAR)
        return read.but(text=f"{read.atom}.detach()", level=ATOM)

    def _placed(self, lifted: Lifted, reading: indexing.Reading, rank: Rank, sign: str) -> str:
        """A value with its dimensions where the tensor it is assigned to has them."""
        lifter = self.lifter
        is_in_front = reading.rest is None and list(reading.places.values()) == list(range(reading.count))
        is_in_front = is_in_front and lifter.mask is None and not reading.picked
        if lifted.number or (not lifted.axes and (lifted.rank == SCALAR or (is_in_front and sign == "="))):
            return lifted.text
        if not lifted.rank.at_most(rank):
            lifted = self._fitted(lifted, rank)
        if lifted.rank == SCALAR and lifted.axes and rank.known is not None:
            return alignment.spread(lifted, reading.places, reading.count + rank.known).text
        placed = alignment.aligned(lifter, lifted, reading.axes, rank)
        move = indexing.moved(reading.places, back=True)
        if move and lifted.axes != reading.axes:
            lifter.doubt("an operand is the same for several elements")
        if placed.count == 1 and placed.text == lifted.text and move:
            kept = placed.where_it_is(next(iter(reading.places.values())))
            if kept is not None:
                return kept
        front = indexing.MOVED.fullmatch(placed.text) if move and placed.level == ATOM else None
        if front is not None and move == f".movedim(0, {front['dim']})":
            return front["tensor"]
        return placed.atom + move if move else placed.text

    def _fitted(self, lifted: Lifted, rank: Rank) -> Lifted:
        """A value that fits what it is assigned to: it has as many dimensions, or more that have size 1."""
        if rank.known == 0 and lifted.axes:
            return lifted.but(text=f"{lifted.atom}.flatten({lifted.count - 1})", level=ATOM, rank=SCALAR, shape=None)
        if rank.known == 1 and lifted.axes:
            return layout.flat(lifted)
        self.lifter.doubt_rank(lifted)
        return lifted

    # lists

    def _append(self, call: cst.Call, statement: cst.CSTNode) -> None:
        lifter, function = self.lifter, call.func
        if isinstance(function, cst.Attribute) and isinstance(function.value, cst.Subscript):
            filling.add_at_places(self, call, function.value, statement)
            return
        if not isinstance(function, cst.Attribute) or not isinstance(function.value, cst.Name):
            raise RefusedError(f"`{lifter.code(function)}` may do anything")
        name = function.value.value
        if function.attr.value != "append" or len(call.args) != 1 or call.args[0].keyword or call.args[0].star:
            raise RefusedError(f"`{lifter.code(function)}` may do anything")
        element = lifter.value(call.args[0].value)
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
        self.emit(statement, f"{name} = {stacking.of_its_own(element).text}", element, rows=name)

    def _append_to_inner(self, name: str, element: Lifted, statement: cst.CSTNode) -> None:
        depth, before = self.lifter.lists[name]
        if before is not None or depth != len(self.lifter.context) - 1:
            raise RefusedError(f"`{name}` collects from more than one loop")
        self.lifter.lists[name] = (depth, element.but(text=name, level=ATOM))
        self.emit(statement, f"{name} = {element.text}", element)


def _takes_element(node: cst.CSTNode) -> bool:
    """`x[0]`, which is not there where a loop over no rows does not ask for it."""
    index = node.slice if isinstance(node, cst.SubscriptElement) else None
    return isinstance(index, cst.Index) and integer(index.value) is not None


def _may_be_elsewhere(lifter: Lifter, filled: cst.BaseExpression, elements: Sequence[cst.SubscriptElement]) -> bool:
    """Whether what is filled is on the host, and the places may be elsewhere: one by one, they are read back. A file
    that names no device has all on the host."""
    source = lifter.model.source.text
    if "cuda" not in source and "device" not in source:
        return False
    places = (
        lifter.model.value(part).place
        for element in elements
        for part in walk(element)
        if isinstance(part, cst.Name) and part.value not in lifter.axes
    )
    return lifter.model.value(filled).place is Place.HOST and any(place is not Place.HOST for place in places)
