"""Dtypes as code names them: `dtype=torch.float64`, `.double()`, `.to(torch.int64)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize.shapes import UNKNOWN_DTYPE, DType
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_CAST_TO = {
    "float": DType("torch.float32", "float"),
    "double": DType("torch.float64", "float"),
    "half": DType("torch.float16", "float"),
    "bfloat16": DType("torch.bfloat16", "float"),
    "long": DType("int64", "int"),
    "int": DType("torch.int32", "int"),
    "bool": DType("bool", "bool"),
}
_DTYPES = {
    **{f"torch.{name}": dtype for name, dtype in _CAST_TO.items() if name != "long"},
    "torch.long": _CAST_TO["long"],
    "torch.int64": _CAST_TO["long"],
    "torch.float32": _CAST_TO["float"],
    "torch.float64": _CAST_TO["double"],
    "torch.float16": _CAST_TO["half"],
    "torch.int32": _CAST_TO["int"],
    "torch.complex64": DType("torch.complex64", "complex"),
    "torch.complex128": DType("torch.complex128", "complex"),
    "torch.cfloat": DType("torch.complex64", "complex"),
    "torch.cdouble": DType("torch.complex128", "complex"),
}
LEGACY = {
    f"torch.{place}{name}Tensor": dtype
    for name, dtype in {
        "Float": _CAST_TO["float"], "Double": _CAST_TO["double"], "Half": _CAST_TO["half"], "Long": _CAST_TO["long"],
        "Int": _CAST_TO["int"], "Bool": _CAST_TO["bool"],
    }.items()
    for place in ("", "cuda.")
}  # fmt: skip
"""Constructors that take sizes, or what a tensor is made of."""
DEFAULT = DType("default", "float")


def cast(name: str) -> DType | None:
    """The dtype that `.double()` and the like cast to."""
    return _CAST_TO.get(name)


def dtype_argument(model: Model, node: cst.Call, default: DType) -> DType:
    """Of a factory: its `dtype`, or what it makes without one."""
    for argument in node.args:
        if argument.star == "**":
            return UNKNOWN_DTYPE
        if argument.keyword is not None and argument.keyword.value == "dtype":
            return _named(model, argument.value)
    return default


def cast_by_to(model: Model, node: cst.Call, dtype: DType) -> DType:
    """Of `x.to(...)`, where `dtype` is that of x."""
    for argument in node.args:
        value = model.value(argument.value)
        keyword = argument.keyword.value if argument.keyword is not None else None
        if keyword == "device" or (keyword is None and value.kind is Kind.DEVICE) or value.kind is Kind.STRING:
            continue
        return _named(model, argument.value)
    return dtype


def _named(model: Model, node: cst.BaseExpression) -> DType:
    return _DTYPES.get(model.qualified(node) or "", UNKNOWN_DTYPE)
