from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.sync.branching import Decision
    from torchlint.semantics.model import Model


class PythonBranchOnDeviceValue(Rule):
    """Python asks in every step for the truth of a tensor on the device, and the step does not hang on the answer.

    ## What it does

    Finds, in every training step or evaluation batch, assertions about tensors of the device, `if` statements that test
    one only to print something, `if tensor and flag`, where the flag alone could have decided,
    `if mask.any(): x[mask] = 0`, which does nothing for an empty mask anyway, `if guess == truth: hits += 1`, which is
    a sum, and Python's `max(0, tensor)`, also where it is written out, `tensor if tensor > 0 else 0`. Control flow that
    the algorithm needs is left out: guards that stop the training, skipped steps, line searches, loops until
    convergence. So are assertions that numbers are finite, which are such guards, and those about a tensor whose
    numbers the same function reads anyway.

    ## Why is this bad

    The truth of a tensor is a number that the host must read: it waits until the device has computed everything queued
    so far. `clip_grad_norm_` itself had three such branches (reported in pytorch/pytorch#13666, removed in #61042).

    ## Example

    ```python
    import torch


    @torch.no_grad()
    def evaluate(model, loader, device, debug=False):
        correct = 0
        for x, y in loader:
            out = model(x.to(device))
            if torch.isnan(out).any() and debug:
                raise ValueError("the model returns NaN")
            correct += (out.argmax(1) == y.to(device)).sum()
        return correct
    ```

    ## Use instead

    ```python
    import torch


    @torch.no_grad()
    def evaluate(model, loader, device, debug=False):
        correct = 0
        for x, y in loader:
            out = model(x.to(device))
            if debug and torch.isnan(out).any():
                raise ValueError("the model returns NaN")
            correct += (out.argmax(1) == y.to(device)).sum()
        return correct
    ```

    ## Fix safety

    Safe where a flag can be asked first. A store of a number under a mask does the same without the question; that is
    safe outside of a graph, and unsafe in one, for a store marks the tensor as changed even where the mask is empty.
    What else is stored has to be there, in the right type, even then. There is no fix for assertions and for reports:
    check every so many steps, or check the data set once before the training. There is none for counts, which become
    tensors, and none for bounds: `max(0, t)` is 0 where `t` is NaN, and `t.clamp(min=0)` is NaN.

    ## Measured effect

    `torchlint bench SYNC05` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 32: time × 0.91 (0.74 to 1.10), operations 27 → 25,
    synchronisations 1 → 0, results identical; size 512: time × 1.08 (0.88 to 1.32), operations 27 → 25,
    synchronisations 1 → 0, results identical.

    ## References

    * <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization>
    """

    code = "SYNC05"
    name = "python-branch-on-device-value"
    triggers = ("assert", "if ", "max(", "min(")

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.sync.branching import needless_decisions
        from torchlint.analyses.sync.element_reads import element_reads

        of_elements = {model.statement(node) for found in model.once(element_reads) for node in found.nodes}
        for decision in needless_decisions(model):
            if decision.statement in of_elements:
                continue
            yield Report(decision.statement, _message(model, decision), facts=decision)


def _message(model: Model, decision: Decision) -> str:
    from torchlint.analyses.sync.branching import Purpose

    advice = {
        Purpose.CLAIM: "Check every so many steps, or check the data before the loop.",
        Purpose.REPORT: "Nothing but a message hangs on it: check every so many steps.",
        Purpose.FLAG: "Ask the flag first: where it is off, nothing needs to be read.",
        Purpose.BOUND: "`torch.clamp`, or `torch.maximum` and `torch.minimum`, do the same on the device.",
        Purpose.COUNT: "Add up the truths themselves, which are 0 and 1, and read the sum once at the end.",
        Purpose.MASK: "Leave the question out, or choose by `torch.where`: a store under an empty mask does nothing.",
    }[decision.purpose]
    return (
        f"To know the truth of `{model.code(decision.tensor)}`, the host waits for the device {decision.step.rhythm}. "
        + advice
    )
