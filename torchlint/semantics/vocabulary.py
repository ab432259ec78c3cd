"""Questions about names: what the table says of torch's, what is known by hand of those of other packages."""

from __future__ import annotations

import re
from functools import lru_cache

from torchlint.semantics import torch_api
from torchlint.semantics.torch_api import Entry
from torchlint.semantics.values import Kind
from torchlint.word_set import word_set

# -- methods of tensors ----------------------------------------------------------------------------------------------

_ON_DEVICE = ("tensor", "index")


def is_tensor_method(name: str) -> bool:
    """Whether tensors have a method of that name."""
    return torch_api.method(name) is not None


@lru_cache(maxsize=2048)
def method_returns_tensor(name: str) -> bool:
    """Whether a method of a tensor always returns one tensor, and nothing beside it."""
    entry = torch_api.method(name)
    return entry is not None and entry.results == (("tensor",),)


@lru_cache(maxsize=2048)
def reads_back(name: str) -> bool:
    """Whether a method brings values of a tensor to the host, and so waits for the device."""
    entry = torch_api.method(name)
    return entry is not None and "reads" in entry.flags and (name == "cpu" or not entry.returns_tensors)


@lru_cache(maxsize=2048)
def leaves_tensors(name: str) -> bool:
    """Whether what a method returns is no single tensor on the device of its own."""
    entry = torch_api.method(name)
    return entry is not None and (name == "cpu" or all(parts[0] not in _ON_DEVICE for parts in entry.results))


@lru_cache(maxsize=2048)
def ends_graph(name: str) -> bool:
    """Whether nothing that a method returns carries a graph."""
    entry = torch_api.method(name)
    return entry is not None and bool(entry.results) and (entry.grad == "no" or not _has_tensors(entry))


@lru_cache(maxsize=2048)
def is_boolean(name: str) -> bool:
    """Whether a method returns a tensor of truth values."""
    entry = torch_api.method(name)
    return entry is not None and entry.dtype == "bool"


@lru_cache(maxsize=2048)
def is_reduction(name: str) -> bool:
    """Whether a method leaves out dimensions: all of them, or those that it is told."""
    entry = torch_api.method(name)
    return entry is not None and entry.rank == "reduce"


def _has_tensors(entry: Entry) -> bool:
    return any(part in ("tensor", "tensors") for parts in entry.results for part in parts)


@lru_cache(maxsize=4096)
def waits(name: str) -> bool:
    """Whether every call of a function or method of torch waits for the device: for values, or for a size."""
    entry = torch_api.lookup(name)
    return entry is not None and bool({"reads", "dynamic"} & entry.flags)


# -- functions -------------------------------------------------------------------------------------------------------

_CALLED = ("function", "factory", "legacy-tensor")
# What the norm of the gradients before clipping is computed by.
GRADIENT_NORMS = word_set("torch.nn.utils.clip_grad_norm_ torch.nn.utils.clip_grad_norm torch.nn.utils.get_total_norm")


@lru_cache(maxsize=8192)
def function(name: str) -> Entry | None:
    """The row of a function of torch of which it is known what it returns."""
    entry = torch_api.lookup(name)
    return entry if entry is not None and entry.results and entry.kind in _CALLED else None


@lru_cache(maxsize=8192)
def returns_tensor(name: str) -> bool:
    """Whether a function or class of torch returns a tensor, or several of them."""
    entry = function(name)
    return entry is not None and entry.returns_tensors


@lru_cache(maxsize=8192)
def returns_several(name: str) -> bool:
    """Whether a function of torch always returns tensors in a list or tuple of any length."""
    entry = function(name)
    return entry is not None and entry.results == (("tensors",),)


@lru_cache(maxsize=8192)
def makes_tensor(name: str) -> bool:
    """Whether a function or class of torch makes a tensor of sizes, numbers or data of the host."""
    entry = torch_api.lookup(name)
    return entry is not None and entry.kind in ("factory", "legacy-tensor")


@lru_cache(maxsize=8192)
def is_loss_function(name: str) -> bool:
    """Whether it is a function of torch that reduces what it computes: to its mean, a sum, or not at all."""
    entry = function(name) if name.startswith("torch.nn.functional.") else None
    return entry is not None and entry.takes("reduction")


# -- devices ---------------------------------------------------------------------------------------------------------

# What says that a program can run on a GPU. Alternatives that begin with a letter, and not with `\b`, are found several
# times as fast.
ACCELERATOR = re.compile(
    r"(cuda(?<=\bcuda)|mps(?<=\bmps)|xpu(?<=\bxpu))\b|device(?<=\bdevice)\s*=|[\"']gpu[\"']"
    r"|\.to\(\s*[\w.\[\]\"']*(dev|gpu|rank|DEV|GPU|RANK)"
)


# -- classes ---------------------------------------------------------------------------------------------------------

_LOSS_NAMES = re.compile(r".*\.\w*(Loss|Criterion)")
_SIGNAL_TRANSFORMS = re.compile(
    r"torchaudio\.transforms\.[A-Z]\w*|torchvision\.transforms\.(v2\.)?(?!Compose|Lambda|Random(Apply|Choice|Order))[A-Z]\w*"
)  # modules whose constants are buffers


@lru_cache(maxsize=8192)
def layer_returns_tensor(name: str) -> bool:
    """Whether modules of this class return one tensor, and nothing beside it."""
    entry = torch_api.lookup(name)
    return entry is not None and entry.kind == "module" and entry.results == (("tensor",),)


@lru_cache(maxsize=8192)
def is_parameter_free(name: str) -> bool:
    """Whether modules of this class have no parameters: what they return carries the graph that they get."""
    entry = torch_api.lookup(name)
    return (entry is not None and "parameter-free" in entry.flags) or _SIGNAL_TRANSFORMS.fullmatch(name) is not None


@lru_cache(maxsize=8192)
def is_loss_module(name: str) -> bool:
    """Whether modules of this class are losses, by torch's table or by its name."""
    entry = torch_api.lookup(name)
    return (entry is not None and entry.kind == "loss") or _LOSS_NAMES.fullmatch(name) is not None


@lru_cache(maxsize=2048)
def module_method(name: str) -> Entry | None:
    """The row of a method that every module has, `forward` left out."""
    return torch_api.lookup("torch.nn.Module." + name) if name != "forward" else None


_PASSES = re.compile(
    r"generate|sample|log_prob|reconstruct|classify|infer|inference|((encode|decode|predict|embed)(_\w+)?)|forward_\w+"
    r"|features?|feature_extraction|(get|extract|compute)_(\w+_)?(features?|embeddings?|logits)"
    r"|(?!(set|reset|add|log|print|plot|save|record|update)_)\w*[lL]oss"
)


_OWN_PASSES = re.compile(r"forward_\w+|feature_extraction|extract_(\w+_)?features")


@lru_cache(maxsize=2048)
def only_networks_have(method: str) -> bool:
    """Whether what has a method of that name is a network: others predict, encode and sample, too."""
    return _OWN_PASSES.fullmatch(method) is not None


@lru_cache(maxsize=2048)
def runs_network(method: str) -> bool:
    """Whether a method that the class of a network adds runs the network, by its name."""
    return _PASSES.fullmatch(method) is not None


_ENCODING = re.compile(r"sentence_transformers\.(\w+\.)*\w+ (encode|predict|rank)(_\w+)?")


def encodes_texts(ref: str | None, method: str | None) -> bool:
    """Whether a method is one by which Sentence Transformers run over texts in inference mode, and hand over arrays."""
    return _ENCODING.fullmatch(f"{ref} {method}") is not None


_ACTS = re.compile(
    r"(?i)_?(train|fit|learn|update|optimi[sz]e|step|adapt|set|reset|add|log|print|save|load|register|freeze)"
)


@lru_cache(maxsize=2048)
def acts(method: str) -> bool:
    """Whether a method changes something, by its name, and computes nothing for whoever calls it."""
    return _ACTS.match(method) is not None


_KINDS = {
    "module": Kind.MODULE,
    "loss": Kind.MODULE,
    "optimizer": Kind.OPTIMIZER,
    "scheduler": Kind.SCHEDULER,
    "scaler": Kind.SCALER,
    "loader": Kind.LOADER,
    "sampler": Kind.SAMPLER,
    "dataset": Kind.DATASET,
    "tensor": Kind.TENSOR,
    "legacy-tensor": Kind.TENSOR,
}
_CLASS_KINDS: dict[str, Kind] = {
    "torch.device": Kind.DEVICE,
    "torchtext.data.BucketIterator": Kind.LOADER,
    "numpy.ndarray": Kind.ARRAY,
}
_CLASS_PATTERNS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"(torch_optimizer|transformers|apex\.optimizers|bitsandbytes\.optim)\.(\w*Adam\w*|Lion\w*|\w*SGD\w*|LAMB)"),
     Kind.OPTIMIZER),
    (re.compile(r"torch_geometric\.nn\.([a-z]\w*\.)*[A-Z]\w*"), Kind.MODULE),
    (re.compile(r"torch_geometric\.loader\.\w+(Loader|Sampler)"), Kind.LOADER),
    (_SIGNAL_TRANSFORMS, Kind.MODULE),
    (re.compile(r"transformers\.(\w+\.)*[A-Z]\w*(Model|For[A-Z]\w*)"), Kind.MODULE),
    (re.compile(r"(torchvision|torchaudio|torch_geometric)\.datasets\.[A-Z]\w*"), Kind.DATASET),
    (re.compile(r"torchmetrics\.[A-Z]\w*"), Kind.INSTANCE),
)  # fmt: skip
LOADING = frozenset({"from_pretrained", "load_from_checkpoint"})  # methods of the class of a network, which make one
_PIPELINES = r"(\w+\.)*\w*Pipeline\w*\.from_(pretrained|single_file|pipe)"
_MODULE_FACTORIES = re.compile(
    r"(torchvision\.models\.(\w+\.)?[a-z]\w*|timm\.create_model|timm\.models\.create_model|torch\.hub\.load"
    r"|transformers\.\w*(Model\w*|For[A-Z]\w*)\.from_(pretrained|config)|torch\.compile|torch\.jit\.load"
    r"|peft\.(\w*PeftModel\w*\.from_pretrained|get_peft_model)"
    rf"|{_PIPELINES})$"
)


@lru_cache(maxsize=8192)
def class_kind(name: str) -> Kind | None:
    """What an object of the class `name` is, if it is one of torch's nouns."""
    kind = _CLASS_KINDS.get(name)
    if kind is not None:
        return kind
    entry = torch_api.lookup(name)
    if entry is not None:
        return _KINDS.get(entry.kind)
    return next((kind for pattern, kind in _CLASS_PATTERNS if pattern.fullmatch(name)), None)


@lru_cache(maxsize=8192)
def is_module_factory(name: str) -> bool:
    """Whether a function outside of the project makes a network, by its name."""
    return _MODULE_FACTORIES.fullmatch(name) is not None


@lru_cache(maxsize=2048)
def makes_pipeline(name: str) -> bool:
    """Whether a module factory makes what switches autograd off by itself, and returns images, annotations or texts
    rather than tensors."""
    return re.fullmatch(_PIPELINES, name) is not None


def is_pipeline_class(name: str) -> bool:
    """`diffusers.StableDiffusionPipeline`, `ultralytics.YOLO`: they have `to` and are called, as a network is, and are
    none: they switch autograd off by themselves."""
    return "Pipeline" in name.rpartition(".")[2] or name.startswith("ultralytics.")


# -- contexts and effects --------------------------------------------------------------------------------------------

GRAD_DISABLING = word_set("torch.no_grad torch.inference_mode")
GRAD_SWITCHES = GRAD_DISABLING | word_set("torch.enable_grad torch.set_grad_enabled")
# What stands for a member of a package whose name is not known before the program runs.
SOME_MEMBER = {
    "torch.nn": "torch.nn.Module",
    "torch.optim": "torch.optim.Optimizer",
    "torch.optim.lr_scheduler": "torch.optim.lr_scheduler.LRScheduler",
    "torchvision.models": "torchvision.models.get_model",
}
WRAPPERS = word_set(
    """
    torch.nn.DataParallel torch.nn.parallel.DistributedDataParallel torch.compile torch.jit.script torch.jit.trace
    torch.distributed.fsdp.FullyShardedDataParallel torch.nn.SyncBatchNorm.convert_sync_batchnorm
    torch.nn.utils.weight_norm torch.nn.utils.spectral_norm
    torch.nn.utils.remove_weight_norm torch.nn.utils.remove_spectral_norm
    torch.nn.utils.parametrizations.weight_norm torch.nn.utils.parametrizations.spectral_norm
    """
)
# Decorators and bases of classes whose annotated fields are the parameters of the constructor.
RECORDS = word_set("dataclasses.dataclass typing.NamedTuple attr.s attr.define attrs.define pydantic.BaseModel")
# Nothing behind them runs.
EXITS = word_set("sys.exit os._exit builtins.exit builtins.quit")
# They hand back what they are given, function or module.
COMPILERS = word_set("torch.compile torch.jit.script")
CLIPPERS = word_set(
    """
    torch.nn.utils.clip_grad_norm_ torch.nn.utils.clip_grad_value_ torch.nn.utils.clip_grad_norm
    """
)
COUNTING_BARS = re.compile(r"tqdm(\.\w+)*\.trange")  # they count like `range`
# Functions that hand their first argument on, one element at a time.
ITERATION_WRAPPERS = re.compile(
    r"(builtins\.(iter|reversed|sorted|list|tuple)|tqdm(\.\w+)*\.(tqdm|tqdm_notebook)|tqdm\.tqdm|tqdm"
    r"|tqdm_notebook|rich\.progress\.track|(fastprogress\.)+progress_bar|itertools\.(islice|cycle)|.*\bprefetch\w*)$"
)
FRAMEWORKS = {
    "lightning": "lightning",
    "pytorch_lightning": "lightning",
    "lightning_fabric": "fabric",
    "accelerate": "accelerate",
    "transformers": "transformers",
    "ignite": "ignite",
    "deepspeed": "deepspeed",
    "fastai": "fastai",
    "composer": "composer",
    "mmengine": "mmengine",
    "mmcv": "mmengine",
    "catalyst": "catalyst",
    "skorch": "skorch",
    "horovod": "horovod",
}
# Packages whose functions do nothing to a model, an optimizer or a loss.
HARMLESS_PACKAGES = word_set(
    """
    builtins math time os sys random numpy logging json re copy itertools functools collections pathlib tqdm wandb
    argparse datetime matplotlib pandas scipy sklearn PIL cv2 pickle warnings glob shutil statistics typing yaml csv
    """
)
