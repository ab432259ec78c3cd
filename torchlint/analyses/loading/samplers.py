"""Samplers that shuffle by epoch: made here, or by a function of another file for a loader of this one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import given_to

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model

SAMPLER = "torch.utils.data.DistributedSampler"
LOADERS = frozenset({"torch.utils.data.DataLoader", "torch_geometric.loader.DataLoader"})


def shuffles(sampler: Call) -> bool:
    """Whether the call makes a sampler that shuffles for sure."""
    shuffle = sampler.argument("shuffle", 3)
    return shuffle.absent or (shuffle.given and shuffle.value.constant is True)


def lent_samplers(model: Model) -> Iterator[tuple[Call, Call]]:
    """Calls of functions of other files that return a shuffling sampler, or another one where nothing is distributed,
    each with the loader that alone gets it."""
    for loader in model.calls:
        sampler = loader.argument("sampler", 3).node if loader.callee in LOADERS else None
        maker = _only_source(model, sampler, loader) if sampler is not None else None
        if maker is None or maker.foreign is None:
            continue
        home = model.home(maker)
        if home is not None and "set_epoch" not in home.source.text and _lends(model, maker, home, maker.foreign):
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
    returned = {statement.value for statement in function.returns}
    made = [call for call in home.calls_to(SAMPLER) if call.function is function and call.node in returned]
    return bool(made) and all(_is_told_to_shuffle(model, maker, home, call) for call in made)


def _is_told_to_shuffle(model: Model, maker: Call, home: Model, sampler: Call) -> bool:
    """`DistributedSampler(data, shuffle=shuffle)` in a function that is given a `shuffle=True`."""
    shuffle = sampler.argument("shuffle", 3)
    binding = home.binding(shuffle.node) if shuffle.given and shuffle.node is not None else None
    if binding is None or not binding.is_parameter or len(binding.writes) != 1:
        return shuffles(sampler)
    given = [model.value(node).constant for node in given_to(maker, binding)]
    return given == [True]
