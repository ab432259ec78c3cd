"""`Variable(x)` becomes the tensor that it returns, `x.data` becomes `x.detach()`."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers._together import places_of

from torchlint.analyses.conditions import are_alternatives
from torchlint.analyses.data_attribute.chain import Chain, is_single
from torchlint.analyses.data_attribute.reads import (
    NEW_TENSORS,
    DataRead,
    Use,
    data_reads,
    flattened,
    unclear_reads,
)
from torchlint.analyses.train.owned_tensors import MAY_RETURN_THEMSELVES, without_moves
from torchlint.analyses.variable_wrapper import VARIABLE, Wrapper, questions, wrapper_of, wrappers
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics import torch_api
from torchlint.semantics.dataflow import writes_reaching
from torchlint.semantics.parallel_assignment import assigned_pairs
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Grad, Kind

from ._aliases import without_alias, without_aliases
from ._counted import comes_of_counts
from ._data_together import places_beside, reads_alike, reads_beside, together
from ._gradient_uses import is_plain_gradient, sees_leaves, takes_no_gradient
from ._variable import bare_together, unwrap
from ._volatile import stays_volatile, switched_off

if TYPE_CHECKING:
    from torchlint.finding import Places
    from torchlint.rule import Report
    from torchlint.semantics.entities import Binding, Write
    from torchlint.semantics.model import Model

_SHARED = "a change of the result in place may then make backward() raise, where it went unnoticed before"
_OF_DIMENSIONS = frozenset(
    "view size dim permute transpose unsqueeze squeeze topk chunk split flatten reshape expand t bmm mm".split()
)
_WRITING = frozenset("copy_ add_ sub_ mul_ div_ lerp_ addcmul_ addcdiv_".split())
_BUFFERS = ("running_mean", "running_var", "num_batches_tracked")  # of a layer that normalises: without gradients
_ELEMENT = "the value becomes a Python number, which waits for the device"


def fix(report: Report, model: Model) -> Fix:
    match report.facts:
        case DataRead():
            made = _read(report.facts, model)
            if any("detach" in edit.text for edit in made.edits) and stays_volatile(report.facts.node, model):
                raise NoFixError(
                    "`volatile` beside it asks for `torch.no_grad()`, under which nothing is to be cut off"
                )
            whole = without_alias(made, report.facts.node, report.facts.owner, model)
            if whole is made and _leaves_an_alias(report.facts, made, model):
                raise NoFixError("a second name for the same tensor would be left")
            return replace(whole, goes_with=_reads_alike(report.facts, model))
        case Wrapper():
            if (off := switched_off(report.facts, model)) is not None:
                return off
            made = unwrap(report.facts, model)
            alike = () if _is_volatile_statement(report.node, model) else (model.once(_all_wrappers),)
            whole = without_alias(made, report.facts.call.node, report.facts.data.node, model)
            whole = without_aliases(made, bare_together(report.facts, model), model) if whole is made else whole
            return replace(whole, goes_with=alike)
    raise NoFixError("what is to run under `torch.no_grad()` is for you to say")


# -- reads of .data


def _read(read: DataRead, model: Model) -> Fix:
    if isinstance(model.small_statement(read.node), cst.Expr) and _is_thrown_away(read.node, model):
        raise NoFixError("nothing is done with the result, so that the statement does nothing as it stands")
    if _is_asked_for_its_type(read.node, model):
        raise NoFixError("`type` tells a parameter from its values")
    if _is_told_from_variables(read.node, model):
        raise NoFixError("the condition around it asks for a `Variable`, and with it goes the other branch")
    if _is_explained(read.node, model):
        raise NoFixError("the comment on it speaks of a `Variable`")
    beside = reads_beside(read, model)
    rewriter = Rewriter(model)
    name = model.span(read.node.attr)
    if read.use in (Use.ELEMENT, Use.NUMBER, Use.CHOICE):
        return _item(read, rewriter, model)
    if _is_first_of_computed(read, model) or _is_first_of_unknown(read, model):
        raise NoFixError("whether that is an element, or the number of a tensor without dimensions, is not known")
    bare_reads = model.once(_bare_reads)
    is_off = model.grad_enabled(read.node) is False and not _never_has_graph(read, model)
    like = [*reads_alike(read, model, is_off), *(beside if is_off else ())]
    alone = read.use is Use.INDIFFERENT or _never_has_graph(read, model)
    bare = read.node in bare_reads and (alone or all(other.node in bare_reads for other in like))
    if _keeps_all_as_it_is(read.node, model) and bare and all(other.node in bare_reads for other in beside):
        gone = rewriter.remove_statement(read.node)
        assert gone is not None
        if gone.text == "pass":
            raise NoFixError("nothing would be left of the block that it is all of")
        certain = all(other.certain for other in (read, *beside))
        return Fix((gone,), Applicability.SAFE if certain else Applicability.UNSAFE, "The statement does nothing.")
    edits = _bare(read, model) if bare else (Edit(*name, _detached(*name, model)),)
    edits = (*edits, *_laid_out_under(read.node, edits, rewriter, model))
    if any(other.use is Use.SHARED for other in (read, *beside)):
        return Fix(edits, Applicability.UNSAFE, _SHARED)
    if not all(other.certain for other in (read, *beside)):
        return Fix(edits, Applicability.UNSAFE, f"`{model.code(read.owner)}` is a tensor for all that its use shows")
    return Fix(edits, Applicability.SAFE)


def _bare(read: DataRead, model: Model) -> tuple[Edit, ...]:
    """The tensor without `.data`, and without the parentheses that only this needed."""
    (start, end), last = model.span(read.owner), model.span(read.node.attr)[1]
    if (whole := _without_parentheses(read, model)) is not None:
        return Edit(whole[0], start, ""), Edit(end, whole[1], "")
    is_alone = isinstance(model.parent(read.node), (cst.Index, cst.Arg, cst.Assign, cst.Return))
    if not is_alone or len(read.owner.lpar) != 1 or "\n" in model.source.text[start:end]:
        dot = model.source.text.rindex(".", end, last)
        goes_on = model.source.text[last : last + 1] == "." and "#" not in model.source.text[end:dot]
        return (Edit(dot if goes_on else end, last, ""),)  # what goes on keeps the line that it is on
    return Edit(start, start + 1, ""), Edit(end - 1, last, "")


def _laid_out_under(node: cst.Attribute, edits: tuple[Edit, ...], rewriter: Rewriter, model: Model) -> list[Edit]:
    """The further lines of what the next method is given, `x.data.new_ones(a,`, which stand under the first one."""
    above: cst.CSTNode | None = node
    while isinstance(method := model.parent(above) if above is not None else None, cst.Attribute):
        above = model.parent(method)
        if not isinstance(above, cst.Call) or above.func is not method:
            break
        if "\n" in model.source.text[slice(model.span(method)[1], model.span(above)[1])]:
            shorter = sum(edit.end - edit.start - len(edit.text) for edit in edits)
            return rewriter.arguments_moved_left(above, shorter)
    return []


def _without_parentheses(read: DataRead, model: Model) -> tuple[int, int] | None:
    """The span of `(x.data)` in `(x.data).squeeze()`, with parentheses that a name has no need of."""
    (first, last), text = model.span(read.node), model.source.text
    needs_none = isinstance(read.owner, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)) and not read.owner.lpar
    if len(read.node.lpar) != 1 or not needs_none or text[first - 1 : first].isalnum():
        return None
    return None if re.search(r"[#\n]", text[first:last]) else (first, last)


def _detached(start: int, end: int, model: Model) -> str:
    """`detach()`, on a line of its own in a chain of which each call has one."""
    text = model.source.text
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return f"detach()\n{before[:-1]}" if before.strip() == "." and text[end : end + 1] == "." else "detach()"


def _leaves_an_alias(read: DataRead, made: Fix, model: Model) -> bool:
    """`boxes = y.data`, of which `boxes = y` would be left, and no other branch gives it something else."""
    match model.small_statement(read.node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name) as target)], value=value) if (
            value is read.node
        ):
            is_bare = not any(edit.text for edit in made.edits) and isinstance(read.owner, cst.Name)
            binding = model.binding(target)
            others = [write.target for write in binding.writes] if binding is not None else []
            is_choice = any(are_alternatives(model, target, other) for other in others if other is not target)
            return is_bare and not is_choice and model.code(read.owner) != name
    return False


def _is_explained(node: cst.CSTNode, model: Model) -> bool:
    """Whether a comment in front of the line speaks of what `.data` was there for, and of no `Variable` on the line."""
    statement = model.statement(node)
    if any(model.statement(call.node) is statement for call in model.calls_to(VARIABLE)):
        return False
    lines = getattr(statement, "leading_lines", ())
    return any(line.comment is not None and "Variable" in line.comment.value for line in lines)


def _is_volatile_statement(node: cst.CSTNode, model: Model) -> bool:
    """Whether a statement asks for what the `torch.no_grad()` around it now does."""
    statement = model.small_statement(node)
    beside = (call for call in model.calls_to(VARIABLE) if model.small_statement(call.node) is statement)
    return model.grad_enabled(node) is False and any(wrapper_of(call).asks_for_no_graph for call in beside)


def _all_wrappers(model: Model) -> Places:
    return places_of([wrapper.call.node.func for wrapper in wrappers(model)], model)


def _reads_alike(read: DataRead, model: Model) -> tuple[Places, ...]:
    """The places of the wrappers, for a read in one; of the other reads of `.data` in the function; and of those that
    are written the same in other methods of the class. A line that raises is mended though others read `.data`."""
    if read.use is Use.ELEMENT:
        return (places_beside(read, model),)
    above = (model.call(node).callee for node in model.ancestors(read.node) if isinstance(node, cst.Call))
    around = [model.once(_all_wrappers)] if VARIABLE in above else []
    function, known = model.function(read.node), model.once(_read_places)
    keys = (function, (function.cls, model.code(read.node)))
    return (*around, *(known[key] for key in keys if key in known), places_beside(read, model))


def _read_places(model: Model) -> dict[object, Places]:
    found: defaultdict[object, list[cst.CSTNode]] = defaultdict(list)
    for read in data_reads(model):
        function = model.function(read.node)
        if _is_thrown_away(read.node, model):
            continue
        found[function].append(read.node)
        if function.cls is not None:
            found[function.cls, model.code(read.node)].append(read.node)
    for node in unclear_reads(model):
        found[model.function(node)].append(node)
    return {key: places_of(nodes, model) for key, nodes in found.items()}


def _is_first_of_computed(read: DataRead, model: Model) -> bool:
    """`(-log(p)).data[0]` and `x[i, j].data[0]`, which before torch 0.4 was how one read the number in a sum."""
    is_computed = isinstance(read.owner, (cst.BinaryOperation, cst.UnaryOperation)) or is_single(read.owner)
    match model.parent(read.node):
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0")))]):
            return is_computed and model.value(read.owner).rank is None
    return False


def _is_asked_for_its_type(node: cst.CSTNode, model: Model) -> bool:
    """`type(x.data)`"""
    arg = model.parent(node)
    call = model.parent(arg) if isinstance(arg, cst.Arg) else None
    return isinstance(call, cst.Call) and model.call(call).callee == "builtins.type"


def _is_told_from_variables(node: cst.CSTNode, model: Model) -> bool:
    """`x.data if isinstance(x, Variable) else x`"""
    asked = model.once(questions)
    chosen = [above for above in model.ancestors(node) if isinstance(above, (cst.If, cst.IfExp))] if asked else []
    return any(part in asked for above in chosen for part in walk(above.test))


def _is_first_of_unknown(read: DataRead, model: Model) -> bool:
    """`x.data[0]` that nothing more is done with, where nothing shows that `x` has a dimension: before torch 0.4 the
    number in a loss was read like this."""
    chain = Chain(model, read.node)
    item = chain.element
    if item is None:
        return False
    value, binding = model.value(read.owner), model.binding(read.owner)
    goes_on = isinstance(model.parent(item), (cst.Attribute, cst.Subscript))
    if not goes_on and "squeeze()" in chain.before_element:
        return True  # how many dimensions that leaves depends on their sizes
    if value.rank is not None or value.kind is Kind.BATCH or goes_on:
        return False
    return binding is None or not (
        binding.methods & _OF_DIMENSIONS or any(_has_parts(each, model) for each in binding.reads)
    )


def _has_parts(tensor: cst.CSTNode, model: Model) -> bool:
    """`x[0]`, `x.shape`, `for row in x`"""
    match model.parent(tensor):
        case cst.Subscript(value=owner):
            return owner is tensor
        case cst.Attribute(attr=cst.Name(value="shape")):
            return True
        case cst.For(iter=each) | cst.CompFor(iter=each):
            return each is tensor
    return False


def _bare_reads(model: Model) -> frozenset[cst.CSTNode]:
    return frozenset(read.node for read in data_reads(model) if _may_stand_bare(read, model))


def _may_stand_bare(read: DataRead, model: Model) -> bool:
    """Whether the tensor itself can take the place of its `.data`."""
    return (
        read.use is Use.INDIFFERENT
        or takes_no_gradient(read.node, model)
        or _never_has_graph(read, model)
        or _is_buffer(read.owner, model)
        or is_plain_gradient(read.owner, model)
        or _is_computed_without_graph(read, model)
        or _has_no_graph(read, model)
    )


def _never_has_graph(read: DataRead, model: Model) -> bool:
    owner = read.owner
    return _counts(owner, model) or _is_comparison(owner, model) or comes_of_counts(owner, model)


def _is_buffer(node: cst.BaseExpression, model: Model) -> bool:
    """`layer.running_mean`, but not a running mean of the program's own."""
    is_named = isinstance(node, cst.Attribute) and node.attr.value in _BUFFERS
    return is_named and model.binding(node) is None and not model.value(node).carries


def _is_thrown_away(node: cst.CSTNode, model: Model) -> bool:
    """`p.data.clamp(0, 1)`, where a program stops at that; not `p.data.numpy().tofile(path)`."""
    while isinstance(parent := model.parent(node), (cst.Attribute, cst.Subscript)) or (
        isinstance(parent, cst.Call) and parent.func is node
    ):
        node = parent
    if not isinstance(parent, cst.Expr) or model.source.is_notebook or not isinstance(node, cst.Call):
        return False
    entry = torch_api.method(model.call(node).method or "")
    return entry is not None and entry.returns_tensors


def _item(read: DataRead, rewriter: Rewriter, model: Model) -> Fix:
    assert isinstance(read.element, cst.BaseExpression)
    if read.use is Use.ELEMENT:
        edit = rewriter.replace(read.element, model.code(flattened(read.owner)) + ".item()")
        return Fix((edit,), Applicability.UNSAFE, _ELEMENT)
    if read.use is Use.CHOICE:
        edits = (
            Edit(model.span(read.owner)[1], model.span(read.node)[1], ""),
            *rewriter.method_call(read.element, ".item()"),
        )
        return Fix(edits, Applicability.UNSAFE, _ELEMENT)
    owner = read.owner
    if isinstance(owner, cst.Call) and model.call(owner).method == "cpu":
        owner = model.call(owner).receiver or owner
    edit = rewriter.replace(read.element, model.code(owner) + ".item()")
    if isinstance(model.parent(read.element), cst.BinaryOperation):
        return Fix((edit,), Applicability.UNSAFE, "Python computes with the number in double precision.")
    return Fix((edit,), Applicability.SAFE, "The number is asked for all the same.")


def _has_no_graph(read: DataRead, model: Model) -> bool:
    """Whether the tensor is made in sight without a graph and, as far as the file goes, wants none."""
    value, root = model.value(read.owner), read.owner
    if sees_leaves(model):
        return False
    moved = without_moves(root, model)
    if _comes_without_graph(moved, model) or _is_made_anew(moved, model):
        return True
    while isinstance(root, cst.Subscript):
        root = root.value
    binding = model.binding(root)
    made = [write.value for write in binding.writes] if binding is not None else [root]
    if value.kind is Kind.UNKNOWN:
        others = [node for node in made if node is None or binding is None or model.binding(node) is not binding]
        return bool(others) and all(
            _is_called_without_graph(node, model) or _is_made_of_cut(node, model) for node in others
        )
    if not value.is_(Kind.TENSOR, Kind.BATCH) or value.grad is not Grad.DETACHED:
        return False
    if isinstance(root, cst.Name) and binding is not None:
        reaching = writes_reaching(model, binding, root)
        return all(_is_drawn(write, model) or _is_made_in_sight(write.value, model, set()) for write in reaching)
    if binding is not None:
        return _holds_what_is_made_in_sight(binding, model, set())
    return all(_is_made_in_sight(node, model, set()) for node in made)


def _is_made_of_cut(node: cst.BaseExpression | None, model: Model) -> bool:
    """`x.data.topk(k)`, `x[0].detach().cpu()`: what comes of methods that are given nothing else with a graph."""
    while isinstance(node, (cst.Call, cst.Attribute, cst.Subscript)):
        if isinstance(node, cst.Call):
            if not isinstance(node.func, cst.Attribute) or any(model.value(arg.value).is_tensor for arg in node.args):
                return False
            if node.func.attr.value == "detach":
                return True
            node = node.func.value
        elif isinstance(node, cst.Attribute):
            return node in model.once(together).reads
        else:
            node = node.value
    return False


def _comes_without_graph(tensor: cst.BaseExpression, model: Model) -> bool:
    """Whether a variable holds what calls return where autograd records nothing, and nothing else there."""
    binding = model.binding(tensor) if isinstance(tensor, cst.Name) else None
    if binding is None:
        return False
    made = [write.value for write in writes_reaching(model, binding, tensor)]
    return bool(made) and all(_is_called_without_graph(value, model) for value in made)


def _is_made_anew(tensor: cst.BaseExpression, model: Model) -> bool:
    """`net.loss(x).mean()`, where autograd records nothing."""
    is_new = isinstance(tensor, cst.Call) and model.call(tensor).method in NEW_TENSORS
    return is_new and model.grad_enabled(tensor) is False and not _is_given_to_helper(tensor, model)


def _counts(node: cst.BaseExpression, model: Model) -> bool:
    """Whether a tensor holds indices or truth values, which never have a graph."""
    value = model.value(node)
    return value.kind is Kind.TENSOR and value.dtype in ("int", "bool")


def _is_computed_without_graph(read: DataRead, model: Model) -> bool:
    """Whether an operation makes a new tensor of the one, or writes its numbers elsewhere, where autograd records
    nothing: `torch.max(x.data, 1)`, `y.copy_(x.data)`, and `x.data.cpu() - y` of tensors."""
    if model.grad_enabled(read.node) is not False or _is_given_to_helper(read.owner, model):
        return False
    parent = model.parent(read.node)
    call = model.parent(parent) if isinstance(parent, (cst.Arg, cst.Attribute)) else None
    above = model.parent(call) if isinstance(call, cst.Call) and model.call(call).method == "cpu" else parent
    if isinstance(above, cst.BinaryOperation):
        return all(_is_tensor(side, model) for side in (above.left, above.right))
    if not isinstance(call, cst.Call):
        return False
    if isinstance(parent, cst.Arg) and model.call(call).method in _WRITING:
        return True
    package, _, name = (model.call(call).callee or "").rpartition(".")
    return name in NEW_TENSORS and (isinstance(parent, cst.Attribute) or package == "torch")


def _is_given_to_helper(tensor: cst.BaseExpression, model: Model) -> bool:
    """Whether a function is given a tensor, what methods make it of, or an object that has it, and only its callers
    switch autograd off."""
    function = model.function(tensor)
    while isinstance(tensor, (cst.Subscript, cst.Call, cst.Attribute)):
        inner = model.call(tensor).receiver if isinstance(tensor, cst.Call) else tensor.value
        if inner is None:
            break
        tensor = inner
    binding = model.binding(tensor) if isinstance(tensor, cst.Name) else None
    if binding is None or not any(write.kind == "parameter" for write in binding.writes):
        return False
    body = getattr(function.node, "body", None)
    return not function.decorators and body is not None and model.grad_enabled(body) is False


def _is_tensor(node: cst.BaseExpression, model: Model) -> bool:
    return model.value(node).is_tensor or (isinstance(node, cst.Call) and model.call(node).method == "cpu")


def _is_comparison(node: cst.BaseExpression, model: Model) -> bool:
    """`(x < 3).float()`: its truth values are made anew, and have no gradient."""
    while isinstance(node, cst.Call) and model.call(node).method in MAY_RETURN_THEMSELVES:
        node = model.call(node).receiver or cst.Ellipsis()
    return isinstance(node, cst.Comparison)


def _keeps_all_as_it_is(node: cst.Attribute, model: Model) -> bool:
    """`x = x.data`, or `x, y = x.data, y.data`"""
    pairs = assigned_pairs(model.small_statement(node))
    return bool(pairs) and all(
        isinstance(value, cst.Attribute)
        and value.attr.value == "data"
        and model.code(target) == model.code(value.value)
        for target, value in pairs
    )


def _is_drawn(write: Write, model: Model) -> bool:
    """Whether a variable gets a batch of a data loader, or a part of one."""
    return write.kind != "parameter" and model.value(write.target).kind is Kind.BATCH


def _is_called_without_graph(node: cst.BaseExpression | None, model: Model) -> bool:
    """Whether a call computes something of its arguments where autograd records nothing."""
    if not isinstance(node, cst.Call) or not node.args or model.grad_enabled(node) is not False:
        return False
    return not _is_given_to_helper(node, model)


def _holds_what_is_made_in_sight(binding: Binding, model: Model, seen: set[Binding]) -> bool:
    """Whether a variable gets nothing but batches and results, or parts of itself and of such variables."""
    seen.add(binding)
    return all(_is_drawn(write, model) or _is_made_in_sight(write.value, model, seen) for write in binding.writes)


def _is_made_in_sight(node: cst.BaseExpression | None, model: Model, seen: set[Binding]) -> bool:
    """Whether all tensors that an expression is made of are. What a function is given may have a graph next time."""
    if comes_of_counts(node, model):
        return True
    while isinstance(node, cst.Subscript):
        node = node.value
    if _is_made_of_cut(node, model):
        return True
    binding = model.binding(node) if isinstance(node, cst.Name) else None
    if binding is not None:
        return binding in seen or (bool(binding.writes) and _holds_what_is_made_in_sight(binding, model, seen))
    if isinstance(node, cst.Call):
        call = model.call(node)
        if call.is_forward or _is_called_without_graph(node, model):
            return model.grad_enabled(node) is False
        if call.target is not None or call.foreign is not None:
            return False
        given = [arg.value for arg in node.args] + ([call.receiver] if call.receiver is not None else [])
    elif isinstance(node, cst.BinaryOperation):
        given = [node.left, node.right]
    elif isinstance(node, (cst.List, cst.Tuple)):
        given = [element.value for element in node.elements]
    else:
        return False
    values = ((part, model.value(part)) for part in given)
    return all(_is_made_in_sight(part, model, seen) for part, value in values if value.is_tensor or value.is_container)
