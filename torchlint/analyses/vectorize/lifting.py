"""Lifting: from an expression of one iteration to the expression of all iterations.

What cannot be a batched operation, or may do more than compute, is refused. What could be one, but needs a fact that
is not known (a rank, a dtype), is lifted with a doubt: such a loop is worth reporting and not safe to rewrite.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize import (
    alignment,
    batching,
    counting,
    indexing,
    layout,
    mapping,
    modules,
    products,
    stored,
)
from torchlint.analyses.vectorize.operation import Operation
from torchlint.analyses.vectorize.operators import BINARY, COMPARISONS, EXACT_OPERATORS, UNARIES, level_of
from torchlint.analyses.vectorize.purity import impurity
from torchlint.analyses.vectorize.shapes import (
    ATOM,
    BIT_OR,
    BOOL,
    COMPARISON,
    UNARY,
    Axis,
    Lifted,
    Missing,
    Rank,
    RefusedError,
)
from torchlint.analyses.vectorize.tensors import PASSING, Tensors
from torchlint.analyses.vectorize.vocabulary import ROUNDED_ALIKE_IF_REAL
from torchlint.edits import spelling
from torchlint.semantics import dataflow
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.facts import Facts
    from torchlint.semantics.model import Model

_NAMED = re.compile(r"[\w.]+")


class Lifter:
    """Lifts the expressions of one loop.

    `written` are the names that the loop assigns, `rows` those that already have a value in this iteration, `context`
    the loops around the statement at hand, outermost first.
    """

    def __init__(
        self, model: Model, tensors: Tensors, place: cst.CSTNode, written: frozenset[str], *, guarded: bool = False
    ) -> None:
        self.model = model
        self.tensors = tensors
        tensors.begin()
        self.place = place
        self.written = written
        self.axes: dict[str, Axis] = {}
        self.rows: dict[str, Lifted] = {}
        self.depths: dict[str, int] = {}  # of the statement that gave a name its value: how many loops are around it
        self.starts: dict[str, str] = {}  # numbers that names begin with
        self.lists: dict[str, tuple[int, Lifted | None]] = {}  # of the loop's own
        self.totals: set[str] = set()
        self.added_in_place: list[cst.Name] = []
        self.sinks: dict[str, Lifted] = {}
        self.sink_names: dict[str, cst.BaseExpression] = {}
        self.indices: frozenset[str] = frozenset()  # names that count in the loops
        self.loops: list[Axis] = []  # all of them, outermost first
        self.cautions: set[str] = set()  # what a rewrite may change
        self.accesses: list[indexing.Access] = []
        self.context: tuple[Axis, ...] = ()
        self.doubts: dict[str, Missing] = {}
        self.operations: set[str] = set()
        self.bases: Counter[str] = Counter()  # how often a tensor is read at the loop's index
        self.others: set[str] = set()  # what may be a tensor and is the same in every iteration
        self.spread = False  # an operand is the same in several iterations
        self.progress = False  # a progress bar is around what the loop runs over
        self.claims: set[str] = set()  # arrays that are taken for tensors, which their uses must prove
        self.scalars = False  # elements without dimensions are operands of the value at hand
        self.recast = False  # a part of the value at hand is cast to the dtype that it has in one iteration
        self.needs_rows = False  # a mapped expression fails for a batch of no rows
        self.reduced: cst.BaseExpression | None = None  # of this one, all elements become one
        self.in_statement = False  # what is lifted stays a part of its statement
        self.may_name = True  # what is lifted may give a name to a part of itself
        self.guarded = guarded  # what is not known is provided for, in more words
        self.mask: str | None = None  # the iterations in which the statement at hand runs
        self.some_chosen = False  # it must not run where there are none
        self.for_all_rows = False  # what is read is read for all rows, and the loop reads it for some
        self.failing: set[str] = set()  # why statements of branches must not
        self.adds = False  # something is summed up, which is zero over no rows
        self.dtypes: dict[str, str] = {}  # a tensor of each dtype that has no other name
        self.read: set[cst.Attribute] = set()  # attributes in what the loop does not change
        self.tensor_names: dict[str, None] = {}  # of tensors from outside
        self._introduced: set[str] = set()
        self._computations: dict[cst.Call, bool] = {}
        self._without_rule: set[tuple[cst.Call, str | None]] = set()
        self._results: dict[tuple[cst.BaseExpression, str | None], Lifted | None] = {}  # of what does not vary
        self._fresh = 0

    def code(self, node: cst.CSTNode) -> str:
        return dataflow.text(node).strip()

    def doubt(self, reason: str, missing: Missing = Missing.MORE) -> None:
        self.doubts.setdefault(reason, missing)

    def doubt_rank(self, *operands: Lifted) -> None:
        names = [f"`{operand.text}`" for operand in operands if _NAMED.fullmatch(operand.text)]
        of = " and of ".join(names) if names else "an operand"
        self.doubt(f"the rank of {of} is not known", Missing.RANK)

    def fails_for_none(self, reason: str) -> None:
        """What is lifted cannot run for a batch of no rows, or raises what the loop would not meet without rows."""
        if self.mask is None:
            self.needs_rows = True
        else:
            self.some_chosen = True
            self.failing.add(f"{reason}, and the condition may hold for no row")

    def unused(self, name: str) -> str:
        """A name that means nothing in the file."""
        while name in self._introduced or re.search(rf"\b{name}\b", self.model.source.text):
            name += "_"
        self._introduced.add(name)
        return name

    def spelled_dtype(self, terms: Lifted) -> str | None:
        """The dtype of a number plus one of these terms, in code; None where no name has the dtype of the terms."""
        result_type = spelling.spelled(self.model, "torch.result_type", self.place)
        named = terms.text if terms.text.isidentifier() else self.dtypes.get(terms.dtype.token or "")
        return f"{result_type}({named}, 0)" if named is not None and result_type is not None else None

    def some_rank(self) -> Rank:
        """The rank of something of which nothing is known."""
        self._fresh += 1
        return Rank(0, f"{PASSING}{self._fresh}")

    def of_rank(self, operand: Lifted, rank: int) -> Lifted:
        """An operand of an operation that takes nothing but tensors of that rank."""
        self.tensors.learn(operand.rank, rank)
        return operand.but(rank=self.tensors.settled(operand.rank))

    def varies(self, node: cst.CSTNode) -> bool:
        """Whether an expression mentions anything that the loop assigns."""
        held = not all(isinstance(sink, cst.Name) for sink in self.sink_names.values())
        return any(
            self._is_own(part) if isinstance(part, cst.Name) else held and self._is_held(part) for part in walk(node)
        )

    def _is_own(self, name: cst.Name) -> bool:
        if name.value not in self.written and name.value not in self.sinks:
            return False
        if self.model.binding(name) is None:
            return False
        return name.value in self.written or not self._is_metadata(name)

    def _is_held(self, node: cst.CSTNode) -> bool:
        """Whether a part of an expression is what the loop fills, and no variable."""
        return self.sink(node) is not None and not self._is_metadata(node)

    def sink(self, node: cst.CSTNode) -> Lifted | None:
        """The tensor that the loop fills, if a node is it."""
        return self.sinks.get(self.code(node)) if stored.is_stored(node) else None

    def _is_metadata(self, name: cst.CSTNode) -> bool:
        """Whether only the shape, dtype or device of a tensor is read."""
        parent = self.model.parent(name)
        if isinstance(parent, cst.Attribute):
            return parent.attr.value in stored.METADATA
        call = self.model.parent(parent) if isinstance(parent, cst.Arg) else None
        return isinstance(call, cst.Call) and self.model.qualified(call.func) == "builtins.len"

    # expressions

    def value(self, node: cst.BaseExpression) -> Lifted:
        """The value of a statement. Where a batched form needs ranks or dtypes that are not known, it is mapped; what
        has no mapped form is cast to the dtypes of one iteration."""
        before, noted, may_name = dict(self.doubts), self._noted(), self.may_name
        self.may_name = False
        lifted = self._valued(node, before)
        self.may_name = may_name
        missing = {self.doubts[reason] for reason in self.doubts if reason not in before}
        if Missing.DTYPE not in missing or not (self.guarded and may_name) or mapping.is_plain(self, node):
            return lifted
        self.doubts, self.operations, self.others, self.bases, self.spread = noted
        return self._valued(node, before)

    def _valued(self, node: cst.BaseExpression, before: dict[str, Missing]) -> Lifted:
        self.scalars = self.recast = False
        return self.mapped(node, self.lift(node), dict(before))

    def mapped(self, node: cst.BaseExpression, lifted: Lifted, before: dict[str, Missing]) -> Lifted:
        """What `node` was lifted to, or the mapped form where facts are missing that were not missed `before`."""
        missing = {self.doubts[reason] for reason in self.doubts if reason not in before}
        if not missing or Missing.MORE in missing:
            return lifted
        if self.recast:
            missing.add(Missing.DTYPE)
        found = mapping.mapped(self, node, lifted, missing)
        if found is not None:
            self.doubts = before
            if self.scalars:
                self.fails_for_none("torch.vmap takes no empty batch of scalars")
        return found or lifted

    def lift(self, node: cst.BaseExpression) -> Lifted:
        return self._by_form(node) if self.varies(node) else self.invariant(node)

    def _by_form(self, node: cst.BaseExpression) -> Lifted:
        measured = self.tensors.sizes.measured(node)
        if measured is not None and self.varies(node):
            return layout.size(self, self.tensor(measured[0]), measured[1])
        if isinstance(node, cst.Name):
            return self._chosen(self._name(node))
        if isinstance(node, cst.Subscript):
            return self._subscript(node)
        if isinstance(node, cst.BinaryOperation):
            return self._binary(node)
        if isinstance(node, cst.UnaryOperation):
            return self._unary(node)
        if isinstance(node, cst.Comparison):
            return self._comparison(node)
        if isinstance(node, cst.Call):
            return self._call(node)
        if isinstance(node, cst.Attribute):
            return self._attribute(node)
        if isinstance(node, cst.IfExp):
            return counting.chosen(self, self.lift(node.test), self.lift(node.body), self.lift(node.orelse), node)
        raise RefusedError(f"`{self.code(node)}` has no batched form")

    def invariant(self, node: cst.BaseExpression) -> Lifted:
        """An expression that is the same in every iteration."""
        reason = impurity(self.model, node, self._computes)
        if reason is not None:
            raise RefusedError(reason)
        return self.once(node)

    def _computes(self, call: cst.Call) -> bool:
        """Whether a call of what no list here names is a computation all the same, as of a function of the file."""
        if call not in self._computations:
            try:
                self._computations[call] = mapping.is_computation(self, call)
            except RefusedError:
                self._computations[call] = False
        return self._computations[call]

    def once(self, node: cst.BaseExpression) -> Lifted:
        """An expression that is evaluated once, now and after the rewrite."""
        lifted = self._outside(node)
        if not lifted.number:
            self.others.add(self.code(node))
        return lifted

    def _outside(self, node: cst.BaseExpression) -> Lifted:
        """What is known of an expression that does not vary, also from the operations in it."""
        facts = self.tensors.of(node, self.place)
        lifted = self._constant(node, facts)
        if facts.number:
            return lifted
        compound = not isinstance(node, (cst.Name, cst.BaseNumber, cst.BaseString))
        is_known = facts.tensor and facts.rank.base is None and self.mask is None
        inferred = self._inferred(node) if compound and not is_known else None
        if inferred is None:
            return lifted
        kept = {"text": lifted.text, "level": lifted.level, "shares": lifted.shares, "claim": lifted.claim}
        return inferred.but(**kept, exact=True)

    def base(self, node: cst.BaseExpression) -> Lifted:
        """A tensor whose rows or elements are read."""
        if self.varies(node):
            return self.lift(node)
        reason = impurity(self.model, node, self._computes)
        if reason is not None:
            raise RefusedError(reason)
        return self._outside(node)

    def _inferred(self, node: cst.BaseExpression) -> Lifted | None:
        """What the operations in an expression that does not vary say of its result."""
        key = (node, self.mask)
        if key in self._results:
            return self._results[key]
        before = self._noted()
        try:
            inferred = self._by_form(node)
        except RefusedError:
            inferred = None
        certain = self.doubts == before[0]
        self.doubts, self.operations, self.others, self.bases, self.spread = before
        self._results[key] = inferred if certain else None
        return self._results[key]

    def _constant(self, node: cst.BaseExpression, facts: Facts) -> Lifted:
        self.read.update(part for part in walk(node) if isinstance(part, cst.Attribute))
        if isinstance(node, cst.Name) and facts.tensor and facts.dtype.token is not None:
            self.dtypes[facts.dtype.token] = node.value
        if facts.tensor and _NAMED.fullmatch(self.code(node)):
            self.tensor_names[self.code(node)] = None
        return Lifted(
            self.one_line(node),
            level_of(node),
            (),
            facts.rank,
            facts.dtype,
            tensor=facts.tensor,
            number=facts.number,
            shares=not facts.number,
            shape=facts,
            claim=facts.key if facts.array and not facts.tensor else None,
        )

    def one_line(self, node: cst.BaseExpression) -> str:
        text = self.code(node)
        if "\n" not in text and "\r" not in text:
            return text
        if "#" in text or "'" in text or '"' in text or "\\" in text:
            self.doubt("an expression spans several lines")
        return re.sub(r"\s*[\r\n]+\s*", " ", text)

    def _name(self, node: cst.Name) -> Lifted:
        name = node.value
        if name in self.axes:
            if self.axes[name] not in self.context:
                raise RefusedError(f"the index `{name}` is used after its loop")
            return counting.of_index(self, self.axes[name])
        if name in self.sinks:
            raise RefusedError(f"`{name}` is read while the loop fills it")
        row = self.rows.get(name)
        if row is None:
            raise RefusedError(f"an iteration reads `{name}` from the one before it")
        if any(axis not in self.context for axis in row.axes):
            raise RefusedError(f"`{name}` keeps the value of the last iteration of an inner loop")
        return row.but(rank=self.tensors.settled(row.rank))

    def tensor(self, node: cst.BaseExpression) -> Lifted:
        """A lifted operand that is certainly a tensor."""
        return self.certain(self.lift(node), node)

    def certain(self, lifted: Lifted, node: cst.BaseExpression) -> Lifted:
        if lifted.counts:
            raise counting.refused(counting.spelled([lifted]))
        if lifted.claim is not None and not lifted.pair:
            self.claims.add(lifted.claim)
            return lifted
        if not lifted.tensor or lifted.pair:
            raise RefusedError(f"`{self.code(node)}` is not known to be a tensor")
        return lifted

    def claim(self, node: cst.BaseExpression) -> str | None:
        """The array that an expression is or is a part of, if it is not certain to be a tensor. What has elements need
        be no array: it may be a list of tensors."""
        is_array = not isinstance(node, cst.Subscript)
        while isinstance(node, cst.Subscript):
            is_array = is_array or indexing.cuts(node)
            node = node.value
        if isinstance(node, cst.Name) and node.value in self.rows:
            return self.rows[node.value].claim
        if self.varies(node):
            return None
        facts = self.tensors.of(node, self.place)
        return facts.key if (facts.array or is_array) and not facts.tensor else None

    def _chosen(self, lifted: Lifted) -> Lifted:
        """The rows for which the condition at hand holds."""
        if self.mask is None or not lifted.axes:
            return lifted
        if lifted.axes != self.context or lifted.pair:
            raise RefusedError(f"not all rows of `{lifted.text}` are for the condition to choose from")
        return lifted.but(text=f"{lifted.atom}[{self.mask}]", level=ATOM, shares=False, shape=None)

    def _subscript(self, node: cst.Subscript) -> Lifted:
        """Rows are chosen once they are read; what is computed first is computed of the chosen ones alone."""
        computed = any(isinstance(part, (cst.Call, cst.BinaryOperation)) for part in walk(node.value))
        if self.mask is not None and indexing.looks_up(self, node):
            return indexing.subscript(self, node)
        if self.mask is None or (computed and self.varies(node.value)):
            if self.mask is not None and any(map(self.varies, node.slice)):
                raise RefusedError(f"`{self.code(node)}` is not read row by row where the condition holds")
            return indexing.subscript(self, node)
        if computed:
            self._inferred(node.value)
        mask, self.mask, self.for_all_rows = self.mask, None, True
        lifted = indexing.subscript(self, node)
        self.mask, self.for_all_rows = mask, False
        return self._chosen(lifted)

    # operators

    def _binary(self, node: cst.BinaryOperation) -> Lifted:
        spelled, level = BINARY[type(node.operator)]
        left, right = self.lift(node.left), self.lift(node.right)
        number = counting.reckoned(self, spelled, level, [left, right])
        if number is not None:
            return number
        if spelled == "@":
            return products.matmul(self, left, right)
        operands = counting.beside(self, [left, right], compares=False)
        inexact = left.dtype.inexact and right.dtype.inexact
        operands, cast = alignment.cast_back(self, operands) if spelled != "/" or inexact else (operands, None)
        together = alignment.broadcast(self, operands)
        first, second = together.texts(level + (spelled == "**"), level + (spelled != "**"))
        text, level = together.result(f"{first} {spelled} {second}", level)
        if cast is not None:
            text, level = f"{text if level == ATOM else f'({text})'}.to({cast})", ATOM
            dtype = alignment.result_of(operands)
        else:
            dtype = alignment.promoted(self, operands, quotient=spelled == "/")
        if spelled == "/":
            dtype = dtype.inexact_result()
        self.operations.add("pointwise")
        exact = spelled in EXACT_OPERATORS and all(operand.exact for operand in operands)
        exact = exact and (spelled not in ROUNDED_ALIKE_IF_REAL or dtype.is_real)
        tensor = left.tensor or right.tensor
        return Lifted(text, level, together.axes, together.rank, dtype, tensor=tensor, exact=exact)

    def _unary(self, node: cst.UnaryOperation) -> Lifted:
        spelled = UNARIES.get(type(node.operator))
        if spelled is None:
            raise RefusedError("`not` needs the value of a tensor")
        inner = self.lift(node.expression)
        if inner.counts and spelled == "-":
            return counting.negative(inner)
        self.certain(inner, node.expression)
        self.operations.add("pointwise")
        return inner.but(text=spelled + inner.within(UNARY), level=UNARY, shares=False, shape=None)

    def _comparison(self, node: cst.Comparison) -> Lifted:
        spelled = COMPARISONS.get(type(node.comparisons[0].operator))
        if spelled is None or len(node.comparisons) != 1:
            raise RefusedError(f"`{self.code(node)}` needs the value of a tensor")
        operands = [self.lift(node.left), self.lift(node.comparisons[0].comparator)]
        number = counting.compared(self, spelled, operands)
        if number is not None:
            return number
        operands = counting.beside(self, operands, compares=True)
        left, right = alignment.in_line(operands) if node is self.reduced else operands
        together = alignment.broadcast(self, [left, right])
        first, second = together.texts(BIT_OR, BIT_OR)
        self.operations.add("pointwise")
        exact = left.exact and right.exact
        text, level = together.result(f"{first} {spelled} {second}", COMPARISON)
        return Lifted(text, level, together.axes, together.rank, BOOL, exact=exact)

    # calls and attributes

    def _call(self, node: cst.Call) -> Lifted:
        before, key = self._noted(), (node, self.mask)
        try:
            known = counting.function(self, node) or modules.applied(self, node)
            if known is not None:
                return known
            if key not in self._without_rule:
                return batching.apply(self, Operation.read(self, node))
            raise RefusedError(f"`{self.code(node.func)}` has no batched form")
        except RefusedError:
            self._without_rule.add(key)
            if not self.varies(node):
                return mapping.unvaried(self, node)
            self.doubts, self.operations, self.others, self.bases, self.spread = before
            return mapping.last_resort(self, node)

    def _noted(self) -> tuple[dict[str, Missing], set[str], set[str], Counter[str], bool]:
        """What lifting an expression adds to."""
        return dict(self.doubts), set(self.operations), set(self.others), self.bases.copy(), self.spread

    def part(self, pair: Lifted, name: str) -> Lifted:
        """One member of a pair."""
        if name == "indices" and not pair.ordered:
            self.doubt("which of equal elements comes first is not defined")
        return pair.part(name)

    def _attribute(self, node: cst.Attribute) -> Lifted:
        if self.sink(node) is not None:
            raise RefusedError(f"`{self.code(node)}` is read while the loop fills it")
        inner = self.lift(node.value)
        if inner.pair and node.attr.value in inner.members:
            return self.part(inner, node.attr.value)
        if not inner.tensor or inner.pair:
            raise RefusedError(f"`{self.code(node.value)}` is not known to be a tensor")
        return layout.attribute(self, inner, node.attr.value)
