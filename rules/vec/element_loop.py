from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class ElementLoop(Rule):
    """A Python loop works on a tensor element by element.

    ## What it does

    Reports loops in which every iteration does independent work on one row or element of a tensor that torch does on
    the whole tensor in one call: `out[i] = f(x[i])` with arithmetic and functions of torch, a list that is stacked
    afterwards, a sum over the rows, rows that are picked one by one, by their place or by a test of their values,
    elements that are read to count them or to look up what a table has for them, random numbers that are drawn for one
    row after the other, windows of one length that are cut out and put together, places that each row marks, lists
    that are made of one row after the other, rows that are taken apart for nothing but a tensor to be made of them
    again; and Python's `sorted`, `sum`, `max` and `min` on the elements of a tensor. An
    operation along a dimension (`torch.max(x[i])`, `x[i].softmax(0)`, a loss) that depends on its row alone is reported
    even where the rest of the loop has to stay. A loop that reads what an earlier iteration computed, that leaves to
    chance what it does with a row, whose rows differ in shape, or that calls what may do anything is not reported, and
    neither is one that runs fewer than six times, or a single one that a module runs once, when it is built.

    ## Why is this bad

    Every operation on a row is a kernel launch of its own, and a launch costs several microseconds whatever the size
    of the row. The whole tensor takes one launch.

    ## Example

    ```python
    import torch


    def quantise(signal: torch.Tensor, step: float) -> torch.Tensor:
        digital = torch.zeros_like(signal)
        for i in range(signal.shape[0]):
            digital[i] = torch.round(signal[i] / step) * step
        return digital
    ```

    ## Use instead

    ```python
    import torch


    def quantise(signal: torch.Tensor, step: float) -> torch.Tensor:
        digital = torch.zeros_like(signal)
        digital[:] = torch.round(signal / step) * step
        return digital
    ```

    ## Fix safety

    Safe where every operation rounds the same way on one element and on many (`+ - * /`, comparisons, `where`) and
    fills a tensor that was made for it. Otherwise unsafe: sums and transcendental functions may differ in the last
    bits, all rows are in memory at once, and an empty batch gives an empty tensor where `torch.stack` raises. Where a
    rank or a dtype is not known, or no batched form of a function, the fix leaves the expression as it is and maps it
    with `torch.vmap`, under a condition where that takes no empty batch: functions of torch that only compute, and
    functions of the file that are made of such. Only shown where a function has to be written for that, and where
    dimensions move to and fro, or a line grows too long. An index that is a number of its own becomes `torch.arange`.
    What is filled may be an attribute or an entry of a dict that was made right before. No fix where the independence
    of the iterations is not proven; the finding then says what stood in the way.

    ## Measured effect

    `torchlint bench VEC01` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 8: time × 0.41 (0.38 to 0.44), operations 138 → 22,
    results identical; size 32: time × 0.27 (0.24 to 0.31), operations 522 → 22, results identical; size 128: time ×
    0.092 (0.078 to 0.11), operations 2058 → 22, results identical.

    ## References

    * https://docs.pytorch.org/docs/stable/notes/broadcasting.html
    * https://docs.pytorch.org/docs/stable/generated/torch.vmap.html
    """

    code = "VEC01"
    name = "element-loop"
    triggers = ("for ", "while ", "sorted", "sum", "max", "min")
    whole_function = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.rowwise.work import reports

        yield from reports(model, self.code)
