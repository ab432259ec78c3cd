"""Layers that a forward pass runs only if an argument says so: `forward(self, x, training=False)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.analyses.modules.constructor_options import Given, is_ruled_out, parameters_of
from torchlint.analyses.modules.mode_layers import depends_on_mode, mode_layer
from torchlint.analyses.modules.parameter_free import class_of_module

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model

    _Key = tuple[Function, frozenset[tuple[str, object, object]]]


def comes_to_none(model: Model, call: Call) -> bool:
    """Whether a pass leaves out all layers of the network for which its mode makes a difference, as those under
    `if training:` where that is False."""
    return _comes_to_none(model, call, {}, set())


def _comes_to_none(model: Model, call: Call, given: Given, entered: set[_Key]) -> bool:
    """given: what the parameters hold of the function in which the pass stands."""
    found = class_of_module(model, call)
    forward = found[1].method("forward") if found is not None else None
    if found is None or forward is None or forward.module != found[0].name:
        return False
    home = found[0]
    told = parameters_of(model, call, home, forward, given)
    has_layers = any(_is_layer(home, part) for part in forward.calls)
    return has_layers and not _comes_to_layer(home, forward, told, entered)


def _comes_to_layer(model: Model, function: Function, given: Given, entered: set[_Key]) -> bool:
    """Whether a function runs such a layer, here or in what it calls, or hands one on."""
    key = function, frozenset((name, value.kind, value.constant) for name, value in given.items())
    if key in entered:
        return False
    entered.add(key)
    for call in function.calls:
        if is_ruled_out(model, call, given):
            continue
        if _is_layer(model, call):
            if not _comes_to_none(model, call, given, entered):
                return True
            continue
        if any(mode_layer(model, model.value(arg.value)) is not None for arg in call.arguments):
            return True
        home, target = (model, call.target) if call.target is not None else model.elsewhere(call) or (model, None)
        if target is not None and _comes_to_layer(
            home, target, parameters_of(model, call, home, target, given), entered
        ):
            return True
    return False


def _is_layer(model: Model, call: Call) -> bool:
    return mode_layer(model, model.value(call.node.func)) is not None or depends_on_mode(model, call, {})
