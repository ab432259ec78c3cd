from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.loops.epochs import StaleSampler
    from torchlint.semantics.model import Model


class MissingSetEpoch(Rule):
    """A `DistributedSampler` shuffles a training set in the same order in every epoch.

    ## What it does

    Finds a `DistributedSampler` that shuffles, made here or by a function of another file, whose loader is trained on
    in several epochs of this file, here or by a function or class of another file, or of a file that gets the loader
    from a function of this one, and that nobody tells the epoch: neither under its own name, nor through the loader,
    nor in code that gets hold of either. Each round of a generator such as `while True: yield from loader` is an epoch.
    Where a function makes the loader, its call may say that it shuffles. Samplers with `shuffle=False`, those of
    validation loaders, and frameworks that set the epoch are left alone.

    ## Why is this bad

    The sampler seeds its permutation with `seed + epoch`, so that all processes agree on it without talking to each
    other, and only `set_epoch` changes the epoch. Without it every epoch repeats the batches of the first one, and
    every process sees the same share of the data in the same order. Nothing warns; the model ends up worse. It has been
    reported, among others, in huggingface/transformers#4398 and pytorch/pytorch#31771.

    ## Example

    ```python
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    ```

    ## Fix safety

    Unsafe: the order of the data changes from the second epoch on, which is the purpose. Where the sampler may be
    another one or None, the call is made only if it is there; where the loop has no number for its epochs, the sampler
    counts them. Where the epochs are in another file, that file is changed, if it is among those to check. No fix where
    no name leads to the sampler in the loop over the epochs, and none where a function of another file makes it, which
    may return one that counts no epochs.

    ## Measured effect

    No evidence recorded yet.

    ## References

    * <https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler>
    """

    code = "DIST02"
    name = "missing-set-epoch"
    triggers = ("DistributedSampler", "sampler=")
    whole_function = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.loops.epochs import stale_samplers

        for stale in stale_samplers(model):
            yield Report(stale.sampler.node, _message(stale, model), facts=stale)


def _message(stale: StaleSampler, model: Model) -> str:
    place = (stale.home or model).place(stale.epochs.node)
    if stale.home is not None:
        place += f" of {stale.home.source.path.name}"
    return (
        "Nobody calls `set_epoch` on this sampler, so it always shuffles with the seed of epoch 0: all epochs of the "
        f"loop in {place} see the same batches in the same order. "
        "Call `set_epoch(epoch)` at the beginning of each epoch."
    )
