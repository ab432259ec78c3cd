"""What `torch.load` is for at a place: a dict of tensors, a whole pickled object, or something out of sight."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.compatibility import is_for_other_releases
from torchlint.semantics.arguments import string_value
from torchlint.semantics.dataflow import reaches, text
from torchlint.semantics.values import Kind, Value
from torchlint.semantics.vocabulary import is_tensor_method

if TYPE_CHECKING:
    from torchlint.semantics.entities import Argument, Binding, Call, Function
    from torchlint.semantics.model import Model

LOAD = "torch.load"
_SAFE_CONTEXT = "torch.serialization.safe_globals"
_SAFE_SETTERS = ("torch.serialization.add_safe_globals", "torch.serialization.set_default_load_weights_only")
_SWITCH = "WEIGHTS_ONLY_LOAD"  # the end of the environment variables that set the default
# Entries that hold tensors, or plain numbers and strings.
_PLAIN_ENTRIES = re.compile(
    r"(?i)(.*(state_?dict|weights?|params|optim\w*|sched\w*|scaler|model|net\w*|ema|epochs?|iters?|iteration|steps?"
    r"|arch|loss(es)?|best\w*|acc\w*|lr|learning_rate|seed|score|name|generator|discriminator|encoder|decoder))\d?$"
    r"|^[a-z_]{1,2}$|^(net|model|opt)_?\w{1,2}$"
)
# Entries that tend to hold an object of the user's own or a Namespace, which `weights_only` refuses.
_OBJECT_ENTRIES = re.compile(
    r"(?i)(^|_)(args|opts?|options|config|cfg|conf|hparams?|hyper\w*|settings|vocab\w*|rng\w*)(_|$)"
)
_MODULE_METHODS = frozenset({"eval", "train", "to", "cuda", "cpu", "parameters", "modules", "half", "forward"})
# Of an entry of what was loaded; tensors have none of them.
_METHODS_OF_MODULES_ALONE = frozenset(
    {"eval", "train", "parameters", "modules", "forward", "state_dict", "load_state_dict"}
)
_LIGHTNING_ENTRIES = frozenset({"global_step", "callbacks", "hyper_parameters", "pytorch-lightning_version"})
# Scores that are computed with NumPy as a rule, and are saved as its numbers.
_SCORES = re.compile(
    r"(?i)(^|_)(m?iou|m?dice|m?ap\d*|auc|auroc|roc|f1|psnr|ssim|kappa|jaccard|miou\w*|perplexity|ppl|wer|cer|bleu)(_|\d|$)"
)
_BY_FUNCTION = ("torch.optim.lr_scheduler.LambdaLR", "torch.optim.lr_scheduler.MultiplicativeLR")
_RATES = re.compile(r"(?i)optim|sched")
_MOST_WRITERS = 4
_DICT_METHODS = frozenset({"items", "keys", "values", "get", "pop", "update", "copy"})
_NETWORKS = re.compile(
    r"(?i)(model|net\w*|ema|arch|generator|discriminator|encoder|decoder)\d?$|^(net|model)_?\w{1,2}$"
)
_TENSOR_ATTRIBUTES = frozenset({"shape", "dtype", "device", "ndim", "data", "T"})


class Content(Enum):
    """What a checkpoint holds, as far as the program shows it."""

    TENSORS = "tensors"  # what the file reads of it is what a state dict, or a dict of them, holds
    OBJECT = "object"  # it is used as a module: the whole object was pickled
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Load:
    """A call of torch.load that says nothing of `weights_only`."""

    call: Call
    content: Content
    use: cst.CSTNode | None  # where the content shows


def unsafe_loads(model: Model) -> Iterator[Load]:
    """Calls of torch.load that say nothing of `weights_only`, where nothing else says it for them."""
    loads = model.calls_to(LOAD)
    if not loads or model.calls_to(*_SAFE_SETTERS) or _SWITCH in model.source.text or _is_replaced(model):
        return
    found = [_described(model, call) for call in loads]
    for load in found:
        call = load.call
        if not call.argument("weights_only").absent or not call.argument("pickle_module", 2).absent:
            continue
        if not (
            _is_in_safe_context(model, call)
            or is_for_other_releases(model, call.node)
            or _has_safe_twin(call, loads)
            or _reads_own_buffer(model, call)
        ):
            yield _in_agreement(load, found, model)


def _is_replaced(model: Model) -> bool:
    """Whether the file puts another function in the place of torch.load."""
    return any(
        isinstance(node, cst.Attribute)
        and node.attr.value == "load"
        and isinstance(model.parent(node), cst.AssignTarget)
        and model.qualified(node) == "torch.load"
        for node in model.nodes_of(cst.Attribute)
    )


def _is_in_safe_context(model: Model, call: Call) -> bool:
    for parent in model.ancestors(call.node):
        if isinstance(parent, cst.With):
            for item in parent.items:
                if isinstance(item.item, cst.Call) and model.qualified(item.item.func) == _SAFE_CONTEXT:
                    return True
    return False


def _has_safe_twin(call: Call, loads: list[Call]) -> bool:
    """Whether the same function loads the same file with `weights_only` as well: one of the two is a fallback."""
    return any(not other.argument("weights_only").absent and reads_same_file(call, other) for other in loads)


def _in_agreement(load: Load, found: list[Load], model: Model) -> Load:
    """The load in the light of the others: where one gets a module, no file is known to hold tensors alone, and
    another branch of its function may show what the same file holds."""
    if any(other.content is Content.OBJECT for other in found):
        return Load(load.call, Content.UNKNOWN, None) if load.content is Content.TENSORS else load
    if load.content is Content.TENSORS or not all(_is_tensor_use(model, use) for use in _uses(model, load.call.node)):
        return load
    twins = (other for other in found if other.content is Content.TENSORS and reads_same_file(load.call, other.call))
    twin = next(twins, None)
    return Load(load.call, Content.TENSORS, twin.use) if twin is not None else load


def reads_same_file(call: Call, other: Call) -> bool:
    """Whether two calls of one function load what has the same name there."""
    sources = [[text(arg.value) for arg in each.arguments[:1]] for each in (call, other)]
    return other.function is call.function and sources[0] == sources[1]


def _reads_own_buffer(model: Model, call: Call) -> bool:
    """`torch.save(x, buffer)` and `torch.load(buffer)` in one function, with a buffer in memory."""
    source = call.argument("f", 0).node
    binding = model.binding(source) if source is not None else None
    if binding is None:
        return False
    buffers = (model.call(w.value).callee for w in binding.writes if isinstance(w.value, cst.Call))
    return any(name in ("io.BytesIO", "tempfile.TemporaryFile") for name in buffers) and any(
        save.function is call.function
        and (node := save.argument("f", 1).node) is not None
        and model.binding(node) is binding
        for save in model.calls_to("torch.save")
    )


def entries_read(model: Model, load: Load) -> set[str] | None:
    """The names under which entries of a checkpoint are read; none where the whole file is a state dict, and None where
    one is not in sight."""
    uses = [*_uses(model, load.call.node), *(() if load.use is None else (load.use,))]
    keys: set[str] = set()
    for use in uses:
        parent = model.parent(use)
        asked = _key(parent, use) or _asked(model, parent)
        if asked is None:
            continue
        name = string_value(asked)
        if name is not None and "." not in name:
            keys.add(name)
        elif name is None and _is_chosen(model, parent):
            return None
    return keys


def _is_chosen(model: Model, entry: cst.CSTNode | None) -> bool:
    """Whether an entry, of whatever name, is loaded by itself; not as in `{key[7:]: state[key] for key in state}`."""
    if entry is None or isinstance(model.parent(entry), cst.DictComp):
        return False
    return _is_loaded_into(model, entry)


def _asked(model: Model, attribute: cst.CSTNode | None) -> cst.BaseExpression | None:
    """The key in `state.get(key)`."""
    above = model.parent(attribute) if isinstance(attribute, cst.Attribute) else None
    if isinstance(attribute, cst.Attribute) and attribute.attr.value in ("get", "pop") and isinstance(above, cst.Call):
        return above.args[0].value if above.args else None
    return None


# -- what is loaded --------------------------------------------------------------------------------------------------


def _described(model: Model, call: Call) -> Load:
    uses = list(_uses(model, call.node))
    for use in uses:
        if _is_module_use(model, use):
            return Load(call, Content.OBJECT, use)
    if uses and not _is_of_lightning(model, uses) and all(_is_tensor_use(model, use) for use in uses):
        into_module = next((use for use in uses if _is_loaded_into(model, use)), None)
        if into_module is not None and not _saves_objects(model) and not _saves_objects_elsewhere(model, uses):
            return Load(call, Content.TENSORS, into_module)
    return Load(call, Content.UNKNOWN, None)


def _is_of_lightning(model: Model, uses: list[cst.CSTNode]) -> bool:
    """Whether a checkpoint is one that a Lightning trainer writes, with its callbacks and settings as objects."""
    keys = _keys(model, uses)
    known = keys | (_LIGHTNING_ENTRIES if "lightning" in model.frameworks else set())
    return "state_dict" in keys and not known.isdisjoint(_LIGHTNING_ENTRIES)


def _keys(model: Model, uses: list[cst.CSTNode]) -> set[str | None]:
    return {string_value(key) for use in uses if (key := _key(model.parent(use), use)) is not None}


def _key(parent: cst.CSTNode | None, use: cst.CSTNode) -> cst.BaseExpression | None:
    match parent:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]) if parent.value is use:
            return key
    return None


def _uses(model: Model, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Places where the loaded object is read: the call itself, or the reads of the variable that takes it."""
    binding = _held_by(model, node)
    if binding is None:
        yield node
        return
    for read in binding.reads:
        if read is not node and reaches(model, binding, node, read):
            yield read


def _held_by(model: Model, node: cst.CSTNode) -> Binding | None:
    statement = model.parent(node)
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        return model.binding(statement.targets[0].target)
    return None


def _is_module_use(model: Model, use: cst.CSTNode) -> bool:
    parent = model.parent(use)
    if isinstance(parent, cst.Call) and parent.func is use:
        return True
    if isinstance(parent, cst.Subscript) and parent.value is use:
        return _is_module(model, parent)
    if not isinstance(parent, cst.Attribute):
        return False
    above = model.parent(parent)
    return isinstance(above, cst.Call) and above.func is parent and parent.attr.value in _MODULE_METHODS - {"to", "cpu"}


def _is_module(model: Model, entry: cst.CSTNode) -> bool:
    """Whether an entry of what was loaded, `checkpoint["model"]`, is a whole network and not its weights."""
    binding = _held_by(model, entry)
    reads = [read for read in binding.reads if reaches(model, binding, entry, read)] if binding is not None else []
    return any(_is_run(model, read) for read in (entry, *reads))


def _is_run(model: Model, node: cst.CSTNode) -> bool:
    """`net(x)`, `net.eval()`, `net.float().eval()`"""
    parent = model.parent(node)
    while isinstance(parent, (cst.Attribute, cst.Call)):
        if isinstance(parent, cst.Call):
            if parent.func is node and not isinstance(node, cst.Attribute):
                return True
        elif parent.attr.value in _METHODS_OF_MODULES_ALONE:
            return True
        node, parent = parent, model.parent(parent)
    return False


def _is_tensor_use(model: Model, use: cst.CSTNode) -> bool:
    """A use that says nothing else than that a state dict, or a dict of state dicts and numbers, was loaded."""
    parent = model.parent(use)
    if _is_loaded_into(model, use):
        return True
    match parent:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]) if parent.value is use:
            name = string_value(key)
            if _is_loaded_into(model, parent):
                return True
            return name is not None and _is_plain(name) and not _is_asked_as_object(model, parent, name)
        case cst.Attribute():
            if (
                parent.attr.value in ("get", "pop")
                and isinstance(above := model.parent(parent), cst.Call)
                and above.args
            ):
                name = string_value(above.args[0].value)
                return name is not None and _is_plain(name)
            return parent.attr.value in _DICT_METHODS
        case cst.Del() | cst.ComparisonTarget():
            return True
        case cst.CompFor() | cst.For():
            return parent.iter is use
        case cst.Arg():
            above = model.parent(parent)
            return isinstance(above, cst.Call) and model.call(above).callee in ("builtins.len", "builtins.isinstance")
    return False


def _is_asked_as_object(model: Model, entry: cst.CSTNode, name: str) -> bool:
    """`checkpoint["model"].to(device)`: a dict of weights has no such method, and the whole network may be in it."""
    above = model.parent(entry)
    asked = above.attr.value if isinstance(above, cst.Attribute) else None
    if asked is None or asked in _DICT_METHODS:
        return False
    return _NETWORKS.search(name) is not None or not (is_tensor_method(asked) or asked in _TENSOR_ATTRIBUTES)


def _is_plain(entry: str) -> bool:
    is_named = _PLAIN_ENTRIES.match(entry) is not None
    return is_named and _OBJECT_ENTRIES.search(entry) is None and _SCORES.search(entry) is None


def _is_loaded_into(model: Model, node: cst.CSTNode) -> bool:
    return loading(model, node) is not None


def loading(model: Model, node: cst.CSTNode, depth: int = 0) -> Call | None:
    """The `load_state_dict` that the value, or an entry of it, is given to."""
    parent = model.parent(node)
    if isinstance(parent, cst.Subscript) and parent.value is node:
        return loading(model, parent, depth)
    if isinstance(parent, cst.Arg):
        above = model.parent(parent)
        call = model.call(above) if isinstance(above, cst.Call) else None
        return call if call is not None and (call.method or "").startswith("load_state_dict") else None
    if isinstance(parent, cst.DictComp) and parent.value is node:
        node = parent
    if depth < 3 and (binding := _held_by(model, node)) is not None:
        calls = (loading(model, read, depth + 1) for read in binding.reads)
        return next((call for call in calls if call is not None), None)
    return None


def _saves_objects(model: Model) -> bool:
    """Whether this file writes checkpoints that hold more than tensors and plain values."""
    for save in model.calls_to("torch.save"):
        saved = save.argument("obj", 0)
        if saved.value.kind is Kind.MODULE:
            return True
        if any(_OBJECT_ENTRIES.search(name) or _is_score(name, value) for name, value in saved.value.fields or ()):
            return True
        if any(_is_of_numpy(model, entry) or _is_scheduled_by_numpy(model, entry) for entry in _entries(model, saved)):
            return True
    return False


def _saves_objects_elsewhere(model: Model, uses: list[cst.CSTNode]) -> bool:
    """Whether another file of the project writes such checkpoints, with the entries that this one reads."""
    keys = {key for key in _keys(model, uses) if key is not None}
    if not keys or any(_may_write(model, save, keys) for save in model.calls_to("torch.save")):
        return False
    writers = (
        source
        for source in model.files_beside()
        if "torch.save(" in source.text and all(key in source.text for key in keys)
    )
    homes = (model.model_of(source) for source in islice(writers, _MOST_WRITERS))
    return any(home is not None and _saves_objects(home) for home in homes)


def _may_write(model: Model, save: Call, keys: set[str]) -> bool:
    """Whether a call saves a dict with some entries, for all that is in sight; a bare state dict has none of them."""
    saved = save.argument("obj", 0)
    names = {name for name, _ in saved.value.fields or ()}
    if names:
        return keys <= names
    made = [model.call(node) if isinstance(node, cst.Call) else None for node in _made(model, saved.node)]
    return not made or any(call is None or call.method != "state_dict" for call in made)


def _is_score(name: str, value: Value) -> bool:
    """Whether an entry is a score that may be a number of NumPy."""
    is_named = _SCORES.search(name) is not None or name.endswith("score")
    return is_named and not value.is_(Kind.NUMBER, Kind.TENSOR)


def _entries(model: Model, saved: Argument) -> list[cst.BaseExpression]:
    """The values of the dict that is saved, where it is a literal in the call or of a variable."""
    return [
        element.value
        for node in _made(model, saved.node)
        if isinstance(node, cst.Dict)
        for element in node.elements
        if isinstance(element, cst.DictElement)
    ]


def _is_of_numpy(model: Model, node: cst.BaseExpression) -> bool:
    """Whether a value is, or may be, a number or an array of NumPy: `np.mean(losses)`."""
    if model.value(node).kind is Kind.ARRAY:
        return True
    calls = (model.call(made) for made in _made(model, node) if isinstance(made, cst.Call))
    return any((call.callee or "").startswith("numpy.") for call in calls)


def _is_scheduled_by_numpy(model: Model, node: cst.BaseExpression) -> bool:
    """Whether the state of an optimizer or of a scheduler is saved, which keeps the learning rate as it was computed,
    and a function computes that with NumPy, for all that is in sight."""
    if not any(_holds_rate(model, made) for made in _made(model, node)):
        return False
    factors = [call.argument("lr_lambda", 1).value for call in model.calls_to(*_BY_FUNCTION)]
    functions = [[model.function_of(origin) for origin in factor.origins] for factor in factors]
    return any(not known or any(map(_uses_numpy, known)) for known in functions)


def _holds_rate(model: Model, node: cst.BaseExpression) -> bool:
    call = model.call(node) if isinstance(node, cst.Call) else None
    return (
        call is not None
        and call.method == "state_dict"
        and call.receiver is not None
        and (call.receiver_value.is_(Kind.OPTIMIZER, Kind.SCHEDULER) or _RATES.search(text(call.receiver)) is not None)
    )


def _uses_numpy(function: Function | None) -> bool:
    return function is None or any((call.callee or "").startswith("numpy.") for call in function.calls)


def _made(model: Model, node: cst.BaseExpression | None) -> list[cst.BaseExpression]:
    """An expression, or what is assigned to the variable that it is."""
    binding = model.binding(node) if node is not None else None
    if binding is None:
        return [node] if node is not None else []
    return [write.value for write in binding.writes if write.value is not None and not write.unpacked]
