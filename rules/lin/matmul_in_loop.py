from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class MatmulInLoop(Rule):
    """A Python loop multiplies matrices or vectors one by one.

    ## What it does

    Reports loops, and comprehensions that are stacked, whose iterations multiply the rows of tensors (`@`, `matmul`,
    `mm`, `mv`, `bmm`, `dot`, `outer`, `einsum`, `linear`) independently of each other.

    ## Why is this bad

    Small products leave a GPU idle: each is a launch of its own and fills a fraction of the device. One batched
    product does all of them in one launch.

    ## Example

    ```python
    import torch

    channels = torch.randn(64, 4, 2)
    symbols = torch.randn(64, 2)
    received = torch.zeros(64, 4)
    for k in range(64):
        received[k] = channels[k] @ symbols[k]
    ```

    ## Use instead

    ```python
    import torch

    channels = torch.randn(64, 4, 2)
    symbols = torch.randn(64, 2)
    received = torch.zeros(64, 4)
    received[:] = (channels @ symbols.unsqueeze(-1)).squeeze(-1)
    ```

    ## Fix safety

    Unsafe: a batched product may round differently from single ones, on a GPU always and on a CPU for products of
    matrices and vectors, and all results are in memory at once. Where it is not known which operands are vectors and
    which are matrices, the fix maps the product of one row with `torch.vmap`, and is only
    shown.

    ## Measured effect

    `torchlint bench LIN01` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 8: time × 0.49 (0.25 to 0.93), operations 83 → 18,
    results rounding; size 32: time × 0.18 (0.087 to 0.36), operations 299 → 18, results rounding; size 128: time ×
    0.072 (0.041 to 0.12), operations 1163 → 18, results rounding.

    ## References

    * https://docs.pytorch.org/docs/stable/generated/torch.matmul.html
    * https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
    """

    code = "LIN01"
    name = "matmul-in-loop"
    triggers = ("for ",)
    whole_function = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.rowwise.work import reports

        yield from reports(model, self.code)
