"""`x.to(device)` becomes `x.to(device, non_blocking=True)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.finding import Applicability, Fix
from torchlint.rewrite import Rewriter

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model


def fix(report: Report, model: Model) -> Fix | None:
    copy = report.facts
    if copy.is_written(model):
        return None
    rewriter = Rewriter(model)
    flag = copy.flag
    if flag.arg is not None:
        edit = rewriter.replace_argument(flag.arg, "True")
    elif flag.given:
        return None
    else:
        edit = rewriter.add_argument(copy.call.node, "non_blocking=True")
    if "mps" in model.source.text or "current_accelerator" in model.source.text:
        why = "Copies to Apple's GPU are not ordered with the host: there, a batch may be freed or written too early."
        return Fix((edit,), Applicability.UNSAFE, why)
    if not copy.is_tensor:
        why = "The collate function may make objects of a class whose `to` does not take `non_blocking`."
        return Fix((edit,), Applicability.UNSAFE, why)
    return Fix((edit,), Applicability.SAFE, "Kernels that read the copy are queued behind it.")
