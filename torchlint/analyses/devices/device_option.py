"""Programs that run on the CPU unless an option says otherwise, and what tells there that the device is a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.cuda_flags import assigned, means_the_same
from torchlint.semantics.dataflow import text
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

# `parser.add_argument("--device", type=str, default="cpu")`, and the like of click, absl and typed settings
_CPU_BY_DEFAULT = re.compile(
    r"""["'](?:--?)?(?:device|gpu_device|torch_device)["']\s*,[^()]*?(?:default\s*=\s*|,\s*)["']cpu["']"""
    r"""|^\s*device\s*:\s*(?:str|\w*\.?device)\s*=\s*["']cpu["']""",
    re.MULTILINE,
)
_DEVICE_NAME = re.compile(r"(?i)(^|_)device$")


def runs_on_host_by_default(model: Model) -> bool:
    """Whether the program has an option that names the device, and that is the CPU where nobody says otherwise."""
    return model.once(_has_option)


def _has_option(model: Model) -> bool:
    texts = (model.source.text, *(source.text for source in model.companions()))
    return any(_CPU_BY_DEFAULT.search(said) for said in texts)


def device_at(model: Model, at: cst.CSTNode, moves: Iterable[Call]) -> cst.BaseExpression | None:
    """The device that batches are moved to, by a name that means the same at a place."""
    return next((node for node in _devices(model, moves) if means_the_same(node, at, model)), None)


def _devices(model: Model, moves: Iterable[Call]) -> Iterator[cst.BaseExpression]:
    """What the moves name as their device; then what else is called one, first what is known to be."""
    yield from (node for move in moves if (node := move.argument("device", 0).node) is not None)
    named = [node for node in model.nodes_of(cst.Name, cst.Attribute) if _DEVICE_NAME.search(_name(node))]
    nodes = [node for node in named if isinstance(node, (cst.Name, cst.Attribute))]
    yield from sorted(
        (node for node in nodes if model.qualified(node) != "torch.device"), key=lambda node: not is_device(node, model)
    )


def is_device(node: cst.BaseExpression, model: Model) -> bool:
    """Whether a variable, or an attribute, holds what `torch.device` returns, and no string."""
    if isinstance(node, cst.Attribute):
        set_to: list[cst.BaseExpression | None] = [each.value for each in model.once(assigned).get(text(node), ())]
    else:
        binding = model.binding(node)
        set_to = [write.value for write in binding.writes] if binding is not None else []
    return bool(set_to) and all(isinstance(made, cst.Call) and _makes_device(made, model) for made in set_to)


def _makes_device(call: cst.Call, model: Model) -> bool:
    return model.call(call).callee == "torch.device"


def follows_option(move: Call, model: Model) -> bool:
    """Whether the device of a move is handed in, or made of what is, and not chosen in sight by what is there."""
    node = move.argument("device", 0).node
    binding = model.binding(node) if isinstance(node, cst.Name) else None
    if binding is None:
        return isinstance(node, cst.Attribute)
    sources = [part for write in binding.writes if write.value is not None for part in walk(write.value)]
    is_named = any(_DEVICE_NAME.search(_name(part)) and model.qualified(part) != "torch.device" for part in sources)
    return binding.is_parameter or is_named


def _name(node: cst.CSTNode) -> str:
    match node:
        case cst.Name(value=name) | cst.Attribute(value=cst.Name(), attr=cst.Name(value=name)):
            return name
    return ""
