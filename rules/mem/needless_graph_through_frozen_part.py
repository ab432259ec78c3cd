from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Confidence
from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class NeedlessGraphThroughFrozenPart(Rule):
    """A training step records the graph of a network through which its backward pass never goes.

    ## What it does

    Finds forward passes in a training step of which nothing is ever sent backward: the target network of Q-learning, a
    teacher, a network of which the features are only compared with, a generator whose images the discriminator gets
    detached. Networks whose parameters need no gradients, and get no input that does, record nothing and are left
    alone. Passes that only evaluate are reported as MEM05.

    ## Why is this bad

    `.detach()` behind the pass cuts the graph when it is there already: by then the pass has recorded it and kept
    every activation. Under `torch.no_grad()` it is not made.

    ## Example

    ```python
    import torch
    from torch import nn

    online, target = nn.Linear(8, 4), nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(online.parameters(), lr=0.1)
    batches = [(torch.randn(4, 8), torch.randint(4, (4, 1)), torch.randn(4), torch.randn(4, 8)) for _ in range(100)]

    for state, action, reward, after in batches:
        best = target(after).max(1)[0].detach()
        value = online(state).gather(1, action).squeeze(1)
        loss = nn.functional.mse_loss(value, reward + 0.99 * best)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn

    online, target = nn.Linear(8, 4), nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(online.parameters(), lr=0.1)
    batches = [(torch.randn(4, 8), torch.randint(4, (4, 1)), torch.randn(4), torch.randn(4, 8)) for _ in range(100)]

    for state, action, reward, after in batches:
        with torch.no_grad():
            best = target(after).max(1)[0]
        value = online(state).gather(1, action).squeeze(1)
        loss = nn.functional.mse_loss(value, reward + 0.99 * best)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ```

    ## Fix safety

    Unsafe: without a graph, some modules (`nn.MultiheadAttention`, `nn.TransformerEncoderLayer`, `nn.LSTM`) take faster
    kernels whose results can differ in the last bits. The statement goes into a `with` block, and what its results no
    longer need goes: `.detach()`, `.data`.

    ## Measured effect

    `torchlint bench MEM09` on CPU (AMD EPYC), torch 2.13.0+cpu, 2026-11-23; per training step, time as a part of that
    before the fix, with its 99 % interval. Size 32: time × 0.98 (0.89 to 1.08), results identical; size 512: time ×
    0.94 (0.87 to 1.02), results identical.

    ## References

    * [Autograd mechanics: locally disabling gradient computation](https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation)
    """

    code = "MEM09"
    name = "needless-graph-through-frozen-part"
    needs_torch = "0.4"
    triggers = ("backward(",)

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.mem.step_parts import all_evaluations, is_part_of_step

        for found in model.once(all_evaluations):
            if is_part_of_step(model, found):
                message = (
                    f"`{model.code(found.forward.node.func)}` records a graph in every training step, and the backward "
                    "pass never goes through it: run it under `torch.no_grad()`."
                )
                yield Report(found.place, message, Confidence.CERTAIN if found.certain else Confidence.LIKELY, found)
