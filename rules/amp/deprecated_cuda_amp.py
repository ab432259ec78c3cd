from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.amp.cuda_amp import Use
    from torchlint.semantics.model import Model


class DeprecatedCudaAmp(Rule):
    """`torch.cuda.amp` and `torch.cpu.amp` are deprecated in favour of `torch.amp`.

    ## What it does

    Finds calls of `autocast` and `GradScaler` of `torch.cuda.amp` and `torch.cpu.amp`, and their decorators
    `custom_fwd` and `custom_bwd`, through every alias and import. Code that is kept for older releases is no finding:
    handlers of exceptions, branches that look at a version, and imports that are tried.

    ## Why is this bad

    Since torch 2.4 every such line prints a FutureWarning, and a later release will drop the names. `torch.amp` has the
    same classes for every device: the device is an argument, so the program can also run elsewhere than on CUDA.

    ## Example

    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 1).cuda()
    x = torch.randn(32, 8, device="cuda")
    with torch.cuda.amp.autocast():
        y = model(x)
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 1).cuda()
    x = torch.randn(32, 8, device="cuda")
    with torch.amp.autocast("cuda"):
        y = model(x)
    ```

    ## Fix safety

    Safe: the old names call the new ones. Arguments by position get their keywords, since the order is another one. The
    old `autocast` always means float16 on CUDA and the new one the type that is in force, so the fix writes
    `dtype=torch.float16` in files that use bfloat16 or set the type. No fix where the file asks for objects of the old
    class with `isinstance` or hands an old name on without a call; unsafe in files that compile with `torch.jit`.

    ## Measured effect

    No evidence recorded yet.

    ## References

    * <https://docs.pytorch.org/docs/stable/amp.html>
    * <https://github.com/pytorch/pytorch/issues/125583>
    """

    code = "AMP01"
    name = "deprecated-cuda-amp"
    triggers = ("cuda.amp", "cpu.amp", "cuda import amp", "cpu import amp")
    needs_torch = "2.4"

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.amp.cuda_amp import uses

        for use in uses(model):
            yield Report(use.node, _message(use), facts=use, chain=_chain(use, model))


def _message(use: Use) -> str:
    device = f'device_type="{use.device}"' if use.name.startswith("custom") else f'"{use.device}"'
    return (
        f"`torch.{use.device}.amp.{use.name}` is deprecated and prints a FutureWarning since torch 2.4. "
        f"Use `torch.amp.{use.name}({device}, ...)`."
    )


def _chain(use: Use, model: Model) -> tuple[Fact, ...]:
    from torchlint.analyses.amp.cuda_amp import root

    binding = root(use, model)
    writes = binding.writes if binding is not None else []
    used = Fact(use.node, f"this is `torch.{use.device}.amp.{use.name}`")
    return (*(Fact(write.target, f"`{write.imported}` is imported here") for write in writes if write.imported), used)
