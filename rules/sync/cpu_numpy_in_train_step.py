from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.sync.dense_copies import DenseCopy
    from torchlint.analyses.sync.round_trips import Trip
    from torchlint.analyses.sync.scratch import Filling
    from torchlint.semantics.model import Model


class CpuNumpyInTrainStep(Rule):
    """Whole tensors are copied to the host in every step, for a metric that the device could compute.

    ## What it does

    Finds `.cpu()`, `.to("cpu")` and `.tolist()` on tensors of the device, in every training step or evaluation batch,
    where the copy is reduced to a number that is summed, stored or printed. Copies that an environment, a file, an
    image or the collection of all predictions needs are left out. Whatever it is for, the copy of a batch that the same
    step has copied to the device, and has not changed, is found: the host has that batch. So is the copy of what was
    put on the device once before the steps, and stays as it is. And so is the copy of all scores, of which only the
    `argmax` along a dimension is used: the device can take it, and only the places cross the bus.

    ## Why is this bad

    The host waits until the device has computed the tensor, the whole tensor crosses the bus, and the metric is then
    computed by one host thread while the device has nothing to do.

    ## Example

    ```python
    import numpy as np
    import torch


    @torch.no_grad()
    def accuracy(model, loader, device):
        correct, seen = 0, 0
        for x, y in loader:
            prediction = model(x.to(device)).argmax(1).cpu().numpy()
            correct += np.sum(prediction == y.numpy())
            seen += y.size(0)
        return correct / seen
    ```

    ## Use instead

    ```python
    import torch


    @torch.no_grad()
    def accuracy(model, loader, device):
        correct, seen = 0, 0
        for x, y in loader:
            prediction = model(x.to(device)).argmax(1)
            correct += (prediction == y.to(device)).sum()
            seen += y.size(0)
        return int(correct) / seen
    ```

    ## Fix safety

    There is no fix: which operations of the metric the device can do is for the author to say. Counts of integers are
    exact on the device; sums and means of floating point numbers may differ in the last bits.

    ## Measured effect

    No evidence recorded yet.

    ## References

    * <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization>
    * <https://lightning.ai/docs/pytorch/stable/advanced/speed.html>
    """

    code = "SYNC03"
    name = "cpu-numpy-in-train-step"
    triggers = (
        *(".cpu", ".tolist", '"cpu', "'cpu"),
        *("Tensor(", "zeros(", "ones(", "empty(", "full("),
    )

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.devices.host_use import Use
        from torchlint.analyses.sync.dense_copies import dense_copies
        from torchlint.analyses.sync.detours import detours
        from torchlint.analyses.sync.element_reads import element_reads
        from torchlint.analyses.sync.readback import deferrable_readbacks
        from torchlint.analyses.sync.round_trips import round_trips
        from torchlint.analyses.sync.scratch import fillings
        from torchlint.analyses.sync.standing import standing_tensors

        of_rows = {node for found in model.once(element_reads) for node in found.nodes}
        told: set[object] = set()
        trips = [(trip, _of_batch) for trip in round_trips(model)]
        trips += [(trip, _of_work) for trip in detours(model)]
        trips += [(trip, _of_standing) for trip in standing_tensors(model)]
        for trip, message_of in trips:
            statement = model.small_statement(trip.node) or trip.node
            if statement not in told and trip.node not in of_rows:
                told.add(statement)
                yield Report(trip.node, message_of(model, trip))
        for read in deferrable_readbacks(model):
            place = model.small_statement(read.node) or read.node
            if not read.is_number and place not in told and read.node not in of_rows:
                told.add(place)
                purpose = {
                    Use.NONE: "and nothing uses the copy. Leave it out.",
                    Use.SELDOM: "but it is used at intervals only. Copy it there.",
                }.get(
                    read.use, "for a metric. Compute it on the device and read it once at the end, or at log intervals."
                )
                message = f"`{model.code(read.node)}` copies a whole tensor to the host {read.rhythm}, {purpose}"
                yield Report(read.node, message, facts=read)
        for filling in fillings(model):
            yield Report(filling.node, _of_filling(model, filling))
        for copy in dense_copies(model):
            line = model.small_statement(copy.node) or copy.node
            if line not in told and copy.node not in of_rows:
                told.add(line)
                yield Report(copy.node, _of_scores(model, copy))


def _of_batch(model: Model, trip: Trip) -> str:
    if trip.home is not None:
        return (
            f"`{model.code(trip.node)}` copies back to the host, {trip.step.rhythm}, what the caller has copied to the "
            f"device by `{trip.home.code(trip.other.node)}`. Let it pass what the host has: then nothing need wait."
        )
    return (
        f"`{model.code(trip.node)}` copies back to the host, {trip.step.rhythm}, what "
        f"`{model.code(trip.other.node)}` has copied to the device. "
        "Use the batch that the host has, under a name of its own: then it need not wait."
    )


def _of_work(model: Model, trip: Trip) -> str:
    return (
        f"`{model.code(trip.node)}` copies to the host, {trip.step.rhythm}, what "
        f"`{model.code(trip.other.node)}` copies back to the device on {model.place(trip.other.node)}. "
        "The device can do what is done in between: leave it there."
    )


def _of_standing(model: Model, trip: Trip) -> str:
    return (
        f"`{model.code(trip.node)}` copies to the host, {trip.step.rhythm}, what no step changes: it is put on the "
        f"device on {model.place(trip.other.node)}. Copy it once before the loop, or keep what the host had."
    )


def _of_filling(model: Model, filling: Filling) -> str:
    return (
        f"`{model.code(filling.node)}` is copied to the host {filling.step.rhythm}, where "
        f"`{model.code(filling.made.node)}` has made the tensor that it is stored in. "
        f"What is computed there goes back to the device on {model.place(filling.back)}: make the tensor on it."
    )


def _of_scores(model: Model, copy: DenseCopy) -> str:
    return (
        f"`{model.code(copy.node)}` copies all scores to the host {copy.step.rhythm}, where nothing but their `argmax` "
        f"is used, on {model.place(copy.pick)}. Take it on the device, and copy that."
    )
