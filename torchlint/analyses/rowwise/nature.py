"""What a call in a loop body does beside computing: draw numbers, print, write. Iterations may depend on that."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import last_name, walk
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import is_tensor_method
from torchlint.word_set import word_set

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function


_CHANGES_ELEMENTS = frozenset(f"{name}_" for name in "clamp clamp_min clamp_max clip add sub mul div".split())


class Nature(Enum):
    """What a call does beside computing its result, and what that is."""

    PURE = "pure"
    SHAPED = "shaped"  # pure; an argument behind the first says what shape the result has
    RAGGED = "ragged"  # pure; the shape of the result depends on values
    HOST = "host"  # pure, and its result is no tensor
    RANDOM = "random"
    NETWORK = "network"  # a module of the program's own that keeps nothing of what it is given
    FORWARD = "forward"  # any other module, or one that treats a batch as one
    OPAQUE = "opaque"


_RANDOM = word_set(
    """
    rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson dropout dropout1d
    dropout2d dropout3d alpha_dropout feature_dropout gumbel_softmax rrelu sample rsample normal_ uniform_ bernoulli_
    random_ exponential_ geometric_ cauchy_ log_normal_
    """
)
# Of these each number is drawn by itself, so that one call draws those of all rows just as well.
_DRAWS = re.compile(
    r"torch\.(rand|randn|randint|rand_like|randn_like|randint_like|normal|bernoulli)"
    r"|numpy\.random\.(rand|randn|randint|random|random_sample|uniform|normal|standard_normal)"
    r"|random\.(random|uniform|randint|gauss|normalvariate)"
)
_RAGGED = word_set("nonzero unique unique_consecutive masked_select argwhere nms batched_nms")
_SHAPED = word_set(
    """
    narrow repeat repeat_interleave roll expand view reshape select diagonal diag split chunk unfold tile resize_
    interpolate pad one_hot topk histc bincount new_zeros new_ones new_empty new_full
    """
)
_COMPARING = word_set(
    """
    cosine_similarity CosineSimilarity pairwise_distance PairwiseDistance dist matmul mm bmm dot mv mul add sub div
    maximum minimum eq ne lt gt le ge
    """
)
# What these make has the shape that their arguments say.
_FACTORIES = word_set("range arange linspace logspace zeros ones full empty eye tril_indices triu_indices")
_TORCH_OPAQUE = re.compile(
    r"torch\.(cuda|distributed|autograd|utils|jit|hub|multiprocessing|optim|backends|onnx|profiler|fx|compile|save|load"
    r"|manual_seed|seed|set_\w+|nn\.(init|parallel|utils|parameter)\b|nn\.functional\.(batch_norm|ctc_loss)|no_grad"
    r"|enable_grad|inference_mode|autocast|library|ops|futures|package|overrides)\b"
)
_DISTRIBUTIONS = re.compile(r"torch\.distributions\b")
_OF_POINTS = re.compile(r"torch\.distributions\.(\w+\.)+(log_prob|cdf|icdf)")  # functions that draw nothing
_ROWWISE_MODULES = re.compile(
    r"torch\.nn\.(\w*Loss|Linear|Bilinear|Conv\w+|Embedding|Flatten|Identity|LayerNorm|RMSNorm|\w*Pool\w+|Upsample\w*"
    r"|PixelShuffle|\w*Pad\dd|ReLU6?|LeakyReLU|PReLU|ELU|SELU|CELU|GELU|SiLU|Mish|Sigmoid|LogSigmoid|Tanh|Tanhshrink"
    r"|Softmax|LogSoftmax|Softmin|Softplus|Softsign|Softshrink|Hard\w+|CosineSimilarity|PairwiseDistance|Fold|Unfold)"
)
_BATCH_LAYERS = re.compile(r"torch\.nn\.(Sequential|BatchNorm\dd|GroupNorm|InstanceNorm\dd|Dropout\w*|AlphaDropout)")
_BUILTINS = word_set(
    """
    len int float bool complex abs min max sum round range enumerate zip reversed list tuple sorted isinstance divmod
    pow map filter str any all set dict type hasattr getattr iter slice
    """
)
_REPORTING = re.compile(r"(builtins\.print|logging\..*|warnings\..*|wandb\..*|time\..*|matplotlib\..*|sys\..*)")
_PURE_PACKAGES = re.compile(r"(math|cmath|itertools|operator|functools|copy)\.\w+")
_EINOPS = re.compile(r"einops\.\w+")
_NUMPY_POINTWISE = re.compile(
    r"numpy\.(sin|cos|tan|arcsin|arccos|arctan2?|sinh|cosh|tanh|exp|log|log2|log10|sqrt|abs|absolute|power|square|conj"
    r"|deg2rad|rad2deg|real|imag|angle|float\d+|int\d+|maximum|minimum)"
)
_RESAMPLING = re.compile(r"scipy\.ndimage\.(interpolation\.)?(zoom|rotate|shift)")
_METADATA = word_set(
    "size dim numel ndimension element_size is_floating_point is_complex nelement stride is_contiguous get_device"
)
_EFFECTS = word_set("backward register_hook retain_grad share_memory_ apply_ map_ record_stream")
_DEPTH = 4
_FUNCTIONS = 60  # that a network may lead to, to be looked through


def is_metadata(method: str | None) -> bool:
    """Whether a method tells of a tensor what is known without its numbers."""
    return method in _METADATA


def nature(call: Call, depth: int = 0) -> Nature:
    """The nature of a call whose function is no method of a row."""
    name, method = call.callee, call.method
    target = call.target or call.foreign
    if target is not None:
        if depth < _DEPTH and is_pure(target, depth + 1):
            return Nature.RAGGED if _is_ragged(target, depth + 1) else Nature.PURE
        if depth < _DEPTH and call.is_forward and is_pure(target, depth + 1, layers=True):
            return Nature.NETWORK
        if call.is_forward and not _keeps(target):
            return Nature.FORWARD
        return _by_name(method, Nature.OPAQUE)
    if name is not None and name.startswith("torch.Tensor."):
        return of_method(name.rpartition(".")[2])
    if name is not None and name.startswith("torch."):
        return _of_torch(call, name)
    if (name is not None and "." in name) or call.targets_class is not None:
        return _of_package(name or "")
    if call.is_forward or call.receiver_value.kind is Kind.MODULE:
        return Nature.FORWARD
    return of_method(method) if method is not None and call.receiver_value.is_tensor else Nature.OPAQUE


def _of_torch(call: Call, name: str) -> Nature:
    last = name.rpartition(".")[2]
    if name.startswith("torch.nn.Module."):
        return Nature.FORWARD if last == "forward" else Nature.OPAQUE
    if _OF_POINTS.fullmatch(name):
        return Nature.PURE
    if last in _RANDOM or _DISTRIBUTIONS.match(name):
        return Nature.RANDOM
    if _TORCH_OPAQUE.match(name):
        return Nature.OPAQUE
    if last[:1].isupper() and name.startswith("torch.nn."):
        if call.value.kind is Kind.MODULE:
            return Nature.HOST
        return Nature.PURE if _ROWWISE_MODULES.fullmatch(name) else Nature.FORWARD
    if last == "where" and len(call.node.args) == 1:
        return Nature.RAGGED
    if last == "bincount" and call.argument("minlength", 2).absent:
        return Nature.RAGGED  # as long as the largest number in the row
    return of_method(last)


def of_method(method: str) -> Nature:
    """The nature of a function of torch or of a method of a tensor, by its name alone."""
    if method in _EFFECTS:
        return Nature.OPAQUE
    if method in _RANDOM:
        return Nature.RANDOM
    if method in _RAGGED:
        return Nature.RAGGED
    return Nature.SHAPED if method in _SHAPED | _FACTORIES else Nature.PURE


def is_report(call: Call) -> bool:
    """Printing, logging, plotting, and looking at the clock."""
    is_own = call.target is not None or call.foreign is not None
    return not is_own and call.callee is not None and _REPORTING.fullmatch(call.callee) is not None


def draws_numbers(name: str) -> bool:
    """A function that draws numbers one by one, in a shape that its arguments say."""
    return _DRAWS.fullmatch(name) is not None


def fills_with_draws(method: str) -> bool:
    """A method that fills a tensor with numbers that are drawn one by one, and that numbers say how."""
    return method in ("normal_", "uniform_", "bernoulli_", "random_", "exponential_")


def is_factory(name: str) -> bool:
    """Whether a function makes a tensor of sizes and numbers."""
    return name.rpartition(".")[2] in _FACTORIES


def is_comparing(name: str) -> bool:
    """A function or module that takes two tensors of the same shape, or of shapes that fit."""
    last = name.rpartition(".")[2]
    fits = last in _COMPARING or last.endswith(("_loss", "Loss", "cross_entropy"))
    return fits and name.startswith(("torch.", "."))


def _of_package(name: str) -> Nature:
    if name.startswith(("numpy.random.", "random.", "secrets.")):
        return Nature.RANDOM
    if name == "builtins.range":
        return Nature.SHAPED
    if name.startswith("builtins."):
        return Nature.HOST if name.removeprefix("builtins.") in _BUILTINS else Nature.OPAQUE
    if _PURE_PACKAGES.fullmatch(name) or _EINOPS.fullmatch(name) or _NUMPY_POINTWISE.fullmatch(name):
        return Nature.PURE
    if _RESAMPLING.fullmatch(name):
        return Nature.SHAPED
    return Nature.RAGGED if name.startswith("numpy.") else Nature.OPAQUE


def _by_name(method: str | None, otherwise: Nature) -> Nature:
    """`env.step`, `dist.sample`: what a name says of a function that cannot be followed."""
    return Nature.RANDOM if method in _RANDOM else otherwise


# -- functions of the program ----------------------------------------------------------------------------------------

_STOPPING = frozenset(
    {cst.Global, cst.Nonlocal, cst.Yield, cst.Await, cst.Del, cst.Try, cst.While, cst.Break, cst.With, cst.ClassDef}
)
_CHANGING = ("append", "extend", "insert", "update", "pop", "add", "setdefault")
_ASSIGNING = frozenset({cst.AssignTarget, cst.AugAssign, cst.AnnAssign})


def is_pure(function: Function, depth: int, *, layers: bool = False) -> bool:
    """Whether a call of the function does nothing but compute its result, the same one for the same arguments.
    `layers`: or calls layers that treat a batch as one, or drop some of it, and keep nothing of it."""
    if not isinstance(function.node, (cst.FunctionDef, cst.Lambda)) or function.is_generator:
        return False
    if any(type(node) in _STOPPING or _writes_outside(node, function) for node in walk(function.node.body)):
        return False
    return all(_is_harmless(call, function, depth) or (layers and _is_layer(call, depth)) for call in function.calls)


def _keeps(function: Function) -> bool:
    """Whether a function, or one that it leads to, may keep something for the next call."""
    entered = [function]
    for one in entered:  # it grows while the loop runs
        if len(entered) > _FUNCTIONS or one.is_generator or not isinstance(one.node, cst.FunctionDef):
            return True
        if any(isinstance(node, (cst.Global, cst.Nonlocal)) or _sets_attribute(node) for node in walk(one.node.body)):
            return True
        targets = (call.target or call.foreign for call in one.calls)
        entered += {target for target in targets if target is not None}.difference(entered)
    return False


def _sets_attribute(node: cst.CSTNode) -> bool:
    """`self.state = x`, `self.seen[i] = x`, `self.seen.append(x)`"""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        changes = node.func.attr.value in _CHANGING or node.func.attr.value.endswith("_")
        return changes and isinstance(node.func.value, (cst.Attribute, cst.Subscript))
    if type(node) not in _ASSIGNING:
        return False
    target: cst.BaseExpression = node.target  # type: ignore[attr-defined]
    while isinstance(target, cst.Subscript):
        target = target.value
    return isinstance(target, cst.Attribute)


def _is_ragged(function: Function, depth: int) -> bool:
    """Whether a pure function looks for places, of which there may be any number, or makes something of a size that it
    reads from a tensor: `mask[: int(box[2])]`."""
    return any(nature(call, depth) is Nature.RAGGED for call in function.calls) or _is_sized_by_values(function)


def _is_sized_by_values(function: Function) -> bool:
    read = {
        name
        for name, binding in function.scope.bindings.items()
        if any(_reads_value(write.value, function) for write in binding.writes if write.value is not None)
    }
    sizes: list[cst.CSTNode] = [node for node in walk(function.node) if isinstance(node, cst.Slice)]
    sizes += [call.node for call in function.calls if of_method(last_name(call.node.func)) is Nature.SHAPED]
    return any(isinstance(node, cst.Name) and node.value in read for size in sizes for node in walk(size))


def _reads_value(value: cst.BaseExpression, function: Function) -> bool:
    """`int(box[2] - box[0])` and `length.item()`, of what the function is given."""
    match value:
        case cst.Call(func=cst.Name(value="int"), args=[cst.Arg(value=given)]):
            parts = [node.value for node in walk(given) if isinstance(node, cst.Subscript)]
            return any(isinstance(part, cst.Name) and part.value in function.params for part in parts)
        case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="item"))):
            return name in function.params
    return False


def _is_layer(call: Call, depth: int) -> bool:
    if _BATCH_LAYERS.fullmatch(call.callee or "") or _BATCH_LAYERS.fullmatch(call.receiver_value.ref or ""):
        return True
    return nature(call, depth) is Nature.NETWORK


def _writes_outside(node: cst.CSTNode, function: Function) -> bool:
    """Whether a node changes an attribute, or an element of something that the function did not make."""
    if type(node) not in _ASSIGNING:
        return False
    target: cst.BaseExpression = node.target  # type: ignore[attr-defined]
    if isinstance(target, cst.Attribute):
        return True
    while isinstance(target, cst.Subscript):
        target = target.value
        if isinstance(target, cst.Attribute) or (isinstance(target, cst.Name) and not _is_local(target, function)):
            return True
    return False


def _is_local(name: cst.Name, function: Function) -> bool:
    return name.value in function.scope.bindings and name.value not in function.params


def _is_harmless(call: Call, function: Function, depth: int) -> bool:
    if call.method in ("append", "extend", "insert") and call.callee is None:
        return isinstance(call.receiver, cst.Name) and _is_local(call.receiver, function)
    if (
        (call.method or "").endswith("_")
        and isinstance(call.receiver, cst.Name)
        and call.receiver.value in function.params
    ):
        return False
    method = call.method or ""
    if is_tensor_method(method) and call.target is None and (call.callee or "").startswith("torch.Tensor."):
        return of_method(method) not in (Nature.OPAQUE, Nature.RANDOM)
    if call.callee is None and method and call.target is None and call.foreign is None:
        return is_tensor_method(method) and of_method(method) not in (Nature.OPAQUE, Nature.RANDOM)
    return nature(call, depth) in (Nature.PURE, Nature.SHAPED, Nature.RAGGED, Nature.HOST)


def changes_elements(name: str) -> bool:
    """`.clamp_`: whether a method changes each element of a tensor by what is beside it."""
    return name.removeprefix(".") in _CHANGES_ELEMENTS
