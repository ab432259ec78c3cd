"""Whether a value that is saved is one that `weights_only=True` loads: a tensor, a number, a string, a plain container
of these, or the state of a network, an optimizer or a scheduler that holds nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.train.learning_rates import may_hold_numpy_rates
from torchlint.semantics.dataflow import text
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call
    from torchlint.semantics.model import Model
    from torchlint.source import Source

_PLAIN = frozenset({Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.TENSOR})
_STATEFUL = frozenset({Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER})
_MADE_PLAIN = frozenset(
    {"builtins.int", "builtins.float", "builtins.str", "builtins.bool", "builtins.len", "time.time", "time.strftime"}
)
_PLAIN_OF_PLAIN = frozenset(
    {f"builtins.{name}" for name in ("list", "tuple", "set", "dict", "sorted", "max", "min", "sum", "abs", "round")}
    | {"copy.copy", "copy.deepcopy", "collections.OrderedDict"}
)
_TO_PLAIN = frozenset({"item", "tolist", "strftime", "isoformat", "format"})
_KEEPING = frozenset({"cpu", "detach", "clone", "copy", "items", "keys", "values"})
_STORING = frozenset({"append", "extend", "insert", "add", "update", "setdefault"})
_RATES = re.compile(r"(?i)optim|sched|^opt|\.opt|_opt")
_SCHEDULERS = re.compile(r"(?i)sched")
# Counters, scores, and the words by which a program was told what network to make.
_COUNTER = re.compile(
    r"(?i)(\w*_)?(epochs?|n?iters?|iterations?|steps?|itr|it)(_(no|num|number|idx|id|count|trained|done)|_since_\w+)?$"
)
_WORD = re.compile(r"(?i)(arch\w*|\w*name|backbone|dataset|model_type)$")
_SCORE = re.compile(
    r"(?i)(\w*_)?(best|loss(es)?|acc(uracy)?|prec(ision)?|recall|lr|learning_rate|scores?|metric|err(or)?|m?iou|m?ap|auc"
    r"|f1|psnr|ssim|bleu|ppl|perplexity|[cw]er)_?(top)?\d*(_\w*)?$"
)
_WITH_NUMPY = re.compile(
    r"\bnp\.(?!random\.(seed|set_state|shuffle|permutation)\b)|\bnumpy\.(?!random\.seed\b)|from (numpy|scipy|sklearn)"
    r"|import (scipy|sklearn|skimage|pandas|evaluate)|\bpycocotools\b|\.numpy\(\)"
)
_OWN_SCHEDULER = re.compile(
    r"(?m)^\s*class \w*(?:Schedul|LR\b|LRS)|^\s*(?:from|import) (?:timm|mmcv|fairseq)\b.*[Ss]chedul"
)
_DEPTH = 5


def is_plain(model: Model, node: cst.BaseExpression, entry: str | None = None, depth: int = _DEPTH) -> bool:
    """Whether the value, saved under the name of an entry, is in sight and loads with `weights_only=True`."""
    if depth == 0:
        return False
    if model.value(node).kind in _PLAIN:
        return True
    match node:
        case cst.Call():
            return _is_plain_call(model, model.call(node), entry, depth - 1)
        case cst.FormattedString() | cst.ConcatenatedString() | cst.Comparison():
            return True
        case cst.UnaryOperation():
            return is_plain(model, node.expression, entry, depth)
        case cst.BinaryOperation() | cst.BooleanOperation():
            return is_plain(model, node.left, entry, depth) and is_plain(model, node.right, entry, depth)
        case cst.IfExp():
            return is_plain(model, node.body, entry, depth) and is_plain(model, node.orelse, entry, depth)
        case cst.List() | cst.Tuple() | cst.Set():
            return all(is_plain(model, element.value, entry, depth) for element in node.elements)
        case cst.Dict():
            return all(is_plain(model, element.value, entry, depth) for element in node.elements)
        case cst.ListComp() | cst.GeneratorExp():
            return is_plain(model, node.elt, entry, depth)
        case cst.DictComp():
            return is_plain(model, node.value, entry, depth)
        case cst.Name() | cst.Attribute() | cst.Subscript():
            return _is_plain_variable(model, node, entry, depth - 1)
    return False


def _is_plain_variable(model: Model, node: cst.BaseExpression, entry: str | None, depth: int) -> bool:
    value = model.value(node)
    if value.kind is not Kind.UNKNOWN and not value.is_container:
        return False
    binding = model.binding(node)
    if binding is not None and _is_plain_binding(model, binding, entry, depth):
        return True
    if entry is None or value.is_container:
        return False
    written = [write.value for write in binding.writes if write.value is not None] if binding is not None else []
    if any(_is_of_numpy(model, value) or _makes_object(value) for value in written):
        return False
    if _COUNTER.match(entry) is not None or _WORD.match(entry) is not None:
        return True
    return _SCORE.match(entry) is not None and not model.once(_may_meet_numpy)


def _is_plain_binding(model: Model, binding: Binding, entry: str | None, depth: int) -> bool:
    """Whether all that is written into a variable, or stored in the container that it is, is plain."""
    values = [write.value for write in binding.writes]
    if not values or not _is_written_in_sight(binding):
        return False
    return all(v is not None and is_plain(model, v, entry, depth) for v in (*values, *_stored(model, binding)))


def _stored(model: Model, binding: Binding) -> Iterator[cst.BaseExpression]:
    """What is put into a container: `losses.append(loss)`, `state["epoch"] = epoch`."""
    for read in binding.reads:
        parent = model.parent(read)
        above = model.parent(parent) if parent is not None else None
        if isinstance(parent, cst.Attribute) and isinstance(above, cst.Call) and above.func is parent:
            if parent.attr.value in _STORING:
                yield from (arg.value for arg in above.args)
        elif isinstance(parent, cst.Subscript) and isinstance(above, cst.AssignTarget) and parent.value is read:
            statement = model.parent(above)
            if isinstance(statement, cst.Assign):
                yield statement.value


def _is_written_in_sight(binding: Binding) -> bool:
    return all(write.kind in ("assign", "augmented") and not write.unpacked for write in binding.writes)


def _makes_object(node: cst.BaseExpression) -> bool:
    """Whether a value is made by a call of what seems to be a class: `AverageMeter()`."""
    name = text(node.func).rpartition(".")[2] if isinstance(node, cst.Call) else ""
    return name[:1].isupper()


def _is_of_numpy(model: Model, node: cst.BaseExpression) -> bool:
    """Whether an expression is one of NumPy, or of a library whose values are: `np.mean(losses)`."""
    calls = model.calls_in(node)
    return model.value(node).kind is Kind.ARRAY or any((call.callee or "").startswith("numpy.") for call in calls)


def _may_meet_numpy(model: Model) -> bool:
    """Whether a number of NumPy may get into this file: it computes with NumPy, or what it imports does."""
    return any(model.once_of(source, _computes_with_numpy) for source in [model.source, *model.neighbours()])


def _computes_with_numpy(source: Source) -> bool:
    return _WITH_NUMPY.search(source.text) is not None


def _is_plain_call(model: Model, call: Call, entry: str | None, depth: int) -> bool:
    callee, method, receiver = call.callee or "", call.method or "", call.receiver
    if callee in _MADE_PLAIN or callee.startswith("os.path.") or (method in _TO_PLAIN and receiver is not None):
        return True
    if callee in _PLAIN_OF_PLAIN:
        return all(is_plain(model, arg.value, entry, depth) for arg in call.arguments if arg.keyword is None)
    if method == "state_dict" and receiver is not None:
        return has_plain_state(model, call)
    if method in _KEEPING and receiver is not None:
        return is_plain(model, receiver, entry, depth)
    if callee.startswith(("torch.get_rng_state", "torch.cuda.get_rng_state", "torch.tensor")):
        return True
    if call.target is not None and call.target.returns and not call.target.is_generator:
        returned = [each.value for each in call.target.returns]
        return all(value is None or is_plain(model, value, entry, depth) for value in returned)
    return False


def has_plain_state(model: Model, call: Call) -> bool:
    """Whether `x.state_dict()` is a state that holds nothing but tensors and plain values."""
    value, name = call.receiver_value, text(call.receiver) if call.receiver is not None else ""
    if value.kind is Kind.MODULE and call.target is not None:
        return False  # a method of its own may put more into it, such as a configuration
    if value.kind is not Kind.UNKNOWN and value.kind not in _STATEFUL:
        returned = [each.value for each in call.target.returns] if call.target is not None else []
        return bool(returned) and all(v is not None and is_plain(model, v, depth=2) for v in returned)
    is_unknown = value.kind is Kind.UNKNOWN
    if value.kind is Kind.SCHEDULER or (is_unknown and _SCHEDULERS.search(name)):
        is_strange = _may_be_own_scheduler(model) or _is_made_elsewhere(model, call.receiver)
        return not is_strange and not may_hold_numpy_rates(model)
    holds_rates = value.kind is Kind.OPTIMIZER or (is_unknown and _RATES.search(name) is not None)
    return not (holds_rates and may_hold_numpy_rates(model))


def _is_made_elsewhere(model: Model, scheduler: cst.BaseExpression | None) -> bool:
    """Whether a scheduler is what a function out of sight returns: `hydra.utils.instantiate(config.scheduler)`."""
    binding = model.binding(scheduler) if scheduler is not None else None
    values = [write.value for write in binding.writes] if binding is not None else []
    calls = [model.call(value) for value in values if isinstance(value, cst.Call)]
    return any(call.target is None and not (call.callee or "").startswith("torch.") for call in calls)


def _may_be_own_scheduler(model: Model) -> bool:
    """Whether the project has schedulers beside those of torch: their state is whatever attributes they have."""
    return any(model.once_of(source, _has_own_scheduler) for source in [model.source, *model.files_beside()])


def _has_own_scheduler(source: Source) -> bool:
    return _OWN_SCHEDULER.search(source.text) is not None
