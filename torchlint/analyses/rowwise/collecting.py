"""Lists that become one tensor: what a loop appends, or a comprehension makes, and torch.stack puts together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise.indices import has_bounds
from torchlint.semantics.dataflow import reaches

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_COLLECTORS = re.compile(
    r"torch\.(stack|cat|concat|concatenate|hstack|vstack|dstack|tensor|as_tensor|(\w+)?Tensor)|builtins\.sum"
    r"|numpy\.(array|asarray|stack|concatenate|vstack|hstack|mean|sum|std|var|median|min|max|average|percentile)"
    r"|statistics\.(mean|fmean|stdev|pstdev|median)"
)

JOINING = frozenset(["torch.cat", "torch.concat", "torch.concatenate", "torch.stack"])


def collector(model: Model, node: cst.BaseExpression) -> cst.Call | None:
    """The call that a list is the first argument of, and that makes one tensor of it."""
    argument = model.parent(node)
    call = model.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or not call.args or call.args[0] is not argument or argument.star:
        return None
    return call if _COLLECTORS.fullmatch(model.qualified(call.func) or "") else None


def _goes_into(model: Model, node: cst.BaseExpression) -> cst.Call | None:
    """The same where the list is the only one in another, or is joined with others: `torch.cat(rows + more)`."""
    while True:
        match model.parent(node):
            case cst.BinaryOperation(operator=cst.Add()) as around:
                node = around
            case cst.Element() as element:
                outer = model.parent(element)
                if not isinstance(outer, cst.List) or len(outer.elements) != 1:
                    return None
                node = outer
            case _:
                return collector(model, node)


def is_put_in_line(model: Model, root: cst.CSTNode) -> bool:
    """Whether what a loop appends is put one behind the other along another dimension than the first: the rows are the
    pieces of one signal, and a network may go on with what it keeps of the piece before."""
    appends = (call.receiver for call in model.calls_in(root) if call.method == "append")
    lists = {binding for node in appends if node is not None and (binding := model.binding(node)) is not None}
    return any(_is_put_behind(model, read) for binding in lists for read in binding.reads)


def _is_put_behind(model: Model, read: cst.CSTNode) -> bool:
    site = collector(model, read) if isinstance(read, cst.Name) else None
    call = model.call(site) if site is not None else None
    if call is None or call.callee not in ("torch.cat", "torch.concat", "torch.concatenate"):
        return False
    along = call.argument("dim", 1).value.constant
    return isinstance(along, int) and along != 0


def is_collected(model: Model, root: cst.CSTNode, receiver: cst.BaseExpression | None = None) -> bool:
    """Whether a list that `root` makes or grows has no other use than to become a tensor."""
    target = receiver
    if target is None and isinstance(root, cst.BaseExpression) and _goes_into(model, root) is not None:
        return True
    if target is None:
        statement = model.small_statement(root)
        if not isinstance(statement, cst.Assign) or statement.value is not root or len(statement.targets) != 1:
            return False
        target = statement.targets[0].target
    binding = model.binding(target) if isinstance(target, cst.Name) else None
    if binding is None or binding.shared:
        return False
    around = (root, *model.ancestors(root))
    block = next((node for node in around if isinstance(node, (cst.FunctionDef, cst.Module))), None)
    return block is not None and _collects(model, binding, root, receiver)


def _collects(model: Model, binding: Binding, root: cst.CSTNode, grown: cst.BaseExpression | None) -> bool:
    """Of a list that `root` makes, or that it grows under a name, which may hold something else later."""
    made = [
        write.target
        for write in binding.writes
        if write.value is root or (isinstance(grown, cst.Name) and reaches(model, binding, write.target, grown))
    ]
    seen = [
        read
        for read in binding.reads
        if root not in model.ancestors(read)
        and (not made or any(reaches(model, binding, target, read) for target in made))
    ]
    uses = [read for read in seen if not _suits_tensor(model, read) and not _is_grown(model, read)]
    after = [read for read in uses if _becomes_tensor(model, read)]
    others = [read for read in uses if read not in after and not follows_stack(model, binding, read)]
    if after or others:
        return bool(after) and not others
    is_looked_at = any(isinstance(model.parent(read), cst.Subscript) for read in seen)
    return is_looked_at and not any(map(gathers, _held(model, root, grown)))


def _becomes_tensor(model: Model, read: cst.CSTNode) -> bool:
    """Whether one tensor is made of a list, here, by the callers, or of what each of its elements becomes."""
    goes_in = isinstance(read, cst.BaseExpression) and _goes_into(model, read) is not None
    return goes_in or _is_collected_by_callers(model, read) or _is_collected_anew(model, read)


def _is_collected_anew(model: Model, read: cst.CSTNode) -> bool:
    """`rows` of `means = [row.mean() for row in rows]`, of which `torch.stack(means)` makes a tensor."""
    match model.parent(read):
        case cst.CompFor(iter=iterable, ifs=[], inner_for_in=None) as loop if iterable is read:
            made = model.parent(loop)
            return isinstance(made, cst.ListComp) and is_collected(model, made)
    return False


def _held(model: Model, root: cst.CSTNode, grown: cst.BaseExpression | None) -> list[cst.BaseExpression]:
    """What a comprehension makes, or a loop appends to a list."""
    if isinstance(root, cst.ListComp):
        return [root.elt]
    held = model.binding(grown) if grown is not None else None
    appends = [(call, call.receiver) for call in model.calls_in(root) if call.method == "append"]
    grows = [call for call, rows in appends if rows is not None and model.binding(rows) is held]
    return [arg.value for call in grows for arg in call.arguments]


def _is_collected_by_callers(model: Model, read: cst.CSTNode) -> bool:
    """Whether a function returns the list to callers of this file alone, which all make a tensor of it."""
    function = model.function(read)
    if not isinstance(model.parent(read), cst.Return) or function.passed_around or function.foreign_callers:
        return False
    calls = [call.node for call in function.callers]
    return bool(calls) and all(collector(model, call) is not None or is_collected(model, call) for call in calls)


def is_stacked(model: Model, rows: cst.BaseExpression) -> bool:
    """Whether `torch.stack` puts a list together, be it a name or made in place, so that its parts are of one shape."""
    return _collected_by(model, rows) == {"torch.stack"}


def is_joined(model: Model, rows: cst.BaseExpression) -> bool:
    """Whether `torch.cat` or `torch.stack` puts a list together, so that its parts are tensors."""
    return bool(found := _collected_by(model, rows)) and found <= JOINING


def _collected_by(model: Model, rows: cst.BaseExpression) -> set[str | None]:
    binding = model.binding(rows)
    calls = [collector(model, read) for read in binding.reads] if binding is not None else [collector(model, rows)]
    return {model.qualified(call.func) for call in calls if call is not None}


def _suits_tensor(model: Model, read: cst.CSTNode) -> bool:
    """`len(rows)`, `rows[i]`: a tensor in the place of the list does the same. `rows[1:] + [last]` is a list again."""
    parent = model.parent(read)
    if isinstance(parent, cst.Subscript) and parent.value is read:
        is_part = isinstance(parent.slice[0].slice, cst.Slice)
        changes = (cst.AssignTarget, cst.AugAssign, cst.Del, *([cst.BinaryOperation] if is_part else []))
        return not isinstance(model.parent(parent), changes)
    call = model.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(call, cst.Call) and model.qualified(call.func) == "builtins.len"


def _is_grown(model: Model, read: cst.CSTNode) -> bool:
    """`rows.append(last)`"""
    method = model.parent(read)
    call = model.parent(method) if isinstance(method, cst.Attribute) and method.attr.value == "append" else None
    return isinstance(call, cst.Call) and call.func is method


def follows_stack(model: Model, binding: Binding, read: cst.CSTNode) -> bool:
    """Whether the name holds the tensor by then: `rows = torch.stack(rows)` came first."""
    place = model.statement(read)
    stacked = [model.statement(write.target) for write in binding.writes if _stacks(model, write.value)]
    return any(statement in stacked for statement in _before(model, place))


def _stacks(model: Model, value: cst.CSTNode | None) -> bool:
    """Whether a value is a tensor made of a list, `torch.stack(rows)`, or that as a layer of old takes it,
    `Variable(torch.stack(rows))`."""
    while isinstance(value, cst.Call):
        if _COLLECTORS.fullmatch(model.qualified(value.func) or ""):
            return True
        value = value.args[0].value if value.args else None
    return False


def _before(model: Model, statement: cst.CSTNode) -> list[cst.CSTNode]:
    """Statements of the blocks around a statement that come before it, and those of a `with` among them."""
    found: list[cst.CSTNode] = []
    child = statement
    for parent in model.ancestors(statement):
        body = getattr(parent, "body", None)
        if isinstance(body, (list, tuple)) and child in body:
            found += body[: list(body).index(child)]
        child = parent
    for node in found:  # it grows while the loop runs
        if isinstance(node, cst.With):
            found += node.body.body
    return found


def is_host_value(value: cst.BaseExpression | None) -> bool:
    """`x[i].argmax().item()`, `x[i].cpu().numpy()`, `1 - x[i].item()`: a list of these is what the list of the whole
    tensor is as well."""
    match value:
        case cst.BinaryOperation(left=left, right=right):
            is_number = isinstance(left, cst.BaseNumber) or isinstance(right, cst.BaseNumber)
            return is_number and (is_host_value(left) or is_host_value(right))
        case cst.Call(func=cst.Attribute(attr=cst.Name("item" | "tolist" | "numpy"))):
            return True
        case cst.Call(func=cst.Name("int" | "float" | "bool"), args=[_]):
            return True
    return False


def gathers(value: cst.BaseExpression) -> bool:
    """`x[i]`, `torch.squeeze(x[i, last[i]])`: an element or a row. A part `x[i : i + 3]` costs next to nothing."""
    while isinstance(value, cst.Call):
        function = value.func
        if isinstance(function, cst.Attribute) and isinstance(function.value, (cst.Call, cst.Subscript)):
            value = function.value
        elif value.args:
            value = value.args[0].value
        else:
            return False
    return isinstance(value, cst.Subscript) and not has_bounds(value)
