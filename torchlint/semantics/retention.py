"""What outlives an iteration although nobody sends it backward: graphs kept by containers and running sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backward_pass import freeing_passes
from torchlint.semantics.dataflow import parameter_of, upstream
from torchlint.semantics.entities import Role
from torchlint.semantics.fate import Fate, Tracer
from torchlint.semantics.graphs import carriers, depends_on_forward, is_freed_inside, returned_by
from torchlint.semantics.keeping import COLLECTIONS, Keeping, Way, keepings
from torchlint.semantics.lifetime import Lifetime, lifetime, of_comprehension, root
from torchlint.semantics.needless_graph import evaluations
from torchlint.semantics.single_tensor import carries, is_one_tensor
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Loop
    from torchlint.semantics.model import Model


@dataclass(frozen=True, slots=True)
class Retention:
    """`node` is the statement or call that keeps; `graphs` are the smallest expressions whose graphs it keeps.

    `freed`: a backward pass of the same iteration frees the buffers of the graph, its nodes stay.
    `detachable`: all of `graphs` are known to be single tensors.
    """

    way: Way
    node: cst.CSTNode
    holder: cst.BaseExpression
    graphs: tuple[cst.BaseExpression, ...]
    freed: bool
    detachable: bool


def retentions(model: Model, *ways: Way) -> Iterator[Retention]:
    """Every place of the file that keeps a graph in one of the given ways, in source order."""
    judge = _Judge(model)
    candidates = list(keepings(model))
    sums = [found for candidate in candidates if candidate.way is Way.SUM for found in judge.verdicts(candidate)]
    judge.summed = {holder for found in sums if (holder := root(model, found.holder)) is not None}
    seen: set[tuple[object, ...]] = set()
    for candidate in candidates:
        for found in judge.verdicts(candidate) if candidate.way in ways else ():
            if (found.node, found.graphs) not in seen:
                seen.add((found.node, found.graphs))
                yield found


class _Judge:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._tracer = Tracer(model)
        self.summed: set[Binding] = set()  # what comes out of a sum that is reported is mended there

    def verdicts(self, candidate: Keeping) -> Iterator[Retention]:
        model = self._model
        holder = root(model, candidate.holder)
        graphs = list(carriers(model, candidate.kept))
        if holder is None or not graphs or model.grad_enabled(candidate.node) is False:
            return
        lives = self._lifetime(candidate, holder)
        if not lives or self._is_recurrence(candidate, holder, lives):
            return
        fed = [graph for graph in graphs if self._parameters(graph)]
        if fed and lives.beyond:
            yield from self._where_fed(candidate, holder, fed)
        graphs = [graph for graph in graphs if graph not in fed and not self._is_summed(graph, holder)]
        if graphs:
            yield from self._kept(candidate, candidate.node, graphs, lives)

    def _is_summed(self, graph: cst.BaseExpression, holder: Binding) -> bool:
        summed = self.summed - {holder}
        return bool(summed) and any(
            bool(upstream(self._model, part) & summed) for part in returned_by(self._model, graph)
        )

    def _lifetime(self, candidate: Keeping, holder: Binding) -> Lifetime:
        if isinstance(candidate.kept, COLLECTIONS) and isinstance(candidate.node, cst.Assign):
            return of_comprehension(self._model, candidate.kept)
        return lifetime(self._model, holder, candidate.node, handed_in=candidate.way is Way.APPEND)

    def _kept(
        self, candidate: Keeping, node: cst.CSTNode, graphs: list[cst.BaseExpression], lives: Lifetime
    ) -> Iterator[Retention]:
        freed = [self._freed(graph, lives) for graph in graphs]
        if None in freed:
            return
        fate = self._fate(candidate)
        if Fate.BACKWARD in fate:
            return
        if not all(freed):
            known = fate is Fate.CONSUMED or (candidate.way is Way.SUM and self._is_in_evaluation(node))
            if not known or not all(self._grows(graph, lives) for graph in graphs):
                return
        escapes = Fate.ESCAPES in fate and not all(freed)
        detachable = not escapes and all(is_one_tensor(self._model, graph) for graph in graphs)
        yield Retention(candidate.way, node, candidate.holder, tuple(graphs), all(freed), detachable)

    def _is_in_evaluation(self, node: cst.CSTNode) -> bool:
        """Whether a node is part of an evaluation that records a graph: what it adds up is a result, not a loss."""
        return any(region in self._regions for region in self._model.ancestors(node))

    @cached_property
    def _regions(self) -> set[cst.CSTNode]:
        return {found.region for found in evaluations(self._model)}

    def _freed(self, graph: cst.BaseExpression, lives: Lifetime) -> bool | None:
        """Whether a backward pass frees the graph while its holder lives on; None: the holder goes with that pass."""
        if is_freed_inside(self._model, graph):
            return True
        around = self._model.loops_around(graph)
        within = False
        for call in freeing_passes(self._model, graph):
            if set(call.loops()) & set(lives.loops) or (call.loop is None and lives.beyond):
                return True
            within = within or call.loop is None or bool(set(call.loops()) & set(around))
        return None if within else False

    def _grows(self, graph: cst.BaseExpression, lives: Lifetime) -> bool:
        """Whether an iteration makes a graph of its own, outside of what a network does in its forward pass."""
        function = self._model.function(graph)
        loops = [loop for loop in lives.loops if not _is_over_modules(self._model, loop)]
        if function.cls is not None and function.cls.is_module:
            return any(loop.iterates.kind is Kind.LOADER for loop in loops)
        if any(depends_on_forward(self._model, graph, loop) and not self._is_state(graph, loop) for loop in loops):
            return True
        return not lives.loops and depends_on_forward(self._model, graph, None)

    def _is_state(self, graph: cst.BaseExpression, loop: Loop) -> bool:
        """h = cell(x, h): the graphs of all iterations hang together anyway."""
        binding = self._model.binding(graph)
        if binding is None:
            return False
        inside = [write for write in binding.writes if write.loop is not None and loop in write.loop.around()]
        return any(
            write.value is not None and binding in upstream(self._model, write.value, inside=loop) for write in inside
        )

    def _is_recurrence(self, candidate: Keeping, holder: Binding, lives: Lifetime) -> bool:
        """x = x + f(x): the next state of something, not a sum of terms."""
        if candidate.way is not Way.SUM:
            return False
        inside = lives.loops[0] if lives.loops else None
        return holder in upstream(self._model, candidate.kept, inside=inside)

    def _fate(self, candidate: Keeping) -> Fate:
        binding = root(self._model, candidate.holder)
        assert binding is not None
        fate = self._tracer.of_binding(binding, written_at=candidate.node)
        if binding.is_parameter and candidate.way is Way.APPEND:
            fate |= self._fate_at_callers(binding)
        return fate

    def _fate_at_callers(self, parameter: Binding) -> Fate:
        """A list that was handed in lives on where it came from."""
        fate = Fate.NONE
        calls = parameter.scope_function.callers
        sources = [source for call in calls for source in _given(self._model, call, parameter)]
        for source in sources:
            binding = root(self._model, source)
            fate |= Fate.ESCAPES if binding is None else self._tracer.of_binding(binding)
        return fate if sources else Fate.ESCAPES

    # -- where the graph comes in through a parameter

    def _parameters(self, graph: cst.BaseExpression) -> list[Binding]:
        """Parameters of the surrounding function through which the graph of an expression came in."""
        found = []
        for node in walk(graph):
            binding = self._model.binding(node) if isinstance(node, cst.Name) else None
            if binding is None or any(write.kind != "parameter" for write in binding.writes):
                continue
            if carries(self._model.value(node)) and not any(True for _ in freeing_passes(self._model, graph)):
                found.append(binding)
        return found

    def _where_fed(self, candidate: Keeping, holder: Binding, graphs: list[cst.BaseExpression]) -> Iterator[Retention]:
        """The helper only keeps what it is given, so the call that gives it a graph is the place to mend."""
        for parameter in dict.fromkeys(found for graph in graphs for found in self._parameters(graph)):
            for call in parameter.scope_function.callers:
                if self._model.grad_enabled(call.node) is False:
                    continue
                owner = root(self._model, call.receiver) if call.receiver is not None and holder.cls else holder
                lives = lifetime(self._model, owner or holder, call.node)
                for given in _given(self._model, call, parameter):
                    fed = [graph for graph in carriers(self._model, given) if not self._parameters(graph)]
                    if fed and lives:
                        yield from self._kept(candidate, call.node, fed, lives)


def _is_over_modules(model: Model, loop: Loop) -> bool:
    """`for block in blocks: x = block(x)`: the layers of one pass, not passes."""
    if loop.role is Role.MODULES:
        return True
    called = (root(model, call.node.func) for call in loop.calls if call.is_forward)
    return any(write.kind == "for" and write.loop is loop for module in called if module for write in module.writes)


def _given(model: Model, call: Call, parameter: Binding) -> Iterator[cst.BaseExpression]:
    for arg in call.node.args:
        if parameter_of(call, arg) is parameter:
            yield arg.value
