"""Brings all elements of a tensor to the host at once, as a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.sync.branching import tensors_asked
from torchlint.analyses.sync.element_reads import ElementReads, element_reads, may_be_list, reads_beside
from torchlint.analyses.sync.residence import Residence
from torchlint.analyses.tensor_writes import Written, mentions, written_at
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

from ._expressions import new_name

if TYPE_CHECKING:
    from torchlint.analyses.sync.element_reads import Reduction
    from torchlint.rule import Report
    from torchlint.semantics.entities import Loop
    from torchlint.semantics.model import Model

_BY_DTYPE = {"int": "builtins.int", "float": "builtins.float"}
_NUMBERS = frozenset(_BY_DTYPE.values())
_SAFE = "The list holds the same numbers."
_DOUBT = "The loop calls code that may write to the tensor, which the list would not show."


def fix(report: Report, model: Model) -> Fix:
    if not isinstance(report.facts, ElementReads):
        return _on_device(model, report.facts)
    edits = _edits(model, report.facts)
    if (other := _stays_beside(model, report.facts)) is not None:
        raise NoFixError(f"each iteration would still wait for `{model.code(other)}`, which has no fix")
    if _writes_nothing(model, report.facts):
        return Fix(tuple(edits), Applicability.SAFE, _SAFE)
    return Fix(tuple(edits), Applicability.UNSAFE, _DOUBT)


def _stays_beside(model: Model, reads: ElementReads) -> cst.BaseExpression | None:
    """An element of another tensor that each iteration reads, too, and that cannot come out of a list."""
    loops = {model.loop(node) for node in reads.nodes}
    for other in model.once(element_reads):
        inside = [node for node in other.nodes if model.loop(node) in loops]
        if other is not reads and inside and not model.guards(inside[0], inside=model.loop(inside[0])):
            try:
                _edits(model, other)
            except NoFixError:
                return inside[0]
    return None


def _edits(model: Model, reads: ElementReads) -> list[Edit]:
    if reads.of_rows:
        raise NoFixError("some of the reads take whole rows")
    if reads.asked:
        raise NoFixError("Python asks the elements for more than their number: for truth, order or a place in a list")
    if reads.held:
        raise NoFixError("some of the elements have names of their own, or are put into a new tensor")
    _check_is_tensor(model, reads.tensor)
    if (other := _asked_besides(model, reads)) is not None:
        raise NoFixError(f"each iteration would still wait for the device, which is asked about `{model.code(other)}`")
    if (other := _element_beside(model, reads)) is not None:
        raise NoFixError(f"`{model.code(other)}` beside it may be of a tensor too, and would still be waited for")
    return _over_list(model, reads) if reads.is_iterated else _from_list(model, reads)


def _asked_besides(model: Model, reads: ElementReads) -> cst.BaseExpression | None:
    """Another tensor on the device that each iteration asks for the truth of a condition."""
    residence, inside = model.once(Residence), {part for node in reads.nodes for part in walk(node)}
    for statement in (node for part in reads.loop.body for node in walk(part)):
        if not isinstance(statement, (cst.Assert, cst.If)) or model.guards(statement, inside=reads.loop):
            continue
        for leaf in tensors_asked(model, statement.test):
            if leaf not in inside and residence.may_be_device(leaf, reads.step):
                return leaf
    return None


def _element_beside(model: Model, reads: ElementReads) -> cst.BaseExpression | None:
    """An element of what is not known, at the same index, of which each iteration reads the number, too."""
    indices = {index for node in reads.nodes for index in _indices(model, _element(node))}
    for read, _ in reads_beside(model, reads):
        base = read
        while isinstance(base, cst.Subscript):
            base = base.value
        if not indices.isdisjoint(_indices(model, read)) and model.value(base).kind is Kind.UNKNOWN:
            return read
    return None


def _on_device(model: Model, found: Reduction) -> Fix:
    """`lengths.max()` for `max(lengths)`: of integers, the same element."""
    value = model.value(found.tensor)
    if found.name not in ("max", "min"):
        raise NoFixError(f"`{found.name}` of torch adds in another order, and may round in another way")
    if value.dtype != "int" or value.optional:
        raise NoFixError("among floating point numbers, torch and Python do not treat NaN alike")
    _check_is_tensor(model, found.tensor)
    if not isinstance(found.tensor, (cst.Name, cst.Attribute)) or found.node.lpar:
        raise NoFixError("the tensor has no name")
    edit = Rewriter(model).replace(found.node, f"{model.code(found.tensor)}.{found.name}()")
    return Fix((edit,), Applicability.SAFE, "The result is a tensor of one integer either way.")


def _check_is_tensor(model: Model, tensor: cst.BaseExpression) -> None:
    if model.value(tensor).kind is not Kind.TENSOR or may_be_list(model, tensor):
        raise NoFixError(f"`{model.code(tensor)}` may be a list of tensors")


def _over_list(model: Model, reads: ElementReads) -> list[Edit]:
    """`for v in t.flatten().tolist()`: each element is a single number, for it is read as one."""
    elements = {_element(node) for node in reads.nodes}
    binding = next(iter({model.binding(element) for element in elements}), None)
    others = [read for read in binding.reads if not _is_covered(model, reads.loop, read, elements)] if binding else []
    if binding is None or others:
        where = f" on {model.place(others[0])}" if others else ""
        raise NoFixError(f"the elements are used as tensors, too{where}")
    if (half := _read_beside(model, reads)) is not None:
        raise NoFixError(
            f"`{model.code(half)}` beside it may be a tensor too, whose elements would still be waited for"
        )
    whole = _whole(model, reads)
    if whole is not None:
        text = model.code(reads.tensor)
        is_atom = isinstance(reads.tensor, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
        text = text if is_atom else f"({text})"
        return [Rewriter(model).replace(whole, text + _suffix(model, reads.tensor))]
    edits = Rewriter(model).method_call(reads.tensor, _suffix(model, reads.tensor))
    return edits + [Rewriter(model).replace(node, model.code(_element(node))) for node in _needless(model, reads)]


def _read_beside(model: Model, reads: ElementReads) -> cst.BaseExpression | None:
    """What else a `zip` runs over, if it is not known and numbers are read from its elements: `int(label)`."""
    numbers = (call.node for call in reads.loop.calls if call.callee in _NUMBERS or call.method == "item")
    read = {model.binding(_element(node)) for node in numbers if node.args or isinstance(node.func, cst.Attribute)}
    match reads.loop.target, reads.loop.iterable:
        case cst.Tuple(elements=targets), cst.Call(func=cst.Name(value="zip"), args=sources):
            for target, source in zip(targets, sources):
                binding = model.binding(target.value)
                if binding in read - {None} and model.value(source.value).kind is Kind.UNKNOWN:
                    return source.value
    return None


def _from_list(model: Model, reads: ElementReads) -> list[Edit]:
    """`numbers = t.tolist()` before the loop, and `numbers[i]` in it."""
    tensor, loop = reads.tensor, reads.loop.node
    depths = {_depth(_element(node)) for node in reads.nodes}
    if not isinstance(tensor, cst.Name):
        raise NoFixError("the tensor has no name")
    if not isinstance(loop, (cst.For, cst.While)):
        raise NoFixError("the elements are read in a comprehension, before which no list can be made")
    depth = depths.pop()
    if depths or (depth > 1 and model.value(tensor).rank != depth):
        raise NoFixError("the reads may take whole rows, for the number of dimensions is not known")
    name = new_name(model, f"{tensor.value}_list", loop)
    edits = [Rewriter(model).insert_before(loop, f"{name} = {tensor.value}{_suffix(model, tensor, depth)}")]
    for node in reads.nodes:
        element = _element(node)
        text = name + "".join(f"[{index}]" for index in _indices(model, element))
        edits.append(Rewriter(model).replace(node if node in _needless(model, reads) else element, text))
    return edits


def _needless(model: Model, reads: ElementReads) -> list[cst.Call]:
    """The reads by `.item()`, which a number has not, and by `int()` of what is an integer then."""
    calls = [node for node in reads.nodes if isinstance(node, cst.Call)]
    dtype = model.value(reads.tensor).dtype
    return [
        node
        for node in calls
        if isinstance(node.func, cst.Attribute) or model.call(node).callee == _BY_DTYPE.get(dtype or "")
    ]


def _element(node: cst.BaseExpression) -> cst.BaseExpression:
    assert isinstance(node, cst.Call)
    return node.func.value if isinstance(node.func, cst.Attribute) else node.args[0].value


def _suffix(model: Model, tensor: cst.BaseExpression, depth: int = 1) -> str:
    return ".tolist()" if depth > 1 or model.value(tensor).rank == 1 else ".flatten().tolist()"


def _depth(element: cst.BaseExpression) -> int:
    depth = 0
    while isinstance(element, cst.Subscript):
        depth += len(element.slice)
        element = element.value
    return depth


def _indices(model: Model, element: cst.BaseExpression) -> list[str]:
    texts: list[str] = []
    while isinstance(element, cst.Subscript):
        texts[:0] = [model.code(part.slice) for part in element.slice]
        element = element.value
    return texts


def _is_covered(model: Model, loop: Loop, read: cst.CSTNode, elements: set[cst.BaseExpression]) -> bool:
    """Whether the read of the loop variable is one of the readbacks, or sees no element at all."""
    if read in elements:
        return True
    binding = model.binding(read)
    if binding is None or loop in model.loops_around(read) or loop.target is None:
        return False
    targets = [write.target for write in binding.writes if write.statement is loop.node]
    return not any(reaches(model, binding, target, read) for target in targets)


def _whole(model: Model, reads: ElementReads) -> cst.ListComp | None:
    """`[v.item() for v in t]`, which is the list itself."""
    node = reads.loop.node
    comprehension = model.parent(node)
    if not isinstance(node, cst.CompFor) or not isinstance(comprehension, cst.ListComp) or node.ifs:
        return None
    is_plain = node.inner_for_in is None and node.iter is reads.tensor and comprehension.elt in _needless(model, reads)
    return comprehension if is_plain else None


def _writes_nothing(model: Model, reads: ElementReads) -> bool:
    """Whether the loop changes no tensor in place, as far as its own code shows, and gives this one to nobody."""
    loop, binding = reads.loop, model.binding(reads.tensor)
    inside = (node for node in mentions(model, binding) if loop in model.loops_around(node)) if binding else ()
    if any(written_at(model, node) is not Written.NEVER for node in inside):
        return False
    for call in loop.calls:
        name = call.method or (call.callee or "").rpartition(".")[2]
        if call.is_optimizer_step or (name.endswith("_") and not name.endswith("__")):
            return False
    return not any(
        _may_be_tensor(model, target.value)
        for statement in loop.body
        for target in _stores(statement)
        if isinstance(target, cst.Subscript)
    )


def _stores(statement: cst.CSTNode) -> list[cst.BaseExpression]:
    found: list[cst.BaseExpression] = []
    for node in walk(statement):
        if isinstance(node, cst.Assign):
            found += [target.target for target in node.targets]
        elif isinstance(node, cst.AugAssign):
            found.append(node.target)
    return found


def _may_be_tensor(model: Model, node: cst.BaseExpression) -> bool:
    while isinstance(node, cst.Subscript):
        node = node.value
    value = model.value(node)
    return value.is_(Kind.TENSOR, Kind.BATCH) or (value.kind is Kind.UNKNOWN and not value.is_container)
