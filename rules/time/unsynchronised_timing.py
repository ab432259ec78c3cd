from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.time.stopwatch import Interval
    from torchlint.semantics.model import Model


class UnsynchronisedTiming(Rule):
    """A clock is read while the device is still at work, so the time that is reported leaves that work out.

    ## What it does

    Finds differences of two clock readings that are printed, returned or kept, where the work that was queued on the
    device in between is not waited for before the second reading; be it two methods of a timer of the project that read
    the clock, or what a `with` statement enters or a decorator puts around a function. Anything that waits counts:
    `synchronize()`, `.item()`, `.cpu()`, printing a tensor, indexing with a mask, code out of sight that is given a
    tensor. A loop that waits in each iteration, or that takes its batches from a loader, is never far ahead of the
    device; times of such loops, of whole epochs and of data loading are no findings. Where the program does wait right
    before the second reading, a pass through a model that was queued before the first one, as in a warm-up, is a
    finding, too.

    ## Why is this bad

    Operations on an accelerator return as soon as they are queued. The clock then measures how fast the host can queue
    them, not how long they take, and the rest is charged to whatever waits next. Reported: a factor of 45 to 64 between
    the two for single operations.

    ## Example

    ```python
    import time

    import torch
    from torchvision.models import resnet18

    model = resnet18().cuda().eval()
    images = torch.randn(64, 3, 224, 224, device="cuda")
    with torch.inference_mode():
        start = time.perf_counter()
        logits = model(images)
        seconds = time.perf_counter() - start
    print(f"{seconds:.3f} s, {logits.shape}")
    ```

    ## Use instead

    ```python
    import time

    import torch
    from torchvision.models import resnet18

    model = resnet18().cuda().eval()
    images = torch.randn(64, 3, 224, 224, device="cuda")
    with torch.inference_mode():
        torch.cuda.synchronize()
        start = time.perf_counter()
        logits = model(images)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    print(f"{seconds:.3f} s, {logits.shape}")
    ```

    ## Fix safety

    Unsafe: the numbers that the program computes stay the same, but it waits for the device at two more places, and the
    times that it reports change. It waits under the condition that the program has for its GPU, such as `use_cuda`;
    where it has none, and does not need one, under `torch.cuda.is_available()`. There is no fix inside a training loop,
    where waiting in every step would cost more than the time is worth, none where a reading stands in one statement
    with the work that it times, and none in a timer that a `with` statement enters or a decorator makes. For operations
    that take microseconds, `torch.utils.benchmark.Timer` or a pair of `torch.cuda.Event(enable_timing=True)` is the
    better remedy.

    ## Measured effect

    No evidence recorded yet.

    ## References

    * <https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution>
    * <https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html>
    """

    code = "TIME01"
    name = "unsynchronised-timing"
    triggers = ("time",)
    accelerator = True
    whole_function = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.time.stopwatch import unsynchronised_intervals

        for interval in unsynchronised_intervals(model):
            if interval.is_block:
                yield _around(interval, model)
            else:
                yield _early(interval, model) if interval.is_early else _late(interval, model)


def _around(interval: Interval, model: Model) -> Report:
    timer, work = model.code(interval.start), model.code(interval.work.node)
    message = (
        f"`{timer}` reads the clock again while the device may still compute `{work}`: it tells how long the host took "
        "to queue the work. Let it call `torch.cuda.synchronize()` before both readings."
    )
    chain = (
        Fact(interval.start, "reads the clock before and behind what it times"),
        Fact(interval.work.node, "queues work on the device; nothing waits for it"),
    )
    return Report(interval.end, message, interval.confidence, interval, chain)


def _late(interval: Interval, model: Model) -> Report:
    work, since = model.code(interval.work.node), model.place(interval.start)
    message = (
        f"The time since {since} is read while the device may still compute `{work}`: it tells how long the "
        "host took to queue the work. Call `torch.cuda.synchronize()` before both readings."
    )
    chain = (
        Fact(interval.start, "the clock is read"),
        Fact(interval.work.node, "queues work on the device; nothing waits for it"),
        Fact(interval.end, "the clock is read again"),
    )
    return Report(interval.end, message, interval.confidence, interval, chain)


def _early(interval: Interval, model: Model) -> Report:
    work, until = model.code(interval.work.node), model.place(interval.end)
    message = (
        f"The time that ends in {until} begins while the device may still compute `{work}`: the rest of that work "
        "counts as measured. Call `torch.cuda.synchronize()` before this reading, too."
    )
    chain = (
        Fact(interval.work.node, "queues work on the device; nothing waits for it"),
        Fact(interval.start, "the clock is read"),
        Fact(interval.end, "the clock is read again, when all of the work is done"),
    )
    return Report(interval.start, message, interval.confidence, interval, chain)
