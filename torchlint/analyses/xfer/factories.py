"""Calls that make a tensor on the host of sizes and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.analyses.xfer.agreement import ALIKE, FACTORIES, Agreement
from torchlint.analyses.xfer.numbers import MADE_OF_NUMBERS, numbers_given
from torchlint.analyses.xfer.sizes import SIZED_CLASSES, is_given_sizes
from torchlint.semantics.tree import is_name
from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

# Arguments that bind the tensor, or what is drawn, to the host.
_BINDING = ("device", "pin_memory", "generator", "out", "layout", "names")


def agreement_of(call: Call, model: Model) -> Agreement | None:
    """How far another device agrees on what a call makes, where it is a factory that makes it on the host."""
    name = call.callee or ""
    if not name.startswith("torch.") or any(not call.argument(bound).absent for bound in _BINDING):
        return None
    if makes_leaf(call):
        return None
    short = name[6:]
    if short in FACTORIES:
        return FACTORIES[short]
    if short in ALIKE:
        model_tensor = call.argument("input", 0).value
        return ALIKE[short] if model_tensor.is_tensor and model_tensor.place is Place.HOST else None
    if short in ("arange", "range"):
        whole = all(model.value(arg.value).dtype == "int" for arg in call.arguments if arg.keyword is None)
        return Agreement.EXACT if whole else Agreement.ROUNDED
    if short == "normal":
        numbers = [call.argument(key, place) for place, key in enumerate(("mean", "std"))]
        takes_numbers = call.argument("size", 2).given or all(number.value.kind is Kind.NUMBER for number in numbers)
        return Agreement.RANDOM if takes_numbers else None
    if name in MADE_OF_NUMBERS:
        return Agreement.EXACT if numbers_given(call, model) is not None else None
    if name in SIZED_CLASSES:
        given = is_given_sizes(call, model) or numbers_given(call, model) is not None
        return Agreement.EXACT if given else None
    return None


def makes_leaf(call: Call, position: int | None = None) -> bool:
    """Whether gradients may be wanted of what a call makes."""
    wanted = call.argument("requires_grad", position)
    return not wanted.absent and not is_name(wanted.node, "False")
