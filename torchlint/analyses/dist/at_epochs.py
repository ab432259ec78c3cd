"""Which variables hold a sampler, its loader and the epoch counter at the start of an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loops.handed_on import comes_from
from torchlint.semantics.tree import arms, walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.loops.epochs import StaleSampler
    from torchlint.semantics.entities import Binding, Call, Loop
    from torchlint.semantics.model import Model
    from torchlint.semantics.values import Value

_BATCH_SAMPLER = "torch.utils.data.BatchSampler"


def epoch_number(epochs: Loop, model: Model) -> str | None:
    """The variable that counts the epochs of a loop."""
    if isinstance(epochs.node, cst.For):
        target = epochs.target
        if isinstance(target, cst.Tuple) and target.elements and _is_enumeration(epochs):
            target = target.elements[0].value
        return target.value if isinstance(target, cst.Name) and target.value != "_" else None
    return _counter(epochs, model)


def _is_enumeration(epochs: Loop) -> bool:
    iterable = epochs.iterable
    return isinstance(iterable, cst.Call) and isinstance(iterable.func, cst.Name) and iterable.func.value == "enumerate"


def _counter(epochs: Loop, model: Model) -> str | None:
    """Of `while epoch < last:` the variable that the body increments."""
    if not isinstance(epochs.node, cst.While):
        return None
    for node in walk(epochs.node.test):
        binding = model.binding(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
        if binding is not None and any(w.kind == "augmented" and w.loop is epochs for w in binding.writes):
            return model.code(node)
    return None


def loader_at_epochs(stale: StaleSampler, home: Model) -> cst.BaseExpression | None:
    """A variable or attribute that holds the loader in the epoch loop: iterated there or below, or handed on.

    home: the model of the file in which the epochs are.
    """
    for root in [stale.drawn_from, *(arg.value for call in stale.epochs.calls for arg in call.arguments)]:
        for node in walk(root):
            if not isinstance(node, (cst.Name, cst.Attribute)) or not _is_stale_loader(node, stale, home):
                continue
            binding = home.binding(node)
            if binding is None:
                continue
            if home.function(node) is not stale.epochs.function:
                if _means_the_same(node, binding, stale.epochs):
                    return node
            elif not home.guards(node, stale.epochs) or _is_always_bound(binding, stale.epochs, home):
                return node
    return None


def _is_stale_loader(node: cst.BaseExpression, stale: StaleSampler, home: Model) -> bool:
    if stale.kept is not None:
        return comes_from(node, stale.kept, home, wrapped=False)
    value = home.value(node)
    return value.kind is Kind.LOADER and stale.loader.node in value.origins


def _is_always_bound(binding: Binding, epochs: Loop, model: Model) -> bool:
    """Whether a variable is sure to have a value when an epoch loop starts."""
    if binding.is_parameter or any(_always_before(write.statement, epochs, model) for write in binding.writes):
        return True
    return _both_ways(binding, epochs, model)


def path_to_sampler(stale: StaleSampler, model: Model) -> tuple[str, bool] | None:
    """The attributes of the loader that lead to its sampler, and whether nothing but the stale one can be there; None
    where the loader draws from batches of a class of its own."""
    given = (stale.built or stale.loader).argument("sampler", 3)
    if given.given:
        return "sampler", _is_only(given.value, stale.sampler)
    batches = stale.loader.argument("batch_sampler", 4).value
    makers = [model.call(origin) for origin in batches.origins if isinstance(origin, cst.Call)]
    if len(makers) != 1 or len(batches.origins) != 1 or batches.optional or makers[0].callee != _BATCH_SAMPLER:
        return None
    return "batch_sampler.sampler", _is_only(makers[0].argument("sampler", 0).value, stale.sampler)


def _is_only(value: Value, made: Call) -> bool:
    return value.origins == {made.node} and not value.optional


def comes_from_callers(node: cst.CSTNode, model: Model) -> bool:
    """Whether a variable or attribute holds what a function was given, by this file or by another."""
    binding = model.binding(node)
    if binding is None or binding.is_parameter:
        return True
    sources = (write.value for write in binding.writes if isinstance(write.value, cst.Name))
    return any((given := model.binding(source)) is not None and given.is_parameter for source in sources)


def _means_the_same(node: cst.CSTNode, binding: Binding, epochs: Loop) -> bool:
    """Whether what is written in another function names the same thing in an epoch loop."""
    if isinstance(node, cst.Attribute):
        methods, params = epochs.function.cls, epochs.function.params
        same_self = isinstance(node.value, cst.Name) and params[:1] == [node.value.value]
        return binding.cls is not None and methods is not None and binding.cls in methods.lineage() and same_self
    return binding.is_global and binding.name not in epochs.function.scope.bindings


def sampler_at_epochs(stale: StaleSampler, model: Model) -> tuple[str, Binding] | None:
    """The variable or attribute that the sampler is kept in, if it is sure to exist in the epoch loop."""
    assign = model.small_statement(stale.sampler.node)
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None
    if stale.sampler.node not in arms(assign.value):
        return None
    target = assign.targets[0].target
    binding = model.binding(target)
    if binding is None or any(write.kind != "assign" or write.unpacked for write in binding.writes):
        return None
    if binding.is_parameter:
        return None
    if not _is_always_bound(binding, stale.epochs, model) and not _comes_with_loader(binding, assign, stale, model):
        return None
    if binding.cls is not None:
        methods = stale.epochs.function.cls
        return (model.code(target), binding) if methods is not None and binding.cls in methods.lineage() else None
    reaches = binding.scope_function is stale.epochs.function or binding.is_global
    return (model.code(target), binding) if reaches else None


def _comes_with_loader(binding: Binding, assign: cst.Assign, stale: StaleSampler, model: Model) -> bool:
    """`self.sampler = DistributedSampler(...)` beside `self.loader = DataLoader(..., sampler=self.sampler)`: where the
    one attribute is iterated over, there is the other."""
    block = model.parent(model.statement(assign) or assign)
    is_beside = block is model.parent(model.statement(stale.loader.node) or stale.loader.node)
    is_only_loader = model.value(stale.drawn_from).origins == {stale.loader.node}
    return binding.cls is not None and len(binding.writes) == 1 and is_beside and is_only_loader


def _always_before(statement: cst.CSTNode, epochs: Loop, model: Model) -> bool:
    """Whether a statement has run when an epoch loop starts: it stands in a block around the loop, or in `__init__`."""
    function = model.function(statement)
    block = model.parent(statement)
    if function is epochs.function or function.is_module:
        return block in tuple(model.ancestors(epochs.node)) or (function.is_module and block is model.module)
    return function.name == "__init__" and model.parent(block) is function.node if block is not None else False


def _both_ways(binding: Binding, epochs: Loop, model: Model) -> bool:
    """Whether an `if` and its `else` both write the variable."""
    for write in binding.writes:
        block = model.parent(write.statement)
        branch = model.parent(block) if block is not None else None
        if isinstance(branch, cst.If) and isinstance(branch.orelse, cst.Else) and branch.body is block:
            others = [other for other in binding.writes if model.parent(other.statement) is branch.orelse.body]
            if others and _always_before(branch, epochs, model):
                return True
    return False
