from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.sync.repeated_reads import Again, Several
    from torchlint.semantics.model import Model


class MultipleReadbacks(Rule):
    """One step reads several numbers from the device one by one, or the same number again.

    ## What it does

    Finds statements that read two or more numbers, such as `d_loss.item()` and `g_loss.item()`, or those of which
    `torch.tensor([d_loss, g_loss])` makes a tensor on the host, in every training step or evaluation batch, and reads
    of a number that the same step has read before. Reads behind a log interval, and reads that decide what happens
    next, are left out. A single read is the matter of `item-in-train-step`.

    ## Why is this bad

    Each read is a copy of its own that the host waits for, 10 to 50 microseconds even where the device has nothing left
    to do. Merging two reads gave 10 % (reported in openvdb/fvdb-reality-capture#144).

    ## Example

    ```python
    import torch
    from torch import nn
    from torch.nn import functional as F

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


    def train(model: nn.Module, loader, optimizer):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            out, code = model(x)
            fit = F.mse_loss(out, y)
            size = code.square().mean()
            (fit + 0.1 * size).backward()
            optimizer.step()
            print(fit.item(), size.item())
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn
    from torch.nn import functional as F

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


    def train(model: nn.Module, loader, optimizer):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            out, code = model(x)
            fit = F.mse_loss(out, y)
            size = code.square().mean()
            (fit + 0.1 * size).backward()
            optimizer.step()
            fit_value, size_value = torch.stack([fit.detach(), size.detach()]).tolist()
            print(fit_value, size_value)
    ```

    ## Fix safety

    Safe for a number that is read again and that nothing can write to: it gets a name. Stacking is unsafe: the tensors
    have to be on one device, and where they differ in type they become one. To read the numbers only every so many
    steps saves more. There is no fix for tensors that are not known to be single real numbers, and for reads that the
    statement makes on some ways only.

    ## Measured effect

    `torchlint bench SYNC02` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 32: time × 1.13 (0.86 to 1.50), operations 37 → 35,
    synchronisations 3 → 1, results identical; size 512: time × 1.06 (0.85 to 1.33), operations 37 → 35,
    synchronisations 3 → 1, results identical.

    ## References

    * <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization>
    """

    code = "SYNC02"
    name = "multiple-readbacks"
    triggers = (".item", "float(", "int(", "math", "tensor(", "Tensor(")

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.sync.repeated_reads import numbers

        found = model.once(numbers)
        yield from (_several(model, several) for several in found.several)
        yield from (_again(model, again) for again in found.again)


def _several(model: Model, several: Several) -> Report:
    reads = several.reads
    message = (
        f"This statement reads {len(reads)} numbers from the device one by one {reads[0].step.rhythm}, and waits for "
        "each. Read them every so many steps, or all at once by `torch.stack([...]).tolist()`."
    )
    chain = tuple(Fact(read.node, f"`{model.code(read.node)}` waits for the device") for read in reads[:4])
    return Report(reads[0].node, message, facts=several, chain=chain)


def _again(model: Model, again: Again) -> Report:
    text = model.code(again.read.node)
    message = (
        f"`{text}` copies from the device what this step has read already, on {model.place(again.first.node)}. "
        "Give the number a name and use that."
    )
    chain = (
        Fact(again.first.node, f"`{model.code(again.first.node)}` reads the number"),
        Fact(again.read.node, f"`{text}` reads it once more"),
    )
    return Report(again.read.node, message, facts=again, chain=chain)
