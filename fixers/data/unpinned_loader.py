"""`DataLoader(images)` becomes `DataLoader(images, pin_memory=torch.cuda.is_available())`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Confidence, Fix
from torchlint.options import set_option
from torchlint.rewrite import Rewriter

if TYPE_CHECKING:
    from torchlint.analyses.loaders import Loader
    from torchlint.finding import Edit
    from torchlint.rule import Report
    from torchlint.semantics.entities import Binding, Scope
    from torchlint.semantics.model import Model

_AVAILABLE = "torch.cuda.is_available"


def fix(report: Report, model: Model) -> Fix:
    loader: Loader = report.facts
    rewriter = Rewriter(model)
    condition, imports = _condition(loader, model, rewriter)
    edits = set_option(loader, "pin_memory", condition, rewriter)
    doubt = _doubt(report, loader)
    if doubt is not None:
        return Fix((*edits, *imports), Applicability.UNSAFE, doubt)
    why = "The batches hold the same numbers, and without CUDA nothing changes."
    return Fix((*edits, *imports), Applicability.SAFE, why)


def _doubt(report: Report, loader: Loader) -> str | None:
    if loader.option("pin_memory").given:
        return "Somebody turned pinning off: batches in page-locked memory cannot be swapped out."
    if report.confidence is not Confidence.CERTAIN or not loader.is_on_host:
        return "Nothing here shows where the samples are: pinning raises for tensors that are on the GPU already."
    if "sparse" in loader.model.source.text.lower():
        return "Not every sparse tensor can be pinned."
    return None


def _condition(loader: Loader, model: Model, rewriter: Rewriter) -> tuple[str, list[Edit]]:
    """What says at the loader that there is a GPU: a variable of the file, or a question to torch."""
    node = loader.site.node
    start = model.span(node)[0]
    for name, binding in _visible(model.scope(node)):
        if _says_available(binding, model) and model.span(binding.writes[0].statement)[1] < start:
            return name, []
    function, imports = rewriter.name_for(_AVAILABLE, node)
    return f"{function}()", imports


def _visible(scope: Scope | None) -> Iterator[tuple[str, Binding]]:
    """The variables of a scope and of those around it, the inner ones first."""
    seen: set[str] = set()
    while scope is not None:
        if scope.kind != "class":
            yield from ((name, binding) for name, binding in scope.bindings.items() if name not in seen)
            seen.update(scope.bindings)
        scope = scope.parent


def _says_available(binding: Binding, model: Model) -> bool:
    """Bound once, at the top of its function, to `torch.cuda.is_available()` or to a conjunction with it."""
    if len(binding.writes) != 1:
        return False
    write = binding.writes[0]
    if write.kind != "assign" or write.unpacked or write.value is None:
        return False
    block = model.parent(write.statement)
    if not isinstance(block, cst.Module) and not isinstance(model.parent(block or write.statement), cst.FunctionDef):
        return False
    parts = [write.value]
    while parts:
        part = parts.pop()
        if isinstance(part, cst.BooleanOperation) and isinstance(part.operator, cst.And):
            parts += [part.left, part.right]
        elif isinstance(part, cst.Call) and model.call(part).callee == _AVAILABLE:
            return True
    return False
