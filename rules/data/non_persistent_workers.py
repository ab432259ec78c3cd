from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Confidence
from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.data.reiteration import Respawning
    from torchlint.semantics.model import Model


class NonPersistentWorkers(Rule):
    """A data loader starts its worker processes again in every epoch.

    ## What it does

    Finds data loaders with workers and without `persistent_workers=True` that several epochs train on, in this file or
    in a function of another file. Loaders that only evaluate, or that each epoch makes anew, iterable datasets, and
    datasets that are changed between epochs, which workers that live on would not see, are left alone.

    ## Why is this bad

    Without `persistent_workers` the workers end with the epoch. The next one starts new processes, which import the
    program and get a copy of the dataset, and the GPU waits for the first batch. Where processes are spawned (Windows,
    macOS, Linux from Python 3.14) that takes seconds for each worker: 7.6 became 9.5 iterations per second on Windows
    in one project (delta-interpolator#3), where nothing changed with forked processes.

    ## Example

    ```python
    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images = datasets.CIFAR10("data", transform=transforms.ToTensor())
    loader = DataLoader(images, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(90):
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
    loader = DataLoader(images, batch_size=64, shuffle=True, num_workers=4, pin_memory=True,
                        persistent_workers=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(90):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
    ```

    ## Fix safety

    Unsafe: from the second epoch on, the order of the samples and the random augmentations differ, since nothing is
    seeded anew. The memory of the workers stays taken between epochs. Where the number of workers is not a number in
    sight, the option becomes `number > 0`, since without workers it raises. Other loaders of the function from which
    the same epochs draw, as for validation, are given the option too.

    ## Measured effect

    `torchlint bench DATA03` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 4: time × 0.095 (0.052 to 0.17), operations 25 → 24,
    results identical; size 16: time × 0.29 (0.19 to 0.43), results identical.

    ## References

    * <https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader>
    """

    code = "DATA03"
    name = "non-persistent-workers"
    triggers = ("num_workers",)
    needs_torch = "1.8"  # in 1.7 the thread that pins ends with the first epoch

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.data.reiteration import respawning_loaders

        for found in respawning_loaders(model):
            yield Report(found.loader.site.node, _message(found, model), Confidence.LIKELY, found, _chain(found))


def _chain(found: Respawning) -> tuple[Fact, ...]:
    return (
        Fact(found.loader.site.node, "The loader is made once, and its workers are not asked to stay"),
        Fact(found.epochs.node, "Each iteration is an epoch"),
        Fact(found.drawn_from, "An epoch trains on all its batches, which starts the workers and ends them"),
    )


def _message(found: Respawning, model: Model) -> str:
    from torchlint.analyses.loading.worker_count import is_some

    name = f"`{found.loader.name}`" if found.loader.name is not None else "this loader"
    option = "persistent_workers=True"
    if found.loader.workers is None and not is_some(found.loader.option("num_workers").node, model):
        option += "` where there are any: without workers, it raises. That is `persistent_workers=n > 0"
    return (
        f"The workers of {name} end with every iteration of the loop in {model.place(found.epochs.node)} and are "
        f"started again, with a copy of the dataset each. Pass `{option}`."
    )
