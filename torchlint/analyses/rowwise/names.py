"""The names of a loop: which it assigns, counts with, adds up in, and fills."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import libcst as cst

from torchlint.analyses.rowwise.nature import changes_elements
from torchlint.semantics.dataflow import text
from torchlint.semantics.tree import bound_names, prefixes, walk, without_subscripts

_METADATA = frozenset("shape size dtype device ndim dim new_zeros new_ones new_tensor type_as".split())
_WRITING = frozenset({cst.Assign, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr, cst.Call, cst.Attribute})
_COLLECTING = ("append", "extend")
MASKING = (cst.BitOr, cst.BitAnd)  # of tensors; sets know them, too
MASKING_ASSIGN = (cst.BitOrAssign, cst.BitAndAssign)
_ADDING = (cst.AddAssign, cst.SubtractAssign, *MASKING_ASSIGN)
_WORD = re.compile(r"\w+")


def spelled(node: cst.CSTNode) -> str:
    """The text of a piece of code."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        return f"{spelled(node.value)}.{node.attr.value}"
    return text(node).strip()


def at_several_places(fills: Iterable[tuple[str, ...]], moving: frozenset[str]) -> bool:
    """Whether a loop finds the elements that it fills in more than one way, as `x[i]` and `x[i + 1]`, or `x[a[i]]` and
    `x[b[i]]`: what one iteration reads of them, an earlier one may have filled. `moving`: names that differ from
    iteration to iteration."""
    found = [
        {(axis, part) for axis, part in enumerate(fill) if not moving.isdisjoint(_WORD.findall(part))} for fill in fills
    ]
    return len(found) > 1 and not set.intersection(*found)  # `x[i, 0]` and `x[i, 1]` are of one row


def asks_membership(node: cst.BaseExpression) -> bool:
    """`a in b`: one answer for the whole of `a`."""
    comparisons = node.comparisons if isinstance(node, cst.Comparison) else ()
    return any(isinstance(comparison.operator, (cst.In, cst.NotIn)) for comparison in comparisons)


def index_text(node: cst.Subscript) -> str:
    """`[i][j, :]` of `x[i][j, :]`."""
    return spelled(node).removeprefix(spelled(without_subscripts(node)))


def _parts(node: cst.Subscript) -> tuple[str, ...]:
    """`i`, `j` and `:` of `x[i][j, :]`."""
    return tuple(spelled(part.slice) for subscript in reversed(list(prefixes(node))) for part in subscript.slice)


def difference(left: cst.BaseExpression, right: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The terms of `left - right` that do not cancel out: `size` of `i + 1 + size` and `1 + i`."""
    nodes: dict[str, cst.BaseExpression] = {}
    count: Counter[str] = Counter()
    terms = [(left, 1), (right, -1)]
    while terms:
        node, sign = terms.pop()
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
            other = sign if isinstance(node.operator, cst.Add) else -sign
            terms += (node.left, sign), (node.right, other)
        else:
            name = spelled(node)
            nodes.setdefault(name, node)
            count[name] += sign
    return [nodes[name] for name in nodes if count[name]]


def is_block(part: cst.BaseSlice, index: str) -> bool:
    """`i * n : (i + 1) * n`: the places of the i-th of several blocks that are all as long."""
    match part:
        case cst.Slice(
            lower=cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right) as lower,
            upper=cst.BinaryOperation() as upper,
            step=None,
        ) if index in (spelled(left), spelled(right)):
            size = spelled(right if spelled(left) == index else left)
            ends = f"({index}+1)*{size}", f"{size}*({index}+1)", f"{spelled(lower)}+{size}"
            return spelled(upper).replace(" ", "") in {end.replace(" ", "") for end in ends}
    return False


def _names_of(root: cst.BaseExpression) -> list[str]:
    """`proto.data[i]` writes to `proto`, too."""
    names = [spelled(root)]
    if isinstance(root, cst.Attribute) and root.attr.value == "data":
        names.append(spelled(root.value))
    return names


def _marks(node: cst.Call) -> bool:
    """`mask.scatter_(1, places, True)`: whichever iteration writes to a place, it writes the same there."""
    if not isinstance(node.func, cst.Attribute) or node.func.attr.value not in ("scatter_", "index_fill_"):
        return False
    constants = (cst.Integer, cst.Float)
    written = node.args[2].value if len(node.args) == 3 else None
    return isinstance(written, constants) or (isinstance(written, cst.Name) and written.value in ("True", "False"))


class SumOnto(NamedTuple):
    """`total + a - b`, `mask | a`: where it starts, and what is added or taken off."""

    start: cst.Name
    terms: list[cst.BaseExpression]


def sum_onto(value: cst.BaseExpression, name: str) -> SumOnto | None:
    """A sum, or a mask, that starts with a variable."""
    terms: list[cst.BaseExpression] = []
    operators: tuple[type[cst.BaseBinaryOp], ...] = (cst.Add, cst.Subtract)
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, MASKING):
        operators = (type(value.operator),)
    while isinstance(value, cst.BinaryOperation) and isinstance(value.operator, operators):
        terms.append(value.right)
        value = value.left
    return SumOnto(value, terms) if terms and isinstance(value, cst.Name) and value.value == name else None


@dataclass(frozen=True, slots=True)
class Names:
    """`fills`: the indices at which tensors and lists from outside are written, with the parts of each, by their names.
    `read_whole`: what is read in any other way than for its shape, to add to it, or at one of these indices. `grown`:
    what torch.cat makes longer, and nothing else reads."""

    written: frozenset[str]
    counters: frozenset[str]
    totals: frozenset[str]
    read_whole: frozenset[str]
    fills: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    grown: frozenset[str] = frozenset()

    @classmethod
    def none(cls) -> Names:
        """Of a piece of code that assigns nothing."""
        return cls(frozenset(), frozenset(), frozenset(), frozenset())

    @classmethod
    def of(cls, loop: cst.For) -> Names:
        return _Collector(loop).names()


class _Collector:
    def __init__(self, loop: cst.For) -> None:
        self._loop = loop
        self._nodes = list(walk(loop.body))
        self._assigned: Counter[str] = Counter(bound_names(loop.target))
        self._added: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        self._grown: set[str] = set()
        self._fills: dict[str, dict[str, tuple[str, ...]]] = {}
        self._excused: set[cst.CSTNode] = set()  # reads that are part of collecting
        self._reads: Counter[str] = Counter()

    def names(self) -> Names:
        for node in self._nodes:
            self._write(node)
        for node in self._nodes:
            self._read(node)
        unread = {name for name in self._added if self._added[name] == self._assigned[name] and not self._reads[name]}
        counters = {name for name in self._counted if self._counted[name] == self._assigned[name]}
        return Names(
            frozenset(self._assigned),
            frozenset(counters),
            frozenset(unread - counters),
            frozenset(name for name, count in self._reads.items() if count),
            self._fills,
            frozenset(name for name in self._grown if not self._reads[name]),
        )

    def _write(self, node: cst.CSTNode) -> None:
        if type(node) not in _WRITING:
            return
        if isinstance(node, cst.Assign):
            for target in node.targets:
                self._target(target.target)
            if len(node.targets) == 1:
                self._note_addition(node.targets[0].target, node.value, node)
        elif isinstance(node, cst.AnnAssign):
            self._target(node.target)
        elif isinstance(node, cst.AugAssign):
            self._target(node.target)
            if isinstance(node.target, cst.Name) and isinstance(node.operator, _ADDING):
                self._note_added(node.target.value, node.value, node)
                self._excused.add(node.target)
        elif isinstance(node, (cst.For, cst.NamedExpr)):
            self._assigned.update(bound_names(node.target))
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if node.func.attr.value in _COLLECTING or _marks(node):
                self._excuse(node.func.value)
            elif isinstance(node.func.value, cst.Subscript) and changes_elements(node.func.attr.value):
                self._target(node.func.value)
        elif isinstance(node, cst.Attribute) and node.attr.value in _METADATA:
            self._excuse(node.value)

    def _excuse(self, node: cst.CSTNode) -> None:
        self._excused.update(part for part in walk(node) if isinstance(part, (cst.Name, cst.Attribute)))

    def _target(self, target: cst.BaseExpression) -> None:
        self._assigned.update(bound_names(target))
        for part in walk(target) if isinstance(target, (cst.Tuple, cst.List)) else (target,):
            if isinstance(part, cst.Subscript):
                root = without_subscripts(part)
                for name in _names_of(root):
                    self._fills.setdefault(name, {})[index_text(part)] = _parts(part)
                self._excuse(root)
            elif isinstance(part, cst.Name):
                self._excused.add(part)

    def _note_addition(self, target: cst.BaseExpression, value: cst.BaseExpression, statement: cst.CSTNode) -> None:
        """`total = total + e`, `rows = torch.cat((rows, e))`."""
        match target, value:
            case cst.Name(name), cst.BinaryOperation() if (longer := sum_onto(value, name)) is not None:
                self._note_added(name, longer.terms[0] if len(longer.terms) == 1 else value, statement)
                self._excused.add(longer.start)
            case cst.Name(name), cst.Call(func=cst.Attribute(attr=cst.Name("cat" | "concat")), args=[first, *_]):
                parts = first.value.elements if isinstance(first.value, (cst.Tuple, cst.List)) else ()
                if parts and isinstance(parts[0].value, cst.Name) and parts[0].value.value == name:
                    self._grown.add(name)
                    self._excused.add(parts[0].value)

    def _note_added(self, name: str, value: cst.BaseExpression, statement: cst.CSTNode) -> None:
        self._added[name] += 1
        block = self._loop.body.body
        if isinstance(value, cst.Integer) and any(
            isinstance(line, cst.SimpleStatementLine) and statement in line.body for line in block
        ):
            self._counted[name] += 1

    def _read(self, node: cst.CSTNode) -> None:
        if node in self._excused:
            return
        if isinstance(node, cst.Name):
            self._reads[node.value] += 1
        elif isinstance(node, cst.Attribute):
            self._reads[spelled(node)] += 1
            self._excused.add(node.attr)  # `net.features` reads no `features`
        elif isinstance(node, cst.Arg) and node.keyword is not None:
            self._excused.add(node.keyword)
        elif isinstance(node, cst.Subscript):
            root = without_subscripts(node)
            name = spelled(root)
            if any(index_text(part) in self._fills.get(name, ()) for part in prefixes(node)):
                self._excuse(root)
