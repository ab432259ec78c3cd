"""Samplers that shuffle by epoch: made here, by a loader for itself, or by a function of another file for a loader of
this one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loading.loader_subclasses import constructor, yields_batches
from torchlint.semantics.dataflow import parameter_of_function
from torchlint.semantics.signatures import Signature
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function
    from torchlint.semantics.model import Model

SAMPLER = "torch.utils.data.DistributedSampler"
_LOADERS = frozenset({"torch.utils.data.DataLoader", "torch_geometric.loader.DataLoader"})


def makes_loader(call: Call, model: Model) -> bool:
    """Whether a call makes a loader of torch, or of a class of the project that hands all it is given to such a one."""
    if call.callee in _LOADERS:
        return True
    is_derived = call.callee is not None and model.value(call.node).kind is Kind.LOADER
    behind = model.class_behind(call.callee) if is_derived and call.callee is not None else None
    if behind is None or "set_epoch" in behind[0].source.text:
        return False
    return any(base in _LOADERS for cls in behind[1].lineage() for base in cls.bases)


def shuffles(sampler: Call) -> bool:
    """Whether the call makes a sampler that shuffles for sure."""
    shuffle = sampler.argument("shuffle", 3)
    return shuffle.absent or (shuffle.given and shuffle.value.constant is True)


def own_samplers(model: Model) -> Iterator[tuple[Call, Call]]:
    """The samplers that loaders of classes of this file make for themselves, each with the call of
    `super().__init__` that gets it."""
    for cls in model.classes:
        built = constructor(cls) if any(base in _LOADERS for part in cls.lineage() for base in part.bases) else None
        given = built.argument("sampler", 3) if built is not None and yields_batches(cls) else None
        if built is None or given is None or not given.given:
            continue
        made = (model.call(origin) for origin in given.value.origins if isinstance(origin, cst.Call))
        yield from ((call, built) for call in made if call.callee == SAMPLER and call.function is built.function)


def lent_samplers(model: Model) -> Iterator[tuple[Call, Call]]:
    """Calls of functions of other files, or of functions of this one that they tell to shuffle, which return a
    shuffling sampler, or another one where nothing is distributed, each with the loader that alone gets it."""
    for loader in model.calls:
        sampler = loader.argument("sampler", 3).node if makes_loader(loader, model) else None
        maker = _only_source(model, sampler, loader) if sampler is not None else None
        function = (maker.target or maker.foreign) if maker is not None else None
        if maker is None or function is None:
            continue
        home = model.home(maker) if maker.target is None else model
        if home is not None and "set_epoch" not in home.source.text and _lends(model, maker, home, function):
            yield maker, loader


def _only_source(model: Model, sampler: cst.BaseExpression, loader: Call) -> Call | None:
    """The call that makes the sampler, where only the loader reads the variable that keeps it."""
    if isinstance(sampler, cst.Call):
        return model.call(sampler)
    binding = model.binding(sampler)
    if binding is None or binding.cls is not None or len(binding.writes) != 1:
        return None
    made = binding.writes[0]
    if any(loader.node not in model.ancestors(read) for read in binding.reads) or binding.shared:
        return None
    return model.call(made.value) if isinstance(made.value, cst.Call) and not made.unpacked else None


def _lends(model: Model, maker: Call, home: Model, function: Function) -> bool:
    values = [home.value(statement.value) for statement in function.returns if statement.value is not None]
    returned = frozenset[cst.CSTNode]().union(*(value.origins for value in values))
    made = [call for call in home.calls_to(SAMPLER) if call.function is function and call.node in returned]
    if home is model and any(map(shuffles, made)):
        return False  # the sampler itself is told of
    return bool(made) and all(Told(maker, model, function, home).shuffles(call) for call in made)


class Told:
    """What a call tells the function that it enters, as far as constants say."""

    def __init__(self, call: Call, caller: Model, function: Function, home: Model) -> None:
        self._call = call
        self._caller = caller
        self._function = function
        self._home = home

    def shuffles(self, sampler: Call) -> bool:
        """`DistributedSampler(data, shuffle=shuffle)` in a function that is given a `shuffle=True`."""
        shuffle = sampler.argument("shuffle", 3)
        if shuffle.node is None:
            return shuffle.absent
        return shuffle.given and self._truth(shuffle.node) is True

    def may_reach(self, node: cst.CSTNode) -> bool:
        """Whether no test on the way to a node says otherwise."""
        guards = (guard for guard in self._home.guards(node) if guard.test is not None)
        return all(self._truth(guard.test) in (None, guard.branch == "body") for guard in guards if guard.test)

    def _truth(self, test: cst.BaseExpression) -> bool | None:
        """None where it is not known."""
        match test:
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                truth = self._truth(inner)
                return None if truth is None else not truth
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(cst.Equal() | cst.NotEqual(), right)]):
                sides = self._constant(left), self._constant(right)
                is_equal = isinstance(test.comparisons[0].operator, cst.Equal)
                return None if None in sides else (sides[0] == sides[1]) is is_equal
        constant = self._constant(test)
        return constant if isinstance(constant, bool) else None

    def _constant(self, node: cst.BaseExpression) -> object:
        binding = self._home.binding(node)
        if binding is None or not binding.is_parameter or binding.scope_function is not self._function:
            return self._home.value(node).constant
        if len(binding.writes) != 1 or any(arg.star for arg in self._call.arguments):
            return None
        given = self._given(binding)
        if given is not None:
            return self._caller.value(given).constant
        default = Signature.of(self._function).defaults.get(binding.name)
        return self._home.value(default).constant if default is not None else None

    def _given(self, parameter: Binding) -> cst.BaseExpression | None:
        args = self._call.node.args
        filled = (arg for arg in args if parameter_of_function(self._call, self._function, arg) is parameter)
        return next((arg.value for arg in filled), None)
