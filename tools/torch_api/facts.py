"""From observations of calls to the facts of one row: what is returned, its dtype, graph, rank and side effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from tools.torch_api.observe import Observation, attempt

_WORDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (complex, "number"),
    (str, "str"),
    (type(None), "none"),
    (torch.Size, "shape"),
    (torch.dtype, "dtype"),
    (torch.device, "device"),
)
_DTYPES = {
    dtype: str(dtype).removeprefix("torch.")
    for dtype in (
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    )
}
_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}
_NARROW_AND_WIDE = {
    torch.float32: (torch.float32, torch.float64),
    torch.int64: (torch.int32, torch.int64),
    torch.bool: (torch.bool, torch.int64),
}
_COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}


@dataclass
class Facts:
    result: str = ""
    dtype: str = ""
    grad: str = ""
    rank: str = ""
    batch: str = ""
    flags: tuple[str, ...] = ()


# -- what is returned ------------------------------------------------------------------------------------------------


def _part(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        integral = not value.dtype.is_floating_point and not value.dtype.is_complex and value.dtype is not torch.bool
        return "index" if integral else "tensor"
    if type(value).__module__ == "numpy":
        return "array"
    if isinstance(value, tuple) and value and all(isinstance(part, torch.Tensor) for part in value):
        return "tensors"
    return next((word for kind, word in _WORDS if isinstance(value, kind)), "")


def _shape_of_result(made: Observation) -> str:
    if not made.is_sequence or isinstance(made.result, torch.Size):
        word = _part(made.result)
        return "tensor" if word == "index" else word
    words = [_part(part) for part in made.result]
    if not words or not set(words) <= {"tensor", "index"}:
        if len(words) > 1 and words[0] == "tensor" and set(words) <= {"tensor", "tensors", "index", "none"}:
            return ",".join(words)
        return "list" if type(made.result) is list else ""
    return "tensors" if type(made.result) is list or len(words) == 1 else ",".join(words)


def result(every: Sequence[Observation], declared: set[str]) -> str:
    """The kinds of results that a call may have, divided by `|`."""
    floating = [made for made in every if made.sample.dtype.is_floating_point] or every
    measured = {_shape_of_result(made) for made in floating} - {""}
    lengths = {word.count(",") for word in measured if "," in word}
    if len(lengths) > 1 or "tensors" in declared:
        measured = {word for word in measured if "," not in word} | {"tensors"} if measured else measured
    for word in declared:
        alike = {known for known in measured if known.count(",") == word.count(",") and "tensor" in known}
        if "tensor" not in word or not alike or word == "tensors":
            measured.add(word)
    if "number" in measured:
        measured -= {"int", "float", "bool"}
    detailed = {word.replace("index", "tensor") for word in measured if "index" in word}
    return "|".join(sorted((measured - detailed) | {word for word in measured if "index" in word}))


# -- dtype -----------------------------------------------------------------------------------------------------------


def _always(dtype: torch.dtype) -> Callable[[torch.dtype], torch.dtype]:
    return lambda _: dtype


def _rules() -> dict[str, Callable[[torch.dtype], torch.dtype | None]]:
    def inexact(dtype: torch.dtype) -> torch.dtype:
        return dtype if dtype.is_floating_point or dtype.is_complex else torch.float32

    return {
        "same": lambda dtype: dtype,
        "inexact": inexact,
        "real": lambda dtype: _REAL.get(dtype, dtype),
        "inexact-real": lambda dtype: _REAL.get(dtype, inexact(dtype)),
        "widened": lambda dtype: torch.int64 if dtype is torch.bool else dtype,
        "complex": lambda dtype: dtype if dtype.is_complex else _COMPLEX.get(dtype, torch.complex64),
        **{word: _always(dtype) for dtype, word in _DTYPES.items()},
    }


def kind_of_dtype(dtype: torch.dtype) -> str:
    if dtype is torch.bool:
        return "bool"
    return "float" if dtype.is_floating_point else "complex" if dtype.is_complex else "int"


def _names_dtype(made: Observation) -> bool:
    return any(isinstance(given, torch.dtype) for given in (*made.sample.arguments, *made.sample.keywords.values()))


def dtype(every: Sequence[Observation]) -> str:
    """The first rule by which every result has its dtype, from that of the first input."""
    free = [made for made in every if made.main is not None and not _names_dtype(made)]
    made_up = {made.main.dtype for made in free if made.main is not None and not made.inputs}
    if len(made_up) == 1:
        return _DTYPES.get(made_up.pop(), "")
    pairs = {(first.dtype, made.main.dtype) for made in free if made.main is not None for first in made.inputs[:1]}
    if not pairs or all(given is torch.float32 for given, _ in pairs):
        return ""
    found = next((name for name, rule in _rules().items() if all(rule(a) is b for a, b in pairs)), "")
    takes_integers = any(not given.is_floating_point and not given.is_complex for given, _ in pairs)
    return found if takes_integers else {"same": "inexact", "real": "inexact-real"}.get(found, found)


# -- graph -----------------------------------------------------------------------------------------------------------


def grad(every: Sequence[Observation]) -> str:
    """Whether the (first) result is part of the graph of an input that is."""
    carried = [made.main.requires_grad for made in every if made.main is not None and made.had_graph]
    if not carried:
        results = {made.main.dtype for made in every if made.main is not None and made.inputs}
        return "no" if results and not any(kind.is_floating_point or kind.is_complex for kind in results) else ""
    return "yes" if all(carried) else "no" if not any(carried) else ""


# -- rank ------------------------------------------------------------------------------------------------------------


def _numbers(value: Any) -> int | None:
    """How many dimensions an argument names: `1`, `(0, 2)`."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return 1
    if isinstance(value, (tuple, list)) and all(isinstance(item, int) for item in value):
        return len(value)
    return None


def _reduced(made: Observation, rank: int) -> int:
    rest = made.sample.arguments[1:]
    named = [value for value in rest if _numbers(value) is not None]
    dim = made.sample.keywords.get("dim", named[0] if named else None)
    count = _numbers(dim)
    keep = made.sample.keywords.get("keepdim", next((value for value in rest if isinstance(value, bool)), False))
    if keep:
        return rank
    return max(rank - count, 0) if count else 0


def _sized(made: Observation) -> int | None:
    rest = made.sample.arguments[1:]
    if rest and all(isinstance(value, int) for value in rest):
        return len(rest)
    return len(rest[0]) if rest and isinstance(rest[0], (tuple, list)) else None


def _product(made: Observation) -> int | None:
    if len(made.inputs) < 2:
        return None
    a, b = made.ranks[:2]
    if a == 1 and b == 1:
        return 0
    return max(a, b) - (1 if 1 in (a, b) else 0)


def rank(every: Sequence[Observation]) -> str:
    """How the number of dimensions of the (first) result follows from the inputs, or else from the first."""
    if not any(made.inputs for made in every):
        return _rank_of_made_up([made for made in every if made.main is not None])
    return _rank(every) or _rank([made for made in every if len(made.inputs) == 1])


def _rank_of_made_up(every: Sequence[Observation]) -> str:
    """Of what is given sizes and numbers only."""
    pairs = [(made.main.dim(), made.sample.arguments) for made in every if made.main is not None]
    sizes = [(rank, size) for rank, given in pairs for size in given if isinstance(size, tuple)]
    if sizes:
        return "sized" if all(rank == len(size) for rank, size in sizes) else ""
    ranks = {rank for rank, _ in pairs}
    return str(ranks.pop()) if len(ranks) == 1 else ""


def _rank(every: Sequence[Observation]) -> str:
    seen = [(made, made.ranks[0], made.main.dim()) for made in every if made.main is not None and made.inputs]
    if not seen:
        return ""
    given = {rank for _, rank, _ in seen}
    if all(out == first for _, first, out in seen):
        return "keep"
    widest = [(max(made.ranks), out) for made, _, out in seen]
    if all(most == out for most, out in widest):
        return "broadcast"
    results = {out for _, _, out in seen}
    if len(given) > 1 and max(given) > 1 and len(results) == 1:
        return str(results.pop())
    for step in (1, -1, 2, -2):
        if given != {0} and all(out == first + step for _, first, out in seen if first > 0 or step > 0):
            return f"{step:+d}"
    if all(out == _reduced(made, first) for made, first, out in seen):
        return "reduce"
    if all(out == _sized(made) for made, _, out in seen):
        return "sized"
    return "product" if all(out == _product(made) for made, _, out in seen) else ""


# -- flags -----------------------------------------------------------------------------------------------------------


def flags(every: Sequence[Observation], name: str) -> set[str]:
    """What every call does; with `may-` what some calls do."""
    found: set[str] = set()
    returned = [made for made in every if made.inputs and made.main is made.inputs[0]]
    for flag in ("view", "inplace", "random", "reads", "dynamic", "writes"):
        does = [flag in made.flags for made in every if not made.inputs or any(map(torch.numel, made.inputs))]
        if does and any(does):
            found.add(flag if all(does) else f"may-{flag}")
    if name.endswith("_") and not name.endswith("__") and returned:
        found = (found - {"may-inplace", "view", "may-view", "writes", "may-writes"}) | {"inplace"}
    return found


def _promotes(function: Callable[..., Any], made: Observation) -> bool:
    """Whether the result has the dtype of the widest input, and not merely that of the first."""
    first, *rest = made.sample.arguments
    if not isinstance(first, torch.Tensor) or first.dtype not in _NARROW_AND_WIDE:
        return False
    narrow, wide = _NARROW_AND_WIDE[first.dtype]
    alike = [isinstance(value, torch.Tensor) and value.dtype is first.dtype for value in rest]
    others = tuple(value.to(wide) if is_alike else value for value, is_alike in zip(rest, alike))
    again = attempt(function, replace(made.sample, arguments=(first.to(narrow), *others)))
    return isinstance(again, torch.Tensor) and again.dtype is wide


def of_several(function: Callable[..., Any], measured: Facts, every: Sequence[Observation]) -> Facts:
    """Elementwise operations of several tensors broadcast and may promote, though the samples may not show it."""
    several = [made for made in every if len(made.inputs) > 1]
    if not several or measured.batch != "elementwise" or {"inplace", "view"} & set(measured.flags):
        return measured
    promoted = measured.dtype == "same" and any(_promotes(function, made) for made in several)
    return replace(measured, rank="broadcast", dtype="promoted" if promoted else measured.dtype)
