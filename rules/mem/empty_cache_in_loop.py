from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class EmptyCacheInLoop(Rule):
    """The caching allocator is emptied in every step, so that each step has to fetch its memory anew.

    ## What it does

    Finds `torch.cuda.empty_cache()`, and its twins of other accelerators, that run in every training step, for every
    evaluation batch, after each pass of a sampling loop or for each part of the data that a loop computes with on the
    device: in the loop, in a helper that the loop calls, in `forward` or in a hook that a framework calls once per
    batch. Calls once per epoch, between two models, after an out-of-memory error, every so many steps, before a
    measurement of memory, behind an option, or beside a model that goes back to the host are no findings.

    ## Why is this bad

    The allocator keeps freed blocks because getting memory from the driver is slow: `cudaFree` waits for the device,
    and the `cudaMalloc` of the next step waits again. Emptying the cache frees no tensor that is still in use, and
    gives nothing to the same program that it could not take from the cache. Reported: about 10 % slower steps at one
    call per step (documentation of `torch_empty_cache_steps` in transformers).

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
            torch.cuda.empty_cache()
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

    Unsafe: the numbers stay the same, but the process holds more memory between steps, and where steps differ in size
    the call may have hidden fragmentation. `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` is the remedy for that.

    ## Measured effect

    `torchlint bench MEM06` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 32: time × 0.85 (0.62 to 1.17), results identical;
    size 512: time × 1.01 (0.88 to 1.17), results identical.

    ## References

    * <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>
    * <https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html>
    * <https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments>
    """

    code = "MEM06"
    name = "empty-cache-in-loop"
    triggers = ("empty_cache",)
    accelerator = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.loops.housekeeping import emptied_caches

        for chore in emptied_caches(model):
            call = model.code(chore.call.node)
            site = model.code(chore.site.node)
            through = "" if chore.site is chore.call else f", through `{site}`"
            message = (
                f"`{call}` runs {chore.rhythm}{through}: it waits for the device and hands back memory that the next "
                "step must fetch again. Take it out, or call it once after the loop."
            )
            chain = (
                *((Fact(chore.loop.node, f"this loop runs {chore.rhythm.partition(' ')[2]}"),) if chore.loop else ()),
                Fact(chore.call.node, "frees the cached blocks, after all queued work is done"),
            )
            yield Report(chore.site.node, message, facts=chore, chain=chain)
