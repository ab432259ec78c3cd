from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class PairwiseLoop(Rule):
    """Two nested loops compare every row of one tensor with every row of another.

    ## What it does

    Reports nested loops whose innermost work combines a row that only the outer loop chooses with a row that only the
    inner loop chooses: distances, similarities, differences of all pairs.

    ## Why is this bad

    The loop body runs n times m, and each run launches its kernels for two rows alone. Two tensors that broadcast
    against each other do all pairs in one launch for each operation; for distances there is `torch.cdist`.

    ## Example

    ```python
    import torch


    def distances(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        count, features = queries.shape
        size, features = keys.shape
        found = torch.zeros(count, size)
        for i in range(count):
            for j in range(size):
                found[i, j] = (queries[i] - keys[j]).abs().sum()
        return found
    ```

    ## Use instead

    ```python
    import torch


    def distances(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        count, features = queries.shape
        size, features = keys.shape
        found = torch.zeros(count, size)
        found[:] = (queries[:, None] - keys).abs().sum(-1)
        return found
    ```

    ## Fix safety

    Unsafe: the differences of all pairs are in memory at once, and sums may differ in the last bits. `torch.cdist`
    needs less memory, but computes the Euclidean distance by a matrix product, which rounds differently.

    ## Measured effect

    `torchlint bench VEC08` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 8: time × 0.079 (0.056 to 0.11), operations 906 → 21,
    results rounding; size 16: time × 0.014 (0.008 to 0.024), operations 3594 → 21, results rounding; size 32: time ×
    0.0047 (0.0025 to 0.0089), operations 14346 → 21, results rounding.

    ## References

    * https://docs.pytorch.org/docs/stable/generated/torch.cdist.html
    * https://docs.pytorch.org/docs/stable/notes/broadcasting.html
    """

    code = "VEC08"
    name = "pairwise-loop"
    triggers = ("for ",)
    whole_function = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.rowwise.work import reports

        yield from reports(model, self.code)
