from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.sync.element_reads import ElementReads
    from torchlint.semantics.model import Model


class PerElementSync(Rule):
    """A tensor on the device is read number by number.

    ## What it does

    Finds `.item()`, `int(...)` and `float(...)` on the elements of one tensor, comparisons of them of which Python asks
    the truth, elements that are places in a list or an array, those that a text is made of which is no log, and
    `.cpu()` and `.tolist()` on its rows, in a loop or a comprehension that every training step or evaluation batch
    runs, or each of several passes through a model, and that does not write the tensor. So are the `argmax()` of its
    rows, the place of something in each, and comparisons of what its rows are reduced to. Rows that are copied on a
    condition are left out, and loops of which each iteration waits for something else on the device, too. Python's
    `max`, `min`, `any` and `all` of a tensor are such loops.

    ## Why is this bad

    Each element is a copy of its own that the host waits for. `tensor.tolist()` brings all of them in one.

    ## Example

    ```python
    import torch


    @torch.no_grad()
    def predict(model, loader, device):
        answers = []
        for x in loader:
            best = model(x.to(device)).argmax(1)
            answers.extend([b.item() for b in best])
        return answers
    ```

    ## Use instead

    ```python
    import torch


    @torch.no_grad()
    def predict(model, loader, device):
        answers = []
        for x in loader:
            best = model(x.to(device)).argmax(1)
            answers.extend(best.flatten().tolist())
        return answers
    ```

    ## Fix safety

    Safe: the same Python numbers come out, in the same order. Where the tensor is not known to have one dimension,
    `flatten` is there because the elements of a tensor of shape (n, 1) are single numbers too. `.item()` goes, and
    `int()` of what is an integer then. Unsafe where the loop changes a tensor in place or calls code that may, for it
    could be the one that it reads. There is no fix where the loop uses the elements as tensors besides, for these may
    carry gradients; where each iteration would wait for the device all the same, because Python asks another tensor
    for its truth or reads what may be an element of one beside; and none for rows and comparisons. `max(t)` and
    `min(t)` become methods of a tensor of integers; of real numbers one may be NaN, which Python passes over.

    ## Measured effect

    `torchlint bench SYNC07` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 8: time × 0.84 (0.58 to 1.20), operations 33 → 25,
    synchronisations 8 → 1, results identical; size 64: time × 0.84 (0.70 to 1.01), operations 89 → 25, synchronisations
    64 → 1, results identical; size 512: time × 0.67 (0.62 to 0.73), operations 537 → 25, synchronisations 512 → 1,
    results identical.

    ## References

    * <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization>
    """

    code = "SYNC07"
    name = "per-element-sync"
    triggers = (
        *(".item", "int(", "float(", ".cpu", ".tolist", ".format(", " if "),
        *("max(", "min(", "any(", "all(", "] +=", "ensor("),
    )

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.sync.element_reads import element_reads, python_reductions, waits_anyway

        told: set[object] = set()
        for found in python_reductions(model):
            told.add(model.statement(found.node))
            name = model.code(found.tensor)
            message = (
                f"`{model.code(found.node)}` compares the elements of `{name}` in Python, and waits for the device at "
                f"each. `torch.{found.name}({name})` compares them on the device."
            )
            yield Report(found.node, message, facts=found)
        for reads in model.once(element_reads):
            statement = model.statement(reads.nodes[0])
            if statement in told or waits_anyway(model, reads):
                continue
            told.add(statement)
            name = model.code(reads.tensor)
            each = "row" if reads.of_rows else "element"
            message = f"`{model.code(reads.nodes[0])}` waits for the device once per {each} of `{name}`."
            message += f" {_advice(reads, name, model)}."
            yield Report(reads.nodes[0], message, facts=reads)


def _advice(reads: ElementReads, name: str, model: Model) -> str:
    """`tolist` gives numbers where the tensor has one dimension, and they compare with numbers alone."""
    from torchlint.analyses.sync.element_reads import compares_tensors, may_be_list

    if compares_tensors(model, reads.nodes[0]):
        return "Compare the tensors as a whole, and copy the result once, before the loop"
    if reads.answers:
        return f"Ask all rows of `{name}` at once, and copy the answers once, before the loop"
    if reads.of_rows or reads.asked:
        return f"Copy `{name}` once, before the loop"
    if may_be_list(model, reads.tensor):
        return "Read them all at once, before the loop"
    return f"Read them all at once by `{name}.tolist()`"
