from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Confidence, Severity
from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.mem.retention import Retention
    from torchlint.semantics.model import Model


class GraphTensorEscapesStep(Rule):
    """A meter or helper is given a tensor with an autograd graph, and keeps it beyond the step.

    ## What it does

    Finds calls that hand a tensor with an autograd graph to a function or object that adds it to a running sum, or puts
    it into a container, without detaching it: meters, loggers, trackers, helpers that fill a history. A function that
    reads the number (`.item()`), detaches, or sends its sum backward keeps no graph, and functions out of sight are
    left alone.

    ## Why is this bad

    The call looks like a report of a number, but the object now refers to the graph of every step that it was told of.
    A sum of losses chains them up until the meter is reset. After `backward()` the nodes of the graph stay, and memory
    grows slowly; without a backward pass all activations stay, which is an error. Leaks of this kind are hard to see
    because the line that keeps the tensor is in another place than the training loop.

    ## Example

    ```python
    import torch
    from torch import nn


    class AverageMeter:
        def __init__(self):
            self.sum, self.count = 0.0, 0

        def update(self, value, n=1):
            self.sum += value * n
            self.count += n


    model = nn.Linear(8, 1)
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(torch.randn(4, 8), torch.randn(4, 1)) for _ in range(100)]
    losses = AverageMeter()
    for x, y in batches:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.update(loss, x.size(0))
    print(losses.sum / losses.count)
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn


    class AverageMeter:
        def __init__(self):
            self.sum, self.count = 0.0, 0

        def update(self, value, n=1):
            self.sum += value * n
            self.count += n


    model = nn.Linear(8, 1)
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(torch.randn(4, 8), torch.randn(4, 1)) for _ in range(100)]
    losses = AverageMeter()
    for x, y in batches:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.update(loss.detach(), x.size(0))
    print(losses.sum / losses.count)
    ```

    ## Fix safety

    Safe: the helper sees the same numbers on the same device and in the same dtype, and nothing waits for the GPU. Only
    the argument of the call is detached, never the helper changed, which other code may use. What is not known to be a
    single tensor is reported and left as it is.

    ## Measured effect

    `torchlint bench MEM03` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 32: time × 1.01 (0.76 to 1.33), graph nodes kept 8 →
    0, results identical; size 512: time × 1.07 (0.80 to 1.43), graph nodes kept 8 → 0, results identical.

    ## References

    * [PyTorch FAQ: Don't accumulate history across your training loop](https://docs.pytorch.org/docs/stable/notes/faq.html)
    """

    code = "MEM03"
    name = "graph-tensor-escapes-step"
    triggers = ("backward", "loss", "Loss", "crit")

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.mem.retention import handed_over

        for kept in handed_over(model):
            confidence = Confidence.CERTAIN if kept.freed or kept.detachable else Confidence.LIKELY
            severity = None if kept.freed else Severity.ERROR
            yield Report(kept.node, _message(model, kept), confidence, kept, _chain(model, kept), severity=severity)


def _message(model: Model, kept: Retention) -> str:
    from torchlint.semantics.dataflow import as_receiver

    tensor, holder, place = model.code(kept.graphs[0]), _home(kept).code(kept.holder), _place(model, kept)
    what = "the graph nodes" if kept.freed else "the graph and its activations"
    is_whole = not model.value(kept.graphs[0]).is_container
    instead = (
        f"hand over `{as_receiver(kept.graphs[0])}.detach()` instead." if is_whole else "detach what is in it before."
    )
    return f"`{holder}` keeps {what} behind `{tensor}` alive from every iteration ({place}); {instead}"


def _place(model: Model, kept: Retention) -> str:
    assert kept.keeper is not None
    keeping, home = kept.keeper.keeping.node, _home(kept)
    file = "" if home is model else f" of {home.path.name}"
    return f"`{home.function(keeping).qualname}` takes it in, {home.place(keeping)}{file}"


def _home(kept: Retention) -> Model:
    assert kept.home is not None
    return kept.home


def _chain(model: Model, kept: Retention) -> tuple[Fact, ...]:
    assert kept.keeper is not None
    keeping, home = kept.keeper.keeping, _home(kept)
    given = Fact(kept.graphs[0], f"`{model.code(kept.graphs[0])}` holds the autograd graph of this step.")
    handed = Fact(kept.node, f"The call hands it over as `{kept.keeper.parameter.name}`, not detached.")
    end = f"`{home.code(keeping.holder)}` takes it in here and lives on beyond the step."
    return (given, handed, Fact(keeping.node, end)) if home is model else (given, handed)
