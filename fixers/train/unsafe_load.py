"""`torch.load(path)` becomes `torch.load(path, weights_only=True)` where a state dict is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.analyses.train.checkpoints import (
    Content,
    Load,
    entries_read,
    loading,
    reads_same_file,
    unsafe_loads,
)
from torchlint.analyses.train.plain_values import has_plain_state
from torchlint.analyses.train.saved_entries import doubt_of
from torchlint.analyses.train.saved_schedulers import torch_for_schedulers
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Fix
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_WHY = "a checkpoint that holds other objects than tensors and plain values is refused, as torch 2.6 does by itself"


def fix(report: Report, model: Model) -> Fix:
    load: Load = report.facts
    if load.content is not Content.TENSORS:
        raise NoFixError("what the file holds may be more than tensors, which `weights_only=True` refuses")
    doubt = _doubt(load, model)
    if doubt is not None:
        raise NoFixError(doubt)
    edit = Rewriter(model).add_argument(load.call.node, "weights_only=True")
    others = [other.call.node for other in unsafe_loads(model) if reads_same_file(load.call, other.call)]
    alike = tuple((model.span(node.func)[1], model.span(node)[1]) for node in others)
    needed = torch_for_schedulers(load, model)
    return Fix((edit,), Applicability.UNSAFE, _WHY, needs_torch=needed, goes_with=(alike,))


def _doubt(load: Load, model: Model) -> str | None:
    """Why the file may hold more than `weights_only=True` loads; None where there is proof that it does not."""
    entries = entries_read(model, load)
    if entries is None:
        return "which entry of the checkpoint is loaded is not in sight"
    if entries:
        return doubt_of(model, entries)
    call = loading(model, load.use) if load.use is not None else None
    if call is not None and has_plain_state(model, call):
        return None
    return "the state that is loaded may hold more than tensors and plain values"
