from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Confidence
from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.data.reiteration import Remade
    from torchlint.semantics.model import Model


class LoaderInLoop(Rule):
    """A data loader, or its iterator, is made again in every iteration of a loop.

    ## What it does

    Finds data loaders with `persistent_workers` that each epoch builds of the same dataset and options, and
    `next(iter(loader))` in every training step. A loader whose dataset, sampler or options depend on the loop, as with
    folds or a growing batch size, is left alone, and so are a single batch that is taken now and then to be shown, and
    a loader whose workers would end with the epoch anyway.

    ## Why is this bad

    A new loader starts its workers anew: `persistent_workers` has no effect but that the old ones live on until the
    old loader is gone. `next(iter(loader))` starts workers,
    lets all of them fetch batches in advance, and throws all but one batch away; without shuffling, every iteration
    gets the same first batch.

    ## Example

    ```python
    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images = datasets.CIFAR10("data", transform=transforms.ToTensor())
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(90):
        loader = DataLoader(images, batch_size=64, shuffle=True, num_workers=4, persistent_workers=True)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
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
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(images, batch_size=64, shuffle=True, num_workers=4, persistent_workers=True)
    for epoch in range(90):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
    ```

    ## Fix safety

    Unsafe: from the second epoch on, the order of the samples and the random augmentations differ, since a loader that
    stays draws its seeds once; building a loader may have side effects that the loop is to repeat. A loader that is
    assigned in the body of the loop is moved before it. How a loop goes on when an iterator is exhausted is left to its
    author.

    ## Measured effect

    `torchlint bench DATA04` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 4: time not taken: results differ: torch random
    numbers are drawn differently, operations 26 → 25, results different; size 16: time not taken: results differ: torch
    random numbers are drawn differently, results different.

    ## References

    * <https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading>
    """

    code = "DATA04"
    name = "loader-in-loop"
    triggers = ("Loader",)

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.data.reiteration import remade_loaders

        for found in remade_loaders(model):
            yield Report(found.call.node, _message(found, model), Confidence.LIKELY, found)


def _message(found: Remade, model: Model) -> str:
    where = f"the loop in {model.place(found.loop.node)}"
    if found.loader is not None:
        return f"Every iteration of {where} builds this loader of the same parts, and starts it anew. Build it once."
    return (
        f"Every iteration of {where} starts this loader for a single batch, and what it fetched in advance is thrown "
        "away. Make the iterator once, and again when it is exhausted."
    )
