from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class TensorPrintedOrLoggedPerStep(Rule):
    """A tensor is printed, formatted or handed to a logger in every step, which reads it from the device.

    ## What it does

    Finds tensors of the device in `print`, in the strings of loggers and progress bars, and in the arguments of
    TensorBoard and wandb, in every training step or evaluation batch, and in texts that are kept for something else to
    show. What is shown behind a log interval is left out, and so are Lightning's `self.log`, names of files, and
    messages of errors. Numbers that `.item()` reads are the matter of `item-in-train-step`.

    ## Why is this bad

    No `.item()` is in sight, but to turn a tensor into text is to read it: the host waits until the device has computed
    everything queued so far, and then the device waits for the host.

    ## Example

    ```python
    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


    def train(model: nn.Module, loader, optimizer):
        criterion = nn.CrossEntropyLoss()
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = criterion(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            print(f"{step}: {loss:.4f}")
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


    def train(model: nn.Module, loader, optimizer):
        criterion = nn.CrossEntropyLoss()
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = criterion(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                print(f"{step}: {loss:.4f}")
    ```

    ## Fix safety

    Unsafe: 99 of 100 lines are not shown any more. Only shown for curves, which would have fewer points. There is no
    fix for a progress bar, where the loop has no counter, and where the text is made by another statement; nor where
    the step reads the device in every case, so that nothing would be gained.

    ## Measured effect

    `torchlint bench SYNC04` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 32: time × 0.92 (0.49 to 1.75), operations 26 → 25,
    synchronisations 1 → 0, results identical; size 512: time × 0.95 (0.83 to 1.08), operations 26 → 25,
    synchronisations 1 → 0, results identical.

    ## References

    * <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization>
    """

    code = "SYNC04"
    name = "tensor-printed-or-logged-per-step"
    triggers = ("print(", "log", "set_postfix", "set_description", "add_scalar", "add_histogram", "wandb", "write(")

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.sync.readback import deferrable_readbacks
        from torchlint.analyses.sync.shown import shown_tensors

        shown = list(shown_tensors(model))
        reading = {model.statement(read.node) for read in deferrable_readbacks(model)} if shown else set()
        for item in shown:
            place = item.where_read(model)
            if model.statement(item.node) not in reading and model.statement(place) not in reading:
                names = " and ".join(f"`{model.code(tensor)}`" for tensor in item.tensors[:2])
                message = (
                    f"To show {names}, the host waits for the device {item.step.rhythm}. Show it every so many steps."
                )
                yield Report(place, message, facts=item)
