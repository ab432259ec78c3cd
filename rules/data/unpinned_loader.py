from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Confidence
from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.loading.loaders import Loader
    from torchlint.semantics.model import Model


class UnpinnedLoader(Rule):
    """A data loader leaves its batches in pageable memory although they go to a GPU.

    ## What it does

    Finds data loaders without `pin_memory`, or with `pin_memory=False`, whose batches are moved to a GPU: in the same
    file, by a trainer that is given the loader, by accelerate or Fabric, which prepare it, or, where a function or a
    method returns the loader, an object yields what it draws, or the loader has a name at the top level, in files that
    get it from there; helpers of further files may do it. Batches of arrays, and of objects of a class without
    `pin_memory()`, are left out: pinning leaves them as they are. So are, where no copy is in sight, numbers of words
    that a tokenizer has padded: some kilobytes. Options in a dict that the file itself builds are read; where they come
    from elsewhere, nothing is reported.

    ## Why is this bad

    The GPU can only read page-locked memory. A batch in ordinary memory is first copied into a page-locked buffer of
    the driver, by the thread that should be queueing kernels, and `non_blocking=True` has no effect on it. With
    `pin_memory` a thread of the loader does that copy in advance. Reported gains are between nothing and a tenth of the
    step time (metatensor/metatrain#1273); where memory is short, page-locked batches can also cost time
    (allenai/allennlp#4670).

    ## Example

    ```python
    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images = datasets.CIFAR10("data", transform=transforms.ToTensor())
    loader = DataLoader(images, batch_size=64, shuffle=True, num_workers=4)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images = datasets.CIFAR10("data", transform=transforms.ToTensor())
    loader = DataLoader(images, batch_size=64, shuffle=True, num_workers=4,
                        pin_memory=torch.cuda.is_available())
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    ```

    ## Fix safety

    Safe: the batches hold the same numbers, no random number is drawn, and nothing changes on a machine without CUDA.
    Where the option is in a dict of the file, the dict is extended, provided that it is used for loaders only.

    Unsafe where it is only likely that the batches go to a GPU, and where the file handles sparse tensors, not all of
    which can be pinned. Only shown where the loader has no workers: there the process that drives the GPU would copy
    the batches into pinned memory itself, which gains little; once workers are asked for (DATA01), it is a fix.
    An explicit `pin_memory=False` stays: somebody may have been short of memory. A program that calls `.cuda()` and
    never asks whether there is a GPU is given `True`. Where an option of the program names the device, and that is the
    CPU by default, the fix asks that device and not `torch.cuda.is_available()`; there is none where the loader does
    not know it. Where the file sets `CUDA_VISIBLE_DEVICES` only behind the loader, there is no fix: some releases of
    torch ignore the variable once they were asked whether there is a GPU.

    ## Measured effect

    `torchlint bench DATA02` on CPU (AMD EPYC), torch 2.13.0+cpu, 2026-11-23; per training step, time as a part of that
    before the fix, with its 99 % interval. Size 32: time × 0.95 (0.78 to 1.15), results identical; size 512: time ×
    0.95 (0.83 to 1.09), results identical.

    ## References

    * <https://docs.pytorch.org/docs/stable/data.html#memory-pinning>
    * <https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html>
    """

    code = "DATA02"
    name = "unpinned-loader"
    triggers = ("Loader", "Sampler")
    accelerator = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.loading.feeding import holds_arrays, reach
        from torchlint.analyses.loading.loaders import loaders
        from torchlint.analyses.loading.pinnable import are_left_alone
        from torchlint.analyses.loading.text_encoding import pads_tokens

        for loader in loaders(model):
            confidence = reach(loader) if loader.is_pinned is False else None
            if confidence is Confidence.LIKELY and not loader.moves and pads_tokens(loader.option("collate_fn"), model):
                continue
            if confidence is not None and not holds_arrays(loader) and not are_left_alone(loader):
                yield Report(loader.site.node, _message(loader), confidence, loader, _chain(loader))


def _chain(loader: Loader) -> tuple[Fact, ...]:
    from torchlint.analyses.loading.feeding import route

    built = Fact(loader.site.node, "Its batches are not asked to be in page-locked memory")
    return (built, *(Fact(node, text) for node, text in route(loader)))


def _message(loader: Loader) -> str:
    name = f"`{loader.name}`" if loader.name is not None else "this loader"
    where = f"{loader.model.place(loader.moves[0].call.node)} copies them" if loader.moves else "they are copied"
    return (
        f"The batches of {name} are in pageable memory and {where} to the GPU: each copy waits for a staging copy. "
        "Let the loader pin them: pass `pin_memory`."
    )
