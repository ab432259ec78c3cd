"""What outlives an iteration although nobody sends it backward: graphs kept by containers and running sums."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.evaluation_names import is_over_loader
from torchlint.analyses.fate import Fate, Tracer, fate_of
from torchlint.analyses.lifetime import Lifetime, is_begun_in_sight, lifetime, of_comprehension, resets, root
from torchlint.analyses.mem.backward_pass import freeing_passes, goes_back_from_framework
from torchlint.analyses.mem.chosen_gradients import comes_without_graph
from torchlint.analyses.mem.graphs import carriers, depends_on_forward, is_freed_inside, returned_by
from torchlint.analyses.mem.handful import has_handful_of_places, is_over_handful
from torchlint.analyses.mem.keepers import Keeper, is_given_back, keepers, parameters_in
from torchlint.analyses.mem.keeping import COLLECTIONS, Keeping, Way, keepings
from torchlint.analyses.mem.needless_graph import evaluations
from torchlint.analyses.mem.trial_runs import is_test_case
from torchlint.analyses.single_tensor import is_graphless, is_one_tensor
from torchlint.semantics.arguments import string_value
from torchlint.semantics.dataflow import given_to, upstream, writes_reaching
from torchlint.semantics.entities import Role
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Grad, Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Loop
    from torchlint.semantics.model import Model
    from torchlint.semantics.values import Value


@dataclass(frozen=True, slots=True)
class Retention:
    """`node` is the statement or call that keeps; `graphs` are the smallest expressions whose graphs it keeps.

    `freed`: a backward pass of the same iteration frees the buffers of the graph, its nodes stay.
    `obstacle`: why not all of `graphs` can be detached where they stand, if it is so.
    `keeper`: the function that keeps what the call `node` gives to it, and `home` the model of the file it is in.
    """

    way: Way
    node: cst.CSTNode
    holder: cst.BaseExpression
    graphs: tuple[cst.BaseExpression, ...]
    freed: bool
    obstacle: str
    keeper: Keeper | None = None
    home: Model | None = None

    @property
    def detachable(self) -> bool:
        """All of `graphs` are known to be single tensors, of which nobody needs the graph."""
        return not self.obstacle


def retentions(model: Model, *ways: Way) -> list[Retention]:
    """Every place of the file that itself keeps a graph in one of the given ways, in source order."""
    return [found for found in model.once(_retentions) if found.keeper is None and found.way in ways]


def handed_over(model: Model) -> list[Retention]:
    """Every call of the file that gives a graph to a function that keeps it."""
    return [found for found in model.once(_retentions) if found.keeper is not None]


def _retentions(model: Model) -> list[Retention]:
    judge = _Judge(model)
    candidates = model.once(keepings)
    sums = [found for candidate in candidates if candidate.way is Way.SUM for found in judge.verdicts(candidate)]
    judge.summed = {holder for found in sums if (holder := root(model, found.holder)) is not None}
    others = [found for candidate in candidates if candidate.way is not Way.SUM for found in judge.verdicts(candidate)]
    handed = judge.handed_over()
    unique = {(found.node, found.graphs): found for found in reversed([*sums, *others, *handed])}
    return sorted(unique.values(), key=lambda found: model.span(found.node)[0])


def _has_no_graph(graph: cst.BaseExpression, model: Model) -> bool:
    return _is_leaf(graph, model) or comes_without_graph(model, graph) or _is_index(graph, model)


def _is_index(graph: cst.BaseExpression, model: Model) -> bool:
    """Whether `x[chosen]` picks by a variable: numbers of places, or truth values, come without a graph."""
    binding = model.binding(graph) if isinstance(graph, cst.Name) else None
    parts = (model.parent(read) for read in binding.reads) if binding is not None else ()
    return any(isinstance(part, cst.Index) and part.star is None for part in parts)


def _is_leaf(graph: cst.BaseExpression, model: Model) -> bool:
    """Whether a variable holds a tensor that a graph begins with: it has none behind it, and others point to it."""
    binding = model.binding(graph) if isinstance(graph, cst.Name) else None
    made = writes_reaching(model, binding, graph) if binding else []
    calls = [model.call(write.value) for write in made if write.kind == "assign" and isinstance(write.value, cst.Call)]
    return bool(made) and len(calls) == len(made) and all(map(_makes_leaf, calls))


def _makes_leaf(call: Call) -> bool:
    """`torch.randn(3, requires_grad=True)`, `x.detach().requires_grad_()`"""
    if call.method == "requires_grad_":
        return call.receiver_value.grad is Grad.DETACHED
    return (call.callee or "").startswith("torch.") and call.argument("requires_grad").given


class _Judge:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._tracer = Tracer(model)
        self.summed: set[Binding] = set()  # what comes out of a sum that is reported is mended there

    def verdicts(self, candidate: Keeping) -> Iterator[Retention]:
        model = self._model
        holder = root(model, candidate.holder)
        graphs = [graph for graph in carriers(model, candidate.kept) if not _has_no_graph(graph, model)]
        if holder is None or not graphs or model.grad_enabled(candidate.node) is False:
            return
        if not is_begun_in_sight(model, holder):
            return
        if is_test_case(model, model.function(candidate.node)):
            return
        lives = self._lifetime(candidate, holder)
        if not lives or self._is_recurrence(candidate, holder, lives):
            return
        graphs = [graph for graph in graphs if not self._is_given(graph) and not self._is_summed(graph, holder)]
        if graphs:
            yield from self._kept(candidate, candidate.node, graphs, lives, self._fate(candidate))

    def handed_over(self) -> Iterator[Retention]:
        """The function only keeps what it is given, so the call that gives it a graph is the place to mend."""
        for keeper in self._model.once(keepers):
            for call in keeper.parameter.scope_function.callers:
                yield from self._where_handed_over(call, keeper, self._model)
        for call in self._model.calls:
            home = self._model.home(call)
            for keeper in home.once(keepers) if home is not None else ():
                if home is not None and keeper.parameter.scope_function is call.foreign:
                    yield from self._where_handed_over(call, keeper, home)

    def _where_handed_over(self, call: Call, keeper: Keeper, home: Model) -> Iterator[Retention]:
        model = self._model
        if is_given_back(model, call, keeper, home):
            return
        given = list(given_to(call, keeper.parameter))
        graphs = [graph for part in given for graph in carriers(model, part) if not self._is_given(graph)]
        graphs = [graph for graph in graphs if not _keeps_another_part(keeper, model.value(graph))]
        holder = keeper.holder_at(model, call) if graphs and model.grad_enabled(call.node) is not False else None
        if holder is None or Fate.BACKWARD in fate_of(home, keeper.parameter):
            return  # what the call gives may be kept in several places
        lives = lifetime(model, holder, call.node)
        if lives:
            fate = self._fate(keeper.keeping) if home is model else _Judge(home)._fate(keeper.keeping)
            for found in self._kept(keeper.keeping, call.node, graphs, lives, fate):
                yield replace(found, keeper=keeper, home=home)

    def _is_given(self, graph: cst.BaseExpression) -> bool:
        """Whether the graph came in through a parameter of the surrounding function, whose callers are to mend it."""
        return any(parameters_in(self._model, graph)) and not any(freeing_passes(self._model, graph))

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
        self, candidate: Keeping, node: cst.CSTNode, graphs: list[cst.BaseExpression], lives: Lifetime, fate: Fate
    ) -> Iterator[Retention]:
        freed = [self._freed(graph, lives) for graph in graphs]
        if (None in freed and not self._is_never_read(candidate)) or Fate.BACKWARD in fate:
            return
        if _ends_with_batch(lives) or (
            not lives.beyond and all(is_over_handful(self._model, loop) for loop in lives.loops)
        ):
            return
        if isinstance(candidate.node, cst.Assign) and has_handful_of_places(self._model, candidate.holder):
            return
        if (all(freed) or isinstance(candidate.kept, COLLECTIONS)) and _is_within_step(self._model, lives):
            return  # unlike a rollout, which keeps all that a network has recorded on the way to an update
        if candidate.way is not Way.SUM and all(freed) and self._is_emptied_with_update(candidate, lives):
            return
        if candidate.way is Way.BEST and any(freed):
            return  # one graph at a time, whose buffers are gone
        if not all(freed):
            known = fate is Fate.CONSUMED
            if candidate.way is Way.SUM:  # one that nobody reads is kept for nothing
                is_unread = fate is Fate.NONE and not self._is_held_by_others(candidate)
                known |= is_unread or self._is_in_evaluation(node)
            elif candidate.way is Way.APPEND and fate is Fate.NONE:
                known = self._is_in_evaluation(node)
            if not known or not all(self._grows(graph, lives) for graph in graphs):
                return
        escapes = Fate.ESCAPES in fate and not all(freed)
        obstacle = self._obstacle(candidate.holder if escapes else None, graphs)
        yield Retention(candidate.way, node, candidate.holder, tuple(graphs), all(freed), obstacle)

    def _is_emptied_with_update(self, candidate: Keeping, lives: Lifetime) -> bool:
        """`if step % accumulated == 0: optimizer.step(); losses.clear()`: nodes of a few batches, until the update."""
        model, holder = self._model, root(self._model, candidate.holder)
        if holder is None or not lives.loops:
            return False
        loop = lives.loops[0]
        again = [reset for reset in resets(model, holder, candidate.node) if loop in model.loops_around(reset)]
        innermost = [guards[0] for reset in again if (guards := model.guards(reset, inside=loop))]
        return any(
            isinstance(guard.node, cst.If)
            and guard.branch == "body"
            and bool(model.effects(guard.node.body).optimizer_steps)
            for guard in innermost
        )

    def _is_never_read(self, candidate: Keeping) -> bool:
        """Whether a sum is read by nothing but its own next term: kept for nothing, whenever its graph is freed."""
        holder = root(self._model, candidate.holder)
        if candidate.way is not Way.SUM or holder is None or holder.shared:
            return False
        is_read = any(candidate.node not in self._model.ancestors(read) for read in holder.reads)
        return not is_read and not self._is_held_by_others(candidate)

    def _is_held_by_others(self, candidate: Keeping) -> bool:
        """Whether `total += loss` may change a tensor that came in, or lies elsewhere under another name."""
        holder = self._model.binding(candidate.holder)
        if holder is None or holder.cls is not None or not isinstance(candidate.node, cst.AugAssign):
            return False
        elsewhere = (cst.Name, cst.Attribute, cst.Subscript)
        return any(
            (write.kind == "parameter" or (write.kind == "assign" and isinstance(write.value, elsewhere)))
            and not self._model.value(write.target).is_(Kind.NUMBER)
            for write in holder.writes
        )

    def _obstacle(self, escaping: cst.BaseExpression | None, graphs: list[cst.BaseExpression]) -> str:
        if escaping is not None:
            return "what is kept goes on to code out of sight, which may take gradients of it"
        several = next((graph for graph in graphs if not is_one_tensor(self._model, graph)), None)
        return f"`{self._model.code(several)}` may be something else than one tensor" if several is not None else ""

    def _is_in_evaluation(self, node: cst.CSTNode) -> bool:
        """Whether a node is part of an evaluation that records a graph: what it adds up is a result, not a loss."""
        return any(region in self._regions for region in self._model.ancestors(node))

    @cached_property
    def _regions(self) -> set[cst.CSTNode]:
        return {found.region for found in evaluations(self._model)}

    def _freed(self, graph: cst.BaseExpression, lives: Lifetime) -> bool | None:
        """Whether a backward pass frees the graph while its holder lives on; None: the holder goes with that pass."""
        if is_freed_inside(self._model, graph) or goes_back_from_framework(self._model, graph):
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
        """x = x + f(x), or states.append(f(states[-1])): the next state of something, not one more of its kind."""
        if candidate.way is Way.BEST:
            return False
        inside = lives.loops[0] if lives.loops else None
        return holder in upstream(self._model, candidate.kept, inside=inside)

    def _fate(self, candidate: Keeping) -> Fate:
        binding = root(self._model, candidate.holder)
        assert binding is not None
        fate = self._tracer.of_binding(binding, written_at=candidate.node)
        if binding.is_parameter and candidate.way is Way.APPEND:
            fate |= self._fate_at_callers(binding)
        if isinstance(candidate.node, cst.Assign) and binding.cls is not None and self._is_trained_on(binding.name):
            fate |= Fate.ESCAPES
        return fate

    def _is_trained_on(self, attribute: str) -> bool:
        """Whether a file that uses this one reads the attribute, in which a tensor grows, and goes backward."""
        read = re.compile(rf"\.{re.escape(attribute)}\b")
        return any("backward(" in user.text and read.search(user.text) for user in self._model.users())

    def _fate_at_callers(self, parameter: Binding) -> Fate:
        """A list that was handed in lives on where it came from."""
        fate = Fate.NONE
        calls = parameter.scope_function.callers
        sources = [source for call in calls for source in given_to(call, parameter)]
        for source in sources:
            binding = root(self._model, source)
            fate |= Fate.ESCAPES if binding is None else self._tracer.of_binding(binding)
        return fate if sources else Fate.ESCAPES


def _keeps_another_part(keeper: Keeper, given: Value) -> bool:
    """Whether of a dict with a graph in it only an entry is kept that has none: `self.correct += parts["correct"]`."""
    name = keeper.parameter.name
    for node in walk(keeper.keeping.kept) if given.known_fields else ():
        if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name) and node.value.value == name:
            index = node.slice[0].slice
            key = string_value(index.value) if isinstance(index, cst.Index) else None
            entry = given.field(key) if key is not None else None
            return entry is not None and is_graphless(entry)
    return False


def _ends_with_batch(lives: Lifetime) -> bool:
    """Whether what a variable holds goes with each batch of some data: votes on it, repeated updates from it."""
    if lives.beyond or any(map(is_over_loader, lives.loops)):
        return False
    return any(is_over_loader(loop) for loop in list(lives.loops[-1].around())[1:2])


def _is_within_step(model: Model, lives: Lifetime) -> bool:
    """Whether one update of the weights comes to all that a variable holds: chunks of a batch, agents, unrolled steps.

    What they have recorded goes with the step. A loop over all data that ends in an update is no such thing.
    """
    if lives.beyond or any(map(is_over_loader, lives.loops)):
        return False
    outermost = lives.loops[-1]
    if model.effects(outermost).optimizer_steps:
        return False
    around = list(outermost.around())[1:2]
    if not around:
        return any(call.is_optimizer_step and call.loop is None for call in outermost.function.calls)
    return any(model.effects(loop).optimizer_steps for loop in around)


def _is_over_modules(model: Model, loop: Loop) -> bool:
    """`for block in blocks: x = block(x)`: the layers of one pass, not passes."""
    if loop.role is Role.MODULES:
        return True
    called = (root(model, call.node.func) for call in loop.calls if call.is_forward)
    return any(write.kind == "for" and write.loop is loop for module in called if module for write in module.writes)
