"""`DataLoader(images, num_workers=4)` becomes `DataLoader(images, num_workers=4, persistent_workers=True)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.data.own_process import changes_what_it_holds
from torchlint.finding import Applicability, Fix
from torchlint.options import set_option
from torchlint.rewrite import Rewriter
from torchlint.rule import NoFixError
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.analyses.loaders import Loader
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_WHY = "From the second epoch on, the order of the samples and random augmentations differ."


def fix(report: Report, model: Model) -> Fix:
    loader: Loader = report.facts.loader
    if not loader.option("worker_init_fn").absent:
        raise NoFixError("what each new worker runs first, as to seed it, would run once and not in every epoch")
    if _collates_out_of_sight(loader):
        raise NoFixError("`collate_fn` is handed in: what it does to the samples would stay from epoch to epoch")
    if changes_what_it_holds(loader):
        raise NoFixError("the dataset changes the samples that it holds, and would go on from epoch to epoch")
    edits = set_option(loader, "persistent_workers", _value(loader, model), Rewriter(model), "num_workers")
    return Fix(tuple(edits), Applicability.UNSAFE, _WHY)


def _collates_out_of_sight(loader: Loader) -> bool:
    collate = loader.option("collate_fn").node
    binding = loader.model.binding(collate) if collate is not None else None
    return binding is not None and binding.is_parameter


def _value(loader: Loader, model: Model) -> str:
    """Without workers the option raises, so that a number which is set elsewhere is asked."""
    count = loader.option("num_workers").node
    if loader.workers is not None and not isinstance(count, (cst.Name, cst.Attribute, cst.Subscript)):
        return "True"
    if count is None or any(isinstance(node, (cst.Call, cst.Lambda)) for node in walk(count)):
        raise NoFixError("the number of workers is not written in a way that can be asked a second time")
    code = model.code(count)
    return f"{code} > 0" if isinstance(count, (cst.Name, cst.Attribute, cst.Subscript)) else f"({code}) > 0"
