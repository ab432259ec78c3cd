from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Severity
from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.train.checkpoints import Load
    from torchlint.semantics.model import Model


class UnsafeLoad(Rule):
    """`torch.load` without `weights_only` runs what the file says in one release of torch, and fails in another.

    ## What it does

    Finds calls of `torch.load` that do not say `weights_only`. Silent inside `safe_globals` or in a file that sets the
    default, in fallbacks for older releases, where the same file is loaded with `weights_only` too, for a buffer
    in memory that the function has written itself, in a project's own tests, which load what they bring or have written
    and fail where that is refused, and in projects that ask for torch 2.6 or newer, where `weights_only=True` is the
    default.

    ## Why is this bad

    A checkpoint is a pickle. Before torch 2.6 the call unpickles all of it, and a file from elsewhere can run any code.
    Since 2.6 the default is `weights_only=True`, and the same line refuses everything but tensors, numbers, strings and
    plain containers: a whole pickled model or the options of argparse raise an UnpicklingError. Saying
    `weights_only=True` is safe in both, and works for every state dict.

    ## Example

    ```python
    import torch

    model = torch.nn.Linear(8, 2)
    model.load_state_dict(torch.load("model.pt", map_location="cpu"))
    ```

    ## Use instead

    ```python
    import torch

    model = torch.nn.Linear(8, 2)
    model.load_state_dict(torch.load("model.pt", map_location="cpu", weights_only=True))
    ```

    ## Fix safety

    Unsafe, and only offered where the whole file goes into `load_state_dict`, or where the `torch.save` calls of the
    project that may have written it are in sight, and what they save are tensors, numbers, strings, plain containers,
    and states of networks, optimizers and schedulers. Learning rates or scores that may be NumPy's numbers, schedulers
    of the project's own, checkpoints of Lightning and those that come from elsewhere get no fix: the report says what
    stood in the way. `weights_only` needs torch 1.13, and the state of some schedulers is refused by older releases,
    that of `MultiStepLR` before torch 2.4: a project that names an older one, in its lists of dependencies, its README,
    a Dockerfile or a script, or that calls `next()` of an iterator of a loader, is only shown the fix.

    ## Measured effect

    No evidence recorded yet.

    ## References

    * <https://docs.pytorch.org/docs/stable/generated/torch.load.html>
    * <https://docs.pytorch.org/docs/stable/notes/serialization.html#weights-only>
    """

    code = "TRAIN11"
    name = "unsafe-load"
    triggers = ("load(",)
    severity = Severity.WARNING
    needs_torch = "1.13"
    needless_since = "2.6"
    in_tests = False

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.train.checkpoints import unsafe_loads

        for load in unsafe_loads(model):
            yield Report(load.call.node, _MESSAGES[load.content.value], facts=load, chain=_chain(load))


def _chain(load: Load) -> tuple[Fact, ...]:
    if load.use is None:
        return ()
    told = "a module is what was loaded" if load.content.value == "object" else "a state dict is what was loaded"
    return (
        Fact(load.call.node, "the file is read without `weights_only`"),
        Fact(load.use, f"{told}, as its use shows"),
    )


_MESSAGES = {
    "tensors": "Before torch 2.6 this unpickles whatever the file holds, which can run code. Pass "
    "`weights_only=True`: it is all that a state dict needs, and the default since 2.6.",
    "object": "This reads a whole pickled module: torch 2.6 and later refuse it, earlier ones run any code in it. "
    "Save and load its `state_dict()` with `weights_only=True`, or pass `weights_only=False` for a file you trust.",
    "unknown": "Before torch 2.6 this unpickles whatever the file holds, which can run code; since 2.6 it refuses all "
    "but tensors and plain containers. Pass `weights_only=True`, or `False` for objects in a file you trust.",
}
