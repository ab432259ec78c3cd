from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class SolveInvInLoop(Rule):
    """A Python loop solves linear systems or inverts matrices one by one.

    ## What it does

    Reports loops and comprehensions over a stack of matrices that call `solve`, `inv`, `pinv`, `lstsq` and the like on
    each, where neither the matrix nor the right-hand side depends on an earlier iteration. The rest of the loop may do
    what it likes: the call can be one call before it. Iterative methods, in which a solution feeds the next system, are
    not reported.

    ## Why is this bad

    The functions of torch.linalg take a batch of systems. One by one each call pays for its launch, its workspace and,
    on a GPU, for a synchronization that checks whether a matrix was singular.

    ## Example

    ```python
    import torch


    def zero_forcing(channels: torch.Tensor) -> torch.Tensor:
        count, size, size = channels.shape
        weights = torch.zeros(count, size, size)
        for k in range(count):
            weights[k] = torch.linalg.inv(channels[k])
        return weights
    ```

    ## Use instead

    ```python
    import torch


    def zero_forcing(channels: torch.Tensor) -> torch.Tensor:
        count, size, size = channels.shape
        weights = torch.zeros(count, size, size)
        weights[:] = torch.linalg.inv(channels)
        return weights
    ```

    ## Fix safety

    Unsafe: a batched solver may round differently, and one singular matrix fails the whole batch. No fix where it is
    not known whether a right-hand side is a vector or a matrix: of a batch of them torch takes it for matrices.

    ## Measured effect

    `torchlint bench LIN03` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 8: time × 0.76 (0.62 to 0.94), operations 142 → 36,
    results rounding; size 32: time × 0.41 (0.33 to 0.51), operations 502 → 36, results rounding; size 128: time × 0.17
    (0.14 to 0.21), operations 1942 → 36, results rounding.

    ## References

    * https://docs.pytorch.org/docs/stable/generated/torch.linalg.solve.html
    * https://docs.pytorch.org/docs/stable/linalg.html
    """

    code = "LIN03"
    name = "solve-inv-in-loop"
    triggers = ("for ",)
    whole_function = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.rowwise.work import reports

        yield from reports(model, self.code)
