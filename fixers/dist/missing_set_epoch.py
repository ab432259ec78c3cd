"""Tells the sampler the epoch, at the beginning of each one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.dist.at_epochs import (
    comes_from_callers,
    epoch_number,
    loader_at_epochs,
    path_to_sampler,
    sampler_at_epochs,
)
from torchlint.analyses.loading.samplers import SAMPLER
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, FileEdits, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.tree import arms, is_name

if TYPE_CHECKING:
    from torchlint.analyses.loops.epochs import StaleSampler
    from torchlint.rule import Report
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_WHY = "from the second epoch on the data comes in another order"


def fix(report: Report, model: Model) -> Fix:
    """In the file with the epochs, which may be another one than that with the sampler."""
    stale: StaleSampler = report.facts
    if stale.sampler.foreign is not None:
        raise NoFixError("the function that makes the sampler may return one that counts no epochs")
    home = stale.home or model
    edits = _edits(stale, model, home)
    if home is model:
        return Fix(edits, Applicability.UNSAFE, _WHY)
    return Fix((), Applicability.UNSAFE, _WHY, elsewhere=(FileEdits(home.source, edits),))


def _edits(stale: StaleSampler, model: Model, home: Model) -> tuple[Edit, ...]:
    loop = stale.epochs.node
    if isinstance(loop, cst.CompFor):
        raise NoFixError("the epochs are counted by a comprehension, where no statement can stand")
    kept = sampler_at_epochs(stale, model) if home is model else None
    sampler, condition, imports = (
        _condition(*kept, stale, model) if kept is not None else _through_loader(stale, model, home)
    )
    epoch = epoch_number(stale.epochs, home) or f"{sampler}.epoch + 1"
    call = f"{sampler}.set_epoch({epoch})"
    lines = [call] if condition is None else [f"if {condition}:", f"    {call}"]
    return (*imports, Rewriter(home).prepend_to_body(loop, *lines))


def _condition(name: str, kept: Binding, stale: StaleSampler, model: Model) -> tuple[str, str | None, list[Edit]]:
    """The sampler's variable, and when it holds the sampler."""
    made = [value for write in kept.writes if write.value is not None for value in arms(write.value)]
    if all(value is stale.sampler.node for value in made):
        return name, None, []
    if all(value is stale.sampler.node or is_name(value, "None") for value in made):
        return name, f"{name} is not None", []
    return _if_instance(name, stale, model)


def _through_loader(stale: StaleSampler, model: Model, home: Model) -> tuple[str, str | None, list[Edit]]:
    loader = loader_at_epochs(stale, home)
    if loader is None:
        raise NoFixError(
            "neither the sampler nor its loader has a name that is sure to mean it in the loop over the epochs"
        )
    path = path_to_sampler(stale, model)
    if path is None:
        raise NoFixError("the sampler is inside a batch sampler of a class that may keep it under any name")
    name, certain = f"{home.code(loader)}.{path[0]}", path[1]
    if certain and _is_only_loader(loader, stale, home) and not comes_from_callers(loader, home):
        return name, None, []
    return _if_instance(name, stale, home)


def _is_only_loader(loader: cst.BaseExpression, stale: StaleSampler, home: Model) -> bool:
    if stale.kept is not None:
        return stale.only and len(stale.kept.writes) == 1
    return home.value(loader).origins == {stale.loader.node}


def _if_instance(name: str, stale: StaleSampler, home: Model) -> tuple[str, str | None, list[Edit]]:
    sampler, imports = Rewriter(home).name_for(SAMPLER, stale.epochs.body[0])
    return name, f"isinstance({name}, {sampler})", imports
