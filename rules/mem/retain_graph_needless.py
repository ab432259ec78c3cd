from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class RetainGraphNeedless(Rule):
    """A backward pass keeps its graph although nothing goes back through it again.

    ## What it does

    Finds `backward(retain_graph=True)`, and `torch.autograd.grad` with that argument, where no later pass, here or in a
    function that is called, uses a part of the same graph: each iteration builds its graph anew, or the function builds
    one and leaves it. Losses that share a part, hidden states that go from step to step, `create_graph=True`, graphs
    that are returned or kept in attributes for others, and arguments of which nothing is known are no findings.

    ## Why is this bad

    A backward pass frees the activations as it goes. With `retain_graph=True` they stay until the last tensor of the
    graph is gone, so they are still there while the optimizer steps, or while the next forward pass begins: the peak
    of memory rises. Where the loss is also kept somewhere, every step keeps all its activations. The flag also silences
    the error that shows when a graph is used twice by mistake.

    ## Example

    ```python
    import torch
    from torch import nn


    def train(model, loader, optimizer):
        criterion = nn.CrossEntropyLoss()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward(retain_graph=True)
            optimizer.step()
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn


    def train(model, loader, optimizer):
        criterion = nn.CrossEntropyLoss()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    ```

    ## Fix safety

    Unsafe: where a module keeps a part of the graph out of sight, the next backward pass raises a `RuntimeError`. The
    gradients are the same.

    ## Measured effect

    `torchlint bench MEM04` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 32: time × 0.99 (0.93 to 1.06), results identical;
    size 512: time × 0.99 (0.92 to 1.07), results identical.

    ## References

    * <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html>
    * <https://docs.pytorch.org/docs/stable/notes/autograd.html>
    """

    code = "MEM04"
    name = "retain-graph-needless"
    triggers = ("retain_graph",)

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.mem.retained_graph import needlessly_retained

        for retained in needlessly_retained(model):
            source = model.code(retained.source)
            again = "builds its graph anew" if retained.loop is not None else "is not used again"
            where = "each iteration" if retained.loop is not None else f"the graph of `{source}`"
            passes = "backward()" if retained.call.is_backward else "torch.autograd.grad"
            message = (
                f"`retain_graph=True` keeps the activations behind `{source}`, but {where} {again}. "
                f"Without it, `{passes}` frees them as it goes."
            )
            chain = (
                Fact(retained.source, f"`{source}` has a graph that only this pass goes through"),
                Fact(retained.argument, "the graph stays in memory after the pass"),
            )
            yield Report(retained.call.node, message, retained.confidence, retained, chain)
