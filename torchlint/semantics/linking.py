"""After the walk over a file: what its reads, its attributes and its base classes refer to."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.entities import Binding, Call, Class, Function, Write
from torchlint.semantics.scopes import Context, Scopes


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
    for call in found.calls:
        func = call.node.func
        if isinstance(func, cst.Attribute):
            call.method = func.attr.value
            call.receiver = func.value
            binding = found.bindings.get(func.value)
            if binding is not None and not _takes_loss(call):
                binding.methods.add(func.attr.value)
            joined = found.bindings.get(call.node.args[0].value) if _joins(func, call.node) else None
            if joined is not None:
                joined.joined = True
        called = found.bindings.get(func)
        if called is not None:
            called.called = True


def _joins(func: cst.Attribute, node: cst.Call) -> bool:
    """`torch.stack(rows)`"""
    is_join = func.attr.value in _JOINS and isinstance(func.value, cst.Name) and func.value.value == "torch"
    return is_join and bool(node.args) and not node.args[0].star


def _takes_loss(call: Call) -> bool:
    """`accelerator.backward(loss)`, of which nothing follows for the accelerator."""
    args = call.node.args
    return call.method == "backward" and bool(args) and args[0].keyword is None and not args[0].star
