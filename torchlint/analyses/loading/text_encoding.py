"""Collate functions for text: whether they tokenize each batch, or only pad token ids."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loading.datasets import calls_made
from torchlint.semantics.tree import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Argument, Call
    from torchlint.semantics.model import Model

_TEXT_COLLATOR = re.compile(r"transformers\.(\w+\.)*DataCollator(WithPadding|For(?!.*(Image|Vision))\w+)")
_GATHERING = frozenset({"torch.stack", "torch.cat", "torch.nn.utils.rnn.pad_sequence"})
_TOKENIZING = re.compile(
    r"(\w+_)?tokeni[sz]er?|encode(_\w+)?|batch_encode\w*|convert_tokens_to_ids|texts?_to_\w+|numericali[sz]e"
)


def encodes_text(collate: Argument, model: Model) -> bool:
    """Whether a collate function looks words up, text by text, so that the samples are made when a batch is."""
    found = [function for node in collate.value.origins if (function := model.function_of(node)) is not None]
    behind = model.function_behind(collate.value) if not found else None
    functions = found if behind is None else [behind[1]]
    return any(_encodes(call) for function in functions for call in calls_made(function))


def pads_tokens(collate: Argument, model: Model) -> bool:
    """Whether a collate function lets a tokenizer pad the batch: numbers of words are some kilobytes, which a copy to
    the device takes no longer for than for one."""
    if isinstance(collate.node, cst.Call) and _makes_collator(model.call(collate.node)):
        return True
    found = [function for node in collate.value.origins if (function := model.function_of(node)) is not None]
    calls = [call for function in found for call in function.calls]
    return any(_pads(call) or _makes_collator(call) for call in calls) and not any(map(_gathers_others, calls))


def _pads(call: Call) -> bool:
    """`tokenizer.pad(examples, return_tensors="pt")`"""
    return call.method == "pad" and "tokenizer" in last_name(call.receiver).lower()


def _gathers_others(call: Call) -> bool:
    """`torch.stack(images)`, `feature_extractor.pad(sounds)`: more than words."""
    return call.callee in _GATHERING or (call.method == "pad" and not _pads(call))


def _makes_collator(call: Call) -> bool:
    return _TEXT_COLLATOR.fullmatch(call.callee or "") is not None


def _encodes(call: Call) -> bool:
    """`tokenizer(texts)`, `vocab.encode_batch(texts, 128)`; neither `model.encode(x)` nor `name.encode("utf-8")`."""
    if not call.arguments or call.receiver_value.is_(Kind.MODULE, Kind.STRING, Kind.TENSOR):
        return False
    first = call.arguments[0]
    is_constant = call.argument("encoding", 0).value.constant is not None
    return _TOKENIZING.fullmatch(last_name(call.node.func)) is not None and not (first.keyword or is_constant)
