"""Torch's operations by how they batch. Adding an operator is one line.

Sources: the reference pages of torch 2.13 for `torch`, `torch.Tensor`, `torch.nn.functional` and `torch.linalg`.
"""

from __future__ import annotations

from torchlint.word_set import word_set

# Each element of the result depends on one element of the operand; all other arguments are numbers.
KEEPS_DTYPE = word_set(
    """
    neg negative positive relu relu6 sign sgn floor ceil round trunc frac clamp clip clamp_min clamp_max square clone
    detach contiguous nan_to_num leaky_relu elu selu celu gelu silu mish hardtanh hardsigmoid hardswish softplus
    softsign tanhshrink softshrink hardshrink threshold logsigmoid conj conj_physical resolve_conj
    """
)
MAKES_INEXACT = word_set(
    """
    exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh
    atanh sigmoid expit erf erfc erfinv lgamma digamma logit sinc deg2rad rad2deg
    """
)
MAKES_REAL = word_set("abs absolute")
MAKES_BOOL = word_set("isnan isinf isfinite logical_not signbit isreal")
CASTS = word_set("float double half bfloat16 long int bool")
MOVES = word_set("to cuda cpu type_as")
POINTWISE = KEEPS_DTYPE | MAKES_INEXACT | MAKES_REAL | MAKES_BOOL
# Rounded the same way for one element and for many.
EXACT = word_set(
    "neg negative positive relu relu6 sign floor ceil round trunc clamp clip clamp_min clamp_max square clone detach "
    "contiguous abs absolute isnan isinf isfinite logical_not add sub subtract mul multiply div divide true_divide "
    "maximum minimum where eq ne lt le gt ge logical_and logical_or logical_xor sqrt conj nan_to_num hardtanh"
)
ROUNDED_ALIKE_IF_REAL = word_set("square mul multiply div divide true_divide abs absolute sqrt * /")

# Elementwise over two or three operands that broadcast.
BROADCASTING = word_set(
    """
    add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow maximum minimum fmax fmin
    atan2 arctan2 hypot where eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor
    lerp logaddexp copysign xlogy
    """
)
COMPARES = word_set("eq ne lt le gt ge logical_and logical_or logical_xor")
DIVIDES = word_set("div divide true_divide atan2 arctan2 hypot logaddexp xlogy")

# Reductions to a scalar, or along `dim`: the name of the one that does it along the last dimension.
REDUCTIONS = {
    "sum": "sum",
    "mean": "mean",
    "prod": "prod",
    "nansum": "nansum",
    "std": "std",
    "var": "var",
    "amax": "amax",
    "amin": "amin",
    "max": "amax",
    "min": "amin",
    "argmax": "argmax",
    "argmin": "argmin",
    "all": "all",
    "any": "any",
    "count_nonzero": "count_nonzero",
    "logsumexp": "logsumexp",
}
PAIRS = word_set("max min median mode sort topk cummax cummin kthvalue")
# Along `dim`, which is the argument of that number; the result has the same dimensions.
ALONG = {
    "softmax": 1,
    "log_softmax": 1,
    "softmin": 1,
    "cumsum": 1,
    "cumprod": 1,
    "logcumsumexp": 1,
    "flip": 1,
    "argsort": 1,
}

# Along the last dimensions, whatever is in front of them: how many, and by how much the rank changes. A `dim` among the
# arguments is the only one that counts dimensions.
TRAILING = {
    **{f"fft.{name}": (1, 0) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{name}": (2, 0) for name in ("fft2", "ifft2", "rfft2", "irfft2")},
    "diff": (1, 0),
    "trapezoid": (1, -1),
    "trapz": (1, -1),
    "cumulative_trapezoid": (1, 0),
    "glu": (1, 0),
    "layer_norm": (1, 0),
    "pad": (1, 0),
    "linalg.eigvals": (2, -1),
    "linalg.cond": (2, -2),
    "linalg.matrix_norm": (2, -2),
}

# torch.linalg batches over all but the last two dimensions: the number of dimensions of one result.
MATRIX_FUNCTIONS = {
    "inverse": 2,
    "linalg.inv": 2,
    "pinverse": 2,
    "linalg.pinv": 2,
    "linalg.cholesky": 2,
    "matrix_exp": 2,
    "linalg.matrix_exp": 2,
    "linalg.matrix_power": 2,
    "matrix_power": 2,
    "det": 0,
    "linalg.det": 0,
    "linalg.slogdet": 0,
    "slogdet": 0,
    "logdet": 0,
    "linalg.svdvals": 1,
    "linalg.eigvalsh": 1,
    "tril": 2,
    "triu": 2,
}
PRODUCTS = word_set("matmul mm bmm mv dot outer ger inner vdot einsum linear")

# Losses of a row that is a batch by itself, with its classes in another dimension and some targets left out: they are
# mapped as they are.
ROW_LOSSES = word_set("cross_entropy nll_loss binary_cross_entropy binary_cross_entropy_with_logits")

_LAYOUT = word_set(
    """
    unsqueeze squeeze transpose swapaxes t permute flatten reshape view norm linalg.norm linalg.vector_norm trace
    linalg.solve normalize cosine_similarity mse_loss l1_loss diag diagonal
    """
)
# No batched form of them is known here, but torch.vmap has one. Of no rows, some of them fail.
NEVER_EMPTY = word_set(
    """
    fft.fftn fft.ifftn fft.rfftn fft.irfftn conv1d conv2d conv3d conv_transpose1d
    conv_transpose2d pad interpolate unfold avg_pool1d avg_pool2d group_norm pixel_shuffle pixel_unshuffle grid_sample
    std var view reshape unflatten tile block_diag local_response_norm
    """
)
SORTING = word_set("max min median mode sort topk cummax cummin kthvalue")
_ONLY_MAPPED = word_set(
    """
    diff roll rot90 fliplr flipud msort cross linalg.cross cdist pairwise_distance gather index_select take_along_dim
    scatter scatter_add index_add index_fill searchsorted bucketize trapezoid trapz cumulative_trapezoid fft.fftshift
    fft.ifftshift adaptive_avg_pool1d adaptive_avg_pool2d max_pool1d max_pool2d layer_norm kron tensordot diag_embed
    repeat glu huber_loss smooth_l1_loss slogdet linalg.slogdet linalg.multi_dot chain_matmul linalg.solve_triangular
    cholesky_solve linalg.eigvals cat concat stack hstack vstack polar complex view_as_real view_as_complex addmm
    addmv addr addcmul addcdiv baddbmm linalg.matrix_norm linalg.cond narrow select expand heaviside nanmean expand_as
    linalg.vecdot prelu swapdims moveaxis movedim ravel clone zeros_like ones_like full_like real imag angle dist
    repeat_interleave
    """
)
_METADATA = word_set("size dim numel ndimension element_size stride is_floating_point is_complex nelement")
_FACTORIES = word_set("zeros ones full eye arange linspace tensor as_tensor zeros_like ones_like full_like device")
_BUILTINS = word_set("len int float bool abs min max round complex tuple")

_OPERATIONS = (
    POINTWISE | CASTS | BROADCASTING | frozenset(REDUCTIONS) | PAIRS | frozenset(ALONG) | frozenset(MATRIX_FUNCTIONS)
) | PRODUCTS | _LAYOUT  # fmt: skip
# Of these, the numbers that vmap computes are those of one row after the other. mse_loss and l1_loss put the dimensions
# of operands that differ in rank in the wrong places; argsort may order equal elements in another way.
_COMPUTING = _OPERATIONS | _ONLY_MAPPED | NEVER_EMPTY | frozenset(TRAILING)
MAPPED = _COMPUTING - word_set("mse_loss l1_loss argsort")
PURE_FUNCTIONS = _BUILTINS | {
    f"{space}{name}"
    for name in _COMPUTING | _FACTORIES
    for space in ("torch.", "torch.nn.functional.", "torch.special.")
} | {"torch.linalg." + name.removeprefix("linalg.") for name in MATRIX_FUNCTIONS} | {
    "torch.linalg.solve", "torch.linalg.norm", "torch.linalg.vector_norm", "torch.finfo", "torch.iinfo",
}  # fmt: skip
PURE_METHODS = _OPERATIONS | MOVES | _METADATA | word_set(
    "expand expand_as repeat item tolist new_zeros new_ones new_full view_as reshape_as type get"
)  # fmt: skip
SHAPED = word_set("torch.zeros torch.ones torch.empty torch.rand torch.randn")
COUNTING_FUNCTIONS = word_set("builtins.range tqdm.trange tqdm.auto.trange torch.eye torch.randperm")
LIKE = word_set("torch.zeros_like torch.ones_like torch.empty_like torch.rand_like torch.randn_like torch.full_like")
# Take a tensor as their first argument, and no array of numpy.
PROVING_FUNCTIONS = (
    frozenset(
        f"{space}{name}"
        for name in POINTWISE | frozenset(REDUCTIONS) | PAIRS | frozenset(ALONG) | (PRODUCTS - {"einsum"})
        for space in ("torch.", "torch.nn.functional.")
    )
    | {f"torch.{name}" for name in MATRIX_FUNCTIONS}
    | LIKE
)
# Methods of tensors that arrays of numpy do not have.
PROVING_METHODS = (POINTWISE | frozenset(ALONG)) - word_set(
    "round clip conj sign cumsum cumprod argsort positive"
) | word_set("matmul mm bmm mv unsqueeze norm amax amin t permute logsumexp topk")

# Modules without state, by the function that they are.
MODULES = {
    "torch.nn.Softmax": "softmax",
    "torch.nn.LogSoftmax": "log_softmax",
    "torch.nn.MSELoss": "mse_loss",
    "torch.nn.L1Loss": "l1_loss",
    "torch.nn.CrossEntropyLoss": "cross_entropy",
    "torch.nn.NLLLoss": "nll_loss",
    "torch.nn.BCELoss": "binary_cross_entropy",
    "torch.nn.BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "torch.nn.ReLU": "relu",
    "torch.nn.Sigmoid": "sigmoid",
    "torch.nn.Tanh": "tanh",
    "torch.nn.GELU": "gelu",
    "torch.nn.SiLU": "silu",
}
