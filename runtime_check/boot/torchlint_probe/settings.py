"""What the launcher asks of the probe, carried in one environment variable."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from typing import Any

VARIABLE = "TORCHLINT_PROBE"


@dataclasses.dataclass(frozen=True)
class Settings:
    """`tree` is the copy that runs, `original` the user's own folder, `results` where each process writes its file.

    mode: "time" (clocks only), "observe" (operations, reads, memory, losses; never timed), "profile" or "record".
    boundary: what ends a step: "optimizer", "loader", "program", or "auto" for whichever of them is seen first.
    perturb: relative size, in units of the last place, of a disturbance of the initial parameters.
    function: in the mode "record", whose arguments to keep: file, line and name of its code, decorators first.
    double: everything runs in float64.
    timed: in the mode "profile", how many steps after the warm-up are timed; those after them are counted.
    turn: steps after which the program waits until it is its turn again; 0: it never waits.
    """

    tree: str
    original: str
    results: str
    mode: str
    boundary: str = "auto"
    steps: int = 30
    warmup: int = 5
    seed: int = 0
    perturb: float = 0.0
    function: Sequence[Sequence[Any]] = ()
    double: bool = False
    timed: int = 0
    turn: int = 0

    @classmethod
    def from_environment(cls) -> Settings:
        return cls(**json.loads(os.environ[VARIABLE]))

    def to_environment(self) -> dict[str, str]:
        return {VARIABLE: json.dumps(dataclasses.asdict(self))}
