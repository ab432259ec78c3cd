from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.xfer.creations import Creation
    from torchlint.semantics.model import Model


class CreateThenMove(Rule):
    """A tensor is made on the host of nothing but sizes and numbers, and then copied to the GPU.

    ## What it does

    Finds factories such as `torch.zeros`, `torch.arange`, `torch.randn`, `torch.FloatTensor(n)` and `torch.tensor(0.)`
    whose result goes to an accelerator with `.to(device)`, `.cuda()` or `.type_as(x)`: in the same expression, also
    past views, casts and arithmetic with numbers, from a variable, also under `if cuda:`, or out of a function of the
    project that makes it for its callers. Nothing is reported where the tensor is made of data, where the host uses it
    before, and where it is a leaf of the graph, is pinned, or draws from a generator of its own.

    ## Why is this bad

    The host allocates memory, fills it, and waits while all of it crosses the bus, every time the line runs. With
    `device=` the GPU fills its own memory, and the host only queues the kernel.

    ## Example

    ```python
    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    cell = nn.GRUCell(16, 32).to(device)


    def encode(steps):
        hidden = torch.zeros(steps.size(1), 32).to(device)
        for step in steps:
            hidden = cell(step, hidden)
        return hidden
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    cell = nn.GRUCell(16, 32).to(device)


    def encode(steps):
        hidden = torch.zeros(steps.size(1), 32, device=device)
        for step in steps:
            hidden = cell(step, hidden)
        return hidden
    ```

    ## Fix safety

    Safe for constants, identity matrices and ranges of whole numbers: every device makes the same bits. Unsafe for
    random tensors, since each device has a random stream of its own, for `linspace` and computed values, whose last
    bits may differ, and for written numbers that get the type of another tensor. Random tensors of a program that seeds
    torch are only shown, and those that are drawn once have no fix. `.cuda(gpu)` of what may be `None` is only shown,
    too: it means the current GPU, and `device=None` the host. No fix where the copy depends on a condition, where the
    variable is filled before it is copied, where another function makes the tensor, where it is computed with something
    that is not known to be a number, and where the same function copies another `torch.tensor` of what may be anything.

    ## Measured effect

    `torchlint bench XFER01` on CPU (Intel(R) Xeon(R) Processor), torch 2.13.0+cpu, 2026-11-22; per training step, time
    as a part of that before the fix, with its 99 % interval. Size 32: time × 0.99 (0.91 to 1.07), results identical;
    size 512: time × 0.97 (0.88 to 1.08), results identical.

    ## References

    * <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#create-tensors-directly-on-the-target-device>
    * <https://docs.pytorch.org/docs/stable/notes/cuda.html>
    """

    code = "XFER01"
    name = "create-then-move"
    needs_torch = "0.4"
    triggers = (".to(", ".cuda(", ".type(", ".type_as(")

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.xfer.creations import creations

        for creation in creations(model):
            yield Report(
                creation.factory.node, _message(creation, model), facts=creation, chain=_chain(creation, model)
            )


def _message(creation: Creation, model: Model) -> str:
    factory, move = model.code(creation.factory.node.func), _move(creation, model)
    copied = f"and `{move}` copies it to the GPU while the host waits."
    if creation.is_by_helper:
        return f"`{factory}` makes this tensor on the host, {copied} Let it make the tensor there: pass it the device."
    if creation.is_by_distribution:
        return (
            f"A distribution draws this tensor on the host, {copied} "
            "Give it parameters that are tensors on the device: it draws where they are."
        )
    if creation.is_list(model):
        return f"`{factory}` puts numbers into a tensor on the host, {copied} Make it once, there, {_there(creation)}."
    if creation.is_random and not creation.is_of_numbers(model):
        return (
            f"`{factory}` draws this tensor on the host, {copied} "
            "Draw it there with `device=`; the same seed gives other numbers there."
        )
    return f"`{factory}` fills this tensor on the host, {copied} Make it there {_there(creation)}."


def _there(creation: Creation) -> str:
    """How a tensor is made on the device; classes of tensors take none but their own."""
    return "with `torch.tensor` or `torch.empty`, and `device=`" if creation.is_by_class else "with `device=`"


def _move(creation: Creation, model: Model) -> str:
    arguments = ", ".join(model.code(arg) for arg in creation.move.arguments)
    return f".{creation.move.method}({arguments if len(arguments) < 40 else '...'})"


def _chain(creation: Creation, model: Model) -> tuple[Fact, ...]:
    factory = model.code(creation.factory.node.func)
    held = [
        Fact(write.target, f"`{model.code(write.target)}` holds it") for _, write in reversed(creation.made.writes[:1])
    ]
    return (
        Fact(creation.factory.node, f"`{factory}` makes a tensor of sizes and numbers in the memory of the host"),
        *held,
        Fact(creation.move.node, f"`{_move(creation, model)}` copies it to the GPU, and the host waits for the copy"),
    )
