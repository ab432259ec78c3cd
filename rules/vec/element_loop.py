from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class ElementLoop(Rule):
    """A Python loop works on a tensor row by row.

    ## What it does

    Reports loops, and comprehensions that are stacked, in which every iteration does independent work on one row or
    element of a tensor that torch does on the whole tensor in one call: `out[i] = f(x[i])`, a list that is stacked
    afterwards, a sum over the rows. A loop that branches, that reads what an earlier iteration computed, that draws
    random numbers, or that calls anything but known tensor operations is not reported.

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
    bits, all rows are in memory at once, and an empty batch gives an empty tensor where `torch.stack` raises. No fix
    where a rank, a dtype or the independence of the iterations is not proven; the message then says what is missing.

    ## Measured effect

    No evidence recorded yet.

    ## References

    * https://docs.pytorch.org/docs/stable/notes/broadcasting.html
    * https://docs.pytorch.org/docs/stable/generated/torch.vmap.html
    """

    code = "VEC01"
    name = "element-loop"
    triggers = ("range", "enumerate", "zip", "stack", "cat", "concat")

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.semantics.vectorize.plan import plans

        for plan in plans(model):
            if not plan.operations & {"matmul", "linalg"}:
                yield Report(plan.root, plan.message(), plan.confidence, plan)
