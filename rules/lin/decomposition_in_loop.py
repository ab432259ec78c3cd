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

    No evidence recorded yet.

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
