"""Whether a forward pass runs in evaluation mode, by the switches above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.lifetime import root
from torchlint.analyses.modules.module_mode import is_evaluated_at
from torchlint.semantics.tree import is_name, walk
from torchlint.semantics.vocabulary import WRAPPERS

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call
    from torchlint.semantics.model import Model


class Modes:
    """One for a file: what is found out about a forward pass is kept."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._evaluated: dict[Call, bool] = {}

    def evaluates(self, forward: Call) -> bool:
        """Whether the model was put into evaluation mode before a forward pass, and not taken out of it since."""
        if forward not in self._evaluated:
            self._evaluated[forward] = self._is_switched_above(forward) or is_evaluated_at(self._model, forward)
        return self._evaluated[forward]

    def _is_switched_above(self, forward: Call) -> bool:
        """Whether the last switch of the mode above a forward pass in its function is `eval()`."""
        modules = self._modules_of(forward)
        state = False
        for call in self._model.function(forward.node).calls:
            if call is forward:
                break
            if call.method not in ("eval", "train") or call.receiver is None or len(call.node.args) > 1:
                continue
            switched = root(self._model, call.receiver)
            if (
                switched is None
                or not modules
                or switched in modules
                or is_name(call.receiver, "self")
                or any(self._wraps(module, switched) for module in modules)
            ):
                off = call.method == "train" and call.node.args and is_name(call.node.args[0].value, "False")
                state = call.method == "eval" or bool(off)
        return state

    def _modules_of(self, forward: Call) -> list[Binding]:
        """The variable whose module a forward pass runs; of a helper that runs one, all variables that it is given."""
        called = root(self._model, forward.node.func)
        if called is None:
            return []
        if (forward.target or forward.foreign) is None or not _is_function(called):
            return [called]
        given = (root(self._model, arg.value) for arg in forward.node.args)
        return [called, *(binding for binding in given if binding is not None)]

    def _wraps(self, wrapper: Binding, inner: Binding) -> bool:
        """`parallel = nn.DataParallel(net).cuda()`, so that `net.eval()` counts for `parallel(x)`."""
        made = [write.value for write in wrapper.writes if write.value is not None]
        calls = (node for value in made for node in walk(value) if isinstance(node, cst.Call))
        made += [call.args[0].value for call in calls if call.args and self._is_wrapper(call)]
        return any(root(self._model, value) is inner for value in made)

    def _is_wrapper(self, node: cst.Call) -> bool:
        return self._model.call(node).callee in WRAPPERS


def _is_function(binding: Binding) -> bool:
    return any(write.kind in ("def", "import") for write in binding.writes)
