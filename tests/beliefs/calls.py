#!/usr/bin/env python3
"""Print what the model believes of calls of torch's functions and methods, and is false.

usage: python -m tests.beliefs.calls [NAME ...]

Each function and each method of tensors in `torch_api.tsv` is called with many forms of arguments: inputs of several
ranks and dtypes, dimensions by position and by name, a second tensor of the same or of another rank. Of the calls that
torch takes, kind, rank, dtype, length and graph of the result are compared with what the model makes of the same text.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Iterator

import libcst as cst
import torch

from tests.beliefs.held_against import contradiction
from tests.beliefs.instrumented import described
from tests.semantics.programs import model_of
from torchlint.semantics import torch_api
from torchlint.semantics.torch_api import Entry
from torchlint.semantics.vocabulary import is_loss_function

INPUTS = {
    "number": "torch.rand(()) + 0.5",
    "row": "torch.rand(4)",
    "grid": "torch.rand(3, 4)",
    "square": "torch.rand(4, 4)",
    "cube": "torch.rand(2, 3, 4)",
    "counts": "torch.arange(12).reshape(3, 4)",
    "places": "torch.arange(4)",
    "truths": "torch.rand(3, 4) > 0.5",
    "waves": "torch.rand(3, 4, dtype=torch.complex64)",
    "doubles": "torch.rand(3, 4, dtype=torch.float64)",
    "pair": "[torch.rand(3, 4), torch.rand(3, 4)]",
    "mixed": "[torch.arange(4), torch.rand(4)]",
    "weights": "torch.rand(3, 4).requires_grad_()",
}
ARGUMENTS = (
    *("", "0", "1", "-1", "2", "2.0", "True", "(0,)", "(0, 1)", "0, 1", "1, 0", "2, 0", "0, True", "1, keepdim=True"),
    *("dim=0", "dim=-1", "dim=(0, 1)", "axis=0", "dim=0, keepdim=True", "keepdim=True", "dim=None", "0.5", "0.0, 1.0"),
    *("dtype=torch.int64", "dtype=torch.float64", "torch.int64", "torch.float64", "dim0=0, dim1=1", "reduction='none'"),
    *("as_tuple=True", "return_inverse=True", "return_counts=True", "return_indices=True", "grid, reduction='none'"),
    *("(4, 3)", "4, 3", "-1, 2", "(2, 2)", "[2, 1]", "0, places", "1, counts", "0, 1, 2", "0, 0, places"),
    *("number", "row", "grid", "square", "cube", "counts", "truths", "waves", "doubles", "weights", "grid, grid"),
    *("square, square", "truths, grid", "truths, 0.0", "counts, 0", "row, row", "grid, reduction='sum'"),
    *("number, grid", "grid, 2.0"),
)
_NAMESPACES = ("torch", "torch.Tensor", "torch.linalg", "torch.fft", "torch.special", "torch.nn.functional")
_KINDS = ("function", "method", "factory")
_LEFT_OUT = frozenset(
    """
    save load compile seed initial_seed manual_seed set_rng_state share_memory_ set_ resize_ from_file fork wait hub
    set_default_dtype set_default_device set_default_tensor_type set_num_threads set_num_interop_threads
    set_deterministic_debug_mode use_deterministic_algorithms set_warn_always set_flush_denormal
    set_float32_matmul_precision set_printoptions set_grad_enabled register_hook storage untyped_storage map_ map2_
    apply_ new cuda xpu ipu hpu mtia is_pinned pin_memory empty empty_like empty_strided empty_permuted new_empty
    new_empty_strided bernoulli poisson
    """.split()
)


def called(entry: Entry, arguments: str, name: str) -> str:
    """The text of a call on the input of that name."""
    if entry.kind == "method":
        return f"{name}.{entry.short}({arguments})"
    given = ", ".join(filter(None, [name if entry.kind == "function" else "", arguments]))
    return f"{entry.name}({given})"


def accepted(entry: Entry) -> Iterator[tuple[str, object]]:
    """The calls that torch takes, and what they give."""
    inputs = INPUTS if entry.kind != "factory" else {"": ""}
    for name, arguments in itertools.product(inputs, filter(lambda form: _makes_sense(entry, form), ARGUMENTS)):
        code = called(entry, arguments, name)
        names = {key: eval(text, {"torch": torch}) for key, text in INPUTS.items() if key in code}
        try:
            result = eval(code, {"torch": torch}, names)
        except Exception:
            continue
        if not isinstance(result, torch.Tensor) or result.numel():
            yield code, result


def _makes_sense(entry: Entry, arguments: str) -> bool:
    """Torch takes numbers and truths for much; `x.to(2.0)` and `x.add(0, True)` are what nobody writes."""
    if entry.short == "to":
        return "torch" in arguments or arguments in INPUTS
    return (entry.batch != "elementwise" and entry.kind != "factory") or "True" not in arguments


def false_beliefs(entry: Entry) -> tuple[int, list[tuple[str, str]]]:
    """How many calls torch takes, and what of them is believed to be what it is not."""
    calls = list(accepted(entry))
    lines = [f"{name} = {text}" for name, text in INPUTS.items()]
    model = model_of("\n".join(["import torch", *lines, *(code for code, _ in calls)]) + "\n")
    statements = [line.body[0] for line in model.module.body[1 + len(lines) :]]  # type: ignore[union-attr,index]
    found = []
    for (code, result), statement in zip(calls, statements, strict=True):
        assert isinstance(statement, cst.Expr)
        wrong = contradiction(model.value(statement.value), described(result))
        if wrong is not None:
            found.append((code, wrong))
    return len(calls), found


def entries(names: list[str]) -> Iterator[Entry]:
    """The rows of these names, or of all public functions and methods."""
    rows = map(torch_api.lookup, names) if names else itertools.chain(*map(torch_api.entries, _NAMESPACES))
    for entry in rows:
        if entry is None or entry.kind not in _KINDS or not entry.results or "removed" in entry.flags:
            continue
        is_inner = entry.name.startswith("torch.nn.") or not is_loss_function(entry.name)  # torch.l1_loss is no API
        if is_inner and entry.short not in _LEFT_OUT and not entry.short.startswith("_"):
            yield entry


def main() -> int:
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    count = wrong = 0
    for entry in entries(sys.argv[1:]):
        taken, found = false_beliefs(entry)
        count += taken
        wrong += len(found)
        if found:
            print(f"{entry.name}: {len(found)} of {taken}", flush=True)
            for code, what in found[:6]:
                print(f"  {code} is believed {what}")
    print(f"{count} calls, {wrong} believed to be what they are not")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
