"""What cuts results off a graph, where a new `no_grad` leaves no graph to be cut off from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.data_attribute.chain import Chain, is_single
from torchlint.analyses.data_attribute.reads import NEW_TENSORS, Use, data_reads
from torchlint.analyses.evaluation_names import is_held_out, is_over_data
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Edit
from torchlint.semantics.dataflow import reaches, writes_reaching
from torchlint.semantics.parallel_assignment import assigned_pairs
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import is_reduction

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Write
    from torchlint.semantics.model import Model

_OF_GRAPH = re.compile(r"(?i)detach|grad|graph|\bdata\b")
_LOSSES = re.compile(r"_loss$|cross_entropy|kl_div")
_SAME = frozenset({"cpu", "cuda", "to", "squeeze", "float", "contiguous", "view", "reshape", "clone"})
_CUTS = frozenset({"detach", "data"})
_NUMBERS = (Use.ELEMENT, Use.CHOICE, Use.NUMBER)
_MOST_NAMES = 4
_FILLING = {"update", "setdefault"}


def needless_cuts(lines: Sequence[cst.BaseStatement], rewriter: Rewriter, model: Model) -> list[Edit]:
    """`.detach()` and `.data` of what these lines make, which no graph is left to be cut off from.

    One `.detach()` that may be needed keeps the others: without some of them, the lines would look as if they meant it.
    """
    text = model.source.text
    inside = {node for line in lines for node in walk(line)}
    found = [
        edit
        for line in lines
        for cut in _needless_detach(line, inside, model)
        if not any("#" in text[edit.start : edit.end] for edit in cut)
        for edit in cut
    ]
    cuts = outermost([*found, *_needless_of_variables(lines, rewriter, model)])
    if not any(_stays(node, cuts, model) for line in lines for node in walk(line) if isinstance(node, cst.Call)):
        return cuts
    return [
        cut for cut in cuts if not (text[: cut.end].rstrip().endswith("detach()") or text[cut.start : cut.end] == "(")
    ]


def _stays(call: cst.Call, cuts: Sequence[Edit], model: Model) -> bool:
    """Whether a call is a `.detach()` of what another call returns, which no cut takes away."""
    made = model.call(call).receiver
    if model.call(call).method != "detach" or call.args or made is None:
        return False
    end = _end(call, model)
    return isinstance(_passed(made, model), cst.Call) and not any(cut.start < end <= cut.end for cut in cuts)


def outermost(edits: Sequence[Edit]) -> list[Edit]:
    """Without those of code that another removes: a line that goes needs no indentation."""
    inner: set[Edit] = set()
    end = -1  # of what the edits before reach up to
    for _, same in groupby(sorted(edits, key=_place), _place):
        found = set(same)
        first = next(iter(found))
        is_doubled = len(found) > 1 and first.start < first.end
        if is_doubled or (first.end <= end and first.start < end):
            inner |= found
        end = max(end, first.end)
    return [edit for edit in edits if edit not in inner]


def _place(edit: Edit) -> tuple[int, int]:
    """Edits around others come before these."""
    return edit.start, -edit.end


def _needless_detach(line: cst.BaseStatement, inside: set[cst.CSTNode], model: Model) -> Iterator[list[Edit]]:
    """The edits for each `.detach()` or `.data` of what a forward pass returns, or an operation, right where it is
    returned."""
    for node in walk(line):
        match node:
            case cst.Call(
                func=cst.Attribute(value=cst.BinaryOperation(lpar=[_]) as made, attr=cst.Name(value="detach")), args=[]
            ):
                yield _without_detach(made, node, model)
                continue
            case cst.Call(
                func=cst.Attribute(value=cst.Call() | cst.Subscript() as made, attr=cst.Name(value="detach")), args=[]
            ):
                pass
            case cst.Attribute(value=cst.Call() as made, attr=cst.Name(value="data")):
                if node in model.once(_reads_of_numbers):
                    continue
            case _:
                continue
        computed = _passed(made, model)
        if isinstance(computed, cst.Call) and (
            _returns_new(model.call(computed))
            or model.value(computed.func).kind is Kind.MODULE  # `nn.Softmax(1)(x)`
            or _is_helper_for(inside, model.call(computed), model)
            or _runs_a_network(model.call(computed), model)
        ):
            yield [Edit(model.span(made)[1], _end(node, model), "")]


def _returns_new(call: Call) -> bool:
    """`net(x)`, `x.mean()`, `torch.log(x)`, `F.softmax(x, 1)`, `F.cross_entropy(x, y)`"""
    package, _, name = (call.callee or "").rpartition(".")
    is_of_torch = package in ("torch", "torch.nn.functional") and name in NEW_TENSORS
    is_loss = package == "torch.nn.functional" and _LOSSES.search(name) is not None
    return call.is_forward or is_reduction(call.method or "") or is_of_torch or is_loss


def _runs_a_network(call: Call, model: Model) -> bool:
    """`policy.act(state)`, a method or function in sight that returns what a network gives it, and nothing else."""
    home, function = model.elsewhere(call) or (model, call.target)
    if function is None or not function.returns or function.is_generator:
        return False
    given = [way for node in function.returns for way in _ways(node.value, home)]
    calls = [home.call(value) if isinstance(value, cst.Call) else None for value in given]
    return all(call is not None and call.is_forward and call.target is None for call in calls)


def _ways(node: cst.BaseExpression | None, home: Model) -> list[cst.BaseExpression | None]:
    """What is returned, or what a variable may hold that is."""
    binding = home.binding(node) if isinstance(node, cst.Name) else None
    return [write.value for write in binding.writes] if binding is not None else [node]


def _is_helper_for(inside: set[cst.CSTNode], call: Call, model: Model) -> bool:
    """Whether a function of the project is given what these lines make."""
    if call.method is not None or (call.target is None and call.foreign is None):
        return False
    given = [model.binding(arg.value) for arg in call.arguments if isinstance(arg.value, cst.Name)]
    return any(
        write.target in inside and _is_made(write, model)
        for binding in given
        if binding is not None
        for write in binding.writes
    )


def _end(node: cst.Call | cst.Attribute, model: Model) -> int:
    """Where `x.detach()` or `x.data` ends, without the parentheses about it."""
    if isinstance(node, cst.Attribute):
        return model.span(node.attr)[1]
    return model.source.text.index(")", model.span(node.func)[1]) + 1


def _without_detach(made: cst.BinaryOperation, whole: cst.Call, model: Model) -> list[Edit]:
    """`a - b` of `(a - b).detach()`; the parentheses stay where something else may need them."""
    start, end = model.span(made)
    is_alone = isinstance(model.parent(whole), (cst.Assign, cst.Return, cst.Element, cst.Arg))
    if not is_alone or "\n" in model.source.text[start:end]:
        return [Edit(end, _end(whole, model), "")]
    return [Edit(start, start + 1, ""), Edit(end - 1, _end(whole, model), "")]


def _needless_of_variables(lines: Sequence[cst.BaseStatement], rewriter: Rewriter, model: Model) -> list[Edit]:
    """`.detach()` and `.data` of a variable, where nothing but calls in these lines gives it its value."""
    inside = {node for line in lines for node in walk(line)}
    bindings = {model.binding(node): None for node in inside if isinstance(node, cst.Name)}
    edits = []
    for binding in bindings:
        if binding is None or any(method.endswith("_") for method in binding.methods):
            continue
        if any(_is_stored_into(read, model) and read not in inside for read in binding.reads):
            continue  # what is stored brings its graph along
        made = [
            write.target
            for write in binding.writes
            if write.target in inside and (_is_made(write, model) or _is_part_of_made(write, inside, model))
        ]
        others = [write.target for write in binding.writes if write.target not in made]
        for read in binding.reads:
            part = _part(read, binding, model)
            cut = _cut_off(part, binding, rewriter, model)
            if cut is None or any(reaches(model, binding, target, read) for target in others):
                continue
            if any(reaches(model, binding, target, read) for target in made):
                edits += [cut, *_cut_again(part, model)]
    return [*edits, *_idle_assignments(inside, edits, rewriter, model)]


def _is_stored_into(read: cst.CSTNode, model: Model) -> bool:
    """`x[i] = y`, `x[i] += y`"""
    above = model.parent(read)
    while isinstance(above, cst.Subscript) and above.value is read:
        read, above = above, model.parent(above)
    return isinstance(read, cst.Subscript) and isinstance(above, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))


def _idle_assignments(
    inside: set[cst.CSTNode], cuts: Sequence[Edit], rewriter: Rewriter, model: Model
) -> Iterator[Edit]:
    """The edits that take out what the cuts leave of `a, b = a.data, b.data`."""
    for node in inside:
        pairs = assigned_pairs(node)
        if len(pairs) > 1 and all(_is_left(target, value, cuts, model) for target, value in pairs):
            gone = rewriter.remove_statement(node)
            if gone is not None and not gone.text:
                yield gone


def _is_left(target: cst.BaseExpression, value: cst.BaseExpression, cuts: Sequence[Edit], model: Model) -> bool:
    """Whether the cuts leave nothing of a value but the name that it is assigned to."""
    start, end = model.span(value)
    return any(cut.end == end and model.source.text[start : cut.start] == model.code(target) for cut in cuts)


def _is_made(write: Write, model: Model, depth: int = 0) -> bool:
    """Whether a variable gets what a call returns, or a part of it, and not a tensor that is there already and may want
    gradients."""
    if write.kind == "for":
        return _is_batch(write, model)
    value = _assigned(write)
    if write.kind != "assign" or depth > _MOST_NAMES or value is None:
        return False
    if isinstance(value, cst.Dict):
        return _is_dict_of_new(value, model.binding(write.target), model, depth)
    ways = (value.body, value.orelse) if isinstance(value, cst.IfExp) else (value,)
    return all(_is_new(value, model, depth) for value in ways)


def _is_dict_of_new(value: cst.Dict, binding: Binding | None, model: Model, depth: int) -> bool:
    """`inputs = {"ids": batch[0], "labels": batch[1]}` that gets no other entries."""
    values = [element.value for element in value.elements if isinstance(element, cst.DictElement)]
    if binding is None or len(values) < len(value.elements) or binding.methods & _FILLING:
        return False
    is_filled = any(_is_stored_into(read, model) for read in binding.reads)
    return not is_filled and all(_is_new(each, model, depth) for each in values)


def _assigned(write: Write) -> cst.BaseExpression | None:
    """What a variable gets, also as one of several: `x.cuda()` of `x, y = x.cuda(), y.cuda()`."""
    pairs = assigned_pairs(write.statement)
    return next((value for target, value in pairs if target is write.target), write.value)


def _is_batch(write: Write, model: Model) -> bool:
    """Whether a variable of a loop is a batch of some data, or a part of one."""
    loop = model.loop_of(write.statement) if write.kind == "for" else None
    return loop is not None and (is_over_data(loop) or is_held_out(loop))


def _part(read: cst.CSTNode, binding: Binding, model: Model) -> cst.CSTNode:
    """`outputs.logits` around a read of `outputs`, what a network returns, or `batch.label` of a batch: they come
    without a graph where the whole does."""
    above = model.parent(read)
    if not isinstance(above, cst.Attribute) or above.attr.value in _CUTS:
        return read
    call = model.parent(above)
    if isinstance(call, cst.Call) and call.func is above:
        return read
    comes_whole = all(_is_batch(write, model) or _is_result(write.value, model) for write in binding.writes)
    return above if comes_whole and binding.writes else read


def _is_result(node: cst.BaseExpression | None, model: Model) -> bool:
    return isinstance(node, cst.Call) and model.call(node).is_forward


def _is_new(value: cst.BaseExpression, model: Model, depth: int) -> bool:
    """Whether an expression is what a call returns, a part of that, or an attribute of what a network returns, such as
    the mean of a distribution; not that of an object, which may be a parameter."""
    while isinstance(value, cst.Subscript):
        value = value.value
    if isinstance(value, cst.Attribute):
        owner = model.binding(value.value) if isinstance(value.value, cst.Name) else None
        made = [write.value for write in owner.writes] if owner is not None else []
        return bool(made) and all(_is_result(node, model) for node in made)
    binding = model.binding(value) if isinstance(value, cst.Name) else None
    if binding is not None:
        return all(_is_made(other, model, depth + 1) for other in binding.writes)
    return isinstance(value, (cst.Call, cst.BinaryOperation, cst.UnaryOperation))


def _is_part_of_made(write: Write, inside: set[cst.CSTNode], model: Model) -> bool:
    """`row` of `for row in rows`, where a call in these lines gives `rows` its value."""
    rows = write.value if write.kind == "for" else None
    binding = model.binding(rows) if isinstance(rows, cst.Name) else None
    made = writes_reaching(model, binding, rows) if binding is not None and rows is not None else []
    return bool(made) and all(each.target in inside and _is_made(each, model) for each in made)


def _cut_off(read: cst.CSTNode, binding: Binding, rewriter: Rewriter, model: Model) -> Edit | None:
    """The edit that takes `.detach()` or `.data` off a read, or `x = x.detach()` away."""
    tensor = _past_moves(read, model)
    whole = _cut_of(tensor, model)
    if whole is None or _OF_GRAPH.search(rewriter.comments(read)):
        return None
    match model.parent(whole):
        case cst.Assign(targets=[cst.AssignTarget(target=target)]):
            if model.binding(target) is binding and tensor is read:
                gone = rewriter.remove_statement(whole)
                return gone if gone is not None and gone.text == "" else None
            if tensor is read and isinstance(target, cst.Name):
                return None  # of `boxes = y.data`, a second name would be left
        case cst.AssignTarget() | cst.AugAssign():
            return None
    return Edit(model.span(tensor)[1], _end(whole, model), "")


def _cut_again(read: cst.CSTNode, model: Model) -> Iterator[Edit]:
    """`.data` of `x.detach().cpu().data`, and `.detach()` of `x.data.cpu().detach()`"""
    first = model.parent(_past_moves(read, model))
    if isinstance(first, cst.Attribute) and first.attr.value == "detach":
        first = model.parent(first)
    tensor = _past_moves(first, model) if isinstance(first, (cst.Call, cst.Attribute)) else None
    whole = _cut_of(tensor, model) if tensor is not None else None
    if tensor is None or whole is None or isinstance(model.parent(whole), (cst.AssignTarget, cst.AugAssign)):
        return
    yield Edit(model.span(tensor)[1], _end(whole, model), "")


def _cut_of(tensor: cst.CSTNode, model: Model) -> cst.Call | cst.Attribute | None:
    """`x.detach()` or `x.data` around `x`; what is read of that as a number has a rule of its own."""
    attribute = model.parent(tensor)
    call = model.parent(attribute) if attribute is not None else None
    match attribute, call:
        case cst.Attribute(attr=cst.Name(value="detach")), cst.Call(args=[]):
            return call
        case cst.Attribute(attr=cst.Name(value="data")), _ if attribute not in model.once(_reads_of_numbers):
            is_told = isinstance(tensor, cst.Name) and model.value(tensor).kind is Kind.TENSOR
            is_tensor = is_told or isinstance(tensor, cst.Call)  # anything else may be an object that has `data`
            return attribute if is_tensor or attribute in model.once(_reads_of_tensors) else None
    return None


def _reads_of_numbers(model: Model) -> set[cst.Attribute]:
    """`loss.data` of `loss.data[0]`, which is to become `loss.item()` and not `loss[0]`; of `value.data.squeeze()[0]`
    and `rows[i, j].data[0]`, which torch refuses where there is one value, so is `value.data`."""
    return {
        read.node
        for read in data_reads(model)
        if read.use in _NUMBERS
        or "squeeze()" in Chain(model, read.node).before_element
        or (is_single(read.owner) and isinstance(model.parent(read.node), cst.Subscript))
    }


def _reads_of_tensors(model: Model) -> set[cst.Attribute]:
    return {read.node for read in data_reads(model)}


def _past_moves(read: cst.CSTNode, model: Model) -> cst.CSTNode:
    """`x[0].squeeze().cpu()` around a read of `x`."""
    parent = model.parent(read)
    if isinstance(parent, cst.Subscript) and parent.value is read:
        return _past_moves(parent, model)
    call = model.parent(parent) if isinstance(parent, cst.Attribute) and parent.attr.value in _SAME else None
    return _past_moves(call, model) if isinstance(call, cst.Call) and call.func is parent else read


def _passed(node: cst.BaseExpression, model: Model) -> cst.BaseExpression:
    """`model(x)` of `model(x)[0].cpu()`."""
    inner = node
    while isinstance(inner, cst.Subscript) or (
        isinstance(inner, cst.Call) and model.call(inner).method in _SAME and model.call(inner).receiver is not None
    ):
        inner = inner.value if isinstance(inner, cst.Subscript) else model.call(inner).receiver or inner
    return inner if isinstance(inner, cst.Call) else node
