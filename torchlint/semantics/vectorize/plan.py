"""Which loops of a file are independent work on the rows of tensors, and what each becomes on whole tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Confidence
from torchlint.semantics.tree import children, walk
from torchlint.semantics.vectorize import headers, stacking
from torchlint.semantics.vectorize.aftermath import Consumer, consumers, read_afterwards
from torchlint.semantics.vectorize.body import Body, Line
from torchlint.semantics.vectorize.lifting import Lifter
from torchlint.semantics.vectorize.operation import Operation
from torchlint.semantics.vectorize.reaching import Reaching
from torchlint.semantics.vectorize.shapes import Lifted, RefusedError
from torchlint.semantics.vectorize.sinks import check_accesses, check_memory, find_sinks
from torchlint.semantics.vectorize.tensors import Tensors

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_PASSES = 4
_DEPTH = 40
_FEW = 8
_COLLECTORS = ("torch.stack", "torch.cat", "torch.concat", "builtins.sum")

_BINDING = frozenset({cst.For, cst.CompFor, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr})


@dataclass(frozen=True, slots=True)
class Plan:
    """One loop, and its batched form.

    `root` is the for statement, or the call of stack or cat around a comprehension, which `result` takes the place of.
    `lines` take the place of a for statement; of a list that it fills, `consumers` are the calls that use it.
    With any of `doubts` the loop must not be rewritten. `exact`: bit for bit the same numbers and gradients.
    """

    root: cst.For | cst.Call
    tensor: str
    operations: frozenset[str]
    doubts: tuple[str, ...]
    exact: bool
    cautions: tuple[str, ...]
    lines: tuple[Line, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    result: Lifted | None = None

    @property
    def confidence(self) -> Confidence:
        return Confidence.LIKELY if self.doubts else Confidence.CERTAIN


def is_test(path: Path) -> bool:
    """Tests compute what they expect in the plainest way, and on purpose."""
    return path.name.startswith("test_") or not {"test", "tests"}.isdisjoint(path.parts[:-1])


def attempt(model: Model, root: cst.For | cst.Call) -> tuple[Plan | None, str]:
    """The plan for one loop; or None, and what stands in its way, where the loop is not known to be independent work on
    the rows of a tensor."""
    if isinstance(root, cst.Call) and model.qualified(root.func) not in _COLLECTORS:
        return None, ""
    try:
        return _Planner(model, root).plan(), ""
    except RefusedError as refusal:
        return None, str(refusal)


def is_plain(loop: cst.For) -> bool:
    """Whether the body is nothing but simple statements and loops of them, and not nested beyond reason."""
    level: list[cst.CSTNode] = [loop]
    for _ in range(_DEPTH):
        if any(isinstance(node, cst.BaseCompoundStatement) and not isinstance(node, cst.For) for node in level):
            return False
        level = [child for node in level for child in children(node)]
        if not level:
            return loop.orelse is None and loop.asynchronous is None
    return False


class _Planner:
    def __init__(self, model: Model, root: cst.For | cst.Call) -> None:
        self._model = model
        self._root = root
        self._place: cst.CSTNode = root if isinstance(root, cst.For) else model.statement(root)
        self._reaching = model.once(Reaching)
        self._tensors = Tensors(model, self._reaching)

    def plan(self) -> Plan | None:
        """Passes repeat while the loop's own operations teach something about ranks."""
        for _ in range(_PASSES):
            learned = self._tensors.learned
            lifter = Lifter(self._model, self._tensors, self._place, _written(self._root))
            plan = self._comprehension(lifter) if isinstance(self._root, cst.Call) else self._statement(lifter)
            if self._tensors.learned == learned:
                return plan if all(map(self._tensors.is_proven, lifter.claims)) else None
        return None

    def _comprehension(self, lifter: Lifter) -> Plan | None:
        assert isinstance(self._root, cst.Call)
        result = stacking.collected(lifter, Operation.read(lifter, self._root))
        if not lifter.operations or not lifter.bases or headers.covers_few(lifter.loops, _FEW):
            return None
        lifter.cautions.add("an empty batch gives a tensor and no error")
        return self._made(lifter, exact=False, result=stacking.of_its_own(result))

    def _statement(self, lifter: Lifter) -> Plan | None:
        root = self._root
        assert isinstance(root, cst.For)
        find_sinks(lifter, root)
        body = Body(lifter)
        with headers.entered(lifter, root.target, root.iter):
            body.run(root.body.body)
        if not lifter.bases or headers.covers_few(lifter.loops, _FEW):
            return None
        if not (lifter.accesses or (lifter.operations and (body.rows or lifter.totals))):
            return None
        check_accesses(lifter.accesses)
        check_memory(lifter, self._reaching)
        for name in sorted(read_afterwards(self._model, self._reaching, root, lifter)):
            lifter.doubt(f"`{name}` is read after the loop")
        used = [
            consumer
            for name, receiver in body.receivers.items()
            for consumer in consumers(lifter, self._reaching, root, receiver, body.rows[name])
        ]
        if body.rows:
            lifter.cautions.add("an empty batch gives a tensor and no error")
        if lifter.totals:
            lifter.cautions.add("a sum over no rows is a tensor too")
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
        if not all(axis.bounded for axis in lifter.loops):
            lifter.doubt("how often the loop runs is not known")
        if lifter.progress:
            lifter.cautions.add("the progress bar goes")
        cut = any(axis.cut for axis in lifter.loops)
        if cut:
            lifter.cautions.add("an index out of range may pass unnoticed")
        alone = not (lifter.others or lifter.spread or max(lifter.bases.values()) > 2)
        return Plan(
            self._root,
            next(iter(lifter.bases)),
            frozenset(lifter.operations),
            tuple(lifter.doubts),
            exact and alone and not cut and not lifter.progress,
            tuple(sorted(lifter.cautions)),
            lines,
            consumers,
            result,
        )


def _written(root: cst.For | cst.Call) -> frozenset[str]:
    """Names that a loop assigns, the targets of loops and comprehensions in it included."""
    names: set[str] = set()
    for node in walk(root):
        if type(node) in _BINDING:
            names.update(_bound(node.target))  # type: ignore[attr-defined]
    return frozenset(names)


def _bound(target: cst.CSTNode) -> Iterator[str]:
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _bound(element.value)
