"""How far two devices agree on the numbers that factories, functions and methods of tensors make."""

from __future__ import annotations

from enum import IntEnum

from torchlint.semantics import vocabulary as words
from torchlint.word_set import word_set


class Agreement(IntEnum):
    """How far another device makes the same numbers."""

    EXACT = 0
    ROUNDED = 1  # but for the last bits
    RANDOM = 2  # each device has a random stream of its own


FACTORIES = {
    **dict.fromkeys(word_set("zeros ones full empty eye tril_indices triu_indices"), Agreement.EXACT),
    **dict.fromkeys(
        word_set("linspace logspace hann_window hamming_window bartlett_window blackman_window kaiser_window"),
        Agreement.ROUNDED,
    ),
    **dict.fromkeys(word_set("rand randn randint randperm"), Agreement.RANDOM),
    "nn.Transformer.generate_square_subsequent_mask": Agreement.EXACT,
}
ALIKE = {
    **dict.fromkeys(word_set("zeros_like ones_like full_like empty_like"), Agreement.EXACT),
    **dict.fromkeys(word_set("rand_like randn_like randint_like"), Agreement.RANDOM),
}
CASTS = word_set("long int short bool byte char float double half bfloat16 type to")
SHAPING = word_set(
    """
    view reshape unsqueeze squeeze expand repeat t transpose permute contiguous flatten view_as expand_as detach clone
    unflatten narrow movedim unsqueeze_ squeeze_ transpose_ t_ resize_ repeat_interleave tile chunk unbind
    """
)
FILLING = word_set("zero_ fill_ fill_diagonal_")
DRAWING = word_set(
    "normal_ uniform_ random_ bernoulli_ exponential_ log_normal_ geometric_ cauchy_ bernoulli multinomial"
)
ROUNDED_ALIKE = word_set(
    """
    mul add sub neg abs clamp clamp_min clamp_max tril triu mul_ add_ sub_ neg_ abs_ clamp_ clamp_min_ clamp_max_ tril_
    triu_ eq ne lt le gt ge logical_not bitwise_not masked_fill masked_fill_ round floor ceil flip roll diag
    """
)
_BRINGING_OTHERS = word_set("cuda requires_grad_ pin_memory copy_ apply_ map_ where")


def agreement_if_drawn(name: str, otherwise: Agreement) -> Agreement:
    """Of what draws random numbers, which no other device draws the same; else what is said `otherwise`."""
    return Agreement.RANDOM if name in DRAWING else otherwise


def continues(method: str) -> bool:
    """Whether a method of a tensor that is made of sizes and numbers gives another such tensor."""
    if method in CASTS | SHAPING | FILLING | DRAWING | ROUNDED_ALIKE:
        return True
    if method in _BRINGING_OTHERS:
        return False
    return words.is_tensor_method(method) and not words.leaves_tensors(method)
