"""Which of the forward passes that need no graph are parts of training steps, and which evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.steps import is_gated
from torchlint.analyses.mem.evaluation import Extent
from torchlint.analyses.mem.needless_graph import evaluations
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.analyses.mem.evaluation import Evaluation
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model


def all_evaluations(model: Model) -> list[Evaluation]:
    """Every forward pass of the file that records a graph for nothing, none inside of another; for `Model.once`."""
    found = list(evaluations(model))
    whole = {each.region for each in found if each.extent in (Extent.FUNCTION, Extent.BLOCK)}
    return [each for each in found if not _is_run_inside(model, each, whole)]


def is_to_be_switched_off(model: Model, call: Call) -> bool:
    """Whether a finding switches autograd off for a call."""
    regions = {found.region for found in model.once(all_evaluations) if found.extent is not Extent.PART}
    return any(node in regions for node in model.ancestors(call.node))


def _is_run_inside(model: Model, found: Evaluation, regions: set[cst.CSTNode]) -> bool:
    """Whether a function stands in a region that evaluates as a whole, and is called nowhere else."""
    function = found.forward.function
    if found.extent is not Extent.FUNCTION or function.node is not found.region or function.passed_around:
        return False
    around = regions.intersection(model.ancestors(found.region)) - {found.region}
    return any(all(region in model.ancestors(call.node) for call in function.callers) for region in around)


def is_part_of_step(model: Model, found: Evaluation) -> bool:
    """Whether the loss of the step is computed from what the forward pass gives, though no gradient comes back to it:
    a target network, a teacher, a generator whose images are detached.
    """
    node = found.forward.node
    loop, function = model.loop(node), model.function(node)
    if found.extent not in (Extent.BLOCK, Extent.PART) or is_gated(model, node, loop):
        return False
    around = model.effects(loop if loop is not None else function)
    steps = [call for call in around.backward if call.loop is loop and call.function is function]
    made = [node for target in _targets(model, found.forward) for node in walk(target)] if steps else []
    return any(_gets(model, call, made) for call in steps)


def _targets(model: Model, forward: Call) -> list[cst.BaseExpression]:
    """What the statement of a forward pass assigns to."""
    match model.small_statement(forward.node):
        case cst.Assign(targets=targets):
            return [target.target for target in targets]
        case cst.AnnAssign(target=target) | cst.AugAssign(target=target):
            return [target]
    return []


def _gets(model: Model, backward: Call, made: Sequence[cst.CSTNode]) -> bool:
    """Whether one of these assignments is what the loss of a backward pass is computed from."""
    loss = backward.receiver
    given = [loss] if loss is not None else []
    given += [argument.value for argument in backward.arguments]
    reads = _reads_behind(model, given)
    for node in made:
        binding = model.binding(node)
        if binding is not None:
            held = (read for read in reads if model.binding(read) is binding)
            if any(reaches(model, binding, node, read) for read in held):
                return True
    return False


def _reads_behind(model: Model, given: Sequence[cst.CSTNode]) -> list[cst.CSTNode]:
    """The reads that a value is computed from, each through what was written before it, and not through what the same
    names hold later."""
    found = [read for node in given for read in walk(node) if model.binding(read) is not None]
    seen: set[cst.CSTNode] = set()
    for read in found:  # it grows while the loop runs
        binding, function = model.binding(read), model.function(read)
        for write in binding.writes if binding is not None else ():
            if write.value is None or write.target in seen or write.kind == "for" or write.function is not function:
                continue
            if binding is not None and reaches(model, binding, write.target, read):
                seen.add(write.target)
                parts = [*walk(write.value), *([write.target] if write.kind == "augmented" else [])]
                found.extend(part for part in parts if model.binding(part) is not None)
    return found
