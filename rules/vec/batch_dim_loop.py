from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class BatchDimLoop(Rule):
    """A loop over the batch gives a network, a loss or a function one sample at a time.

    ## What it does

    Reports loops over the rows of a tensor whose iterations are independent and do more than arithmetic: a layer, a
    loss, a function of the project that only computes, several steps with branches on the values of the row. A layer,
    a network or an operation such as `F.interpolate` that gets a batch of one row (`x[i].unsqueeze(0)`) is reported
    even where the rest of the loop has to stay: for a time that runs on from sample to sample, say, or for what is done
    with the result. So is a network of the project that keeps nothing of what it is given, where the loop only collects
    what it makes of each row; with batch norm, all rows then share the statistics. Recurrent loops, rows with shapes of
    their own, modules that keep a state, random numbers, and calls that cannot be followed are not.

    ## Why is this bad

    A layer takes about as long for one sample as for a whole batch, so the loop costs the number of samples times as
    much. On a GPU most of it stays idle.

    ## Example

    ```python
    import torch
    from torch import nn


    criterion = nn.CrossEntropyLoss()


    def total_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        loss = 0
        for i in range(len(targets)):
            loss += criterion(logits[i], targets[i])
        return loss
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn


    criterion = nn.CrossEntropyLoss()


    def total_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        loss = 0
        loss += torch.vmap(criterion)(logits[: len(targets)], targets).sum(0)
        return loss
    ```

    ## Fix safety

    Unsafe: results may differ in the last bits, and all rows are in memory at once. A loss such as cross entropy is
    mapped over the rows, because it is a mean over each of them, of the targets that count. A layer that works along
    the last dimension, as `nn.Linear`, takes all rows at once, and so does an `nn.Sequential` of such. No fix for other
    layers, networks and methods: which dimension they take for the batch has to be decided; the finding says what
    stood in the way.

    ## Measured effect

    `torchlint bench VEC02` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 8: time × 1.24 (1.19 to 1.29), operations 69 → 38,
    results identical; size 32: time × 0.67 (0.62 to 0.73), operations 237 → 38, results rounding; size 128: time × 0.24
    (0.21 to 0.28), operations 909 → 38, results rounding.

    ## References

    * https://docs.pytorch.org/docs/stable/generated/torch.vmap.html
    * https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    code = "VEC02"
    name = "batch-dim-loop"
    triggers = ("for ",)
    whole_function = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.rowwise.work import reports

        yield from reports(model, self.code)
