"""Tensors that a loop makes longer with torch.cat: every iteration copies all that is there already."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.extent import runs_few_times
from torchlint.analyses.loops.steps import is_the_rest
from torchlint.analyses.once import once
from torchlint.analyses.rowwise.setting_up import builds
from torchlint.semantics.dataflow import text, upstream
from torchlint.semantics.entities import Role
from torchlint.semantics.tree import bound_names, prefixes, walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function, Loop, Write
    from torchlint.semantics.model import Model

CAT = re.compile(r"torch\.(cat|concat|concatenate|hstack|vstack|dstack|row_stack|column_stack)")
_FROM_NOTHING = ("torch.Tensor", "torch.FloatTensor", "torch.DoubleTensor")
_LENGTH = re.compile("len|size|shape|numel")
_METADATA = ("shape", "ndim", "dtype", "device")
_METADATA_METHODS = ("size", "dim", "numel", "new_zeros", "new_ones", "new_empty")


@dataclass(frozen=True, slots=True)
class Growth:
    """`name = torch.cat([name, *parts], ...)` in `loops`, innermost first; `binding` is not made anew in any of them.

    `hook`: a framework calls this function for each batch, and there is no loop. `first`: the tensor comes before the
    parts. `watched`: the loop asks how long it is, or whether there is one yet. `moved`: each iteration puts it on a
    device before it adds to it.
    `name` may be an entry of a dict, `seen["out"]`, which is the variable then, or one of a dict or of lists that the
    loops inside choose, `seen[label]`: no loop of `loops` chooses.
    """

    call: cst.Call
    name: str
    parts: tuple[cst.BaseExpression, ...]
    first: bool
    loops: tuple[Loop, ...]
    binding: Binding
    watched: bool
    hook: Function | None = None
    moved: bool = False

    @property
    def around(self) -> cst.CSTNode:
        """What runs again and again."""
        return self.hook.node if self.hook is not None else self.loops[0].node


@once
def growths(model: Model) -> Iterator[Growth]:
    """Every tensor that grows in a loop and that no iteration works with."""
    for call in model.calls:
        if call.loop is not None and call.callee is not None and CAT.fullmatch(call.callee):
            growth = _growth(model, call)
            if growth is not None:
                yield growth


def _growth(model: Model, call: Call) -> Growth | None:
    target = _assigned(model, call.node)
    elements = elements_of(call.node)
    binding = _holder(model, target) if target is not None else None
    if target is None or binding is None or binding.shared or len(elements) < 2:
        return None
    places = [place for place, element in enumerate(elements) if _is_same(copied(element), target)]
    if len(places) != 1 or places[0] not in (0, len(elements) - 1):
        return None
    chosen = _chosen(target)
    loops = tuple(_carrying_loops(model, call, binding))
    if chosen is not None:
        loops = tuple(loop for loop in loops if not _chooses(model, loop, chosen) and not _counts_only(loop))
    if not loops or is_short(model, loops) or is_of_dict(loops[0]) or _is_for_some_rounds(model, call, binding):
        return None
    if builds(model, call.function) or is_of_outputs(model, loops[0]):
        return None
    if is_of_layers(loops[0]) and not (
        _counts(model, loops[0]) and _starts_empty(model, binding, call) and not _is_chain(model, loops[0])
    ):
        return None
    grown, moved = copied(elements[places[0]]), is_moved(elements[places[0]])
    inside: list[cst.CSTNode] = [read for read in binding.reads if loops[0].node in model.ancestors(read)]
    if chosen is not None:
        inside = [node for read in inside if (node := _place(model, read, target, grown)) is not None]
    elif isinstance(target, cst.Subscript):
        entries = [node for read in inside if (node := _entry(model, read, target)) is not None]
        inside = [node for node in entries if node is not target and not _begins(model, node, target)]
    reads = [read for read in inside if read is not grown and not _grows_otherwise(model, read, target)]
    if any(not is_watch(model, read) for read in reads) or (reads and isinstance(loops[0].node, cst.While)):
        return None
    parts = tuple(element for place, element in enumerate(elements) if place not in places)
    return Growth(call.node, text(target), parts, places[0] == 0, loops, binding, bool(reads), moved=moved)


def _is_for_some_rounds(model: Model, call: Call, grown: Binding) -> bool:
    """`if step % 100 == 0`, `if step in shown`, which few rounds come to; a flag holds in all of them or in none, and
    `shown is None` in the first."""
    for guard in model.guards(call.node, call.loop):
        if guard.kind == "log" and guard.test is not None and not is_the_rest(guard):
            asked = {model.binding(node) for node in walk(guard.test) if isinstance(node, (cst.Name, cst.Attribute))}
            if grown not in asked and any(binding is not None and _changes(binding, call) for binding in asked):
                return True
    return False


def _changes(binding: Binding, call: Call) -> bool:
    return call.loop is not None and any(call.loop.holds(write.loop) for write in binding.writes)


def _assigned(model: Model, call: cst.Call) -> cst.Name | cst.Subscript | None:
    """What a call is assigned to, by itself or as one branch of a conditional expression."""
    parent = model.parent(call)
    if isinstance(parent, cst.IfExp) and parent.test is not call:
        parent = model.parent(parent)
    match parent:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() | cst.Subscript() as target)]):
            return target
    return None


def _holder(model: Model, target: cst.Name | cst.Subscript) -> Binding | None:
    """The variable that is the tensor, or the dict or list of which it is an entry."""
    if isinstance(target, cst.Name) or _key(target) is not None:
        return model.binding(target if isinstance(target, cst.Name) else target.value)
    root: cst.BaseExpression = target
    for place in prefixes(target):
        if not all(isinstance(part.slice, cst.Index) and _is_simple(part.slice.value) for part in place.slice):
            return None
        root = place.value
    return model.binding(root) if isinstance(root, cst.Name) else None


def _is_simple(key: cst.BaseExpression) -> bool:
    """A key of which it is known where it changes; `batch.label` changes with the batch, or with what is done to it."""
    return isinstance(key, (cst.Name, cst.SimpleString, cst.Integer))


def _chosen(target: cst.Name | cst.Subscript) -> list[cst.BaseExpression] | None:
    """The keys of an entry that is not the same one by what is written there; None where it is."""
    if isinstance(target, cst.Name) or _key(target) is not None:
        return None
    parts = (part.slice for place in prefixes(target) for part in place.slice)
    return [part.value for part in parts if isinstance(part, cst.Index)]


def _chooses(model: Model, loop: Loop, keys: list[cst.BaseExpression] | None) -> bool:
    """Whether a loop itself, and none in it, says which entry it is: its next iteration may add to another one."""
    bindings = (model.binding(key) for key in keys or ())
    writes = (write for binding in bindings if binding is not None for write in binding.writes)
    return any(write.loop is loop for write in writes)


def _counts_only(loop: Loop) -> bool:
    """`for hop in range(self.hops)`, of which there may be few; `range(len(rows))` goes through data."""
    if loop.iterates.ref != "builtins.range" or loop.iterable is None:
        return False
    return not any(_LENGTH.fullmatch(node.value) for node in walk(loop.iterable) if isinstance(node, cst.Name))


def _place(model: Model, read: cst.CSTNode, target: cst.Subscript | cst.Name, grown: cst.CSTNode) -> cst.CSTNode | None:
    """What a read of a dict or list may see of the entry that grows; None where it is begun in another branch, or where
    the keys are asked for."""
    above = model.parent(read)
    if isinstance(above, cst.ComparisonTarget) and isinstance(above.operator, (cst.In, cst.NotIn)):
        return None
    node = read
    while isinstance(above, cst.Subscript) and above.value is node:
        node, above = above, model.parent(above)
    if node is target or node is grown:
        return None
    return None if _begins(model, node, target) else node


def _begins(model: Model, node: cst.CSTNode, target: cst.Subscript | cst.Name) -> bool:
    """Whether the entry gets its first value here, in another branch than the one in which it grows."""
    if not isinstance(model.parent(node), cst.AssignTarget) or not node.deep_equals(target):
        return False
    statement, growth = model.statement(node), model.statement(target)
    conditions = (around for around in model.ancestors(growth) if isinstance(around, cst.If))
    return any(_are_apart(model, condition, statement, growth) for condition in conditions)


def _grows_otherwise(model: Model, read: cst.CSTNode, target: cst.Subscript | cst.Name) -> bool:
    """Whether a read is what `torch.cat` makes longer in another branch than the one in which the tensor grows."""
    above = next((node for node in model.ancestors(read) if isinstance(node, cst.Call)), None)
    call = model.call(above) if above is not None else None
    if call is None or call.callee is None or not CAT.fullmatch(call.callee):
        return False
    if read not in elements_of(call.node):
        return False
    assigned = _assigned(model, call.node)
    if assigned is None or not _is_same(assigned, target):
        return False
    statement, growth = model.statement(assigned), model.statement(target)
    conditions = (around for around in model.ancestors(growth) if isinstance(around, cst.If))
    return any(_are_apart(model, condition, statement, growth) for condition in conditions)


def _key(entry: cst.Subscript) -> str | None:
    match entry.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]:
            return str(key.evaluated_value)
    return None


def _entry(model: Model, read: cst.CSTNode, entry: cst.Subscript) -> cst.CSTNode | None:
    """What a read of a dict may see of one of its entries; None for a look at another, or at the keys."""
    above = model.parent(read)
    if isinstance(above, cst.ComparisonTarget) and isinstance(above.operator, (cst.In, cst.NotIn)):
        return None
    if not isinstance(above, cst.Subscript) or above.value is not read or _key(above) is None:
        return read
    return above if _key(above) == _key(entry) else None


def elements_of(call: cst.Call) -> list[cst.BaseExpression]:
    """What is put together, where that is written out."""
    first = call.args[0] if call.args else None
    if first is None or first.star or (first.keyword is not None and first.keyword.value != "tensors"):
        return []
    if not isinstance(first.value, (cst.List, cst.Tuple)):
        return []
    elements = first.value.elements
    return [] if any(isinstance(element, cst.StarredElement) for element in elements) else [e.value for e in elements]


def copied(element: cst.BaseExpression) -> cst.BaseExpression:
    """What a `clone()` copies, or `cpu()` moves, before `torch.cat` copies it again."""
    match element:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="clone")), args=[]):
            return inner
        case cst.Call(func=cst.Attribute(value=inner)) if is_moved(element):
            return inner
    return element


def is_moved(element: cst.BaseExpression) -> bool:
    """`out.cpu()`, `out.to(device)`"""
    match element:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="cpu" | "cuda" | "to"))):
            return True
    return False


def _is_same(node: cst.BaseExpression, target: cst.Name | cst.Subscript) -> bool:
    if isinstance(target, cst.Name):
        return isinstance(node, cst.Name) and node.value == target.value
    if not isinstance(node, cst.Subscript) or _key(node) != _key(target):
        return False
    return text(node) == text(target) if _key(target) is None else text(node.value) == text(target.value)


def _carrying_loops(model: Model, call: Call, binding: Binding) -> Iterator[Loop]:
    """The loops around the call, from the inside, in which each iteration finds the tensor that the last one left."""
    for loop in call.loops():
        if loop.is_comprehension or any(_is_made(model, write, call.node, loop) for write in binding.writes):
            return
        yield loop


def _is_made(model: Model, write: Write, call: cst.Call, loop: Loop) -> bool:
    """Whether a write in the loop is another one than the growth, and no other branch of it."""
    if loop.node not in model.ancestors(write.target) and write.target is not loop.target:
        return False
    statement, growth = model.statement(write.target), model.statement(call)
    if statement is growth:
        return False
    conditions = [node for node in model.ancestors(growth) if isinstance(node, cst.If)]
    return not any(_are_apart(model, node, statement, growth) for node in conditions)


def _are_apart(model: Model, condition: cst.If, one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Whether two statements are in different branches of a condition."""
    if condition not in model.ancestors(one):
        return False
    return (condition.body in model.ancestors(one)) is not (condition.body in model.ancestors(other))


def is_short(model: Model, loops: Sequence[Loop]) -> bool:
    """Whether all these loops run a few times only."""
    return all(runs_few_times(model, loop) for loop in loops)


def is_of_dict(loop: Loop) -> bool:
    """A loop over the entries of a dict: kinds of things, of which there are few."""
    match loop.iterable:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="items" | "keys" | "values"))):
            return True
    return loop.iterates.kind is Kind.DICT


def is_of_layers(loop: Loop) -> bool:
    """A loop over layers: each makes a part of its own, and there are few."""
    return loop.role is Role.MODULES or loop.iterates.kind is Kind.MODULE or bool(_picked(loop))


def is_of_outputs(model: Model, loop: Loop) -> bool:
    """A loop over what another has put into a list for each layer, however it goes through the list."""
    names = (node for node in walk(loop.iterable) if isinstance(node, cst.Name)) if loop.iterable is not None else ()
    return any(_lists_outputs(model, name) for name in names)


def _lists_outputs(model: Model, name: cst.Name) -> bool:
    binding = model.binding(name)
    if binding is None or "append" not in binding.methods:
        return False
    reads = (model.parent(read) for read in binding.reads)
    calls = [model.parent(read) for read in reads if isinstance(read, cst.Attribute) and read.attr.value == "append"]
    loops = [model.call(call).loop for call in calls if isinstance(call, cst.Call)]
    return bool(loops) and all(loop is not None and is_of_layers(loop) for loop in loops)


def _picked(loop: Loop) -> list[cst.Call]:
    """The calls of a loop that run what its target is, or picks."""
    names = set(bound_names(loop.target)) if loop.target is not None else set()
    return [node for node in walk(loop.node) if isinstance(node, cst.Call) and _picks(node.func, names)]


def _is_chain(model: Model, loop: Loop) -> bool:
    """`x = self.layers[i](x)`: each layer gets what the one before has made, and networks are not that deep."""
    inputs = (model.binding(arg.value) for call in _picked(loop) for arg in call.args)
    written = ((held, write) for held in inputs if held is not None for write in held.writes if write.loop is loop)
    return any(write.value is not None and held in upstream(model, write.value, loop) for held, write in written)


def _picks(function: cst.BaseExpression, names: set[str]) -> bool:
    """`layer(x)`, `self.layers[i](x)`"""
    match function:
        case cst.Name(value=name):
            return name in names
        case cst.Subscript():
            return any(isinstance(node, cst.Name) and node.value in names for node in walk(function))
    return False


def _counts(model: Model, loop: Loop) -> bool:
    return isinstance(loop.iterable, cst.Call) and model.call(loop.iterable).callee == "builtins.range"


def _starts_empty(model: Model, binding: Binding, growth: Call) -> bool:
    """Whether a tensor is nothing before the loop but what `torch.cat` needs to begin with: it then gets a column for
    each neuron, say, of which there are more than there are layers."""
    made = [write.value for write in binding.writes if write.value is not growth.node]
    return bool(made) and all(value is not None and _is_empty(model, value) for value in made)


def _is_empty(model: Model, value: cst.BaseExpression) -> bool:
    """`torch.Tensor()`, `torch.tensor([]).to(device)`, `torch.empty(0)`"""
    while (
        isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and isinstance(value.func.value, cst.Call)
    ):
        value = value.func.value
    name = model.qualified(value.func) if isinstance(value, cst.Call) else None
    match value:
        case cst.Call(args=[]):
            return name in _FROM_NOTHING
        case cst.Call(args=[cst.Arg(value=cst.List(elements=[])), *_]):
            return name in _FROM_NOTHING or name == "torch.tensor"
        case cst.Call(args=[cst.Arg(value=cst.Integer("0")), *_]):
            return name in ("torch.empty", "torch.zeros")
    return False


def is_watch(model: Model, read: cst.CSTNode) -> bool:
    """A read that asks for the size, or whether there is a tensor yet."""
    parent = model.parent(read)
    if isinstance(parent, cst.Attribute):
        above = model.parent(parent)
        is_call = isinstance(above, cst.Call) and above.func is parent
        return parent.attr.value in (_METADATA_METHODS if is_call else _METADATA)
    if isinstance(parent, cst.Arg):
        call = model.parent(parent)
        return isinstance(call, cst.Call) and model.qualified(call.func) == "builtins.len"
    match parent:
        case cst.Comparison(comparisons=targets):
            return all(isinstance(target.operator, (cst.Is, cst.IsNot)) for target in targets)
        case cst.UnaryOperation(operator=cst.Not()) | cst.If():
            return True
        case cst.IfExp(test=test):
            return test is read
    return False
