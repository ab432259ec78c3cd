"""The loss gets the logits, or their log softmax, instead of probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Edit, Fix
from torchlint.rewrite import Rewriter
from torchlint.rule import NoFixError
from torchlint.semantics.activations import Mismatch

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_WHY = "the loss has other values, and training takes another course"


def fix(report: Report, model: Model) -> Fix:
    mismatch: Mismatch = report.facts
    activation = mismatch.activation.node
    if mismatch.activation.model is not model:
        raise NoFixError("the activation is in another file, where other code may need it")
    if not isinstance(activation, cst.Call):
        raise NoFixError("the activation is a module of the network, whose output other code may need")
    return Fix((_edit(mismatch, activation, model),), Applicability.UNSAFE, _WHY)


def _edit(mismatch: Mismatch, activation: cst.Call, model: Model) -> Edit:
    if mismatch.loss_kind in ("nll_loss", "kl_div"):
        return _logarithm(mismatch, activation, model)
    logits = _input_of(activation, model)
    if logits is None:
        raise NoFixError("the input of the activation is not in sight")
    if mismatch.input is not activation and not _is_plain_result(mismatch.input, activation, logits, model):
        raise NoFixError(f"`{model.code(mismatch.input)}` or what it is made of has other values too")
    return Rewriter(model).replace(mismatch.input, model.code(logits))


def _logarithm(mismatch: Mismatch, activation: cst.Call, model: Model) -> Edit:
    """`F.softmax(z)` becomes `F.log_softmax(z)`, where nothing but the loss reads it."""
    if mismatch.input is not activation:
        raise NoFixError("other code may read the probabilities")
    function = activation.func
    known = model.call(activation).callee in ("torch.nn.functional.softmax", "torch.softmax", "torch.Tensor.softmax")
    if not isinstance(function, cst.Attribute) or function.attr.value != "softmax" or not known:
        raise NoFixError("the activation is not written as a call of `softmax`")
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
