"""Copies between host and device for whose end the host waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.semantics.values import Kind, Place

if TYPE_CHECKING:
    from torchlint.semantics.entities import Argument, Call

_PLACE_OF_FLAG = {"to": 2, "cuda": 1, "copy_": 1}


def flag_of(call: Call) -> Argument:
    """The argument of a copy that says whether the host waits."""
    return call.argument("non_blocking", _PLACE_OF_FLAG.get(call.method or ""))


def waits_for_copy(call: Call) -> bool:
    """Whether a tensor is copied between host and device, and not in the background."""
    if call.method not in _PLACE_OF_FLAG or call.receiver_value.kind is Kind.MODULE:
        return False
    source = call.argument("other", 0).value if call.method == "copy_" else call.receiver_value
    copies = call.value.place not in (source.place, Place.UNKNOWN)
    return copies and not (flag_of(call).value.constant is True and not _fills_pages_of_host(call))


def _fills_pages_of_host(call: Call) -> bool:
    """Memory that is not pinned: `cudaMemcpyAsync` returns only once it is filled, as CUDA's manual says."""
    return call.method == "copy_" and call.receiver_value.place is Place.HOST and not call.receiver_value.pinned
