"""The loops of a file that do row by row what one call does, each with the one rule that it belongs to.

A loop that the vectoriser has a plan for comes with its plan. Any other is reported where its iterations are known to
be independent, or where a costly operation in it depends on nothing but the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.compiled import is_compiled
from torchlint.analyses.devices.host_calls import saves
from torchlint.analyses.loops.extent import runs_few_times
from torchlint.analyses.rowwise import costly, wording
from torchlint.analyses.rowwise.certainty import Certainty
from torchlint.analyses.rowwise.collecting import (
    collector,
    gathers,
    is_collected,
    is_host_value,
    is_joined,
    is_put_in_line,
    is_stacked,
)
from torchlint.analyses.rowwise.evidence import is_found_to_be_list, is_list_where
from torchlint.analyses.rowwise.groups import are_groups
from torchlint.analyses.rowwise.length_masks import length_mask, of_mask
from torchlint.analyses.rowwise.mask_picks import joins_picks
from torchlint.analyses.rowwise.moving_windows import windowed_tensor
from torchlint.analyses.rowwise.names import spelled
from torchlint.analyses.rowwise.nature import is_report
from torchlint.analyses.rowwise.restacking import taken_apart
from torchlint.analyses.rowwise.selections import is_selection
from torchlint.analyses.rowwise.setting_up import lists_numbers, only_sets_up
from torchlint.analyses.rowwise.sorting import sorted_tensor, walks_rows
from torchlint.analyses.rowwise.spared_memory import (
    frees_memory,
    is_one_of_two_ways,
    spares_memory,
    streams_rows,
)
from torchlint.analyses.rowwise.state import Depends, Fault, Kept, Path, Sink, Step, Trace
from torchlint.analyses.rowwise.trace import trace_of, trace_of_comprehension
from torchlint.analyses.rowwise.windows import cuts_windows
from torchlint.analyses.texts import is_text
from torchlint.analyses.vectorize.plan import Plan, attempt, is_plain
from torchlint.finding import Confidence
from torchlint.rule import Fact, Report
from torchlint.semantics.entities import Role
from torchlint.semantics.numbering import Numbering
from torchlint.semantics.tree import last_name, walk, without_subscripts
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Loop
    from torchlint.semantics.model import Model

Root = cst.For | cst.Call | cst.ListComp | cst.GeneratorExp

_FUNCTIONS = (cst.FunctionDef, cst.Lambda)
_MAKING_SPARSE = re.compile(r"to_sparse(_\w+)?|sparse_\w+_tensor")
_OTHER_ROLES = (Role.EPOCHS, Role.STEPS, Role.MODULES)


@dataclass(frozen=True, slots=True)
class Work:
    """One loop: the code of the rule it belongs to, and the plan of its rewrite, or what stands in the way of one."""

    root: Root | cst.While
    code: str
    message: str
    confidence: Confidence
    rewrite: Plan | str
    chain: tuple[Fact, ...]


def reports(model: Model, code: str) -> Iterator[Report]:
    """What the rule `code` has to say."""
    for work in model.once(_all_work):
        if work.code == code:
            yield Report(work.root, work.message, work.confidence, work.rewrite, work.chain)


def _all_work(model: Model) -> tuple[Work, ...]:
    """Of nested loops the outermost one that is such work, in source order."""
    return tuple(_Finder(model).found())


def _around_reports(model: Model) -> set[cst.CSTNode]:
    """What holds a call that says what each iteration did: not even an operation that costs as much for one row as for
    all is worth a word in such a loop."""
    found: set[cst.CSTNode] = set()
    for call in model.calls:
        if is_report(call):
            found.add(call.node)
            found.update(takewhile(lambda node: not isinstance(node, _FUNCTIONS), model.ancestors(call.node)))
    return found


class _Finder:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._certainty = model.once(Certainty)
        self._attempts: dict[Root, tuple[Plan | None, str]] = {}
        self._taken: set[cst.CSTNode] = set()  # nothing is said of the loops in them
        self._nests = any((call.callee or "").startswith("torch.nested.") for call in model.calls)

    def found(self) -> Iterator[Work]:
        for loop in self._model.loops:
            if isinstance(loop.node, cst.While):
                yield from self._of_moving_windows(loop, loop.node)
            root = self._root(loop)
            if root is None or any(ancestor in self._taken for ancestor in self._model.ancestors(root)):
                continue
            work = self._work(loop, root) or self._of_mask(loop, root) or self._of_rows_restacked(loop, root)
            if work is not None:
                self._taken.add(root)
                if not spares_memory(self._model, root):
                    yield work
        for call in self._model.calls_to("builtins.sorted"):
            name = sorted_tensor(self._model, self._certainty, call.node)
            if name is not None:
                yield Work(call.node, "VEC01", wording.of_sorting(name), Confidence.LIKELY, "the result is a list", ())
        for call in self._model.calls_to("builtins.sum", "builtins.max", "builtins.min"):
            reported = any(ancestor in self._taken for ancestor in self._model.ancestors(call.node))
            if reported or not walks_rows(self._model, self._certainty, call.node):
                continue
            if not is_list_where(self._model, call.node.args[0].value, call.node):
                plan, reason = self._attempt(call.node)
                message = wording.of_builtin(call.callee or "", call.node.args[0].value)
                yield Work(call.node, "VEC01", message, Confidence.LIKELY, plan or reason, ())

    def _root(self, loop: Loop) -> Root | None:
        """The for statement, or of a comprehension the call that collects it."""
        if loop.role in _OTHER_ROLES or loop.iterates.kind is Kind.LOADER or isinstance(loop.node, cst.While):
            return None
        if self._nests:
            return None  # rows of a nested tensor have lengths of their own
        if loop.iterable is not None and _is_sparse(self._model, loop.iterable):
            return None  # for which torch has few operations, and fewer that broadcast
        if is_compiled(self._model, loop.function) or only_sets_up(self._model, loop):
            return None
        if isinstance(loop.node, cst.For):
            return loop.node if loop.node.orelse is None and loop.node.asynchronous is None else None
        comprehension = self._model.parent(loop.node)
        if not isinstance(comprehension, (cst.ListComp, cst.GeneratorExp)) or lists_numbers(self._model, loop):
            return None
        if any(is_text(self._model, part) for part in walk(comprehension.elt)):
            return None  # each row becomes a text of its own
        return collector(self._model, comprehension) or comprehension

    def _work(self, loop: Loop, root: Root) -> Work | None:
        if root in self._model.once(_around_reports):
            return None
        plan, reason = self._attempt(root)
        if plan is None and (runs_few_times(self._model, loop) or is_found_to_be_list(self._model, loop)):
            return None
        parts = (node.value for node in walk(root) if isinstance(node, cst.Subscript)) if plan is not None else ()
        if any(is_list_where(self._model, whole, root) for whole in parts):
            return None
        trace = self._trace(root)
        if plan is not None and not (plan.copies and (trace is None or not self._is_independent(root, trace))):
            code = self._code(root, trace, plan)
            message = wording.of_plan(code, plan)
            return Work(root, code, message, plan.confidence, plan, self._chain(root, trace, None))
        if trace is None or any(self._has_plan(inner) for inner in self._loops_in(root)):
            return None
        if trace.blocks and self._joins_batches(trace):
            return None
        if Fault.CHUNKS in trace.faults and are_groups(root, trace):
            del trace.faults[Fault.CHUNKS]
        final = trace.is_final
        step = None if Fault.CHUNKS in trace.faults else costly.at_once(self._model, root, trace)
        runs_network = step is not None and step.name == "forward"
        on_purpose = (is_put_in_line, frees_memory, streams_rows)
        if runs_network and any(is_meant(self._model, root) for is_meant in on_purpose):
            return None
        if step is not None:
            code = costly.code_of(step)
        elif final:
            return self._partly(root, trace, reason) or self._windowing(root, trace)
        elif self._is_independent(root, trace):
            code = self._code(root, trace, None)
        else:
            others = self._drawing, self._selecting, self._windowing, self._picking
            found = (one(root, trace) for one in others)
            return self._partly(root, trace, reason) or next((work for work in found if work is not None), None)
        if code == "VEC08" and self._compares_step_by_step(trace):
            self._taken.add(root)
            return None
        if step is not None and is_one_of_two_ways(self._model, root, step.node):
            return None
        message = wording.of_loop(self._model, code, root, trace, step)
        reason = reason.replace("may do anything", "is no operation that can be rewritten")
        return Work(root, code, message, Confidence.LIKELY, reason, self._chain(root, trace, step, code))

    def _joins_batches(self, trace: Trace) -> bool:
        """Whether torch.cat joins what is computed of blocks of rows, which are batches, then, for want of memory."""
        lists = (kept.node for kept in trace.kept if kept.sink is Sink.APPEND)
        return any(is_joined(self._model, rows) and not is_stacked(self._model, rows) for rows in lists)

    def _partly(self, root: Root, trace: Trace, reason: str) -> Work | None:
        """Of a loop that has to stay: an operation of torch in it need not, unless a file of each row takes longer."""
        loop = self._model.loop_of(root)
        if loop is not None and any(map(saves, loop.calls)):
            return None
        step = costly.along_dimension(self._model, root, trace) if isinstance(root, cst.For) else None
        if step is None:
            return None
        message = wording.of_step(self._model, trace, step)
        return Work(root, "VEC01", message, Confidence.LIKELY, reason, self._chain(root, trace, step))

    def _drawing(self, root: Root, trace: Trace) -> Work | None:
        """Of a loop whose iterations only differ in the random numbers that each draws for its row of a tensor."""
        if Fault.RANDOM not in trace.faults or not isinstance(root, cst.For):
            return None
        drawn = trace_of(self._model, self._certainty, root, draws_at_once=True)
        if drawn.faults or not self._is_independent(root, drawn):
            return None
        if any(kept.guarded or kept.sink not in (Sink.FILL, Sink.APPEND) for kept in drawn.kept):
            return None
        if not any(kept.seen.is_row and kept.seen.drawn for kept in drawn.kept):
            return None
        message = wording.of_draws(drawn)
        chain = self._chain(root, drawn, None)
        return Work(root, "VEC01", message, Confidence.LIKELY, Fault.RANDOM.value, chain)

    def _selecting(self, root: Root, trace: Trace) -> Work | None:
        """Of a loop that does nothing but collect the rows of a tensor, or their numbers, that a test of them picks."""
        if not is_selection(trace):
            return None
        message = wording.of_selection(root, trace)
        code = "VEC01" if isinstance(root, cst.For) else "VEC06"
        return Work(root, code, message, Confidence.LIKELY, Fault.RAGGED.value, self._chain(root, trace, None))

    def _windowing(self, root: Root, trace: Trace) -> Work | None:
        """Of a loop that does nothing but cut windows out of a tensor."""
        if not cuts_windows(self._model, root, trace):
            return None
        message = wording.of_windows(root, trace)
        code = "VEC01" if isinstance(root, cst.For) else "VEC06"
        return Work(root, code, message, Confidence.LIKELY, "windows may overlap", self._chain(root, trace, None))

    def _picking(self, root: Root, trace: Trace) -> Work | None:
        """Of a loop that does nothing but put what a mask picks of each row behind one another."""
        if not joins_picks(self._model, root, trace):
            return None
        message = wording.of_picks(root)
        code = "VEC01" if isinstance(root, cst.For) else "VEC06"
        return Work(root, code, message, Confidence.LIKELY, Fault.RAGGED.value, self._chain(root, trace, None))

    def _of_mask(self, loop: Loop, root: Root) -> Work | None:
        mask = length_mask(self._model, self._certainty, root) if isinstance(root, cst.For) else None
        if mask is None or runs_few_times(self._model, loop):
            return None
        return Work(root, "VEC02", of_mask(mask), Confidence.LIKELY, "the lengths may be a list", ())

    def _of_moving_windows(self, loop: Loop, root: cst.While) -> Iterator[Work]:
        name = windowed_tensor(self._model, self._certainty, root)
        if name is not None and not is_compiled(self._model, loop.function) and not only_sets_up(self._model, loop):
            yield Work(root, "VEC01", wording.of_frames(name), Confidence.LIKELY, "windows may overlap", ())

    def _of_rows_restacked(self, loop: Loop, root: Root) -> Work | None:
        if not isinstance(root, cst.For) or not taken_apart(self._model, self._certainty, root):
            return None
        if runs_few_times(self._model, loop):
            return None
        message = wording.of_restacking(root.iter)
        return Work(root, "VEC01", message, Confidence.LIKELY, "the tensors are to be kept whole", ())

    def _attempt(self, root: Root) -> tuple[Plan | None, str]:
        if isinstance(root, cst.GeneratorExp) or (isinstance(root, cst.For) and not is_plain(root)):
            return None, "the body of the loop does more than compute"
        if root not in self._attempts:
            self._attempts[root] = attempt(self._model, root)
        return self._attempts[root]

    def _loops_in(self, root: Root) -> Iterator[cst.For]:
        numbering = self._model.once(Numbering)
        first, start, end = numbering.first, numbering.first[root], numbering.last[root]
        yield from (
            loop.node
            for loop in self._model.loops
            if isinstance(loop.node, cst.For) and start < first[loop.node] <= end
        )

    def _has_plan(self, node: cst.For) -> bool:
        """Whether an inner loop can be rewritten by itself, which then comes first."""
        plan, _ = self._attempt(node)
        return plan is not None and not (plan.doubts or plan.copies)

    def _trace(self, root: Root) -> Trace | None:
        if isinstance(root, cst.For):
            return trace_of(self._model, self._certainty, root)
        node = root.args[0].value if isinstance(root, cst.Call) else root
        if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
            return trace_of_comprehension(self._model, self._certainty, node)
        return None

    # verdicts

    def _is_independent(self, root: Root, trace: Trace) -> bool:
        if not set(trace.faults) <= {Fault.NETWORK} or not trace.kept or not _does_work(trace):
            return False
        if trace.faults and any(kept.sink not in (Sink.APPEND, Sink.FILL) for kept in trace.kept):
            return False
        if not any(self._are_of_rows(path, trace) for path in {kept.path for kept in trace.kept}):
            return False
        if any(self._is_written_out(kept, trace) for kept in trace.kept):
            return False
        appended = [kept for kept in trace.kept if kept.sink is Sink.APPEND]
        if any(_is_gathered(kept) and not is_stacked(self._model, kept.node) for kept in appended):
            return False
        if appended and costly.computes(trace.steps) and all(self._is_read_back(kept) for kept in appended):
            return True
        if all(_is_listed(kept) for kept in trace.kept):
            return True
        if not trace.faults and costly.runs_layers(self._model, trace.steps):  # a batch has rows as a list has
            return True
        if not isinstance(root, cst.For):
            return isinstance(root, cst.Call) or is_collected(self._model, root)
        collected = [is_collected(self._model, root, kept.node) for kept in appended]
        return not appended or any(collected)

    def _is_read_back(self, kept: Kept) -> bool:
        """Whether one list takes a number or an array of the host for each row, or a dict of numbers."""
        if not kept.seen.is_row or isinstance(kept.node, cst.Subscript):
            return False
        if isinstance(kept.value, cst.Dict):
            entries = [entry.value for entry in kept.value.elements]
            return bool(entries) and all(self._model.value(entry).kind is Kind.NUMBER for entry in entries)
        return is_host_value(kept.value) or self._is_measure(kept.value)

    def _is_measure(self, value: cst.BaseExpression | None) -> bool:
        """`error_of(x[i], y[i])`, of a function of the program that returns a number."""
        if not isinstance(value, cst.Call) or self._model.value(value).kind is not Kind.NUMBER:
            return False
        call = self._model.call(value)
        return call.target is not None or call.foreign is not None

    def _is_written_out(self, kept: Kept, trace: Trace) -> bool:
        """Whether numbers become a text, or entries of a dict, or rows those of a list, for which nothing is computed:
        one by one, anyway. A list of None has places for rows."""
        binding = self._model.binding(without_subscripts(kept.node))
        held = [self._model.value(write.target) for write in binding.writes] if binding is not None else []
        kinds = {value.kind for value in held}
        if Kind.STRING in kinds or costly.computes(trace.steps):
            return Kind.STRING in kinds
        is_row = kept.sink is Sink.COUNT and kept.value is not None and self._model.value(kept.value).is_tensor
        is_row = is_row or any(value.element is not None and value.element.kind is Kind.NONE for value in held)
        return Kind.DICT in kinds or (Kind.LIST in kinds and is_row)

    def _are_of_rows(self, path: Path, trace: Trace) -> bool:
        """Whether all that is kept, where these branches are taken, depends on rows alone. Beside a row of a tensor,
        what may be a row and is stacked is one, or an element of a list that may be stacked just as well; what several
        indices take for torch.cat is one, too. So it is where nothing but arithmetic is done, which does not make one
        shape of several. What a tensor is compared with, as its targets are with a few classes, is a number."""
        met = [kept for kept in trace.kept if kept.meets(path)]
        others = [kept for kept in met if not _is_of_row(kept, trace)]
        if not all(self._goes_along(kept) for kept in others):
            return False
        if not others or any(kept.seen.is_row for kept in met):
            return True
        return costly.is_elementwise(trace.steps) and not costly.only_compares(trace.steps)

    def _goes_along(self, kept: Kept) -> bool:
        """Whether what may be a row, for all that is known, can be nothing but an element of equal shape; or is the
        element itself that the loop has come to, whose sum needs no loop either."""
        if kept.sink is Sink.TOTAL:
            return self._is_come_to(kept.value)
        if not kept.seen.maybe:
            return False
        if kept.sink is Sink.APPEND:
            return is_stacked(self._model, kept.node) or (kept.seen.array and is_joined(self._model, kept.node))
        return kept.sink is Sink.FILL and kept.seen.array and not kept.guarded

    def _is_come_to(self, value: cst.BaseExpression | None) -> bool:
        binding = self._model.binding(value) if isinstance(value, cst.Name) else None
        return binding is not None and all(write.kind == "for" for write in binding.writes)

    def _code(self, root: Root, trace: Trace | None, plan: Plan | None) -> str:
        """The rule that a loop belongs to, by the costliest thing it does."""
        steps = trace.steps if trace is not None else []
        linear = costly.linear(steps)
        if linear is not None:
            return linear
        if plan is not None and "matmul" in plan.operations:
            return "LIN01"
        if isinstance(root, cst.For) and any(step.pairs for step in steps):
            return "VEC08"
        if not isinstance(root, cst.For):
            return "VEC06"
        return "VEC02" if any(costly.is_sample_work(step) for step in steps) else "VEC01"

    def _compares_step_by_step(self, trace: Trace) -> bool:
        """Whether a function of the program with a loop of its own, over windows of two sequences perhaps, is what is
        called for each pair: no broadcast does that."""
        pairs = (step.node for step in trace.steps if step.pairs)
        calls = (self._model.call(node) for node in pairs if isinstance(node, cst.Call))
        entered = (call.target or call.foreign for call in calls)
        return any(function is not None and function.loops for function in entered)

    def _chain(self, root: Root, trace: Trace | None, step: Step | None, code: str = "") -> tuple[Fact, ...]:
        name = costly.subject(trace, code) if trace is not None else None
        if trace is None or name is None:
            return ()
        facts = [Fact(root, f"each iteration takes one row of `{name}`")]
        first = step or next((one for one in trace.steps if one.inputs.is_row), None)
        if first is not None:
            facts.append(Fact(first.node, "which is all that this depends on, beside what no iteration changes"))
        kept = next((one for one in trace.kept if one.name), None)
        if kept is not None and step is None:
            facts.append(Fact(kept.node, f"`{kept.name}` keeps the result, and no iteration reads that of another"))
        return tuple(facts)


def _is_sparse(model: Model, rows: cst.BaseExpression) -> bool:
    binding = model.binding(rows)
    written = [write.value for write in binding.writes] if binding is not None else []
    return any(
        isinstance(made, cst.Call) and _MAKING_SPARSE.fullmatch(last_name(made.func)) for made in (rows, *written)
    )


def _is_of_row(kept: Kept, trace: Trace) -> bool:
    if kept.place.depends > Depends.ROW:
        return kept.sink is Sink.FILL and kept.place.maybe and kept.seen.is_row  # `out[places[i]] = x[i]`
    if kept.seen.depends <= Depends.ROW or (kept.sink is Sink.FILL and kept.seen.looked_up and not kept.guarded):
        return True
    if kept.sink is Sink.COUNT:
        return kept.place.is_row and kept.seen.maybe
    if not kept.seen.maybe:
        return False
    if costly.multiplies(trace.steps) or _meets_row(kept, trace):
        return True
    if kept.sink is Sink.TOTAL:
        return trace.picks  # `loss += -out[i][target[i]] * reward[i]`, whatever weighs what the rows pick
    drawn = trace.drawn and kept.value is not None and gathers(kept.value)
    return drawn or _is_gathered(kept) or costly.is_formula(trace.steps) or costly.decomposes(trace.steps)


def _is_listed(kept: Kept) -> bool:
    """`rows.append(x[i].tolist())`, which the list of the whole tensor holds."""
    match kept.value:
        case cst.Call(func=cst.Attribute(value=row, attr=cst.Name("tolist")), args=[]):
            is_whole = isinstance(row, cst.Name) or (isinstance(row, cst.Subscript) and gathers(row))
            return kept.sink is Sink.APPEND and kept.seen.is_row and isinstance(kept.node, cst.Name) and is_whole
    return False


def _meets_row(kept: Kept, trace: Trace) -> bool:
    """`out[i] = f(x[i], y[i])`, where x is a tensor and y may be one: what fills `out` has the same shape each time."""
    if kept.sink is not Sink.FILL or kept.guarded or kept.value is None or kept.place.depends is not Depends.INDEX:
        return False
    parts = [part for part in walk(kept.value) if isinstance(part, cst.Subscript)]
    of_rows = [spelled(without_subscripts(part)) in trace.subjects for part in parts]
    products = [node for node in walk(kept.value) if isinstance(node, cst.BinaryOperation)]
    # What is multiplied by it may be one of the few numbers that there are for the channels of an image.
    operands = {side for node in products for side in (node.left, node.right)}
    return any(of_rows) and all(is_row or part not in operands for part, is_row in zip(parts, of_rows))


def _is_gathered(kept: Kept) -> bool:
    """`out[i] = x[places[i]]`, `rows.append(x[i, places[i]])`: whatever holds the places, one row or element each."""
    return kept.seen.gathered and kept.seen.maybe and (kept.sink is Sink.APPEND or not kept.seen.array)


def _does_work(trace: Trace) -> bool:
    """Whether the loop computes with rows, gathers them, or fills elements, and not just walks over them."""
    if any((step.inputs.is_row or step.inputs.masked) and not costly.is_conversion(step) for step in trace.steps):
        return True
    if costly.is_formula(trace.steps) or costly.decomposes(trace.steps):
        return True
    grown = (kept for kept in trace.kept if kept.sink in (Sink.APPEND, Sink.FILL))
    if costly.is_elementwise(trace.steps) and any(kept.seen.maybe for kept in grown):
        return True
    return any(_is_fill(kept) or (kept.sink is Sink.TOTAL and trace.picks) for kept in trace.kept)


def _is_fill(kept: Kept) -> bool:
    """Rows that are copied, elements at places that a tensor names or that are counted up, and elements of a table."""
    if kept.sink is Sink.COUNT:
        return kept.place.is_row and (kept.seen.is_row or kept.seen.maybe)
    if kept.sink is Sink.APPEND:
        return (kept.seen.is_row and kept.value is not None and gathers(kept.value)) or _is_gathered(kept)
    if kept.sink is Sink.FILL and not kept.guarded and max(kept.seen.depends, kept.place.depends) is Depends.INDEX:
        return True
    if kept.sink is Sink.FILL and (kept.seen.maybe or kept.seen.looked_up):
        return True
    return kept.sink is Sink.FILL and (kept.seen.is_row or kept.place.is_row or len(kept.place.axes) > 1)
