from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.sync.readback import Readback
    from torchlint.semantics.model import Model


class ItemInTrainStep(Rule):
    """A number is read from the device in every step although nothing in the step depends on it.

    ## What it does

    Finds `.item()`, `float(tensor)`, `int(tensor)`, `math.log10(tensor)`, stores into a cell of a NumPy array and the
    like, of single numbers, that run in every training step or evaluation batch and whose result is only summed,
    stored, printed or logged, or goes right back into an operation on tensors. Reads behind a log interval, reads that
    decide what happens next and reads of tensors that are on the host already are left out.

    ## Why is this bad

    The host queues kernels ahead of the device. To hand out a number it must wait until the device has computed
    everything queued so far; then the device waits for the host to queue more. What that costs depends on how much the
    host has to do: 40 to 50 ms per step (reported in pytorch/torchtune#522), 5 to 10 % (reported in
    openvdb/fvdb-reality-capture#144), 4 % in a small benchmark and under 1 % in production (reported in
    lnccbrown/LANfactory#120).

    ## Example

    ```python
    import torch
    from torch import nn


    def train(model, loader, optimizer):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        criterion = nn.CrossEntropyLoss()
        running = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            running += loss.item()
        return running / len(loader)
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn


    def train(model, loader, optimizer):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        criterion = nn.CrossEntropyLoss()
        running = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            running += loss.detach().double()
        return float(running) / len(loader)
    ```

    ## Fix safety

    Safe for a local sum that is read only behind the loop or at log intervals: Python adds in double precision, and
    so does the rewritten sum, to the last bit. Unsafe where the file does not show that the device is a CUDA one,
    for others may lack double precision (on MPS there is no fix), where the loop reads a clock, whose intervals the
    readback used to close, where a sum that starts from `0` would be `0.0` if nothing were added, and where the
    number is multiplied or divided by what nothing in sight says is a number, or is not zero, or divided by what is no
    power of two, which a GPU may round in another way. A local list of such numbers, read behind the loop, keeps the
    detached tensors until then; unsafe where it grows over more than one pass over the data, for each of them takes
    some hundred bytes of the device. A meter, an object of a class of the project that only adds up, divides and makes
    texts (`losses.update(loss.item(), n)`), is given the tensor; unsafe, for until it is read it holds a tensor, and a
    GPU may round the mean in another way. Numbers that are printed, logged or stored elsewhere step by step get no fix:
    log them every so many steps, or keep the tensors and read them at the end. Nor does a sum or list beside another
    read that cannot stay on the device, be it in a function of the file that returns a number: the step would wait all
    the same.

    ## Measured effect

    `torchlint bench SYNC01` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 32: time × 1.01 (0.93 to 1.10), operations 26 → 27,
    synchronisations 1 → 0, results identical; size 512: time × 1.12 (0.93 to 1.34), operations 26 → 27,
    synchronisations 1 → 0, results identical.

    ## References

    * <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization>
    * <https://lightning.ai/docs/pytorch/stable/advanced/speed.html>
    """

    code = "SYNC01"
    name = "item-in-train-step"
    triggers = (".item", "float(", "int(", ".cpu", "numpy", ".tolist", "math", "tensor(", "Tensor(")

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.sync.put_back import numbers_put_back
        from torchlint.analyses.sync.repeated_reads import numbers

        told = set()
        for read in model.once(numbers).single:
            told.add(read.node)
            if not read.is_count:
                yield Report(read.node, _message(model, read), facts=read)
        for found in numbers_put_back(model):
            if found.node not in told:
                message = (
                    f"`{model.code(found.node)}` makes the host wait for the device {found.step.rhythm}, only to "
                    f"compute with tensors on the device. `{model.code(found.tensor)}`, detached, can stay there."
                )
                yield Report(found.node, message, facts=None)


def _message(model: Model, read: Readback) -> str:
    from torchlint.analyses.devices.host_use import Use
    from torchlint.analyses.sync.readback import STORED

    if Use.ACCUMULATED in read.use:
        advice = "Add up the detached tensor, in double precision, and read the sum once at the end."
    elif Use.LOGGED in read.use:
        advice = "Log it every so many steps."
    elif Use.SELDOM in read.use:
        advice = "It is logged at intervals only: keep the detached tensor and read it there."
    elif not read.use:
        advice = "Nothing reads the number: leave it out."
    else:
        advice = "Keep the detached tensor and read it once at the end, or at log intervals."
    code = f"`{model.code(read.node)}`"
    if read.inside is not None:
        home = read.inside.home
        where = f"line {home.line(read.inside.node)} of {home.source.path.name}"
        code = f"{code}, which reads `{home.code(read.inside.node)}` on {where},"
    subject = f"To store {code} as a number makes" if read.how in STORED else f"{code} makes"
    return f"{subject} the host wait for the device {read.rhythm}. {advice}"
