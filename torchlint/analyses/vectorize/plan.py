"""Which loops of a file are independent work on the rows of tensors, and what each becomes on whole tensors."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize import headers, stacking
from torchlint.analyses.vectorize.aftermath import Consumer, consumers, grown, made, read_afterwards
from torchlint.analyses.vectorize.body import Body, Line
from torchlint.analyses.vectorize.lifting import Lifter
from torchlint.analyses.vectorize.operation import Operation
from torchlint.analyses.vectorize.reaching import Reaching
from torchlint.analyses.vectorize.shapes import ATOM, Lifted, RefusedError
from torchlint.analyses.vectorize.sinks import check_accesses, check_memory, find_sinks
from torchlint.analyses.vectorize.tensors import Tensors
from torchlint.finding import Confidence
from torchlint.semantics.dataflow import text
from torchlint.semantics.tree import bound_names, children, walk

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_PASSES = 4
_DEPTH = 40
_FEW = 8
Root = cst.For | cst.Call | cst.ListComp
"""A for statement, the call of stack or cat around a comprehension, or a comprehension that is stacked later."""

_NO_ROWS_TO_STACK = "an empty batch gives a tensor and no error"
_NO_ROWS_TO_ADD = "a sum over no rows is a tensor too"
_COLLECTORS = ("torch.stack", "torch.cat", "torch.concat", "builtins.sum")

_EXTREMES = ("builtins.max", "builtins.min")
_READ_BACK = ("builtins.float", "builtins.int", "builtins.bool")

_BINDING = frozenset({cst.For, cst.CompFor, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr})


@dataclass(frozen=True, slots=True)
class Plan:
    """One loop, and its batched form.

    `result` takes the place of a call or a comprehension, `lines` take that of a for statement; of a list, `consumers`
    are the calls that use it.
    With any of `doubts` the loop must not be rewritten. `exact`: bit for bit the same numbers and gradients.
    `condition`: whether the loop runs at all, where the batched form takes no empty batch. `copies`: rows are collected
    as they are, or elements filled with what is made of no rows.
    """

    root: Root
    tensor: str
    operations: frozenset[str]
    doubts: tuple[str, ...]
    exact: bool
    cautions: tuple[str, ...]
    lines: tuple[Line, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    result: Lifted | None = None
    condition: str | None = None
    copies: bool = False

    @property
    def confidence(self) -> Confidence:
        return Confidence.LIKELY if self.doubts else Confidence.CERTAIN


def attempt(model: Model, root: Root) -> tuple[Plan | None, str]:
    """The plan for one loop; or None, and what stands in its way, where the loop is not known to be independent work on
    the rows of a tensor."""
    if isinstance(root, cst.Call) and model.qualified(root.func) not in (*_COLLECTORS, *_EXTREMES):
        return None, f"`{text(root.func)}` makes a tensor of a list, number by number"
    try:
        return _Planner(model, root).plan(), "the loop runs a few times, or does no more than walk over the rows"
    except RefusedError as refusal:
        return None, str(refusal)


def is_plain(loop: cst.For) -> bool:
    """Whether the body is nothing but simple statements, loops and branches of them, not nested beyond reason."""
    level: list[cst.CSTNode] = [loop]
    for _ in range(_DEPTH):
        if any(
            isinstance(node, cst.BaseCompoundStatement) and not isinstance(node, (cst.For, cst.If)) for node in level
        ):
            return False
        level = [child for node in level for child in children(node)]
        if not level:
            return loop.orelse is None and loop.asynchronous is None
    return False


class _Planner:
    def __init__(self, model: Model, root: Root) -> None:
        self._model = model
        self._root = root
        self._place: cst.CSTNode = root if isinstance(root, cst.For) else model.statement(root)
        self._reaching = model.once(Reaching)
        self._tensors = Tensors(model, self._reaching, self._place)

    def plan(self) -> Plan | None:
        plan = self._settled()
        if plan is None or not plan.doubts:
            return plan
        try:
            other = self._settled(guarded=True)
        except RefusedError:
            return plan
        return plan if other is None or other.doubts else other

    def _settled(self, *, guarded: bool = False) -> Plan | None:
        """Passes repeat while the loop's own operations teach something about ranks."""
        for _ in range(_PASSES):
            learned = self._tensors.learned
            lifter = Lifter(self._model, self._tensors, self._place, _written(self._root), guarded=guarded)
            lifter.may_name = self._may_name()
            plan = self._planned(lifter)
            if self._tensors.learned == learned:
                if all(map(self._tensors.is_proven, lifter.claims)):
                    return plan
                raise RefusedError("what the loop reads may be an array of numpy")
        return None

    def _may_name(self) -> bool:
        """Whether an expression in the place of the loop may give a name to a part of itself."""
        outside = self._model.ancestors(self._root)
        return isinstance(self._root, cst.For) or not any(
            isinstance(part, (cst.BaseComp, cst.Lambda, cst.Param))
            for part in takewhile(lambda part: part is not self._place, outside)
        )

    def _planned(self, lifter: Lifter) -> Plan | None:
        if isinstance(self._root, cst.For):
            return self._statement(lifter, self._root)
        if isinstance(self._root, cst.ListComp):
            return self._list(lifter, self._root)
        return self._call(lifter, self._root)

    def _list(self, lifter: Lifter, root: cst.ListComp) -> Plan | None:
        name, creation = made(lifter, root)
        element = stacking.of_comprehension(lifter, root)
        if not lifter.bases or headers.covers_few(lifter.loops, _FEW):
            return None
        used = consumers(lifter, self._reaching, root, name, creation, element)
        lifter.cautions.add(_NO_ROWS_TO_STACK)
        return self._made(lifter, exact=False, consumers=tuple(used), result=stacking.of_its_own(element))

    def _call(self, lifter: Lifter, root: cst.Call) -> Plan | None:
        if self._model.qualified(root.func) in _EXTREMES:
            return self._extreme(lifter, root)
        lifter.in_statement = _clauses(root) > 0
        result = stacking.collected(lifter, Operation.read(lifter, root))
        if not lifter.bases or headers.covers_few(lifter.loops, _FEW):
            return None
        adds = self._model.qualified(root.func) == "builtins.sum"
        if not adds and len(lifter.loops) == _clauses(root):
            for axis in lifter.loops:
                axis.whole = axis.counted = True  # nothing can be stacked where a loop does not run
        lifter.cautions.add(_NO_ROWS_TO_ADD if adds else _NO_ROWS_TO_STACK)
        return self._made(lifter, exact=False, result=stacking.of_its_own(result))

    def _extreme(self, lifter: Lifter, root: cst.Call) -> Plan | None:
        """`max(x)` of Python, of a tensor: where it runs, a row has one element."""
        walked = root.args[0].value
        name = (self._model.qualified(root.func) or "").removeprefix("builtins.")
        if len(root.args) != 1 or root.args[0].star or root.args[0].keyword:
            raise RefusedError(f"`{name}` compares more than the rows of one tensor")
        base = lifter.certain(lifter.once(walked), walked)
        if base.rank.known != 1 and not _is_read_back(self._model, root):
            lifter.doubt_rank(base)
        lifter.cautions |= {"of no elements comes another error", "one that is no number wins"}
        lifter.cautions.add("equal ones share a gradient")
        lifter.operations.add("extreme")
        axis = headers.rows(lifter, base)
        axis.counted = True
        text = f"{base.atom}.{name}()"
        return self._made(lifter, exact=False, result=base.but(text=text, level=ATOM, axes=(), shape=None))

    def _statement(self, lifter: Lifter, root: cst.For) -> Plan | None:
        find_sinks(lifter, root)
        body = Body(lifter)
        with headers.entered(lifter, root.target, root.iter):
            body.run(root.body.body)
        if not (lifter.bases or lifter.accesses) or headers.covers_few(lifter.loops, _FEW):
            return None
        if not (lifter.accesses or body.rows or lifter.totals):
            return None
        check_accesses(lifter.accesses)
        check_memory(lifter, self._reaching)
        for name in sorted(read_afterwards(self._model, self._reaching, root, lifter)):
            lifter.doubt(f"`{name}` is read after the loop")
        used = [
            consumer
            for name, receiver in body.receivers.items()
            for creation in (grown(lifter, self._reaching, root, receiver),)
            for consumer in consumers(lifter, self._reaching, root, receiver, creation, body.rows[name])
        ]
        if body.rows:
            lifter.cautions.add(_NO_ROWS_TO_STACK)
        if lifter.totals:
            lifter.cautions.add(_NO_ROWS_TO_ADD)
        exact = body.exact and not (body.rows or lifter.totals)
        return self._made(lifter, exact=exact, lines=tuple(body.lines), consumers=tuple(used))

    def _made(
        self,
        lifter: Lifter,
        *,
        exact: bool,
        lines: tuple[Line, ...] = (),
        consumers: tuple[Consumer, ...] = (),
        result: Lifted | None = None,
    ) -> Plan:
        for reason in sorted(lifter.failing if not lifter.guarded else ()):
            lifter.doubt(reason)
        condition = None
        if lifter.needs_rows and (lifter.accesses or lifter.adds):
            condition = self._runs(lifter) if lifter.guarded and not consumers else None
            if condition is None:
                lifter.doubt("what the loop computes has no form for a batch of no rows")
        if condition is None and not all(axis.bounded for axis in lifter.loops):
            lifter.doubt("how often the loop runs is not known")
        if lifter.progress:
            lifter.cautions.add("the progress bar goes")
        cut = any(axis.cut for axis in lifter.loops)
        if cut:
            lifter.cautions.add("an index out of range may pass unnoticed")
        cut = cut or any(axis.stop.assumed for axis in lifter.loops)
        alone = not (lifter.others or lifter.spread or max(lifter.bases.values(), default=0) > 2)
        return Plan(
            self._root,
            next(iter(lifter.bases), None) or lifter.accesses[0].name,
            frozenset(lifter.operations),
            tuple(lifter.doubts),
            exact and alone and not cut and not lifter.progress,
            tuple(sorted(lifter.cautions)),
            lines,
            consumers,
            result,
            condition,
            copies=not lifter.bases or not (lifter.operations or lifter.accesses),
        )

    def _runs(self, lifter: Lifter) -> str | None:
        """Whether the innermost statement runs at all, in code; None where others beside it may run without it."""
        root = self._root
        if not (_nests_only(root) if isinstance(root, cst.For) else self._adds_only(root, lifter)):
            return None
        return " and ".join(dict.fromkeys(f"{axis.stop.text} > {axis.start}" for axis in lifter.loops))

    def _adds_only(self, root: Root, lifter: Lifter) -> bool:
        """Whether an expression is a sum over all its loops."""
        if not isinstance(root, cst.Call) or self._model.qualified(root.func) != "builtins.sum":
            return False
        return sum(isinstance(part, cst.CompFor) for part in walk(root)) == len(lifter.loops) == _clauses(root)


def _is_read_back(model: Model, call: cst.Call) -> bool:
    """Whether a number is made of the result at once, or a test: of one element it is the same in any shape."""
    above = model.parent(call)
    if isinstance(above, cst.Attribute) and above.attr.value == "item":
        return True
    if isinstance(above, cst.Comparison):
        beyond = model.parent(above)
        return isinstance(beyond, (cst.If, cst.While, cst.IfExp)) and len(above.comparisons) == 1
    outer = model.parent(above) if isinstance(above, cst.Arg) else None
    return isinstance(outer, cst.Call) and model.qualified(outer.func) in _READ_BACK


def _nests_only(loop: cst.For) -> bool:
    """Whether a loop has statements beside another loop in its innermost block alone."""
    inner = [statement for statement in loop.body.body if isinstance(statement, cst.For)]
    return not inner or (len(loop.body.body) == 1 and _nests_only(inner[0]))


def _clauses(call: cst.Call) -> int:
    """How many loops the comprehension in a call runs."""
    comprehension = call.args[0].value
    clause = comprehension.for_in if isinstance(comprehension, (cst.ListComp, cst.GeneratorExp)) else None
    count = 0
    while clause is not None:
        count, clause = count + 1, clause.inner_for_in
    return count


def _written(root: Root) -> frozenset[str]:
    """Names that a loop assigns, the targets of loops and comprehensions in it included."""
    names: set[str] = set()
    for node in walk(root):
        if type(node) in _BINDING:
            names.update(bound_names(node.target))  # type: ignore[attr-defined]
    return frozenset(names)
