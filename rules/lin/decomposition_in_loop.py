from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class DecompositionInLoop(Rule):
    """A Python loop decomposes matrices one by one.

    ## What it does

    Reports loops and comprehensions over a stack of matrices that call an eigenvalue or singular value decomposition,
    Cholesky, QR or LU, or a determinant on each, where the matrix depends on nothing that an earlier iteration
    computed. The rest of the loop may do what it likes: the decomposition can be one call before it. A matrix of
    another size in every iteration, and recursions such as a Kalman filter, are not reported.

    ## Why is this bad

    The functions of torch.linalg take a batch of matrices. One by one each call pays for its launch, its workspace
    and, on a GPU, for a synchronization that checks whether the solver converged.

    ## Example

    ```python
    import torch


    def whitening(covariances: torch.Tensor) -> torch.Tensor:
        count, size, size = covariances.shape
        factors = torch.zeros(count, size, size)
        for k in range(count):
            factors[k] = torch.linalg.cholesky(covariances[k])
        return factors
    ```

    ## Use instead

    ```python
    import torch


    def whitening(covariances: torch.Tensor) -> torch.Tensor:
        count, size, size = covariances.shape
        factors = torch.zeros(count, size, size)
        factors[:] = torch.linalg.cholesky(covariances)
        return factors
    ```

    ## Fix safety

    Unsafe: a batched solver may take another path, so that signs and phases of vectors and the last bits differ, and
    one singular matrix fails the whole batch. No fix for functions that return several tensors.

    ## Measured effect

    `torchlint bench LIN02` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 8: time × 0.64 (0.43 to 0.93), operations 98 → 18,
    results identical; size 32: time × 0.44 (0.38 to 0.51), operations 362 → 18, results identical; size 128: time ×
    0.26 (0.21 to 0.33), operations 1418 → 18, results identical.

    ## References

    * https://docs.pytorch.org/docs/stable/linalg.html
    * On a GPU very small batches of singular value decompositions may be faster one by one (pytorch/pytorch#86234).
    """

    code = "LIN02"
    name = "decomposition-in-loop"
    triggers = ("for ",)
    whole_function = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.rowwise.work import reports

        yield from reports(model, self.code)
