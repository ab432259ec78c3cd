from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class StackOfComprehension(Rule):
    """A comprehension works on the rows of a tensor, and the results are stacked.

    ## What it does

    Reports `torch.stack`, `torch.cat`, `torch.tensor` or `sum` of a comprehension over the rows of a tensor, where
    every element is computed from its row alone and all have the same shape; and a list of numbers that are read from
    each row, or of the rows that a test of their values picks (`[i for i in range(len(x)) if x[i] > 0]`). Rows that are
    only passed on, elements that differ in shape, lists of batches or of results of several modules, and samples that
    come from anything but a tensor (`torch.stack([sample["x"] for sample in batch])`) are not reported.

    ## Why is this bad

    Every row costs a kernel launch for each operation, and stacking copies all results once more.

    ## Example

    ```python
    import torch


    def unit_rows(embeddings: torch.Tensor) -> torch.Tensor:
        count, features = embeddings.shape
        return torch.stack([row / row.norm() for row in embeddings])
    ```

    ## Use instead

    ```python
    import torch


    def unit_rows(embeddings: torch.Tensor) -> torch.Tensor:
        count, features = embeddings.shape
        return embeddings / embeddings.norm(dim=-1)[:, None]
    ```

    ## Fix safety

    Unsafe: sums and transcendental functions may differ in the last bits, all rows are in memory at once, and an empty
    tensor gives an empty result where `torch.stack` raises. Where a rank or a dtype is not known, or no batched
    form of a function, the fix maps the expression of one row with `torch.vmap`. Functions of the file are mapped if
    they do nothing but compute with functions of torch. Where a function has to be written for that, the fix is only
    shown.

    ## Measured effect

    `torchlint bench VEC06` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 8: time × 0.54 (0.27 to 1.10), operations 49 → 14,
    results rounding; size 32: time × 0.44 (0.38 to 0.51), operations 169 → 14, results rounding; size 128: time × 0.19
    (0.15 to 0.24), operations 649 → 14, results rounding.

    ## References

    * https://docs.pytorch.org/docs/stable/notes/broadcasting.html
    * https://docs.pytorch.org/docs/stable/generated/torch.vmap.html
    """

    code = "VEC06"
    name = "stack-of-comprehension"
    triggers = ("for ",)

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.rowwise.work import reports

        yield from reports(model, self.code)
