from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.loops.step_cycle import Cycle
    from torchlint.semantics.model import Model


class MissingZeroGrad(Rule):
    """An optimizer steps in a loop, and nothing resets the gradients between two steps.

    ## What it does

    Finds loops that run `backward()` and the `step()` of an optimizer, here or in functions of the same file, while
    nothing on the way from one step to the next resets gradients: neither `zero_grad` of the optimizer or a module,
    before or after the step, nor a helper or a write to `.grad`. Accumulation over several batches resets after its
    step and is no finding. Where code from other files gets the model or the optimizer, nothing is reported.

    ## Why is this bad

    `backward()` adds to the gradients that are there. Without a reset every step follows the sum over all batches since
    the start: the direction goes stale, the length grows, and training slows down or diverges without any error.

    ## Example

    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(100):
        x = torch.randn(32, 8)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(100):
        optimizer.zero_grad()
        x = torch.randn(32, 8)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
    ```

    ## Fix safety

    Unsafe: the training takes another course, which is the purpose. The reset goes to the beginning of the iteration,
    or before the backward pass where other optimizers or conditions are around it; behind the step, where batches are
    accumulated; to the beginning of the closure for LBFGS. Where gradients are reset, but in another place or less
    often, that may be meant as accumulation, and there is no fix.

    ## Measured effect

    No evidence recorded yet.

    ## References

    * <https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html>
    * <https://docs.pytorch.org/tutorials/recipes/recipes/zeroing_out_gradients.html>
    """

    code = "TRAIN01"
    name = "missing-zero-grad"
    triggers = ("backward",)
    whole_function = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.loops.step_cycle import unreset_cycles

        for cycle in unreset_cycles(model):
            yield Report(cycle.backward.node, _message(cycle, model), cycle.confidence, cycle)


def _message(cycle: Cycle, model: Model) -> str:
    step, optimizer = model.code(cycle.step.node.func), model.code(cycle.optimizer)
    if cycle.loop is None and cycle.closure is not None:
        return (
            f"LBFGS evaluates this closure several times in one `{step}`, and each backward pass adds to the gradients "
            f"of those before it. Call `{optimizer}.zero_grad()` first in the closure."
        )
    return (
        f"`{step}` runs in every iteration, but {_RESETS[cycle.reset.value]}: each backward pass adds to those of the "
        f"steps before it. Call `{optimizer}.zero_grad()` once for every step."
    )


_RESETS = {
    "nowhere": "nothing in this file resets the gradients",
    "outside": "gradients are only reset outside this loop",
    "others": "only the gradients of other modules are reset",
    "rarely": "gradients are not reset in every iteration",
}
