"""`torch.load(path)` becomes `torch.load(path, weights_only=True)` where a state dict is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.analyses.train.checkpoints import Content, Load
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
    edit = Rewriter(model).add_argument(load.call.node, "weights_only=True")
    return Fix((edit,), Applicability.UNSAFE, _WHY, needs_torch=torch_for_schedulers(load, model))
