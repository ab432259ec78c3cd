from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class ZeroGradToZeros(Rule):
    """Gradients are filled with zeros between two steps instead of being dropped, or dropped one by one by hand.

    ## What it does

    Finds `zero_grad(set_to_none=False)`, and loops over parameters that fill each `.grad` with zeros, or replace it by
    a tensor of zeros; also loops over the parameters of a network that set each `.grad` to None, as was advised until
    `zero_grad()` did it, where the project runs with no such torch. Files that add to `.grad` by hand, and those that
    capture CUDA graphs or tie gradients to fixed memory, are left alone: they need the tensor to stay. So are projects
    in which one parameter takes over the gradient of another, as a model that several processes share does, and what
    gradients are before there is an optimizer.

    ## Why is this bad

    Zeros are written to memory, a kernel for every parameter in a hand-written loop, and the next backward pass reads
    them back to add to them. With `None` it writes the gradient directly, and no gradient takes up memory during the
    forward pass. That is what `zero_grad()` does by itself since torch 2.0. A parameter without a gradient is also
    left out of the step, where one with zeros is moved by momentum and weight decay.

    ## Example

    ```python
    import torch
    from torch import nn


    def train(model, loader, criterion):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad(set_to_none=False)
            criterion(model(x), y).backward()
            optimizer.step()
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn


    def train(model, loader, criterion):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
    ```

    ## Fix safety

    `set_to_none=False` goes. A loop over `net.parameters()` that does nothing but fill or drop gradients becomes
    `net.zero_grad()`. In other loops that do nothing but fill, the body becomes `p.grad = None`, without the test for
    None and the `detach_()` that it may have; in a loop that does more, only the statement that fills is replaced.
    There is no fix where such a loop also detaches the gradients, and none where they are filled by something other
    than an argument or a statement of its own.

    Safe where the loop dropped the gradients. Else unsafe: a parameter that gets no gradient in some step keeps `None`,
    so the optimizer leaves it as it is, and code that reads `.grad` then finds no tensor. Where every parameter gets a
    gradient in each step the result is the same.

    ## Measured effect

    `torchlint bench KERN02` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 32: time × 0.91 (0.66 to 1.26), operations 33 → 25,
    results identical; size 512: time × 0.79 (0.71 to 0.88), operations 33 → 25, results identical.

    ## References

    * <https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html>
    * <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
    """

    code = "KERN02"
    name = "zero-grad-to-zeros"
    triggers = ("set_to_none", ".grad")

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.kern.zeroed_gradients import zeroed_gradients

        for zeroed in zeroed_gradients(model):
            if zeroed.drops and zeroed.network is not None:
                network = model.code(zeroed.network)
                message = f"This loop does by hand what `{network}.zero_grad()` does since torch 2.0."
                chain = (
                    Fact(zeroed.network, f"`{network}` is a module of torch, whose `zero_grad()` drops gradients"),
                )
                yield Report(zeroed.node, message, facts=zeroed, chain=chain, needs_torch="2.0")
                continue
            if zeroed.call is not None:
                what = f"`{zeroed.gradient}` fills every gradient with zeros"
                advice = "Call it without the argument"
            else:
                what = f"This loop fills each `{zeroed.gradient}` with zeros, one kernel for every parameter"
                advice = f"Call `zero_grad()` of the optimizer or the model, or set `{zeroed.gradient} = None`"
            message = (
                f"{what}, and the next backward pass adds to them. {advice}: the pass then writes gradients directly."
            )
            chain = (
                Fact(zeroed.node, "gradients become tensors of zeros, which the next backward pass reads and adds to"),
            )
            yield Report(zeroed.node, message, facts=zeroed, chain=chain)
