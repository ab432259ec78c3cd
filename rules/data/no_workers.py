from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Confidence
from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.loading.loaders import Loader
    from torchlint.semantics.model import Model


class NoWorkers(Rule):
    """A data loader reads and decodes its samples in the training process, while the GPU waits.

    ## What it does

    Finds data loaders without `num_workers`, or with `num_workers=0`, in a file that sends their batches to a GPU, one
    after the other. Loaders of tensors that are in memory already, of graphs and of streams are left out, those of
    datasets of which neither the class nor a transform is in sight, or which hold a file open or keep the samples that
    they have read, tests, loaders of one batch, and loaders with `num_workers=0` that are made anew for each input.

    ## Why is this bad

    Without workers the samples of a batch are read, decoded and augmented one by one by the thread that also queues the
    kernels. The time that takes is added to every step. With workers, the next batches are prepared meanwhile. How much
    that gains depends on the dataset: much for images, little for text that is tokenised already (reported in
    pytorch/torchtune#1705).

    ## Example

    ```python
    import os

    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms


    def main():
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        images = datasets.ImageFolder("photos", transform=transforms.ToTensor())
        loader = DataLoader(images, batch_size=64, pin_memory=True)
        model = nn.Sequential(nn.Flatten(), nn.LazyLinear(10)).to(device)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            loss.backward()


    if __name__ == "__main__":
        main()
    ```

    ## Use instead

    ```python
    import os

    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms


    def main():
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        images = datasets.ImageFolder("photos", transform=transforms.ToTensor())
        loader = DataLoader(images, batch_size=64, pin_memory=True,
                            num_workers=min(8, os.cpu_count() or 1))
        model = nn.Sequential(nn.Flatten(), nn.LazyLinear(10)).to(device)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            loss.backward()


    if __name__ == "__main__":
        main()
    ```

    ## Fix safety

    Unsafe. The order of the samples stays the same, but random augmentations inside the dataset are drawn from the
    generators of the workers. Each worker holds a copy of the dataset. Where processes are spawned (Windows, macOS,
    Linux from Python 3.14), the dataset must be importable and the script needs an `if __name__ == "__main__":`; in a
    script without one the fix is only shown. Where the command line has an option for the number of workers, that is
    used; an explicit `num_workers=0` stays, and keeps the other loaders of the file as they are.

    ## Measured effect

    `torchlint bench DATA01` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 8: time × 0.98 (0.54 to 1.80), results identical;
    size 32: time × 0.78 (0.44 to 1.38), results identical.

    ## References

    * <https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading>
    * <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
    """

    code = "DATA01"
    name = "no-workers"
    triggers = ("Loader",)

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.data.own_process import reads_on_in_file, returns_what_it_kept
        from torchlint.analyses.loading.datasets import Memory
        from torchlint.analyses.loading.feeding import reach
        from torchlint.analyses.loading.loaders import loaders

        for loader in loaders(model):
            if loader.workers != 0 or loader.is_explained or loader.is_set_elsewhere or loader.is_one_batch:
                continue
            if loader.is_made_per_input or reads_on_in_file(loader) or returns_what_it_kept(loader):
                continue
            certainty, where = reach(loader), loader.memory()
            if where is Memory.READ and certainty is not None:
                yield Report(loader.site.node, _message(loader), certainty, loader, _chain(loader))
            elif where in (Memory.COMPUTED, Memory.ENCODED) and certainty is Confidence.CERTAIN:
                yield Report(loader.site.node, _message(loader), Confidence.LIKELY, loader, _chain(loader))


def _chain(loader: Loader) -> tuple[Fact, ...]:
    from torchlint.analyses.loading.feeding import route

    built = Fact(loader.site.node, "No workers are asked for: the process that draws a batch makes its samples")
    return (built, *(Fact(node, text) for node, text in route(loader)))


def _message(loader: Loader) -> str:
    from torchlint.analyses.loading.datasets import Memory

    done = "encoded" if loader.memory() is Memory.ENCODED else "read and decoded"
    name = f"`{loader.name}`" if loader.name is not None else "this loader"
    return (
        f"The samples of {name} are {done} by the process that drives the GPU, which waits for every batch. "
        "Pass `num_workers`, for example `min(8, os.cpu_count())` divided by the processes on this machine."
    )
