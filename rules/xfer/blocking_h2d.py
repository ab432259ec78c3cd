from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.xfer.copies import Copy
    from torchlint.semantics.model import Model


class BlockingH2d(Rule):
    """A batch is copied to the GPU in a way that makes the host wait for the copy.

    ## What it does

    Finds `.to(device)` and `.cuda()` without `non_blocking=True` on batches of a data loader that pins its memory, or
    that DATA02 asks to: one of the same file, or one that another file hands to the function; and on what
    `pin_memory()` was just called on.

    ## Why is this bad

    The copy out of page-locked memory is done by the GPU itself, in the order of the stream. A blocking call makes the
    host wait until it has arrived, although every kernel that reads the copy is queued behind it anyway. Meanwhile
    nothing else is queued. With `non_blocking=True` the host goes on at once.

    ## Example

    ```python
    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images = datasets.CIFAR10("data", transform=transforms.ToTensor())
    loader = DataLoader(images, batch_size=64, num_workers=4, pin_memory=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).to(device)
    with torch.no_grad():
        for x, _ in loader:
            print(model(x.to(device)).argmax(1))
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images = datasets.CIFAR10("data", transform=transforms.ToTensor())
    loader = DataLoader(images, batch_size=64, num_workers=4, pin_memory=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).to(device)
    with torch.no_grad():
        for x, _ in loader:
            print(model(x.to(device, non_blocking=True)).argmax(1))
    ```

    ## Fix safety

    Safe: kernels that read the copy wait for it in the stream. That holds as long as the host does not write to the
    batch before the copy is done; where it writes to the batch later in the same iteration, there is no fix, and none
    where all that happens to the copy is that the host reads it back. None either where another copy beside it
    goes on waiting. A loader that does not pin its memory yet is made to by the same fix, which is as safe as that of
    DATA02 then, and only shown where the loader has no workers. It is only shown where the device may be Apple's, where
    such copies are not ordered. It is unsafe where a collate function may make objects of its own class, whose `to`
    need not take the argument, and only shown where the batch is used as an object or a dict, or the loader is made in
    another file. Batches that are known to hold such objects are left alone.

    ## Measured effect

    `torchlint bench XFER02` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 32: time × 0.95 (0.76 to 1.18), results identical;
    size 512: time × 0.99 (0.93 to 1.06), results identical.

    ## References

    * <https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html>
    * <https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers>
    """

    code = "XFER02"
    name = "blocking-h2d"
    needs_torch = "0.4"
    triggers = (".to(", ".cuda(")

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.xfer.copies import blocking_copies

        for copy in blocking_copies(model):
            yield Report(copy.call.node, _message(copy, model), copy.confidence, copy)


def _message(copy: Copy, model: Model) -> str:
    source = model.code(copy.source)
    if copy.is_pinned:
        return f"The host waits until `{source}` has arrived on the GPU. The batch is pinned: pass `non_blocking=True`."
    return (
        f"The host waits until `{source}` has arrived on the GPU. "
        "Pin the loader's memory (DATA02) and pass `non_blocking=True`."
    )
