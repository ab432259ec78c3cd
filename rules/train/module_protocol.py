from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Confidence, Severity
from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class ModuleProtocol(Rule):
    """A module is used past what `nn.Module` does for it: hooks, the training flag, registered parameters.

    ## What it does

    Finds `net.forward(x)` on another module, functional dropout in a module without `training=self.training`, and
    lists of new modules in an attribute of a module. Silent on `self.forward` and `super().forward`, on `forward` in
    the tests of a project, on modules whose class has a `__call__` of its own or comes from elsewhere, under a
    condition that asks for training, and on lists whose modules are registered or optimised in another way.

    ## Why is this bad

    `net(x)` runs the hooks of the module, and what DistributedDataParallel, `torch.compile`, pruning and profilers put
    in its place; `net.forward(x)` skips them in silence. `F.dropout(x, p)` drops values by default, also after
    `model.eval()`. Modules in a plain list are unknown to `parameters()`, `state_dict()`, `to()` and `eval()`: the
    optimizer does not train them, and they stay on the host.

    ## Example

    ```python
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 8)

        def forward(self, x):
            return torch.relu(self.body.forward(x))
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 8)

        def forward(self, x):
            return torch.relu(self.body(x))
    ```

    ## Fix safety

    Unsafe, since it changes what runs: hooks are called, dropout ends with `eval()`, the modules of the list are
    trained, moved and saved, and old checkpoints lack them.

    ## Measured effect

    No evidence recorded yet.

    ## References

    * <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.forward>
    * <https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html>
    * <https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html>
    """

    code = "TRAIN07"
    name = "module-protocol"
    triggers = (".forward(", "dropout", "Module")
    severity = Severity.WARNING

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.train.module_protocol import direct_forwards, hidden_modules, unconditional_dropouts

        for call in direct_forwards(model):
            receiver = model.code(call.receiver) if call.receiver is not None else "x"
            known = call.receiver_value.ref is not None
            message = (
                f"`{receiver}.forward(...)` skips the hooks of the module and what wraps it. Call `{receiver}(...)`."
            )
            confidence = Confidence.CERTAIN if known else Confidence.LIKELY
            yield Report(call.node, message, confidence, ("forward", call), in_tests=False)  # tests may mean `forward`
        for call in unconditional_dropouts(model):
            owner = call.function.params[0]
            message = (
                f"`{model.code(call.node.func)}` drops values by default, after `eval()` too. "
                f"Pass `training={owner}.training`."
            )
            yield Report(call.node, message, facts=("dropout", call))
        for binding, value in hidden_modules(model):
            message = (
                f"The modules in the list `{binding.name}` are not registered: `parameters()`, `state_dict()`, `to()` "
                "and `eval()` do not reach them. Put them in an `nn.ModuleList`."
            )
            yield Report(value, message, facts=("list", value))
