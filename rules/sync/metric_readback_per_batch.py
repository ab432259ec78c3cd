from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class MetricReadbackPerBatch(Rule):
    """A count of correct predictions is read from the device after every batch, only to be added up.

    ## What it does

    Finds integers, such as `(prediction == target).sum().item()`, that are read from the device in every training step
    or evaluation batch and added to a sum; and counts such as `len(torch.where(right)[0])`, for which the device must
    say how many there are. `right.sum()` counts them without a wait.

    ## Why is this bad

    Every readback makes the host wait until the device has computed everything queued so far, and then the device waits
    for the host. The count can be summed on the device, where integers are added exactly, and read once at the end.

    ## Example

    ```python
    import torch


    @torch.no_grad()
    def accuracy(model, loader, device):
        correct, seen = 0, 0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            correct += (model(x).argmax(1) == y).sum().item()
            seen += y.size(0)
        return correct / seen
    ```

    ## Use instead

    ```python
    import torch


    @torch.no_grad()
    def accuracy(model, loader, device):
        correct, seen = 0, 0
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            correct += (model(x).argmax(1) == y).sum()
            seen += y.size(0)
        return int(correct) / seen
    ```

    ## Fix safety

    Safe for a local sum that is read only behind the loop or at log intervals: the integers are added exactly, and
    every read of the sum is an `int` again, also after a loop that never ran. A sum that starts from `0.0` is kept in
    double precision, which is unsafe where the file does not show that the device is a CUDA one. The fix is unsafe too
    where the loop reads a clock, whose intervals the readback used to close, and where shares are added up,
    `hits.item() / len(y)`, which a GPU may round in another way. A count that is shown batch by batch gets no fix: show
    it every so many batches. Nor has a count beside another read that cannot stay on the device: the step would wait
    all the same.

    ## Measured effect

    `torchlint bench SYNC06` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 32: time × 0.99 (0.89 to 1.10), synchronisations 1 →
    0, results identical; size 512: time × 0.99 (0.91 to 1.09), synchronisations 1 → 0, results identical.

    ## References

    * <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization>
    """

    code = "SYNC06"
    name = "metric-readback-per-batch"
    triggers = (".item", "int(", ".tolist", ".cpu", ".numpy", "where(", "nonzero(")

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.sync.repeated_reads import numbers

        for read in model.once(numbers).single:
            if read.is_count:
                message = (
                    f"`{model.code(read.node)}` makes the host wait for the device {read.rhythm}. "
                    "Add up the count on the device, where it is exact, and read the sum once at the end."
                )
                yield Report(read.node, message, facts=read)
