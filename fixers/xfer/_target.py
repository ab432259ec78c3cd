"""Where a tensor is to be made that is copied to a device, and the type that it gets on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.xfer.creations import goes_with_tensor
from torchlint.analyses.xfer.sizes import SIZED_CLASSES
from torchlint.rule import NoFixError
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.edits.rewriter import Rewriter
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

_SHORTER = {"torch.int64": "torch.long"}
_MOVING = {"to": ("device", "dtype", "non_blocking", "copy"), "cuda": ("device", "non_blocking"), "type": ("dtype",)}


@dataclass(frozen=True, slots=True)
class Target:
    """Where a tensor goes, and the type that it gets on the way."""

    device: str
    dtype: str | None
    is_certain: bool  # that the device is no None
    tensor: str | None = None  # which has both
    holds_integers: bool = False  # that tensor
    may_be_complex: bool = False  # that type


def target_of(move: Call, rewriter: Rewriter, model: Model) -> Target:
    """Where a copy goes, in the words that a factory takes. Raises NoFixError where it has none."""
    other = goes_with_tensor(move, model)
    if other is not None:
        if not isinstance(other, cst.Name):
            raise NoFixError("the tensor whose device it goes to has no name")
        held = model.value(other).dtype
        may_be_complex = held not in ("int", "float", "bool")
        place, kind = f"{other.value}.device", f"{other.value}.dtype"
        return Target(place, kind, True, other.value, held == "int", may_be_complex)
    names = _MOVING[move.method or ""]
    given = {}
    for position, arg in enumerate(move.arguments):
        name = arg.keyword.value if arg.keyword is not None else names[position] if position < len(names) else ""
        if arg.star or name not in names:
            raise NoFixError(f"`{model.code(arg)}` does not say in sight where the tensor goes")
        given[name] = arg.value
    if move.method == "type":
        return _of_cuda_class(given["dtype"], rewriter, model)
    device, dtype = given.get("device"), given.get("dtype")
    text = model.code(dtype) if dtype is not None else None
    is_open = dtype is not None and not (model.qualified(dtype) or "").startswith("torch.")
    if device is None:
        if move.method != "cuda":
            raise NoFixError("the call does not say in sight where the tensor goes")
        return Target(rewriter.string("cuda"), text, True)
    certain = move.method == "to" or model.value(device).is_(Kind.NUMBER, Kind.DEVICE, Kind.STRING)
    return Target(model.code(device), text, certain, may_be_complex=is_open)


def _of_cuda_class(node: cst.BaseExpression, rewriter: Rewriter, model: Model) -> Target:
    dtype = SIZED_CLASSES.get((model.qualified(node) or "").replace(".cuda.", "."))
    if dtype is None:
        raise NoFixError("the call does not say in sight where the tensor goes")
    return Target(rewriter.string("cuda"), known(dtype, node, rewriter), True)


def known(qualified: str, at: cst.CSTNode, rewriter: Rewriter) -> str:
    """How a name is written at a place without another import. Raises NoFixError where it cannot be."""
    qualified = _SHORTER.get(qualified, qualified)
    name = rewriter.known_name(qualified, at)
    if name is None:
        raise NoFixError(f"the file does not import what it needs to say `{qualified}`")
    return name


def tensor_of_both(factory: Call, target: Target, dtype: str | None, model: Model) -> str | None:
    """The tensor that has the device and the type that are asked for. Of `device=x.device, dtype=x.dtype` it is `x`
    where the sizes are those of `x`, too: models have a device and a type as well, but no `new_zeros`."""
    if target.tensor is not None:
        return target.tensor if dtype == target.dtype else None
    name = target.device.removesuffix(".device")
    sizes = {model.code(arg.value) for arg in factory.arguments[:1]}
    is_of_both = target.device == f"{name}.device" and dtype == f"{name}.dtype" and name.isidentifier()
    return name if is_of_both and not sizes.isdisjoint({f"{name}.shape", f"{name}.size()"}) else None
