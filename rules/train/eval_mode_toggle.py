from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.train.evaluation_mode import Toggle
    from torchlint.semantics.model import Model


class EvalModeToggle(Rule):
    """A network with dropout or batch norm is evaluated in training mode, or trained in evaluation mode.

    ## What it does

    Finds evaluations that a network reaches in training mode: loops over validation or test data, functions that
    evaluate without a graph, methods that answer, as `generate`, behind the loop that trained the network, and calls
    that tell shared code to evaluate, where on no way `eval()` is called on this network. `eval()` of another network,
    as of a teacher, does not count. A network whose layers are not in sight counts where `train()` is called on it
    before. Finds `eval()` in a loop whose next iteration trains the same network again before anything calls `train()`.
    Dropout that is to be random, as in Monte Carlo dropout, is left alone.

    ## Why is this bad

    Dropout that is on makes every prediction random and worse. Batch norm in training mode normalises a sample with
    the other samples of its batch, so that results depend on the batch size, and lets the test data into the running
    statistics that are saved with the model. In the opposite case the network goes on to train without dropout and
    with the statistics of the first epoch. Neither raises an error.

    ## Example

    ```python
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    test_loader = DataLoader(TensorDataset(torch.randn(400, 8), torch.randint(3, (400,))), batch_size=100)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))


    def accuracy(model, loader):
        correct = 0
        with torch.no_grad():
            for x, y in test_loader:
                correct += (model(x).argmax(1) == y).sum().item()
        return correct / 400


    print(accuracy(model, test_loader))
    ```

    ## Use instead

    ```python
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    test_loader = DataLoader(TensorDataset(torch.randn(400, 8), torch.randint(3, (400,))), batch_size=100)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))


    def accuracy(model, loader):
        correct = 0
        with torch.no_grad():
            model.eval()
            for x, y in test_loader:
                correct += (model(x).argmax(1) == y).sum().item()
        return correct / 400


    print(accuracy(model, test_loader))
    ```

    ## Fix safety

    Unsafe: results change, which is the purpose. `eval()` goes before the loop or the call; where the file trains,
    or a script trains behind it, `train()` goes behind it. An `eval()` that nothing undoes is answered by `train()`
    at the beginning of each iteration. Where the network has no name at that place, and where the function has the
    call in a comment, as one that was taken out, there is no fix.

    ## Measured effect

    No evidence recorded yet.

    ## References

    * <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval>
    * <https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval>
    """

    code = "TRAIN04"
    name = "eval-mode-toggle"
    triggers = ("for ",)
    whole_function = True

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.train.evaluation_mode import missing_toggles

        for toggle in missing_toggles(model):
            yield Report(toggle.node, _message(toggle, model), facts=toggle, chain=_chain(toggle))


def _message(toggle: Toggle, model: Model) -> str:
    module = model.code(toggle.module)
    if toggle.epochs is not None:
        return (
            f"Nothing calls `{module}.train()` after this: from the second iteration of the loop in "
            f"{model.place(toggle.epochs.node)} on, training runs in evaluation mode. "
            f"Call `{module}.train()` at the beginning of each iteration."
        )
    back = f" and `{module}.train()` before training goes on" if toggle.trains else ""
    return (
        f"Nothing calls `{module}.eval()` on the way here: {_effect(toggle.layer.rpartition('.')[2])}, "
        f"and the results of this evaluation are wrong. Call `{module}.eval()` before it{back}."
    )


def _effect(layer: str) -> str:
    if not layer:
        return "dropout goes on dropping values, and batch norm learns from what it is tested on"
    if "Norm" in layer:
        return f"`{layer}` learns from what it is tested on"
    return f"`{layer}` goes on dropping values" if "ropout" in layer else f"`{layer}` works as in training"


def _chain(toggle: Toggle) -> tuple[Fact, ...]:
    if not toggle.layer:
        return ()
    layer = Fact(toggle.module, f"This network has a `{toggle.layer}`, which works in another way in training.")
    return (layer,) if toggle.epochs is None else (layer, Fact(toggle.epochs.node, "This loop trains it each time."))
