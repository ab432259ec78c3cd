"""Torch's vocabulary as data: what its functions, classes and methods return and do. Adding one is one line.

Sources: the reference pages of torch 2.13 for `torch`, `torch.Tensor`, `torch.nn`, `torch.linalg`, `torch.utils.data`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from torchlint.semantics.values import Kind


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# -- torch.Tensor ----------------------------------------------------------------------------------------------------

# Methods that read a value of the tensor back to the host, and so wait for the device.
READBACK_METHODS = _words("item tolist numpy cpu __float__ __int__ __bool__")
NUMBER_METHODS = _words(
    """
    item dim ndimension numel nelement element_size get_device data_ptr storage_offset is_contiguous is_floating_point
    is_complex is_pinned is_set_to is_shared is_sparse dense_dim sparse_dim __len__ allclose equal
    """
)
INTEGER_METHODS = _words("argmax argmin argsort long int short byte nonzero count_nonzero bincount")
BOOLEAN_METHODS = _words(
    "eq ne gt ge lt le isnan isinf isfinite bool logical_and logical_or logical_not logical_xor any all isclose"
)
# Their results never carry a graph.
NON_DIFFERENTIABLE_METHODS = INTEGER_METHODS | BOOLEAN_METHODS
DETACHING_METHODS = _words("detach detach_ item tolist numpy")
PAIR_METHODS_WITH_DIM = _words("max min median mode cummax cummin kthvalue topk sort std_mean var_mean")
SEQUENCE_METHODS = _words("chunk split unbind tensor_split hsplit vsplit dsplit")
REDUCTIONS = _words(
    """
    sum mean prod max min amax amin norm std var median all any argmax argmin logsumexp nansum nanmean count_nonzero
    """
)
NONE_METHODS = _words("backward register_hook retain_grad share_memory_")
TENSOR_ATTRIBUTES_NUMBER = _words(
    "ndim requires_grad is_leaf is_cuda is_sparse is_mps is_cpu itemsize nbytes retains_grad is_nested"
)
TENSOR_METHODS = (
    READBACK_METHODS
    | NUMBER_METHODS
    | NON_DIFFERENTIABLE_METHODS
    | REDUCTIONS
    | SEQUENCE_METHODS
    | PAIR_METHODS_WITH_DIM
    | NONE_METHODS
    | _words(
        """
        to cuda detach detach_ clone contiguous view view_as reshape reshape_as permute transpose transpose_ t squeeze
        unsqueeze squeeze_ unsqueeze_ expand expand_as repeat repeat_interleave flatten unflatten float double half
        bfloat16 type type_as requires_grad_ abs abs_ add add_ addcdiv_ addcmul_ addmm baddbmm bmm matmul mm mv dot
        mul mul_ div div_ sub sub_ neg neg_ pow pow_ sqrt sqrt_ rsqrt exp exp_ log log_ log1p log2 log10 sigmoid
        sigmoid_ tanh tanh_ relu relu_ softmax log_softmax clamp clamp_ clip clip_ clamp_min clamp_max fill_ zero_
        copy_ masked_fill masked_fill_ masked_select index_select index_add index_add_ index_copy_ gather scatter
        scatter_ scatter_add scatter_add_ sign cumsum cumprod tril triu diag diagonal inverse det logdet svd qr
        cholesky trace roll flip rot90 real imag conj angle round floor ceil trunc frac fmod remainder sin cos tan
        normal_ uniform_ random_ bernoulli bernoulli_ exponential_ multinomial lerp lerp_ where new_zeros new_ones
        new_full new_empty new_tensor pin_memory record_stream narrow select unfold size stride triu_ tril_ erf
        square maximum minimum cross outer ger kron einsum rename data_ptr apply_ map_ renorm cdist logit var_mean
        """
    )
)

# -- functions -------------------------------------------------------------------------------------------------------

# Functions under `torch.` that do not return a tensor.
_NOT_TENSOR_FUNCTIONS = _words(
    """
    torch.save torch.load torch.manual_seed torch.seed torch.initial_seed torch.set_grad_enabled torch.no_grad
    torch.inference_mode torch.enable_grad torch.is_tensor torch.is_grad_enabled torch.is_complex
    torch.is_floating_point torch.numel torch.device torch.compile torch.set_default_dtype torch.set_default_device
    torch.set_default_tensor_type torch.set_num_threads torch.get_num_threads torch.set_printoptions torch.typename
    torch.get_default_dtype torch.get_rng_state torch.set_rng_state torch.set_float32_matmul_precision torch.finfo
    torch.iinfo torch.Size torch.dtype torch.Generator torch.equal torch.allclose torch.is_nonzero torch.autocast
    torch.use_deterministic_algorithms torch.get_device torch.vmap torch.func torch.hub torch.from_dlpack
    torch.promote_types torch.result_type torch.can_cast torch.broadcast_shapes torch.is_storage torch.Stream
    """
)
# They return the norm of all gradients: one number, in a tensor.
GRADIENT_NORMS = _words(
    """
    torch.nn.utils.clip_grad_norm_ torch.nn.utils.clip_grad_norm torch.nn.utils.get_total_norm
    torch.nn.utils.clip_grad.clip_grad_norm_
    """
)
_TENSOR_NAMESPACES = ("torch.nn.functional.", "torch.linalg.", "torch.fft.", "torch.special.")
FACTORIES = _words(
    """
    torch.zeros torch.ones torch.full torch.empty torch.rand torch.randn torch.randint torch.randperm torch.arange
    torch.linspace torch.logspace torch.eye torch.tensor torch.as_tensor torch.from_numpy torch.normal
    torch.complex torch.tril_indices torch.triu_indices torch.hann_window torch.hamming_window
    """
)
LEGACY_TENSOR_CLASSES = re.compile(
    r"torch\.(cuda\.)?(Float|Double|Half|BFloat16|Long|Int|Short|Byte|Char|Bool)?Tensor$"
)
INTEGER_FACTORIES = _words("torch.randint torch.randperm torch.tril_indices torch.triu_indices torch.nonzero")
SHAPED_BY_POSITION = _words("torch.zeros torch.ones torch.empty torch.rand torch.randn")
SEQUENCE_FUNCTIONS = _words("torch.chunk torch.split torch.unbind torch.tensor_split torch.meshgrid")
PAIR_FUNCTIONS_WITH_DIM = _words("torch.max torch.min torch.median torch.mode torch.cummax torch.kthvalue")
PAIR_FUNCTIONS = _words(
    """
    torch.topk torch.sort torch.std_mean torch.var_mean torch.linalg.eig torch.linalg.eigh torch.linalg.qr torch.eig
    torch.symeig torch.qr torch.linalg.slogdet torch.slogdet
    """
)
TRIPLE_FUNCTIONS = _words("torch.svd torch.linalg.svd torch.linalg.lu torch.lu")


@lru_cache(maxsize=8192)
def returns_tensor(name: str) -> bool:
    """Whether the torch function `name` returns a tensor, or a tuple of them."""
    if name.startswith(_TENSOR_NAMESPACES):
        return not name.rpartition(".")[2][:1].isupper()
    if not name.startswith("torch.") or name in _NOT_TENSOR_FUNCTIONS:
        return False
    if LEGACY_TENSOR_CLASSES.fullmatch(name) or name in GRADIENT_NORMS:
        return True
    return name.count(".") == 1 and name[6:7].islower()


# -- classes ---------------------------------------------------------------------------------------------------------

# Modules without parameters of their own: what they return carries a graph only if what they are given does.
PARAMETER_FREE_MODULES = re.compile(
    r"torch\.nn\.(\w*Loss\w*|ReLU6?|LeakyReLU|ELU|SELU|GELU|SiLU|Mish|Sigmoid|Tanh|Softmax\w*|LogSoftmax|Softplus"
    r"|Dropout\w*|Flatten|Unflatten|Identity|\w*Pool\w*|Upsample\w*|Hardtanh|Hardswish|Hardsigmoid|PixelShuffle"
    r"|CosineSimilarity|PairwiseDistance|\w*Pad\w*)"
)
LOSS_FUNCTIONS = re.compile(r"torch\.nn\.functional\.(\w+_loss|cross_entropy|binary_cross_entropy\w*|kl_div)")
LOSS_MODULES = re.compile(r"(torch\.nn\.\w*Loss\w*|.*\.\w*(Loss|Criterion))$")

CLASS_KINDS: dict[str, Kind] = {
    "torch.nn.Module": Kind.MODULE,
    "torch.nn.DataParallel": Kind.MODULE,
    "torch.nn.parallel.DistributedDataParallel": Kind.MODULE,
    "torch.optim.Optimizer": Kind.OPTIMIZER,
    "torch.amp.GradScaler": Kind.SCALER,
    "torch.cuda.amp.GradScaler": Kind.SCALER,
    "torch.distributed.fsdp.FullyShardedDataParallel": Kind.MODULE,
    "torch.utils.data.DataLoader": Kind.LOADER,
    "torch.device": Kind.DEVICE,
    "torch.Tensor": Kind.TENSOR,
    "torch.nn.Parameter": Kind.TENSOR,
    "torch_geometric.loader.DataLoader": Kind.LOADER,
    "torch_geometric.loader.NeighborLoader": Kind.LOADER,
    "torch_geometric.loader.LinkNeighborLoader": Kind.LOADER,
    "torch_geometric.loader.DenseDataLoader": Kind.LOADER,
    "torch_geometric.loader.DataListLoader": Kind.LOADER,
    "torchtext.data.BucketIterator": Kind.LOADER,
    "numpy.ndarray": Kind.ARRAY,
}
_CLASS_PATTERNS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"torch\.optim\.lr_scheduler\.[A-Z]\w*"), Kind.SCHEDULER),
    (re.compile(r"torch\.optim\.[A-Z]\w*"), Kind.OPTIMIZER),
    (re.compile(r"(torch_optimizer|transformers|apex\.optimizers|bitsandbytes\.optim)\.(\w*Adam\w*|Lion\w*|\w*SGD\w*|LAMB)"),
     Kind.OPTIMIZER),
    (re.compile(r"torch\.nn\.[A-Z]\w*"), Kind.MODULE),
    (re.compile(r"torch_geometric\.nn\.[A-Z]\w*"), Kind.MODULE),
    (re.compile(r"torch\.utils\.data\.\w*Sampler"), Kind.SAMPLER),
    (re.compile(r"torch\.utils\.data\.\w*(Dataset|Subset)"), Kind.DATASET),
    (re.compile(r"torchvision\.datasets\.[A-Z]\w*"), Kind.DATASET),
    (re.compile(r"torchaudio\.datasets\.[A-Z]\w*"), Kind.DATASET),
    (re.compile(r"torch_geometric\.datasets\.[A-Z]\w*"), Kind.DATASET),
    (re.compile(r"torchmetrics\.[A-Z]\w*"), Kind.INSTANCE),
)  # fmt: skip
_MODULE_FACTORIES = re.compile(
    r"(torchvision\.models\.(\w+\.)?[a-z]\w*|timm\.create_model|timm\.models\.create_model|torch\.hub\.load"
    r"|transformers\.\w*(Model\w*|For[A-Z]\w*)\.from_(pretrained|config)|torch\.compile)$"
)


@lru_cache(maxsize=8192)
def class_kind(name: str) -> Kind | None:
    """What an object of the class `name` is, if it is one of torch's nouns."""
    kind = CLASS_KINDS.get(name)
    if kind is not None:
        return kind
    return next((kind for pattern, kind in _CLASS_PATTERNS if pattern.fullmatch(name)), None)


@lru_cache(maxsize=8192)
def is_module_factory(name: str) -> bool:
    return _MODULE_FACTORIES.fullmatch(name) is not None


# -- contexts and effects --------------------------------------------------------------------------------------------

GRAD_DISABLING = _words("torch.no_grad torch.inference_mode")
GRAD_SWITCHES = GRAD_DISABLING | _words("torch.enable_grad torch.set_grad_enabled")
WRAPPERS = _words(
    """
    torch.nn.DataParallel torch.nn.parallel.DistributedDataParallel torch.compile
    torch.distributed.fsdp.FullyShardedDataParallel torch.nn.SyncBatchNorm.convert_sync_batchnorm
    """
)
# Decorators and bases of classes whose annotated fields are the parameters of the constructor.
RECORDS = _words("dataclasses.dataclass typing.NamedTuple attr.s attr.define attrs.define pydantic.BaseModel")
CLIPPERS = _words(
    """
    torch.nn.utils.clip_grad_norm_ torch.nn.utils.clip_grad_value_ torch.nn.utils.clip_grad_norm
    torch.nn.utils.clip_grad.clip_grad_norm_ torch.nn.utils.clip_grad.clip_grad_value_
    """
)
# Functions that hand their first argument on, one element at a time.
ITERATION_WRAPPERS = re.compile(
    r"(builtins\.(iter|reversed|sorted|list|tuple)|tqdm(\.\w+)*\.(tqdm|trange|tqdm_notebook)|tqdm\.tqdm|tqdm"
    r"|tqdm_notebook|rich\.progress\.track|itertools\.(islice|cycle)|.*\bprefetch\w*)$"
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
HARMLESS_PACKAGES = _words(
    """
    builtins math time os sys random numpy logging json re copy itertools functools collections pathlib tqdm wandb
    argparse datetime matplotlib pandas scipy sklearn PIL cv2 pickle warnings glob shutil statistics typing yaml csv
    """
)
