from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers._together import places_of

from torchlint.analyses.evaluation_names import is_over_data
from torchlint.analyses.mem.evaluation import Extent
from torchlint.analyses.mem.step_parts import all_evaluations, is_part_of_step
from torchlint.analyses.variable_wrapper import VARIABLE
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.dataflow import bare_text, reaches
from torchlint.semantics.hints import LOSS_NAMES
from torchlint.semantics.parallel_assignment import assigned_pairs
from torchlint.semantics.tree import last_name, walk
from torchlint.semantics.values import Kind

from .._rows import row_around
from ._branches import branches_around
from ._cuts import needless_cuts, outermost
from ._going_on import (
    goes_on,
    goes_on_elsewhere,
    made_by_helper,
    made_for_it,
    passes_of,
    said_between,
    switches_off,
    with_those_between,
)
from ._left_out import (
    TRAINING,
    blocks_of_chain,
    covered_by_callers,
    left_beside,
    left_out,
    only_evaluates,
    targets_of,
)

if TYPE_CHECKING:
    from torchlint.analyses.mem.evaluation import Evaluation
    from torchlint.rule import Report
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

_LONG = 30  # lines: a longer loop is not indented as a whole, only the statements in it that run the model
_LONG_ELSEWHERE = 10  # likewise of a loop that is not over data, such as a search or an episode
_TAKEN_OUT = re.compile(r"#\s*(with\s+|@)(torch\.)?(no_grad|inference_mode|set_grad_enabled)\b")
_DECORATOR = "0.4.1"  # the first release in which `no_grad` decorates functions
_WHY = "Some modules take other kernels without a graph, and results may differ in the last bits."


def fix(report: Report, model: Model) -> Fix:
    """A decorator for a function that only evaluates, otherwise a `with` block around the loop or statement."""
    found: Evaluation = report.facts
    rewriter = Rewriter(model)
    switch = "torch.set_grad_enabled" if found.extent is Extent.PHASE else "torch.no_grad"
    name, edits = rewriter.name_for(switch, found.region)
    region = _region_edits(rewriter, model, found, name)
    if not region:
        raise NoFixError("the evaluation shares a line with other statements")
    needed = _DECORATOR if found.extent is Extent.FUNCTION else ""
    way = left_beside(found, model) if found.extent is Extent.FUNCTION else None
    alike = (places_of([way.node], model),) if way is not None and isinstance(way.node, cst.FunctionDef) else ()
    edits = [*edits, *region]
    return Fix(tuple(edits), Applicability.UNSAFE, _WHY, needs_torch=needed, comes_first=True, goes_with=alike)


def _check(found: Evaluation, model: Model) -> None:
    """Raises NoFixError where something would lose gradients that it needs, or the switch belongs elsewhere."""
    region = found.region
    if found.extent is Extent.PART:
        raise NoFixError("the statement also does what needs gradients")
    if _leaves_in_between(region, found.extent):
        raise NoFixError("a `yield` or `await` in it would switch off the gradients of other code")
    if _trains_elsewhere(found, model):
        raise NoFixError("a function of another file that it calls takes gradients")
    if _asks_a_wrapper_for_it(region, model):
        raise NoFixError("`volatile` in it says the same to a wrapper of the program's own, and would stay")
    if found.extent is not Extent.FUNCTION and _is_in_step_without_backward(region, model):
        raise NoFixError("an optimizer steps beside it, and whether a backward pass is missing is for you to say")
    if found.extent is not Extent.FUNCTION and _adds_to_a_loss(region, model):
        raise NoFixError("it adds to the loss that the same step starts its backward pass from")
    if isinstance(region, cst.SimpleStatementLine) and goes_on(region, found, model):
        raise NoFixError("the network goes on with the result below: what belongs to the evaluation is for you to say")
    if found.extent is Extent.BLOCK and (call := goes_on_elsewhere(region, found, model)) is not None:
        raise NoFixError(f"`{model.code(call.node.func)}` goes on with it on {model.place(call.node)}")
    is_loop = isinstance(region, (cst.For, cst.While)) and found.extent is Extent.BLOCK
    if is_loop and (call := made_for_it(region, found, model)) is not None:
        raise NoFixError(f"what it is given is made on {model.place(call.node)}, and has a graph")
    if found.extent is Extent.BLOCK and (call := made_by_helper(region, found, model)) is not None:
        raise NoFixError(f"what it is given is made on {model.place(call.node)}, and may have a graph")
    if found.extent is Extent.FUNCTION and is_all_of_another_file(found, model):
        raise NoFixError("the function of another file that it calls brings the networks, and the switch belongs there")
    if found.extent is Extent.BLOCK and _is_all_of_a_step(region, found, model):
        raise NoFixError("a backward pass starts from what is made of it")
    is_statement = isinstance(region, cst.BaseStatement) and found.extent is Extent.BLOCK
    if is_statement and (other := left_out(region, found, model)) is not None:
        raise NoFixError(f"`{model.code(other)}` is a part of the same evaluation, and keeps its graph")
    if is_statement and _is_split(region, model):
        raise NoFixError("another branch evaluates, too, and one switch around them all is for you to set")
    if found.extent is Extent.FUNCTION and found.forward.function.name == "__init__":
        raise NoFixError("a constructor is there for more than its evaluation, and where that ends is for you to say")
    if found.extent is Extent.FUNCTION and (call := covered_by_callers(found, model)) is not None:
        raise NoFixError(f"all that call it are to switch autograd off, first on {model.place(call.node)}")
    if found.extent is Extent.PHASE and _is_scattered(found, model):
        raise NoFixError("the function evaluates in several places, and one switch for them all is for you to set")


def _region_edits(rewriter: Rewriter, model: Model, found: Evaluation, name: str) -> list[Edit]:
    _check(found, model)
    region = found.region
    inside = (call for call in passes_of(model, found.forward.function) if region in model.ancestors(call.node))
    if _is_switched_there(found.forward, model) and all(_is_switched_there(call, model) for call in inside):
        raise NoFixError("the function of another file that it calls is to switch autograd off itself")
    if found.extent is Extent.FUNCTION:
        if not isinstance(region, cst.FunctionDef):
            return []
        if any(switches_off(node, model) for node in walk(region.body) if isinstance(node, cst.With)):
            raise NoFixError("a part of the function switches autograd off already, and the other belongs there, too")
        if _may_fail_to_import(name, model):
            raise NoFixError(f"`{name.partition('.')[0]}` need not be there when the function is defined")
        _check_was_not_taken_out(region)
        body = [line for line in region.body.body if isinstance(line, cst.BaseStatement)]
        cuts = needless_cuts(body, rewriter, model)
        return [rewriter.decorate(region, f"@{name}()"), *cuts, *_without_bare(found, rewriter)]
    header = f"with {name}({found.phase or ''}):"
    blocks = _blocks(model, found)
    if len(blocks) > 1 and found.phase is None and only_evaluates(found.forward.function, model):
        raise NoFixError("it evaluates in several places, and one switch for them all is for you to set")
    for line in chain.from_iterable(blocks):
        _check_was_not_taken_out(line)
    if found.phase is not None and any(_is_decided(block[0], found.phase, model) for block in blocks):
        raise NoFixError(f"what runs where `{found.phase}` is decided around it already")
    lines = tuple(line for block in blocks for line in block)
    known = model.once(_known_edits)  # many findings may speak of the same lines
    if (header, found.bare, lines) not in known:
        edits = [edit for block in blocks for edit in _under(block, header, rewriter, model)]
        if found.bare is not None and found.phase is None:
            edits = _from_bare(found.bare, blocks, edits, rewriter, model)
        if found.phase is None:
            edits += needless_cuts(lines, rewriter, model)
        known[header, found.bare, lines] = outermost(edits)
    return known[header, found.bare, lines]


def _known_edits(model: Model) -> dict[object, list[Edit]]:
    return {}


def _check_was_not_taken_out(statement: cst.CSTNode) -> None:
    """Raises NoFixError where a comment right above it, or in it, has the switch: `# with torch.no_grad():`"""
    for node in walk(statement):
        above = [*getattr(node, "leading_lines", ()), *getattr(node, "lines_after_decorators", ())]
        if any(line.comment is not None and _TAKEN_OUT.match(line.comment.value) for line in above):
            raise NoFixError("a comment has the switch, as something that was taken out")


def _is_switched_there(call: Call, model: Model) -> bool:
    """Whether a call enters a function of another file that gets the decorator by a finding of its own."""
    entered = model.elsewhere(call)
    if entered is None:
        return False
    home, function = entered
    return any(
        other.extent is Extent.FUNCTION and other.region is function.node for other in home.once(all_evaluations)
    )


def is_all_of_another_file(found: Evaluation, model: Model) -> bool:
    """Whether all networks that a function runs are made, or known, in functions of other files that it calls."""
    passes = (found.forward, *found.others, *passes_of(model, found.forward.function))
    return all(
        call.foreign is not None
        and model.value(call.node.func).kind is Kind.FUNCTION
        and not isinstance(call.node.func, cst.Attribute)
        and not any(_may_be_network(arg.value, model) for arg in call.arguments)
        for call in passes
    )


def _may_be_network(node: cst.BaseExpression, model: Model) -> bool:
    kind = model.value(node).kind
    return kind is Kind.MODULE or (kind is Kind.UNKNOWN and isinstance(node, cst.Name))


def _is_decided(line: cst.BaseStatement, phase: str, model: Model) -> bool:
    """Whether a line stands in a branch that is taken in one of the phases only."""
    tests = (above.test for above in model.ancestors(line) if isinstance(above, cst.If))
    return any(bare_text(test) in (phase, f"not {phase}") for test in tests)


def _under(block: Sequence[cst.BaseStatement], header: str, rewriter: Rewriter, model: Model) -> list[Edit]:
    """A block under a header of its own, or together with the block right above or below it that has the same one."""
    edits = rewriter.indent_under(block, header) or []
    body = list(getattr(model.parent(block[0]), "body", ()))
    if not edits or body[body.index(block[0]) : body.index(block[0]) + len(block)] != list(block):
        return edits
    first, last = body.index(block[0]), body.index(block[0]) + len(block) - 1
    if first > 0 and _is_under(body[first - 1], header, model) and _is_gap(body[first - 1], block[0], model):
        line = rewriter.indentation(block[0]) + header + rewriter.newline
        edits[0] = Edit(edits[0].start, edits[0].end, edits[0].text.removeprefix(line))
    if last + 1 < len(body) and _is_under(below := body[last + 1], header, model) and _is_gap(block[-1], below, model):
        start = model.span(below)[0]
        start -= len(rewriter.indentation(below))
        edits.append(Edit(start, model.source.text.index("\n", start) + 1, ""))
    return edits


def _is_under(node: cst.BaseStatement, header: str, model: Model) -> bool:
    """Whether a statement is a block with a header that says that and nothing else."""
    line = model.source.text[model.span(node)[0] :].partition("\n")[0]
    return isinstance(node, cst.With) and isinstance(node.body, cst.IndentedBlock) and line.strip() == header


def _is_gap(first: cst.BaseStatement, second: cst.BaseStatement, model: Model) -> bool:
    """Whether nothing stands between two statements but blank lines."""
    return not model.source.text[model.span(first)[1] : model.span(second)[0]].strip()


def _without_bare(found: Evaluation, rewriter: Rewriter) -> list[Edit]:
    """Takes a `torch.no_grad()` away that does nothing, unless a comment stands beside it."""
    if found.bare is None or rewriter.comments(found.bare):
        return []
    gone = rewriter.remove_statement(found.bare)
    return [gone] if gone is not None and not gone.text else []


def _from_bare(
    bare: cst.CSTNode,
    blocks: Sequence[Sequence[cst.BaseStatement]],
    edits: list[Edit],
    rewriter: Rewriter,
    model: Model,
) -> list[Edit]:
    """`torch.no_grad()`, which does nothing, as the header of the block below it, where that is all there is."""
    line, first = model.statement(bare), blocks[0][0]
    body = list(getattr(model.parent(first), "body", ()))
    if len(blocks) > 1 or line not in body or body.index(line) != body.index(first) - 1 or not edits:
        return edits
    start, end = model.span(bare)
    text = model.source.text
    line_end = text.find("\n", end) + 1
    begin = model.span(first)[0] - len(rewriter.indentation(first))
    header, _, rest = edits[0].text.partition(rewriter.newline)
    if text[line_end:begin].strip() or not header.strip().startswith("with ") or rest.strip():
        return edits
    made = [Edit(start, start, "with "), Edit(end, end, ":")]
    gap = [Edit(line_end, begin, "")] if line_end < begin else []
    return [*made, *gap, Edit(edits[0].start, edits[0].end, rest), *edits[1:]]


def _may_fail_to_import(name: str, model: Model) -> bool:
    """`try: import torch`, in a file that is of use without it: a decorator is run as the file is imported."""
    imports = (
        statement
        for kind in (cst.Import, cst.ImportFrom)
        for statement in model.nodes_of(kind)
        if name.partition(".")[0] in model.code(statement).replace(",", " ").split()
    )
    return any(isinstance(above, cst.Try) for statement in imports for above in model.ancestors(statement))


def _asks_a_wrapper_for_it(region: cst.CSTNode, model: Model) -> bool:
    """`Wrapped(x, volatile=True)`, of which TRAIN10 takes nothing away."""
    return any(
        isinstance(node, cst.Call)
        and any(arg.keyword is not None and arg.keyword.value == "volatile" for arg in node.args)
        and model.call(node).callee != VARIABLE
        for node in walk(region)
    )


def _is_in_step_without_backward(region: cst.CSTNode, model: Model) -> bool:
    """Whether the loop around it steps an optimizer, and nothing in it, as far as can be seen, takes gradients."""
    around = [model.effects(loop) for loop in model.loops_around(region)]
    steps = any(effects.optimizer_steps for effects in around)
    return steps and not any(effects.has("backward") or effects.has("gradients") for effects in around)


def _adds_to_a_loss(region: cst.CSTNode, model: Model) -> bool:
    """Whether the region adds to what a backward pass of the same step starts from: a part of training that has no
    effect as the code stands, and that nobody would understand without its graph."""
    added = {model.binding(node.target) for node in walk(region) if isinstance(node, cst.AugAssign)}
    return any(
        call.receiver is not None
        and model.binding(call.receiver) in added - {None}
        and model.loops_around(call.node) == model.loops_around(region)
        for call in model.calls_to(".backward")
    )


def _is_all_of_a_step(region: cst.CSTNode, found: Evaluation, model: Model) -> bool:
    """Whether a statement behind a region makes a loss of its result, one of integers, too, and nothing else there runs
    a network: that is no evaluation, whatever becomes of the loss."""
    loops = model.loops_around(region)
    passes = passes_of(model, found.forward.function)
    beside = (call for call in passes if model.loops_around(call.node) == loops)
    if any(
        region not in model.ancestors(call.node) and not LOSS_NAMES.search(last_name(call.node.func)) for call in beside
    ):
        return False
    inside = {node for node in walk(region) if isinstance(node, cst.Name)}
    for binding in {model.binding(node) for node in inside} - {None}:
        assert binding is not None
        written = [write.target for write in binding.writes if write.target in inside]
        for read in (read for read in binding.reads if read not in inside):
            losses = [model.binding(target) for target, _ in assigned_pairs(model.small_statement(read))]
            is_loss = any(loss is not None and "backward" in loss.methods for loss in losses)
            if is_loss and any(reaches(model, binding, target, read) for target in written):
                return True
    return False


def _is_split(region: cst.CSTNode, model: Model) -> bool:
    """Whether another branch gives the same variable a value of an evaluation, and both do more than that."""
    lines = model.once(_single_statements)
    if not isinstance(region, cst.SimpleStatementLine) or branches_around(region, lines, model) is not None:
        return False
    others = (block.body for block in blocks_of_chain(region, model) if block is not model.parent(region))
    targets = targets_of(region, model)
    return any(line in lines and bool(targets & targets_of(line, model)) for body in others for line in body)


def _is_scattered(found: Evaluation, model: Model) -> bool:
    """Whether a function runs networks in several places, each of which would get a `with`."""
    passes = [call.node for call in found.forward.function.calls if call.is_forward]
    lines = {line for line in map(model.statement, passes) if isinstance(line, cst.SimpleStatementLine)}
    return found.region in lines and len({row_around(line, lines, model)[0] for line in lines}) > 1


def _leaves_in_between(region: cst.CSTNode, extent: Extent) -> bool:
    """Whether other code runs before the region ends, which would lose its gradients too: the mode is the thread's.

    A decorated generator is no danger: torch switches the mode back at every `yield`.
    """
    if extent is Extent.FUNCTION and isinstance(region, cst.FunctionDef):
        return region.asynchronous is not None
    return any(
        isinstance(node, (cst.Yield, cst.Await)) or getattr(node, "asynchronous", None) is not None
        for node in walk(region)
    )


def _trains_elsewhere(found: Evaluation, model: Model) -> bool:
    """Whether a function of another file that is called in the region takes gradients."""
    loops = [loop for loop in found.forward.loops() if loop.node is found.region]
    return any(TRAINING & model.effects(loop).elsewhere for loop in loops)


def _blocks(model: Model, found: Evaluation) -> list[list[cst.BaseStatement]]:
    """What goes under one `with` each: the region, or the statements in it that run the model. Neighbours go together,
    those that another finding speaks of too."""
    region = found.region
    if isinstance(region, cst.SimpleStatementLine):
        lines = model.once(_single_statements)
        branches = branches_around(region, lines, model)
        return [[branches]] if branches is not None else [row_around(region, lines, model)]
    if _is_wrapped_as_a_whole(found, model):
        return [_row_of_loops(found, model)]
    forwards = _statements_that_run(found, model)
    lines = with_those_between({node for node in forwards if isinstance(node, cst.SimpleStatementLine)}, model)
    blocks: dict[cst.BaseStatement, list[cst.BaseStatement]] = {}
    for line in lines:
        branches = branches_around(line, lines, model)
        block: list[cst.BaseStatement] = [branches] if branches is not None else row_around(line, lines, model)
        blocks[block[0]] = block
    return list(blocks.values())


def _statements_that_run(found: Evaluation, model: Model) -> list[cst.CSTNode]:
    return [model.statement(call.node) for call in (found.forward, *found.others, *_same_passes(found, model))]


def _is_wrapped_as_a_whole(found: Evaluation, model: Model) -> bool:
    over_data = any(loop.node is found.region and is_over_data(loop) for loop in found.forward.loops())
    short = model.code(found.region).count("\n") < (_LONG if over_data else _LONG_ELSEWHERE)
    return short or not all(isinstance(node, cst.SimpleStatementLine) for node in _statements_that_run(found, model))


def _row_of_loops(found: Evaluation, model: Model) -> list[cst.BaseStatement]:
    """A loop that goes under the switch as a whole, and those right beside it that do, too."""
    region = found.region
    loops = {region, *(model.once(_wrapped_loops) if found.phase is None else ())}
    lines = loops | said_between(region, loops, model)
    return row_around(region, lines, model) if isinstance(region, cst.BaseStatement) else []


def _wrapped_loops(model: Model) -> set[cst.CSTNode]:
    """Loops that go under `no_grad` as a whole, each by a finding of its own."""
    return {
        found.region
        for found in model.once(all_evaluations)
        if isinstance(found.region, (cst.For, cst.While))
        and found.extent is Extent.BLOCK
        and found.phase is None
        and _is_fixed(found, model)
        and _is_wrapped_as_a_whole(found, model)
    }


def _is_fixed(found: Evaluation, model: Model) -> bool:
    try:
        _check(found, model)
    except NoFixError:
        return False
    return found.bare is None and not is_part_of_step(model, found)


def _same_passes(found: Evaluation, model: Model) -> list[Call]:
    """The passes of the same network in code that trains in one phase and evaluates in the other."""
    if found.phase is None:
        return []
    network = model.code(found.forward.node.func)
    calls = (call for call in found.forward.function.calls if model.code(call.node.func) == network)
    return [call for call in calls if found.region in model.ancestors(call.node)]


def _single_statements(model: Model) -> set[cst.SimpleStatementLine]:
    lines = {
        found.region
        for found in model.once(all_evaluations)
        if found.extent is Extent.BLOCK and isinstance(found.region, cst.SimpleStatementLine)
    }
    return with_those_between(lines, model)
