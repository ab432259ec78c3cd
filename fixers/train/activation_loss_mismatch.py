"""The loss gets the logits, or their log softmax, instead of probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.train.activations import Mismatch
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_WHY = "the loss has other values, and training takes another course"


def fix(report: Report, model: Model) -> Fix:
    mismatch: Mismatch = report.facts
    activation = mismatch.activation.node
    if mismatch.activation.model is not model:
        raise NoFixError("the activation is in another file, where other code may need it")
    if not isinstance(activation, cst.Call):
        raise NoFixError("the activation is a module of the network, whose output other code may need")
    return Fix(tuple(_edits(mismatch, activation, model)), Applicability.UNSAFE, _WHY)


def _edits(mismatch: Mismatch, activation: cst.Call, model: Model) -> list[Edit]:
    """The activation goes where nothing but the loss reads it; elsewhere the loss reads what it was made of."""
    alone = mismatch.input is activation or _is_read_once(mismatch.input, activation, model)
    if mismatch.loss_kind in ("nll_loss", "kl_div"):
        if not alone:
            raise NoFixError("other code reads the probabilities, too")
        return [_logarithm(activation, model)]
    logits = _input_of(activation, model)
    if logits is None:
        raise NoFixError("the input of the activation is not in sight")
    rewriter, text = Rewriter(model), model.code(logits)
    if mismatch.input is activation or (alone and not isinstance(logits, cst.Name)):
        return [rewriter.replace(activation, text)]
    _check_holds_logits(mismatch.input, activation, logits, model)
    removed = rewriter.remove_statement(activation) if alone else None
    return [rewriter.replace(mismatch.input, text), *([removed] if removed is not None else [])]


def _logarithm(activation: cst.Call, model: Model) -> Edit:
    """`F.softmax(z)` becomes `F.log_softmax(z)`."""
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


def _is_read_once(read: cst.BaseExpression, activation: cst.Call, model: Model) -> bool:
    """Whether the loss reads a variable that holds the activation and that nothing else reads."""
    binding = model.binding(read)
    if binding is None or binding.cls is not None or binding.is_global or binding.shared:
        return False
    return [write.value for write in binding.writes] == [activation] and binding.reads == [read]


def _check_holds_logits(
    read: cst.BaseExpression, activation: cst.Call, logits: cst.BaseExpression, model: Model
) -> None:
    """The loss can read the variable that the activation is made of, which holds the same until then."""
    binding, source = model.binding(read), model.binding(logits)
    assign = model.parent(activation)
    if binding is None or not isinstance(assign, cst.Assign) or model.function(assign) is not model.function(read):
        raise NoFixError("more is done to the activation before the loss gets it")
    if source is None or source is binding or source.cls is not None:
        raise NoFixError("no variable keeps what the activation is made of")
    once = len(binding.writes) == len(source.writes) == 1 and source.scope_function is model.function(read)
    if not once or _may_change_in_place(source, model):
        raise NoFixError(f"`{source.name}` or `{binding.name}` has other values, too")


def _may_change_in_place(source: Binding, model: Model) -> bool:
    if any(name.endswith("_") and not name.endswith("__") for name in source.methods):
        return True
    items = [item for read in source.reads if isinstance(item := model.parent(read), cst.Subscript)]
    return any(isinstance(model.parent(item), (cst.AssignTarget, cst.AugAssign)) for item in items)
