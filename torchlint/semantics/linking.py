"""After the walk over a file: what its reads, its attributes and its base classes refer to."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.entities import Binding, Call, Class, Write
from torchlint.semantics.scopes import Context, Scopes
from torchlint.semantics.tree import integer, walk


def link_classes(found: Scopes) -> None:
    """Fills in the bases of this file of every class, and who derives from it."""
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
    """Ties every read of a name to its variable."""
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
    """Ties `self.x` to the attribute of its class, read or written."""
    for node, context in attributes:
        cls = _owner(node, context)
        if cls is None:
            continue
        name = node.attr.value
        binding = found.bindings[node] = _attribute(cls, name)
        write = writes.get(node)
        if write is None:
            binding.reads.append(node)
        else:
            binding.writes.append(write)


def _attribute(cls: Class, name: str) -> Binding:
    """The attribute `self.name` of a class, or of a base of this file that has it."""
    binding = cls.attribute(name)
    if binding is None:
        binding = cls.attributes[name] = Binding(name, cls.parent, cls, shared=True)
    return binding


def _owner(node: cst.Attribute, context: Context) -> Class | None:
    """The class whose instance the first parameter of the surrounding method is, if `node` is `self.x`."""
    if not isinstance(node.value, cst.Name):
        return None
    method = next((function for function in context.function.around() if function.cls is not None), None)
    return method.cls if method is not None and method.params[:1] == [node.value.value] else None


_JOINS = frozenset({"stack", "cat", "concat", "vstack", "hstack"})
_ONLY_MODULES_HAVE = frozenset({"eval", "parameters", "named_parameters"})


def _evaluates_expression(call: cst.Call) -> bool:
    """`table.eval("a + b")`, which says nothing of a network: that one is told nothing."""
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "eval" and bool(call.args)


def note_uses(found: Scopes) -> None:
    """Notes at each variable which methods are called on it, and what it is given to."""
    joined = set()
    for call in found.calls:
        func = call.node.func
        if isinstance(func, cst.Attribute):
            call.method = func.attr.value
            call.receiver = func.value
            binding = found.bindings.get(func.value)
            if binding is not None and not _takes_loss(call) and not _evaluates_expression(call.node):
                binding.methods.add(func.attr.value)
                binding.sized |= func.attr.value == "size" and _asks_by_dimension(found, call.node)
            elif binding is None and func.attr.value in _ONLY_MODULES_HAVE and not call.node.args:
                _note_module(found, func.value)
            if func.attr.value == "register_buffer":
                _note_buffer(found, call, func)
            if _joins(call.node):
                joined.add(found.bindings.get(call.node.args[0].value))
        called = found.bindings.get(func)
        if called is not None:
            called.called = True
        elif isinstance(func, cst.Name) and func.value == "range":
            _note_counts(found, call.node)
    for binding in joined:
        if binding is not None:
            binding.joined = not _is_made_of_itself(binding)


def _note_module(found: Scopes, node: cst.BaseExpression) -> None:
    """`trainer.model` of `trainer.model.eval()`, of a variable that may be anything."""
    path = found.path(node)
    if path is not None:
        found.modules.add(path)


def _note_buffer(found: Scopes, call: Call, func: cst.Attribute) -> None:
    """`self.register_buffer("scale", torch.ones(3))` writes `self.scale`."""
    context = found.contexts[call.node]
    cls = _owner(func, context)
    match call.node.args:
        case [cst.Arg(value=cst.SimpleString() as name), cst.Arg(value=value), *_] if cls is not None:
            binding = found.bindings[name] = _attribute(cls, str(name.evaluated_value))
            statement = context.statement or name
            binding.writes.append(Write(name, "buffer", value, statement, context.function, context.loop))


def _note_counts(found: Scopes, node: cst.Call) -> None:
    """`n` of `range(n)`, where nothing else is called `range`."""
    for arg in node.args:
        binding = found.bindings.get(arg.value)
        if binding is not None:
            binding.counts = True


def _is_made_of_itself(binding: Binding) -> bool:
    """`rows = [torch.tensor(row) for row in rows]`: before that, they may be anything."""
    values = [write.value for write in binding.writes if write.kind == "assign" and write.value is not None]
    nodes = [node for value in values for node in walk(value)]
    given = {node.args[0].value for node in nodes if isinstance(node, cst.Call) and _joins(node)}
    return any(isinstance(node, cst.Name) and node.value == binding.name and node not in given for node in nodes)


def _asks_by_dimension(found: Scopes, node: cst.Call) -> bool:
    """`x.size(0)`, `x.size()[0]`, `n, *rest = x.size()`: what else has a method `size` has one number to tell."""
    if node.args:
        return len(node.args) == 1 and integer(node.args[0].value) is not None
    match found.parents[node]:
        case cst.Subscript() | cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple())]):
            return True
    return False


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
