"""`DataLoader(images)` becomes `DataLoader(images, num_workers=min(8, os.cpu_count() or 1))`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.finding import Applicability, Fix
from torchlint.options import set_option
from torchlint.rewrite import Rewriter

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.entities import Function
    from torchlint.semantics.model import Model

_WHY = (
    "Random augmentations are drawn from the generators of the workers, each worker holds a copy of the dataset, and "
    "where processes are spawned (Windows, macOS, Python 3.14) the dataset must be importable."
)


def fix(report: Report, model: Model) -> Fix:
    rewriter = Rewriter(model)
    name, imports = rewriter.name_for("os.cpu_count", report.node)
    edits = set_option(report.facts, "num_workers", f"min(8, {name}() or 1)", rewriter)
    shown_only = "__name__" not in model.source.text and _runs_on_import(report.facts.site.function)
    return Fix((*edits, *imports), Applicability.DISPLAY if shown_only else Applicability.UNSAFE, _WHY)


def _runs_on_import(function: Function, depth: int = 0) -> bool:
    """Whether importing the file builds the loader: a spawned worker, which imports it again, would do so too."""
    if function.is_module or depth > 4:
        return function.is_module
    return any(_runs_on_import(call.function, depth + 1) for call in function.callers)
