"""Tells the sampler the epoch, at the beginning of each one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Edit, Fix
from torchlint.rewrite import Rewriter
from torchlint.semantics.epochs import (
    SAMPLER,
    branches,
    comes_from_callers,
    epoch_number,
    loader_at_epochs,
    sampler_at_epochs,
)

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.epochs import StaleSampler
    from torchlint.semantics.model import Model

_WHY = "from the second epoch on the data comes in another order"


def fix(report: Report, model: Model) -> Fix | None:
    stale: StaleSampler = report.facts
    loop = stale.epochs.node
    if stale.home is not None or isinstance(loop, cst.CompFor):
        return None
    kept = sampler_at_epochs(stale, model)
    through = _condition(*kept, stale, model) if kept is not None else _through_loader(stale, model)
    if through is None:
        return None
    sampler, condition, imports = through
    epoch = epoch_number(stale.epochs, model) or f"{sampler}.epoch + 1"
    call = f"{sampler}.set_epoch({epoch})"
    lines = [call] if condition is None else [f"if {condition}:", f"    {call}"]
    return Fix((*imports, Rewriter(model).prepend_to_body(loop, *lines)), Applicability.UNSAFE, _WHY)


def _condition(
    name: str, kept: Binding, stale: StaleSampler, model: Model
) -> tuple[str, str | None, list[Edit]] | None:
    """The sampler's variable, and when it holds the sampler."""
    made = [value for write in kept.writes if write.value is not None for value in branches(write.value)]
    if all(value is stale.sampler.node for value in made):
        return name, None, []
    if all(value is stale.sampler.node or (isinstance(value, cst.Name) and value.value == "None") for value in made):
        return name, f"{name} is not None", []
    return _if_instance(name, stale, model)


def _through_loader(stale: StaleSampler, model: Model) -> tuple[str, str | None, list[Edit]] | None:
    loader = loader_at_epochs(stale, model)
    sampler = stale.loader.argument("sampler", 3)
    if loader is None or not sampler.given:
        return None
    name = f"{model.code(loader)}.sampler"
    certain = sampler.node is stale.sampler.node and model.value(loader).origins == {stale.loader.node}
    if certain and not comes_from_callers(loader, model):
        return name, None, []
    return _if_instance(name, stale, model)


def _if_instance(name: str, stale: StaleSampler, model: Model) -> tuple[str, str | None, list[Edit]] | None:
    spelled = Rewriter(model).name_for(SAMPLER, stale.epochs.body[0])
    if spelled is None:
        return None
    return name, f"isinstance({name}, {spelled[0]})", spelled[1]
