"""The fix that the rules about sums share: the term stays on the device, and every read behind the loop is a number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Applicability, Edit, Fix
from torchlint.rewrite import Rewriter
from torchlint.rule import NoFixError
from torchlint.semantics.accumulators import HostSum, is_wrapped
from torchlint.spelling import is_free

if TYPE_CHECKING:
    from torchlint.semantics.model import Model
    from torchlint.semantics.readback import Readback

_NO_DOUBLE = re.compile(r"\b(mps|xla\w*|torch_xla|xpu|hpu)\b", re.IGNORECASE)
_ANY_DEVICE = re.compile(r"\btorch\.accelerator\b|\baccelerate\b")
_DOUBT = "On a device without double precision (MPS), which this file does not rule out, `.double()` fails."
_TIMED = "The loop reads a clock: without the readback its intervals no longer include the work of the device."
_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)


def kept_in_double(model: Model, read: Readback, total: HostSum, suffix: str) -> Fix:
    """The sum in double precision, which is what a Python float has and some devices lack."""
    text = model.source.text
    if _NO_DOUBLE.search(text):
        raise NoFixError("the file is for devices that lack double precision")
    is_cuda = re.search(r"\bcuda\b", text) is not None and _ANY_DEVICE.search(text) is None
    return kept_on_device(model, read, total, suffix, "float", "" if is_cuda else _DOUBT)


def kept_on_device(model: Model, read: Readback, total: HostSum, suffix: str, cast: str, doubt: str = "") -> Fix:
    """`total += loss.item()` as `total += loss` and `suffix`, with `cast` around every read of the total.

    `doubt`: why the fix is unsafe, if it is.
    """
    term = _term(model, read, suffix)
    division = total.settled if isinstance(total.settled, cst.AugAssign) else None
    places = [*total.reads, *([division] if division is not None else [])]
    if not all(is_free(model, cast, place) for place in places):
        raise NoFixError(f"`{cast}` means something else where the sum is read")
    edits = [term]
    for name in total.reads:
        if not is_wrapped(model, name, f"builtins.{cast}", "builtins.float"):
            edits += Rewriter(model).wrap(name, f"{cast}(", ")")
    if division is not None:
        edits.append(_divided(model, division, cast))
    doubt = doubt or (_TIMED if total.is_timed else "")
    why = doubt or "The sum is exact on the device too, and is read once."
    return Fix(tuple(edits), Applicability.UNSAFE if doubt else Applicability.SAFE, why)


def _term(model: Model, read: Readback, suffix: str) -> Edit:
    """`loss.detach().double()` for `loss.item()` and `float(loss)`."""
    start, end = model.span(read.node)
    first, last = model.span(read.tensor)
    text = model.source.text
    if read.node.lpar or "#" in text[start:first] + text[last:end]:
        raise NoFixError("a comment or parentheses stand inside of the read")
    if read.how not in ("item", "float", "int"):
        raise NoFixError("the number is not read by `.item()`, `float(...)` or `int(...)`")
    tensor = text[first:last]
    if read.how != "item" and suffix and not isinstance(read.tensor, _ATOMS) and not read.tensor.lpar:
        tensor = f"({tensor})"
    return Edit(start, end, tensor + suffix)


def _divided(model: Model, division: cst.AugAssign, cast: str) -> Edit:
    """`total = float(total) / count` for `total /= count`."""
    name, value = model.code(division.target), model.code(division.value)
    if not isinstance(division.value, _ATOMS) and not division.value.lpar:
        value = f"({value})"
    return Edit(*model.span(division), f"{name} = {cast}({name}) / {value}")
