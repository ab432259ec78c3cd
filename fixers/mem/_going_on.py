"""What belongs to an evaluation beside the statement that runs a network: what computes on, and what it is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.fate import Fate, fate_of
from torchlint.analyses.mem.step_parts import is_to_be_switched_off
from torchlint.analyses.once import once_for_each
from torchlint.analyses.order import is_before
from torchlint.analyses.single_tensor import is_graphless
from torchlint.analyses.variable_wrapper import VARIABLE
from torchlint.semantics.dataflow import reaches, writes_reaching
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.mem.evaluation import Evaluation
    from torchlint.semantics.entities import Binding, Call, Function
    from torchlint.semantics.model import Model

_SWITCHES = frozenset({"torch.no_grad", "torch.inference_mode"})
_COPIES = ("cuda", "to")
_CUTS = ("detach", "data")
_KNOWN = ("torch", "numpy", "builtins", "math")
_MOST_BETWEEN = 4


def goes_on(region: cst.SimpleStatementLine, found: Evaluation, model: Model) -> bool:
    """Whether a method of the same network is given the result behind the region, and records a graph there."""
    network = model.binding(found.forward.receiver) if found.forward.receiver is not None else None
    written = {model.binding(target.target) for node in region.body for target in getattr(node, "targets", ())} - {None}
    return network is not None and any(
        call.receiver is not None
        and model.binding(call.receiver) is network
        and model.grad_enabled(call.node) is not False
        and region not in model.ancestors(call.node)
        and any(_is_from(arg.value, region, binding, model) for arg in call.arguments for binding in written if binding)
        for call in found.forward.function.calls
    )


def _is_from(argument: cst.BaseExpression, region: cst.SimpleStatementLine, binding: Binding, model: Model) -> bool:
    """Whether an argument is what a region has written to a variable."""
    is_it = isinstance(argument, cst.Name) and model.binding(argument) is binding
    targets = [write.target for write in binding.writes if region in model.ancestors(write.target)]
    return is_it and any(reaches(model, binding, target, argument) for target in targets)


def switches_off(block: cst.With, model: Model) -> bool:
    """`with torch.no_grad():`"""
    managers = [item.item.func for item in block.items if isinstance(item.item, cst.Call)]
    return any(model.qualified(manager) in _SWITCHES for manager in managers)


@once_for_each
def passes_of(model: Model, function: Function) -> list[Call]:
    """The forward passes that a function makes itself."""
    return [call for call in function.calls if call.is_forward]


def goes_on_elsewhere(region: cst.CSTNode, found: Evaluation, model: Model) -> Call | None:
    """A call behind a region that computes on with what the region makes, out of sight, and whose result is cut off
    its graph then: it is a part of the evaluation."""
    made = {*written(region, model)}
    for call in found.forward.function.calls:
        if model.grad_enabled(call.node) is False or call.target is not None:
            continue
        is_known = (call.callee or "").partition(".")[0] in _KNOWN or call.receiver_value.kind is Kind.TENSOR
        given = {model.binding(arg.value) for arg in call.arguments}
        if not is_known and made & given and is_before(model, region, call.node) and _is_cut_off(call.node, model):
            return call
    return None


def written(region: cst.CSTNode, model: Model) -> Iterator[Binding]:
    """The variables of a function that get a value in a region, or an entry."""
    for node in walk(region):
        for target in node.targets if isinstance(node, cst.Assign) else ():
            inner: cst.CSTNode = target.target
            while isinstance(inner, cst.Subscript):
                inner = inner.value
            for name in walk(inner):
                binding = model.binding(name) if isinstance(name, cst.Name) else None
                if binding is not None and binding.cls is None:
                    yield binding


def _is_cut_off(node: cst.CSTNode, model: Model) -> bool:
    """Whether a result, or a part of the variable that it goes to, has `.detach()` or `.data` behind it."""
    match model.parent(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
            binding = model.binding(name)
            reads = binding.reads if binding is not None else ()
            return any(_has_cut(read, model) for read in reads)
    return _has_cut(node, model)


def _has_cut(node: cst.CSTNode, model: Model) -> bool:
    above = model.parent(node)
    while isinstance(above, (cst.Attribute, cst.Subscript, cst.Call)) and node not in getattr(above, "args", ()):
        if isinstance(above, cst.Attribute) and above.attr.value in _CUTS:
            return True
        node, above = above, model.parent(above)
    return False


def made_for_it(region: cst.CSTNode, found: Evaluation, model: Model) -> Call | None:
    """A forward pass above a region, of whose result nothing but the region makes use."""
    block = model.parent(region)
    for call in passes_of(model, found.forward.function):
        line = model.statement(call.node)
        if model.grad_enabled(call.node) is False or model.parent(line) is not block:
            continue
        match model.parent(call.node):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]) if is_before(model, line, region):
                binding = model.binding(name)
            case _:
                continue
        if binding is None or binding.shared:
            continue
        inside = [read for read in binding.reads if region in model.ancestors(read)]
        outside = [read for read in binding.reads if read not in inside]
        if inside and all(_is_about_itself(read, binding, model) for read in outside):
            return call
    return None


def made_by_helper(region: cst.CSTNode, found: Evaluation, model: Model) -> Call | None:
    """A call of a helper that is handed a network, `given = encode(network, x)`, of whose result nothing but the region
    makes use, and no finding speaks: most of what the evaluation records is recorded there."""
    for argument in found.forward.arguments:
        binding = model.binding(argument.value) if isinstance(argument.value, cst.Name) else None
        for write in writes_reaching(model, binding, argument.value) if binding is not None else ():
            if binding is None or not isinstance(write.value, cst.Call) or region in model.ancestors(write.target):
                continue
            reached = [read for read in binding.reads if reaches(model, binding, write.target, read)]
            call = model.call(write.value)
            is_its_own = all(region in model.ancestors(read) for read in reached)
            if is_its_own and _runs_a_network(call, model) and not is_to_be_switched_off(model, call):
                return call
    return None


def _runs_a_network(call: Call, model: Model) -> bool:
    """Whether a call of the program's own may run a network that it is given, and record a graph."""
    given = any(model.value(arg.value).kind is Kind.MODULE for arg in call.arguments)
    is_known = (call.callee or "").partition(".")[0] in _KNOWN or call.targets_class is not None
    value = model.value(call.node)
    may_have_graph = value.is_(Kind.UNKNOWN, Kind.TENSOR, Kind.LIST, Kind.TUPLE, Kind.DICT) and not is_graphless(value)
    return given and not (call.is_forward or is_known) and may_have_graph and model.grad_enabled(call.node) is not False


def _is_about_itself(read: cst.CSTNode, binding: Binding, model: Model) -> bool:
    """`x = x[:, None]`, `if x.dim() == 2:`"""
    match model.small_statement(read):
        case cst.Assign(targets=[cst.AssignTarget(target=target)]):
            return model.binding(target) is binding
        case None:
            return any(isinstance(above, cst.Comparison) for above in model.ancestors(read))
    return False


# -- rows of statements


def with_those_between(lines: set[cst.SimpleStatementLine], model: Model) -> set[cst.SimpleStatementLine]:
    """Lines that evaluate, and those between two of them that only compute with the results of one."""
    blocks = {model.parent(line) for line in lines}
    return lines | {line for block in blocks for line in _between(list(getattr(block, "body", ())), lines, model)}


def said_between(region: cst.CSTNode, loops: set[cst.CSTNode], model: Model) -> set[cst.CSTNode]:
    """The few lines between loops that evaluate, which only say something or begin a list or a clock."""
    body = list(getattr(model.parent(region), "body", ()))
    places = [at for at, line in enumerate(body) if line in loops]
    gaps = [body[first + 1 : last] for first, last in pairwise(places) if last - first <= _MOST_BETWEEN]
    return {line for gap in gaps if all(_only_says(line, model) for line in gap) for line in gap}


def _only_says(line: cst.CSTNode, model: Model) -> bool:
    if not isinstance(line, cst.SimpleStatementLine) or any(empty.comment is not None for empty in line.leading_lines):
        return False
    calls = [model.call(node).callee or "" for node in walk(line) if isinstance(node, cst.Call)]
    return all(isinstance(part, (cst.Assign, cst.Expr)) for part in line.body) and all(
        name.partition(".")[0] in ("builtins", "time") for name in calls
    )


def _between(
    body: Sequence[cst.BaseStatement], lines: set[cst.SimpleStatementLine], model: Model
) -> set[cst.SimpleStatementLine]:
    places = [at for at, line in enumerate(body) if line in lines]
    gaps = [body[first + 1 : last] for first, last in pairwise(places) if 1 < last - first <= _MOST_BETWEEN + 1]
    behind = body[places[-1] + 1 : places[-1] + 2]
    off = [line for line in behind if isinstance(line, cst.With) and switches_off(line, model)]
    while True:
        taken = {*lines, *off, *(line for gap in gaps for line in gap)}
        kept = [gap for gap in gaps if _only_hand_on(body[: body.index(gap[0])], gap, taken, model)]
        if len(kept) == len(gaps):
            return {line for gap in gaps for line in gap if isinstance(line, cst.SimpleStatementLine)}
        gaps = kept


def _only_hand_on(
    above: Sequence[cst.BaseStatement], gap: Sequence[cst.BaseStatement], taken: set[cst.BaseStatement], model: Model
) -> bool:
    """Whether each line computes of what those above it make, or copies something to a device, and nobody could take a
    gradient of it."""
    made = {target for line in above if line in taken for target in written(line, model)}
    for line in gap:
        match line:
            case cst.SimpleStatementLine(body=[cst.Assign(targets=[_], value=value)], leading_lines=[*blank]):
                computed = {model.binding(node) for node in walk(value) if isinstance(node, cst.Name)}
            case _:
                return False
        calls = [model.call(node) for node in walk(value) if isinstance(node, cst.Call)]
        is_copy = bool(calls) and all(call.method in _COPIES or call.callee == VARIABLE for call in calls)
        if not (is_copy or computed & made) or any(empty.comment is not None for empty in blank):
            return False
        if not is_copy and not all(_only_computes(call, made, model) for call in calls):
            return False
        has_no_graph = is_copy and is_graphless(model.value(value))
        targets, unwanted = {*written(line, model)}, Fate.BACKWARD if has_no_graph else Fate.BACKWARD | Fate.ESCAPES
        for target in targets:
            inside = all(taken & {*model.ancestors(read)} for read in target.reads)
            if not inside and fate_of(model, target) & unwanted:
                return False
        made |= targets
    return True


def _only_computes(call: Call, made: set[Binding], model: Model) -> bool:
    """`result.log_prob(x)`, `torch.cat([result, x])`, `zip(results, others)`"""
    is_torch = (call.callee or "").startswith("torch.") and not (call.is_backward or call.is_optimizer_step)
    of_result = call.receiver is not None and model.binding(call.receiver) in made
    return of_result or is_torch or call.callee in ("builtins.zip", "builtins.range", "builtins.len")
