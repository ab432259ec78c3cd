from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Confidence
from torchlint.rule import Fact, Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.train.activations import Mismatch
    from torchlint.semantics.model import Model


class ActivationLossMismatch(Rule):
    """A loss gets values that went through an activation which it applies itself, or not through one that it needs.

    ## What it does

    Finds a softmax or a sigmoid before the cross entropy, a sigmoid or a softmax before the binary cross entropy with
    logits, and a softmax without its logarithm before the negative log likelihood and the KL divergence. The way from
    the activation to the loss may lead through variables, functions, the `forward` of a module and the last layer of
    an `nn.Sequential`. Silent where only some ways lead through the activation.

    ## Why is this bad

    Cross entropy takes the softmax of what it gets. Of probabilities between 0 and 1, the second softmax is nearly
    flat: with ten classes the loss cannot fall below 1.46, however good the model is, gradients are small, and
    training is slow and stops early, all without an error.

    ## Example

    ```python
    import torch
    import torch.nn.functional as F

    logits = torch.randn(4, 10, requires_grad=True)
    labels = torch.randint(10, (4,))
    loss = F.cross_entropy(F.softmax(logits, dim=1), labels)
    loss.backward()
    ```

    ## Use instead

    ```python
    import torch
    import torch.nn.functional as F

    logits = torch.randn(4, 10, requires_grad=True)
    labels = torch.randint(10, (4,))
    loss = F.cross_entropy(logits, labels)
    loss.backward()
    ```

    ## Fix safety

    Unsafe: the loss has other values, which is the purpose. An activation that nothing but the loss reads is taken away
    or replaced by its logarithm; where other code reads it too, the loss gets the variable that it is made of. One in a
    model is left to its author, since other code may read the probabilities.

    ## Measured effect

    No evidence recorded yet.

    ## References

    * <https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html>
    * <https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html>
    * <https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html>
    """

    code = "TRAIN06"
    name = "activation-loss-mismatch"
    triggers = ("CrossEntropyLoss", "cross_entropy", "NLLLoss", "nll_loss", "KLDivLoss", "kl_div", "BCEWithLogits")

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.train.activations import mismatches

        for mismatch in mismatches(model):
            confidence = Confidence.CERTAIN if mismatch.is_certain else Confidence.LIKELY
            yield Report(mismatch.input, _message(mismatch, model), confidence, mismatch, _chain(mismatch, model))


def _message(mismatch: Mismatch, model: Model) -> str:
    loss, activation = model.code(mismatch.loss.node.func), mismatch.activation
    match mismatch.loss_kind:
        case "cross_entropy":
            tells = "takes the softmax of its input itself. Pass the logits."
        case "bce_with_logits":
            tells = "takes the sigmoid of its input itself. Pass the logits."
        case _:
            tells = "expects log probabilities. Use `log_softmax`."
    where = "" if mismatch.input is activation.node else f" ({_place(mismatch, model)})"
    return f"What `{loss}` gets went through a {activation.kind}{where}, but it {tells}"


def _place(mismatch: Mismatch, model: Model) -> str:
    activation = mismatch.activation
    if activation.model is model:
        return model.place(activation.node)
    return f"{activation.model.path.name}:{activation.model.line(activation.node)}"


def _chain(mismatch: Mismatch, model: Model) -> tuple[Fact, ...]:
    end = Fact(mismatch.loss.node, "the loss applies it again, or wants its logarithm")
    if mismatch.activation.model is not model:
        return (end,)
    return (Fact(mismatch.activation.node, f"a {mismatch.activation.kind} is applied here"), end)
