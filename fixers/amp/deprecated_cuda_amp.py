"""`torch.cuda.amp.autocast()` becomes `torch.amp.autocast("cuda")`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers._together import places_of

from torchlint.analyses.amp.cuda_amp import Use, mentions, uses
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.finding import Places
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_AUTOCAST_ORDER = ("enabled", "dtype", "cache_enabled")
_WHY = "The old name calls the new one."
_WHY_COMPILED = "TorchScript compiles the two names in different ways."


def fix(report: Report, model: Model) -> Fix:
    return replace(_renamed(report.facts, model), goes_with=(model.once(_all_of_the_old_api),))


def _all_of_the_old_api(model: Model) -> Places:
    return places_of([*(use.callee for use in uses(model)), *mentions(model)], model)


def _renamed(use: Use, model: Model) -> Fix:
    rewriter = Rewriter(model)
    if use.name == "GradScaler" and _is_asked_for(model):
        raise NoFixError("the file asks with `isinstance` for the old class, which the new one is none of")
    if use.call is not None and use.call.partial:
        raise NoFixError(
            "`functools.partial` names the old API and fills in arguments, before which the device would go"
        )
    name, imports = rewriter.name_for(f"torch.amp.{use.name}", use.node)
    arguments = _arguments(use, rewriter, model)
    if use.call is None:
        edits = [rewriter.replace(use.node, f"{name}(device_type={rewriter.string(use.device)})")]
    else:
        edits = [rewriter.replace(use.callee, name), *arguments]
    edits += imports
    if "torch.jit" in model.source.text:
        return Fix(tuple(edits), Applicability.UNSAFE, _WHY_COMPILED)
    return Fix(tuple(edits), Applicability.SAFE, _WHY)


def _is_asked_for(model: Model) -> bool:
    """Whether the old class, which is a subclass of the new one, is asked for by `isinstance` or derived from."""
    text = model.source.text
    return "isinstance" in text and any(
        "GradScaler" in model.code(call.node.args[-1])
        for call in model.calls_to("builtins.isinstance")
        if call.arguments
    )


# -- arguments


def _arguments(use: Use, rewriter: Rewriter, model: Model) -> list[Edit]:
    """Edits that say the device; and, since its order has changed, every argument of `autocast` by its name."""
    if use.call is None:
        return []
    call = use.call.node
    if use.name.startswith("custom"):
        return [rewriter.add_argument(call, f"device_type={rewriter.string(use.device)}")]
    keywords = _keywords(call) if use.name == "autocast" else [""] * len(call.args)
    first = rewriter.string(use.device)
    dtype = _float16(use, rewriter, model)
    if not call.args:
        return [rewriter.add_argument(call, first + (f", {dtype}" if dtype else ""))]
    before = [first + ", " + keywords[0], *keywords[1:]]
    edits = [rewriter.insert(model.span(arg)[0], text) for arg, text in zip(call.args, before) if text]
    return [*edits, rewriter.add_argument(call, dtype)] if dtype else edits


def _keywords(call: cst.Call) -> list[str]:
    """What goes before each argument of `autocast`."""
    found = []
    for position, arg in enumerate(call.args):
        if arg.star == "*" or (arg.keyword is None and not arg.star and position >= len(_AUTOCAST_ORDER)):
            raise NoFixError("a `*` hides which argument is which, and their order has changed")
        found.append(f"{_AUTOCAST_ORDER[position]}=" if arg.keyword is None and not arg.star else "")
    return found


def _float16(use: Use, rewriter: Rewriter, model: Model) -> str | None:
    """The type that the old `autocast` has by default, where another one may be in force."""
    text = model.source.text
    if use.call is None or use.name != "autocast" or not ("bfloat16" in text or "set_autocast" in text):
        return None
    dtype, enabled = use.call.argument("dtype", 1), use.call.argument("enabled", 0)
    if not dtype.absent or enabled.value.constant is False:
        return None
    name = rewriter.known_name("torch.float16" if use.device == "cuda" else "torch.bfloat16", use.node)
    return f"dtype={name}" if name is not None else None
