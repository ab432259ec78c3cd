"""Operations that are worth a rule of their own, and those that can leave a loop whatever else it does."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeGuard

import libcst as cst

from torchlint.analyses.rowwise.names import spelled
from torchlint.analyses.rowwise.state import HARMLESS, Fault, Step, Trace
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind
from torchlint.word_set import word_set

if TYPE_CHECKING:
    from torchlint.analyses.rowwise.work import Root
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model


_DECOMPOSITIONS = word_set(
    """
    svd svdvals svd_lowrank pca_lowrank eig eigh eigvals eigvalsh symeig cholesky cholesky_ex qr lu lu_factor ldl_factor
    det logdet slogdet matrix_rank matrix_exp
    """
)
_SOLVERS = word_set(
    """
    solve solve_ex solve_triangular triangular_solve cholesky_solve cholesky_inverse lstsq inv inv_ex inverse pinv
    pinverse
    """
)
_CONVERSIONS = re.compile(r"torch\.((as_)?tensor|asarray|from_numpy|(\w+)?Tensor)")
_COPIES = word_set(
    """
    .item .tolist .numpy .cpu .cuda .to .detach .clone .float .double .half .long .int .bool .squeeze .view .reshape
    .flatten .unsqueeze .type .contiguous
    """
)
_OF_POINTS = r"distributions\.(\w+\.)+(log_prob|cdf|icdf)"
_WAVES = re.compile(rf"torch\.(exp|sin|cos|polar|{_OF_POINTS})")
_ELEMENTWISE = re.compile(
    r"arithmetic( -)?|(torch|numpy|math|cmath)\."
    rf"(exp|sin|cos|tan|sqrt|polar|complex|deg2rad|radians|pow|mul|conj|abs|arctan2?|{_OF_POINTS})"
)
_LOSSES = ("_loss", "cross_entropy", "cross_entropy_with_logits")
_WEIGHTED = re.compile(r"torch\.nn\.(Linear|Bilinear|Conv\w+)")
_DEPTH = 3
_PRODUCTS = word_set("matmul mm mv bmm dot vdot inner outer ger einsum tensordot kron addmm addmv baddbmm linear")
# Look at a whole row, and take a dimension: of all rows at once they cost as much as of one.
_ALONG_DIMENSION = word_set(
    """
    max min amax amin argmax argmin sum mean std var norm prod median mode quantile logsumexp softmax log_softmax sort
    argsort topk cumsum cumprod pairwise_distance cosine_similarity
    """
)
_ALLOWING = (HARMLESS - {Fault.RANDOM}) | {Fault.STOPS}
# Take a batch, and cost as much for a batch of one as for a whole one.
_BATCHED = word_set(
    "interpolate grid_sample affine_grid conv1d conv2d conv3d conv_transpose1d conv_transpose2d fold unfold"
)


def _kind(step: Step) -> str | None:
    last = step.name.rpartition(".")[2]
    if last in _DECOMPOSITIONS:
        return "LIN02"
    if last in _SOLVERS:
        return "LIN03"
    return "LIN01" if step.name == "@" or last in _PRODUCTS else None


def linear(steps: Iterable[Step]) -> str | None:
    """The rule for the costliest linear algebra on rows."""
    kinds = {_kind(step) for step in steps if step.inputs.is_row or step.inputs.maybe}
    return next((code for code in ("LIN02", "LIN03", "LIN01") if code in kinds), None)


def subject(trace: Trace, code: str) -> str | None:
    """The tensor whose rows a loop is about: of those that it takes rows of, one that the costly operation is given, or
    one of which an operation takes a part, and not that which says how much of it."""
    operands = {spelled(node) for step in trace.steps if _kind(step) == code for node in walk(step.node)}
    named = [name for name in trace.subjects if name in operands]
    cut = {spelled(part.value) for step in trace.steps for part in walk(step.node) if _is_cut(part)}
    return next(iter([*named, *(name for name in trace.subjects if name in cut), *trace.subjects]), None)


def _is_cut(node: cst.CSTNode) -> TypeGuard[cst.Subscript]:
    """`x[i, :n]`"""
    slices = [element.slice for element in node.slice] if isinstance(node, cst.Subscript) else []
    return any(isinstance(part, cst.Slice) and (part.lower or part.upper) for part in slices)


def decomposes(steps: Iterable[Step]) -> bool:
    """Whether matrices of which nothing else is known are decomposed or solved for: they are tensors then."""
    return any(_kind(step) in ("LIN02", "LIN03") and step.inputs.maybe and not step.guarded for step in steps)


def multiplies(steps: Iterable[Step]) -> bool:
    """Whether rows of a tensor are multiplied, decomposed or solved for, whatever is done with the result."""
    return any(_kind(step) is not None and step.inputs.is_row and not step.guarded for step in steps)


def is_sample_work(step: Step) -> bool:
    """A layer, a loss, or a function of the program: no single operation of torch on a row."""
    if step.name == "forward" or not step.name.startswith((".", "@", "arithmetic", "torch.", "numpy.", "math.")):
        return True
    last = step.name.rpartition(".")[2]
    return step.name.startswith("torch.nn.") and (last[:1].isupper() or last.endswith(_LOSSES))


def runs_layers(model: Model, steps: Iterable[Step]) -> bool:
    """Whether a row is given to layers with weights, by themselves or in a function of the program."""
    nodes = (step.node for step in steps if step.inputs.is_row and not step.guarded)
    return any(_runs_layers(model.call(node), _DEPTH) for node in nodes if isinstance(node, cst.Call))


def _runs_layers(call: Call, depth: int) -> bool:
    if _WEIGHTED.fullmatch(call.callee or ""):
        return True
    target = call.target or call.foreign
    return target is not None and depth > 0 and any(_runs_layers(inner, depth - 1) for inner in target.calls)


def is_conversion(step: Step) -> bool:
    """A tensor that is made of numbers and lists."""
    return _CONVERSIONS.fullmatch(step.name) is not None


def is_elementwise(steps: list[Step]) -> bool:
    """Whether arithmetic of numbers and of tensors of equal shape is all there is."""
    return bool(steps) and all(_ELEMENTWISE.fullmatch(step.name) for step in steps)


def only_compares(steps: list[Step]) -> bool:
    """Whether all that is done is to compare something else than a written number with each element."""
    return all(_compares(step.node) for step in steps)


def _compares(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(comparator=right)]):
            return not isinstance(left, cst.Integer) and not isinstance(right, cst.Integer)
    return False


def computes(steps: Iterable[Step]) -> bool:
    """Whether anything is made of the rows, beside copies of another place or type."""
    return any(step.inputs.is_row and step.name not in _COPIES for step in steps)


def is_formula(steps: list[Step]) -> bool:
    """Waves and phases of numbers, or densities at them, whatever holds the numbers: a steering vector for each
    angle."""
    names = [step.name for step in steps]
    return any(_WAVES.fullmatch(name) for name in names) and all(_ELEMENTWISE.fullmatch(name) for name in names)


def code_of(step: Step) -> str:
    """The rule for what a step does with a row."""
    return _kind(step) or "VEC02"


def at_once(model: Model, root: Root, trace: Trace) -> Step | None:
    """What can be one call before the loop, even where the rest of it has to stay."""
    return (inference if trace.is_final else hoistable)(model, root, trace)


def hoistable(model: Model, root: Root, trace: Trace) -> Step | None:
    """A costly operation that every iteration does on its row alone: it can be one call before the loop, even where the
    rest of the loop has to stay."""
    if not trace.subjects and not any(step.inputs.alone for step in trace.steps):
        return None
    free = _of_its_row(root, trace)
    drawn = Fault.RANDOM in trace.faults  # what draws nothing is all that keeps the rows apart
    for code in ("LIN02", "LIN03", *(("LIN01",) if drawn or set(trace.faults) == {Fault.GROWS} else ())):
        found = next((step for step in free if _kind(step) == code), None)
        if found is not None:
            return found
    if drawn:
        return None
    batched = (step for step in free if step.inputs.alone and _takes_batch(step))
    alone = next((step for step in batched if not _is_sized_by_another(model, step)), None)
    if alone is not None and _goes_on_with_itself(model, root, trace, alone):
        return None
    return alone or inference(model, root, trace)


def _is_sized_by_another(model: Model, step: Step) -> bool:
    """`interpolate(row[None], image.shape[:2])`, where nothing says that the images the loop also goes through are rows
    of a tensor, which have one size."""
    match step.node:
        case cst.Call(args=[first, *others]):
            headers = (axis.target for axis in step.inputs.axes if isinstance(axis, (cst.For, cst.CompFor)))
            beside = {name for target in headers for name in _names(target)} - _names(first)
            asked = (node.value for arg in others for node in walk(arg) if _is_shape(node))
            return any(not beside.isdisjoint(_names(node)) and not model.value(node).is_tensor for node in asked)
    return False


def _is_shape(node: cst.CSTNode) -> TypeGuard[cst.Attribute]:
    return isinstance(node, cst.Attribute) and node.attr.value in ("shape", "size")


def _names(node: cst.CSTNode) -> set[str]:
    return {part.value for part in walk(node) if isinstance(part, cst.Name)}


def inference(model: Model, root: Root, trace: Trace) -> Step | None:
    """A network that is given one sample at a time, without gradients: whatever else the loop does, what the network
    makes of all samples can be had before it."""
    found = next((step for step in trace.steps if _is_lone_inference(model, root, step)), None)
    return None if found is not None and _goes_on_with_itself(model, root, trace, found) else found


def along_dimension(model: Model, root: Root, trace: Trace) -> Step | None:
    """A reduction, a loss or a sorting of the row alone: given the whole tensor and a dimension, it can be one call
    before the loop, whatever the loop then does with the result. Where a row is a number, as one threshold after the
    other is, what is reduced is something else; an array of numpy that is made of a row is reduced at no cost."""
    if not trace.subjects or not _ALLOWING.issuperset(trace.faults):
        return None
    if any(model.value(subject).rank == 1 for subject in trace.subjects.values()):
        return None
    own = (step for step in _of_its_row(root, trace) if not step.inputs.handed_on)
    free = (step for step in own if not _is_of_chosen(model, root, step) and not _is_of_array(model, step))
    return next((step for step in free if _is_along_dimension(step)), None)


def _is_of_array(model: Model, step: Step) -> bool:
    return isinstance(step.node, cst.Call) and model.call(step.node).receiver_value.kind is Kind.ARRAY


def _is_of_chosen(model: Model, root: Root, step: Step) -> bool:
    """Whether an inner loop chooses, as one over the neighbours of a point does, what the row is computed with: all of
    its results together are far more than those that are asked for."""
    inner = (axis for axis in step.inputs.axes if axis is not root and isinstance(axis, (cst.For, cst.CompFor)))
    chosen = (axis.iter for axis in inner if isinstance(axis.iter, cst.Call))
    return any(model.qualified(call.func) is None and not model.value(call).is_tensor for call in chosen)


def _of_its_row(root: Root, trace: Trace) -> list[Step]:
    return [step for step in trace.steps if step.inputs.is_row and not step.guarded and _is_of(root, step)]


def _goes_on_with_itself(model: Model, root: Root, trace: Trace, step: Step) -> bool:
    """`for t in range(first[i], last[i]): x = warp(x, flow[i, t])`, as often as each row says."""
    loop = model.call(step.node).loop if isinstance(step.node, cst.Call) else None
    statement = model.small_statement(step.node)
    if Fault.RAGGED not in trace.faults or loop is None or loop.node is root or not isinstance(statement, cst.Assign):
        return False
    kept = {target.target.value for target in statement.targets if isinstance(target.target, cst.Name)}
    return any(isinstance(node, cst.Name) and node.value in kept for node in walk(step.node))


def _is_along_dimension(step: Step) -> bool:
    last = step.name.rpartition(".")[2]
    is_torch = step.name.startswith((".", "torch."))
    return is_torch and (last in _ALONG_DIMENSION or last.endswith(_LOSSES))


def _is_lone_inference(model: Model, root: Root, step: Step) -> bool:
    """Whether a network is given one sample in it, whatever holds the samples."""
    inputs = step.inputs
    if step.name != "forward" or step.guarded or not (inputs.alone and (inputs.maybe or inputs.is_row)):
        return False
    return _is_of(root, step) and model.grad_enabled(step.node) is False


def _is_of(root: Root, step: Step) -> bool:
    return not isinstance(root, cst.For) or root in step.inputs.axes


def _takes_batch(step: Step) -> bool:
    return step.name == "forward" or step.name.rpartition(".")[2] in _BATCHED
