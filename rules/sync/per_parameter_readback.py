from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class PerParameterReadback(Rule):
    """A number is read from the device for each parameter of the model, in every step.

    ## What it does

    Finds loops over parameters that every training step runs and that read a number of each: a norm of its gradient
    that is summed, compared or logged; or that copy each one, or its gradient, to the host to log it. Functions that no
    training step is seen to call are left out.

    ## Why is this bad

    A model has hundreds of parameters, and for each one the host waits for the device. The norms can be summed on the
    device, and read once.

    ## Example

    ```python
    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


    def train(model: nn.Module, loader, optimizer):
        norms = []
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x.to(device)), y.to(device)).backward()
            total = 0.0
            for p in model.parameters():
                total += p.grad.norm(2).item() ** 2
            norms.append(total**0.5)
            optimizer.step()
        return norms
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


    def train(model: nn.Module, loader, optimizer):
        norms = []
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x.to(device)), y.to(device)).backward()
            total = 0.0
            for p in model.parameters():
                total += p.grad.norm(2).double() ** 2
            norms.append(float(total)**0.5)
            optimizer.step()
        return norms
    ```

    ## Fix safety

    Unsafe: the sum is kept on the device in double precision, which some devices lack (MPS), and parameters on several
    devices cannot be summed that way. What is stored or logged for each parameter gets no fix.
    `torch.nn.utils.get_total_norm` and `clip_grad_norm_` do it all in one call.

    ## Measured effect

    `torchlint bench SYNC09` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 4: time × 1.15 (1.03 to 1.29), operations 51 → 68,
    synchronisations 8 → 1, results identical; size 16: time × 1.15 (0.87 to 1.54), operations 171 → 236,
    synchronisations 32 → 1, results identical; size 64: time × 1.19 (0.91 to 1.58), operations 651 → 908,
    synchronisations 128 → 1, results identical.

    ## References

    * <https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.get_total_norm.html>
    * <https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html>
    """

    code = "SYNC09"
    name = "per-parameter-readback"
    triggers = (".item", "float(", "int(", "add_scalar", "add_histogram", "print(", "log")

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.sync.parameter_reads import parameter_reads

        for read in parameter_reads(model):
            shown = model.code(read.tensor if read.how == "log" else read.node)
            message = (
                f"`{shown}` makes the host wait for the device once per parameter, {read.step.rhythm}. "
                "Compute the numbers on the device and read them all at once, or only every so many steps."
            )
            yield Report(read.node, message, facts=read)
