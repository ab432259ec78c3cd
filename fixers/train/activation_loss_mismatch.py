"""The loss gets the logits, or their log softmax, instead of probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Edit, Fix
from torchlint.rewrite import Rewriter
from torchlint.semantics.activations import SOFTMAX, Mismatch

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_WHY = "the loss has other values, and training takes another course"


def fix(report: Report, model: Model) -> Fix | None:
    mismatch: Mismatch = report.facts
    activation = mismatch.activation.node
    if mismatch.activation.model is not model or not isinstance(activation, cst.Call):
        return None
    edit = _edit(mismatch, activation, model)
    return Fix((edit,), Applicability.UNSAFE, _WHY) if edit is not None else None


def _edit(mismatch: Mismatch, activation: cst.Call, model: Model) -> Edit | None:
    if mismatch.loss_kind in ("nll_loss", "kl_div"):
        return _logarithm(mismatch, activation, model)
    logits = _input_of(activation, model)
    if logits is None:
        return None
    if mismatch.input is not activation and not _is_plain_result(mismatch.input, activation, logits, model):
        return None
    return Rewriter(model).replace(mismatch.input, model.code(logits))


def _logarithm(mismatch: Mismatch, activation: cst.Call, model: Model) -> Edit | None:
    """`F.softmax(z)` becomes `F.log_softmax(z)`, where nothing but the loss reads it."""
    if mismatch.input is not activation or mismatch.activation.kind != SOFTMAX:
        return None
    function = activation.func
    if not isinstance(function, cst.Attribute) or function.attr.value != "softmax":
        return None
    if model.call(activation).callee not in ("torch.nn.functional.softmax", "torch.softmax", "torch.Tensor.softmax"):
        return None
    return Rewriter(model).replace(function.attr, "log_softmax")


def _input_of(activation: cst.Call, model: Model) -> cst.BaseExpression | None:
    call = model.call(activation)
    if call.callee is not None and call.callee.startswith("torch.Tensor."):
        return call.receiver
    given = call.argument("input", 0)
    return given.node if given.arg is not None else None


def _is_plain_result(read: cst.BaseExpression, activation: cst.Call, logits: cst.BaseExpression, model: Model) -> bool:
    """Whether a variable is the activation of another variable, which holds the same logits until the loss."""
    binding, source = model.binding(read), model.binding(logits)
    assign = model.parent(activation)
    return (
        binding is not None
        and source is not None
        and source is not binding
        and isinstance(assign, cst.Assign)
        and model.function(assign) is model.function(read)
        and len(binding.writes) == len(source.writes) == 1
        and source.cls is None
        and source.scope_function is model.function(read)
    )
