from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from torchlint.finding import Confidence
from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_WORDS = {True: ("iteration", "iterations", "after the loop"), False: ("batch", "batches", "when all have come")}


class GrowByCat(Rule):
    """A loop makes a tensor longer with torch.cat in every iteration.

    ## What it does

    Reports `out = torch.cat([out, part])` in a loop that does nothing else with `out`: neither reads it nor makes it
    anew; or in a method that a framework calls for each batch, as the `update` of a metric. Sequences that the next
    iteration needs (generated tokens, states), features that layers add to, windows of fixed length, and loops of a few
    iterations are not reported. Layers that are counted, one for each neuron, say, are where the tensor is empty before
    the loop.

    ## Why is this bad

    Every iteration copies all that is there already, so the time grows with the square of the number of iterations. On
    a GPU each copy is a larger block than the one before, which fragments the memory.

    ## Example

    ```python
    import torch


    def embed(batches: list[torch.Tensor], weight: torch.Tensor) -> torch.Tensor:
        found = torch.empty(0, weight.shape[1])
        for batch in batches:
            found = torch.cat([found, batch @ weight])
        return found
    ```

    ## Use instead

    ```python
    import torch


    def embed(batches: list[torch.Tensor], weight: torch.Tensor) -> torch.Tensor:
        found_parts = [torch.empty(0, weight.shape[1])]
        for batch in batches:
            found_parts.append(batch @ weight)
        found = torch.cat(found_parts)
        return found
    ```

    ## Fix safety

    Safe where every part is a new tensor: the numbers, the dtype and the gradients are the same, and what the tensor
    was before the loop stays the first part. Unsafe where a part may be memory that a later iteration writes to, and
    where the first iteration begins the tensor (`if i == 0:`, `if out is None:`), of which a single iteration now makes
    a copy. Only shown where the condition that begins it is there for more than that, and stays. No fix where the loop
    asks for the length of the tensor, where it is not known what the tensor is before the loop, where the parts are in
    a list already, and where it is an attribute, which others may read at any time.

    ## Measured effect

    `torchlint bench MEM10` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 8: time × 0.93 (0.84 to 1.03), operations 75 → 68,
    results identical; size 64: time × 0.78 (0.69 to 0.89), operations 523 → 460, results identical; size 512: time ×
    0.69 (0.64 to 0.74), operations 4107 → 3596, results identical.

    ## References

    * https://docs.pytorch.org/docs/stable/generated/torch.cat.html
    * https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
    """

    code = "MEM10"
    name = "grow-by-cat"
    triggers = ("cat", "stack")
    whole_function = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.mem.attribute_growth import attribute_growths
        from torchlint.analyses.mem.cat_growth import growths

        for growth in chain(growths(model), attribute_growths(model)):
            each, those, end = _WORDS[growth.hook is None]
            yield Report(
                growth.call,
                f"Every {each} copies all of `{growth.name}` to add to it: the time grows with the square of the "
                f"number of {those}. Collect the parts in a list, and put them together once {end}.",
                Confidence.LIKELY if growth.watched else Confidence.CERTAIN,
                growth,
                (
                    Fact(growth.around, f"no {each} makes `{growth.name}` anew here"),
                    Fact(growth.call, f"here it is copied, and nothing else there works with `{growth.name}`"),
                ),
            )
