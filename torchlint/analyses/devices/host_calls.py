"""What calls do with a number or an array of the host: pass it on, reduce it, log it, collect it, or need it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import Kind
from torchlint.word_set import word_set

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call


_PASSING = word_set(
    """
    float int round abs str repr format max min sum list tuple sorted dict bool complex pow
    """
)
_PASSING_PACKAGES = word_set("math numpy statistics scipy sklearn copy itertools collections")
_CHECKS = word_set("isnan isinf isfinite isclose allclose array_equal")
_QUESTIONS = word_set("isnan isinf isfinite")
_LOG_PACKAGES = word_set("logging wandb tqdm mlflow visdom neptune comet_ml loguru rich absl warnings")
_LOG_METHODS = word_set(
    """
    add_scalar add_scalars add_histogram add_text log info debug warning error print set_postfix set_postfix_str
    set_description set_description_str log_metric log_metrics log_dict log_scalar logkv logkv_mean
    """
)
_COLLECTING_METHODS = word_set("append appendleft extend add insert update setdefault put record")
_WRITING_METHODS = word_set("write writelines writerow writerows")
_NEEDING_METHODS = word_set("step dump save savefig imsave imwrite send sendall put_nowait sleep decode")
_SAVING = word_set("save savez savez_compressed savetxt savemat imsave imwrite")
_NEEDING_BUILTINS = word_set("range chr zip enumerate map filter iter next open getattr setattr slice exit")
_REDUCTIONS = word_set(
    """
    sum mean max min std var median average prod any all item count_nonzero nansum nanmean norm dot trace nanmax nanmin
    """
)
# Of sklearn.metrics: one number of truths and guesses.
_MEASURES = word_set(
    """
    accuracy_score average_precision_score balanced_accuracy_score cohen_kappa_score explained_variance_score f1_score
    fbeta_score hamming_loss hinge_loss jaccard_score log_loss matthews_corrcoef max_error mean_absolute_error
    mean_absolute_percentage_error mean_squared_error mean_squared_log_error median_absolute_error precision_score
    r2_score recall_score roc_auc_score root_mean_squared_error top_k_accuracy_score zero_one_loss
    """
)
# They copy numbers into a tensor on the host.
HOST_TENSORS = ("torch.tensor", "torch.Tensor", "torch.FloatTensor", "torch.LongTensor")
_PAIRING = word_set("zip enumerate len")
_REDUCING_PACKAGES = word_set("numpy torch builtins")
_METERS = re.compile(r"(?i)(^|[._])\w*(meter|averager?|runningscore)$")
_FLOAT_FORMAT = re.compile(r"\{[^{}]*:[^{}]*[eEfFgG]\}")  # of an array with one element only


def is_log(call: Call) -> bool:
    """`print(...)`, `logger.info(...)`, `writer.add_scalar(...)`, `sys.stdout.write(...)`"""
    if _names(call)[0] in _LOG_PACKAGES or call.callee == "builtins.print":
        return True
    if isinstance(call.receiver, cst.Attribute) and call.receiver.attr.value in ("stdout", "stderr"):
        return True
    return call.method in _LOG_METHODS and not call.receiver_value.is_(Kind.TENSOR, Kind.BATCH)


def asks(call: Call) -> bool:
    """`math.isnan(...)` of a number, which is an answer, and no wait by itself."""
    return _names(call)[1] in _QUESTIONS


def checks(call: Call) -> bool:
    """`math.isnan(...)`, and the assertions of test cases."""
    last = _names(call)[1]
    return last in _CHECKS or last.startswith("assert")


def steers(call: Call) -> bool:
    """`range(n)`, `next(...)`: control flow hangs on the number."""
    package, last = _names(call)
    return package == "builtins" and last in _NEEDING_BUILTINS


def passes_on(call: Call) -> bool:
    """Whether the call gives back what the number has become, and does nothing else."""
    package, last = _names(call)
    return (
        (package == "builtins" and last in _PASSING)
        or package in _PASSING_PACKAGES
        or call.method == "format"
        or call.receiver_value.is_(Kind.STRING)
        or _makes_host_tensor(call)
    )


def writes(call: Call) -> bool:
    """Whether a method puts what it is given into a file, by its name."""
    return call.method in _WRITING_METHODS


def collects(call: Call) -> bool:
    """`losses.append(number)`, by the name of the method."""
    return call.method in _COLLECTING_METHODS


def needs(call: Call) -> bool:
    """Whether the call has an effect that no later one makes up for."""
    return call.method in _NEEDING_METHODS or _names(call)[1].startswith("save_") or _feeds_device(call)


def saves(call: Call) -> bool:
    """`np.save(path, array)`, which makes a file of it, and nothing else."""
    return _names(call)[1] in _SAVING


def reduces(call: Call) -> bool:
    """Whether a function makes fewer numbers of an array; `accuracy_score` makes one of two."""
    package, last = _names(call)
    return (package in _REDUCING_PACKAGES and last in _REDUCTIONS) or (package == "sklearn" and last in _MEASURES)


def gives_number(call: Call) -> bool:
    """Of a call that reduces: one number; `torch.max(x, 1)` gives a row of them."""
    package, last = _names(call)
    return last != "max" or package == "builtins" or len(call.node.args) == 1


def is_reduction(method: str) -> bool:
    """Whether a method of an array makes fewer numbers of it."""
    return method in _REDUCTIONS


def shows_element(call: Call) -> bool:
    """`"{:.2f}".format(x)`, which takes an array of one element only."""
    return call.method == "format" and _FLOAT_FORMAT.search(str(call.receiver_value.constant)) is not None


def computes(call: Call) -> bool:
    """Whether a function makes another array of it."""
    package = _names(call)[0]
    return package in ("numpy", "copy") or (package == "torch" and not call.is_forward)


def pairs(call: Call) -> bool:
    """`zip(truths, guesses)`."""
    package, last = _names(call)
    return package == "builtins" and last in _PAIRING


def updates_meter(call: Call) -> bool:
    """`meter.update(number)` of an object whose class is one of averages or metrics."""
    return call.method == "update" and _METERS.search(call.receiver_value.ref or "") is not None


def _names(call: Call) -> tuple[str, str]:
    """Package and last name of the callee; of a method, the method."""
    name = call.callee or ""
    return name.partition(".")[0], name.rpartition(".")[2] or call.method or ""


def _makes_host_tensor(call: Call) -> bool:
    """`torch.tensor([loss.item(), norm.item()])`: several numbers, which stay where they are."""
    is_list = len(call.arguments) == 1 and isinstance(call.arguments[0].value, (cst.List, cst.Tuple))
    return call.callee in HOST_TENSORS and is_list


def _feeds_device(call: Call) -> bool:
    """The number goes into an operation on tensors, a model, an optimizer or a scheduler."""
    if call.is_forward or call.receiver_value.is_(Kind.TENSOR, Kind.BATCH, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.MODULE):
        return True
    return (call.callee or "").startswith("torch.") and not (call.callee or "").startswith("torch.utils.tensorboard")
