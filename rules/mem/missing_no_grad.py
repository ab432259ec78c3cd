from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Confidence
from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.mem.evaluation import Evaluation
    from torchlint.semantics.model import Model


class MissingNoGrad(Rule):
    """An evaluation runs the model with autograd on, although no gradient can ever come of it.

    ## What it does

    Finds functions and loops that run a model and never send anything of what it returns backward: validation and test
    loops, predictions, generation. Frameworks that switch autograd off by themselves, callers that do so, evaluations
    that need gradients of their inputs, and results that go to code out of sight are left alone. What a training step
    runs beside its backward pass is reported as MEM09.

    ## Why is this bad

    `model.eval()` changes dropout and batch norm, not autograd. Every forward pass still records its graph and keeps
    all activations that a backward pass would need, until the result is dropped. Evaluation then takes as much memory
    as training, often with a larger batch, and the bookkeeping costs time as well.

    ## Example

    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.Linear(8, 3))
    batches = [(torch.randn(4, 8), torch.randint(3, (4,))) for _ in range(100)]


    def accuracy(model, batches):
        model.eval()
        correct = 0
        for x, y in batches:
            correct += (model(x).argmax(1) == y).sum().item()
        return correct / 400


    print(accuracy(model, batches))
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.Linear(8, 3))
    batches = [(torch.randn(4, 8), torch.randint(3, (4,))) for _ in range(100)]


    @torch.no_grad()
    def accuracy(model, batches):
        model.eval()
        correct = 0
        for x, y in batches:
            correct += (model(x).argmax(1) == y).sum().item()
        return correct / 400


    print(accuracy(model, batches))
    ```

    ## Fix safety

    Unsafe: without a graph, some modules (`nn.MultiheadAttention`, `nn.TransformerEncoderLayer`, `nn.LSTM`) take faster
    kernels whose results can differ in the last bits, and a caller in another file may want the graph after all. A
    function that only evaluates gets the decorator; a loop in a function that also trains gets a `with` block; a loop
    that trains in one phase and evaluates in the other gets `torch.set_grad_enabled` with the condition of that phase.
    Of a long loop, and of one that is not over data, only the statements that run the model go into the block. What
    their results no longer need goes: `.detach()`, `.data`.

    ## Measured effect

    `torchlint bench MEM05` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 32: time × 0.92 (0.87 to 0.98), results identical;
    size 512: time × 0.90 (0.78 to 1.05), results identical.

    ## References

    * [Autograd mechanics: evaluation mode](https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval)
    """

    code = "MEM05"
    name = "missing-no-grad"
    needs_torch = "0.4"
    triggers = ("def ", "for ", ".eval(")
    whole_function = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.mem.step_parts import all_evaluations, is_part_of_step

        for found in model.once(all_evaluations):
            if is_part_of_step(model, found):
                continue
            confidence = Confidence.CERTAIN if found.certain else Confidence.LIKELY
            yield Report(found.place, _message(model, found), confidence, found)


def _message(model: Model, found: Evaluation) -> str:
    name = model.code(found.forward.node.func)
    if found.phase is not None:
        switch = f"`torch.set_grad_enabled({found.phase})`"
        return f"`{name}` runs with autograd on in evaluation, too, where nothing takes a gradient: use {switch}."
    message = f"`{name}` runs with autograd on, and no gradient is ever taken from its result: "
    if found.bare is not None:
        bare = model.code(found.bare)
        return (
            message
            + f"the bare `{bare}` in {model.place(found.bare)} has no effect, use it as a decorator or in a `with`."
        )
    return message + "switch autograd off with `torch.no_grad()`."
