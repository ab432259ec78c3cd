"""`torch.load(path)` becomes `torch.load(path, weights_only=True)` where a state dict is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.train.checkpoints import Content, Load, entries_read, loading, unsafe_loads
from torchlint.analyses.train.plain_values import has_plain_state
from torchlint.analyses.train.saved_entries import doubt_of
from torchlint.analyses.train.saved_schedulers import torch_for_schedulers
from torchlint.finding import Applicability, Fix
from torchlint.rewrite import Rewriter
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
    if (other := _load_that_stays(load, model)) is not None:
        raise NoFixError(f"`{model.code(other.call.node)}` in the same function has to stay as it is")
    edit = Rewriter(model).add_argument(load.call.node, "weights_only=True")
    return Fix((edit,), Applicability.UNSAFE, _WHY, needs_torch=torch_for_schedulers(load, model))


def _load_that_stays(load: Load, model: Model) -> Load | None:
    """Another load of a state in the same function, or of the same file where this one is tried, of which it is not
    known that the argument suits it."""
    beside = (other for other in model.once(_loads) if other.call.function is load.call.function)
    return next((other for other in beside if _is_like(other, load, model) and _stays(other, model)), None)


def _is_like(other: Load, load: Load, model: Model) -> bool:
    if other.content is Content.TENSORS:
        return True
    tried = [node for node in model.ancestors(load.call.node) if isinstance(node, cst.Try)]
    handlers = [node for node in model.ancestors(other.call.node) if isinstance(node, cst.ExceptHandler)]
    files = [model.code(each.call.arguments[0].value) if each.call.arguments else "" for each in (other, load)]
    return files[0] == files[1] and any(model.parent(handler) in tried for handler in handlers)


def _stays(load: Load, model: Model) -> bool:
    return load.content is not Content.TENSORS or _doubt(load, model) is not None


def _loads(model: Model) -> list[Load]:
    return list(unsafe_loads(model))


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
