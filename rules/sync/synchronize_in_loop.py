from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.loops.housekeeping import Chore
    from torchlint.semantics.model import Model


class SynchronizeInLoop(Rule):
    """The host waits for the whole device in every step, and nothing there needs it to.

    ## What it does

    Finds `torch.cuda.synchronize()`, and its twins of other accelerators, that run in every training step or for every
    evaluation batch, directly or through a helper. Where a clock is read around it, or events, streams, CUDA graphs,
    profilers, barriers, copies to the host that are not waited for, or another library on the device are in sight, the
    call has a purpose and is no finding; nor is one behind an option or at every n-th step. What stands right before
    `loss.item()`, which waits by itself, has none.

    ## Why is this bad

    The host queues kernels ahead of the device, and so hides its own work behind them. `synchronize()` drains the
    queue: the device then idles until the host has queued the next step. Operations on one stream run in order without
    it, and `.item()` or `.cpu()` wait by themselves for the values that they read.

    ## Example

    ```python
    import torch
    from torch import nn


    def train(model, loader, optimizer):
        criterion = nn.CrossEntropyLoss()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            torch.cuda.synchronize()
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn


    def train(model, loader, optimizer):
        criterion = nn.CrossEntropyLoss()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety

    Safe where no clock is read in the file: the same kernels run in the same order on the same stream, and every read
    of a value waits for it. Unsafe where the file measures time, for a part of the work then ends in another interval.

    ## Measured effect

    `torchlint bench SYNC10` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 32: time × 0.87 (0.56 to 1.36), results identical;
    size 512: time × 0.96 (0.86 to 1.06), results identical.

    ## References

    * <https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution>
    * <https://docs.pytorch.org/docs/stable/generated/torch.cuda.synchronize.html>
    """

    code = "SYNC10"
    name = "synchronize-in-loop"
    triggers = ("synchronize(",)

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.loops.housekeeping import needless_waits

        for chore in needless_waits(model):
            call = model.code(chore.call.node)
            site = model.code(chore.site.node)
            through = "" if chore.site is chore.call else f", through `{site}`"
            why = "nothing there needs it: the device idles until the next step is queued"
            if chore.read is not None:
                why = f"`{model.code(chore.read)}` behind it waits by itself"
            waits = f"`{call}` makes the host wait for all queued work {chore.rhythm}{through}"
            message = f"{waits}, and {why}. Take it out."
            chain = (
                *((Fact(chore.loop.node, f"this loop runs {chore.rhythm.partition(' ')[2]}"),) if chore.loop else ()),
                Fact(chore.call.node, _fact(chore)),
            )
            yield Report(chore.site.node, message, facts=chore, chain=chain)


def _fact(chore: Chore) -> str:
    if chore.read is not None:
        return "waits for the device, as what follows does in any case"
    return "waits for the device; no clock, event, stream or copy here depends on it"
