"""Calls that look at a value and keep nothing of it that is differentiated; read by `fate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses import fate_words as words
from torchlint.analyses.lifetime import root
from torchlint.semantics.dataflow import text
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model


def only_reports(model: Model, call: Call) -> bool:
    """Loggers, progress bars, plots, schedulers: they look at a value, and keep nothing that is differentiated."""
    receiver = call.receiver_value
    if call.method in words.LOG_METHODS:
        return not receiver.is_(Kind.LIST, Kind.DICT, Kind.TENSOR, Kind.MODULE)
    if call.method == "step":
        named = text(call.receiver) if call.receiver is not None else ""
        return receiver.is_(Kind.SCHEDULER) or "sched" in named or _is_environment(model, named)
    name = call.method or (call.callee or text(call.node.func)).rpartition(".")[2]
    return receiver.is_(Kind.SCHEDULER) or words.REPORTERS.fullmatch(name) is not None or _is_of_reader(model, call)


def _is_environment(model: Model, named: str) -> bool:
    """`self.env` in a file that knows gym, whose environments compute with NumPy."""
    return words.ENVIRONMENT.search(named) is not None and words.GYM.search(model.source.text) is not None


def _is_of_reader(model: Model, call: Call) -> bool:
    """A method of what a package that only reads has made, as `axes[0].scatter` or `env.step`."""
    holder = root(model, call.receiver) if call.receiver is not None else None
    makers = [write.value for write in holder.writes] if holder is not None else []
    return bool(makers) and all(isinstance(made, cst.Call) and _is_reader(model, made) for made in makers)


def _is_reader(model: Model, made: cst.Call) -> bool:
    return (model.call(made).callee or "").partition(".")[0] in words.READERS
