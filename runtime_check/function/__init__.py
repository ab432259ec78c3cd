"""Two versions of one function on the same arguments, recorded in a run of the user's program or made up.

Needs torch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from ..equivalence import Sameness
from ..plain import plain
from .call import Call
from .compare import CallVerdict, compare_call, together
from .version import FunctionError, Version, load

__all__ = ["Call", "FunctionError", "FunctionVerdict", "Version", "load", "verify_function"]
SCHEMA = "torchlint.function/1"


@dataclass(frozen=True)
class FunctionVerdict:
    """`arguments` is "recorded" or "generated". `outside` counts generated calls that the original itself refuses;
    `unrecorded` recorded calls that could not be kept, by reason; `seen` all calls of the run."""

    verdict: Sameness
    reason: str
    old: str
    new: str
    arguments: str
    calls: tuple[CallVerdict, ...]
    seen: int
    outside: int = 0
    unrecorded: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0: the same, 1: different, 3: not clear."""
        return {Sameness.DIFFERENT: 1, Sameness.UNKNOWN: 3}.get(self.verdict, 0)

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, **plain(asdict(self))}, indent=2)


def verify_function(
    old: Version,
    new: Version,
    calls: Iterable[Call],
    *,
    generated: bool = False,
    seen: int = 0,
    unrecorded: Mapping[str, int] | None = None,
) -> FunctionVerdict:
    """Replay every call on both versions, and judge by the worst.

    Made-up calls that the original refuses are outside of what it is for, and say nothing; a difference for infinite
    or missing numbers alone leaves the verdict open. Raises FunctionError.
    """
    verdicts: list[CallVerdict] = []
    odd: list[CallVerdict] = []
    outside = 0
    for call in calls:
        verdict = compare_call(call, old, new)
        if generated and verdict.original_raises:
            outside += 1
        else:
            (verdicts if call.is_finite else odd).append(verdict)
    sameness, reason = together(verdicts)
    if sameness in (Sameness.IDENTICAL, Sameness.EQUIVALENT):
        beyond, why = together(odd)
        if odd and beyond in (Sameness.DIFFERENT, Sameness.UNKNOWN):
            sameness, reason = Sameness.UNKNOWN, f"the same but for infinite or missing numbers: {why}"
    everything = (*verdicts, *odd)
    notes = tuple(dict.fromkeys(note for verdict in everything for note in verdict.notes))
    arguments = "generated" if generated else "recorded"
    return FunctionVerdict(
        sameness,
        reason,
        old.name,
        new.name,
        arguments,
        everything,
        max(seen, len(everything) + outside),
        outside,
        dict(unrecorded or {}),
        notes,
    )
