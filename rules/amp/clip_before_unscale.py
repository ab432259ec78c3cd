from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.amp.scaled_gradients import Clipping
    from torchlint.semantics.model import Model


class ClipBeforeUnscale(Rule):
    """Gradients are clipped while they are still multiplied by the scale of a GradScaler.

    ## What it does

    Finds calls that clip gradients between `scaler.scale(loss).backward()` and `scaler.step(optimizer)` where nothing
    calls `scaler.unscale_(optimizer)` before: `clip_grad_norm_`, `clip_grad_value_`, the method of a sharded model, and
    functions of the same file that change `.grad`, also across functions. Branches in which the loss is not scaled are
    no finding, nor is code that hands its scaler to functions out of sight.

    ## Why is this bad

    The scaler multiplies the loss by 65,536 at first, and the gradients with it. A limit of 1.0 then clips nearly every
    step, and once `scaler.step` has divided by the scale, the update is thousands of times too short. Training is slow
    or stands still, and when the scale changes, so does the length of the steps.

    ## Example

    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for step in range(100):
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = model(torch.randn(32, 8, device="cuda")).square().mean()
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for step in range(100):
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = model(torch.randn(32, 8, device="cuda")).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    ```

    ## Fix safety

    Unsafe: the steps get the length that the limit asks for, so training takes another course, which is the purpose.
    `unscale_` may run once between two updates of the scaler, so there is no fix where it would run more often than the
    step, or where the optimizer is not known by name at the place of the clipping.

    ## Measured effect

    No evidence recorded yet.

    ## References

    * <https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping>
    * <https://github.com/pytorch/examples/issues/1196>
    """

    code = "AMP04"
    name = "clip-before-unscale"
    triggers = (".scale(",)

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.amp.scaled_gradients import clippings

        for found in clippings(model):
            yield Report(found.clip.call.node, _message(found, model), found.confidence, found, _chain(found, model))


def _message(found: Clipping, model: Model) -> str:
    clip, step = model.code(found.clip.call.node.func), found.steps[0].call.node
    optimizer = model.code(step.args[0])
    return (
        f"`{clip}` clips gradients that are still multiplied by the scale of `{found.backward.scaler}`, so each "
        f"step is cut far below the limit. Call `{found.steps[0].scaler}.unscale_({optimizer})` before."
    )


def _chain(found: Clipping, model: Model) -> tuple[Fact, ...]:
    clip, step = found.clip.call.node, found.steps[0]
    return (
        Fact(found.backward.call.node, f"the loss is multiplied by the scale of `{found.backward.scaler}`"),
        Fact(clip, f"`{model.code(clip.func)}` compares gradients with its limit, and nothing has unscaled them"),
        Fact(step.call.node, f"`{step.scaler}.step` divides them by the scale only here"),
    )
