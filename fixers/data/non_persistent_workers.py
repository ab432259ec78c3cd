"""`DataLoader(images, num_workers=4)` becomes `DataLoader(images, num_workers=4, persistent_workers=True)`,
and so do the loaders beside it that the same epochs draw from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers._loader_options import set_option

from torchlint.analyses.data.own_process import changes_what_it_holds
from torchlint.analyses.data.reiteration import respawning_beside, respawning_loaders
from torchlint.analyses.loading.worker_count import is_some
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.analyses.data.reiteration import Respawning
    from torchlint.analyses.loading.loaders import Loader
    from torchlint.finding import Edit
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_WHY = "From the second epoch on, the order of the samples and random augmentations differ."


def fix(report: Report, model: Model) -> Fix:
    found: Respawning = report.facts
    reported = model.once(_reported)
    beside = (other for other in respawning_beside(found) if other.site.node not in reported)
    edits = [edit for loader in (found.loader, *beside) for edit in _edits(loader, model)]
    return Fix(tuple(dict.fromkeys(edits)), Applicability.UNSAFE, _WHY)


def _reported(model: Model) -> frozenset[cst.CSTNode]:
    return frozenset(found.loader.site.node for found in respawning_loaders(model))


def _edits(loader: Loader, model: Model) -> list[Edit]:
    if not loader.option("worker_init_fn").absent:
        raise NoFixError("what each new worker runs first, as to seed it, would run once and not in every epoch")
    if _collates_out_of_sight(loader):
        raise NoFixError("`collate_fn` is handed in: what it does to the samples would stay from epoch to epoch")
    if changes_what_it_holds(loader):
        raise NoFixError("the dataset changes the samples that it holds, and would go on from epoch to epoch")
    return set_option(loader, "persistent_workers", _value(loader, model), Rewriter(model), "num_workers")


def _collates_out_of_sight(loader: Loader) -> bool:
    collate = loader.option("collate_fn").node
    binding = loader.model.binding(collate) if collate is not None else None
    return binding is not None and binding.is_parameter


def _value(loader: Loader, model: Model) -> str:
    """Without workers the option raises, so that a number which is set elsewhere is asked."""
    count = loader.option("num_workers").node
    is_written_out = loader.workers is not None and not isinstance(count, (cst.Name, cst.Attribute, cst.Subscript))
    if is_written_out or is_some(count, model):
        return "True"
    if count is None or any(isinstance(node, (cst.Call, cst.Lambda)) for node in walk(count)):
        raise NoFixError("the number of workers is not written in a way that can be asked a second time")
    code = model.code(count)
    holds_together = isinstance(count, (cst.Name, cst.Attribute, cst.Subscript)) or bool(count.lpar)
    return f"{code} > 0" if holds_together else f"({code}) > 0"
