"""After the walk over a file: what its reads, its attributes and its base classes refer to."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.entities import Binding, Call, Class, Function, Write
from torchlint.semantics.scopes import Context, Scopes
from torchlint.semantics.tree import walk


def link_classes(found: Scopes) -> None:
    by_node = found.class_of
    for cls in found.classes:
        context = found.contexts[cls.node]
        for base in cls.node.bases:
            binding = found.lookup(base.value.value, context.scope) if isinstance(base.value, cst.Name) else None
            if binding is not None:
                cls.local_bases.extend(by_node[write.target] for write in binding.writes if write.target in by_node)
        for base_class in cls.local_bases:
            base_class.subclasses.append(cls)


def resolve_reads(found: Scopes, reads: list[tuple[cst.Name, Context]]) -> None:
    for node, context in reads:
        binding = found.lookup(node.value, context.scope)
        if binding is None:
            continue
        binding.reads.append(node)
        found.bindings[node] = binding
        if context.function is not binding.scope_function:
            binding.shared = True


def resolve_attributes(
    found: Scopes, attributes: list[tuple[cst.Attribute, Context]], writes: dict[cst.Attribute, Write]
) -> None:
    for node, context in attributes:
        cls = _owner(node, context)
        if cls is None:
            continue
        name = node.attr.value
        binding = cls.attribute(name)
        if binding is None:
            binding = cls.attributes[name] = Binding(name, cls.parent, cls, shared=True)
        found.bindings[node] = binding
        write = writes.get(node)
        if write is None:
            binding.reads.append(node)
        else:
            binding.writes.append(write)


def _owner(node: cst.Attribute, context: Context) -> Class | None:
    """The class whose instance the first parameter of the surrounding method is, if `node` is `self.x`."""
    if not isinstance(node.value, cst.Name):
        return None
    function: Function | None = context.function
    while function is not None:
        if function.cls is not None:
            is_self = bool(function.params) and function.params[0] == node.value.value
            return function.cls if is_self else None
        function = function.parent
    return None


_JOINS = frozenset({"stack", "cat", "concat", "vstack", "hstack"})


def note_uses(found: Scopes) -> None:
    joined = set()
    for call in found.calls:
        func = call.node.func
        if isinstance(func, cst.Attribute):
            call.method = func.attr.value
            call.receiver = func.value
            binding = found.bindings.get(func.value)
            if binding is not None and not _takes_loss(call):
                binding.methods.add(func.attr.value)
            if _joins(call.node):
                joined.add(found.bindings.get(call.node.args[0].value))
        called = found.bindings.get(func)
        if called is not None:
            called.called = True
    for binding in joined:
        if binding is not None:
            binding.joined = not _is_made_of_itself(binding)


def _is_made_of_itself(binding: Binding) -> bool:
    """`rows = [torch.tensor(row) for row in rows]`: before that, they may be anything."""
    values = [write.value for write in binding.writes if write.kind == "assign" and write.value is not None]
    nodes = [node for value in values for node in walk(value)]
    given = {node.args[0].value for node in nodes if isinstance(node, cst.Call) and _joins(node)}
    return any(isinstance(node, cst.Name) and node.value == binding.name and node not in given for node in nodes)


def _joins(node: cst.Call) -> bool:
    """`torch.stack(rows)`"""
    match node:
        case cst.Call(func=cst.Attribute(value=cst.Name(value="torch"), attr=cst.Name(value=name)), args=[first, *_]):
            return name in _JOINS and not first.star
    return False


def _takes_loss(call: Call) -> bool:
    """`accelerator.backward(loss)`, of which nothing follows for the accelerator."""
    args = call.node.args
    return call.method == "backward" and bool(args) and args[0].keyword is None and not args[0].star
