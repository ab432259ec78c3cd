"""A JSON object for each finding, each on a line of its own."""

from __future__ import annotations

import json

from torchlint.output import Outcome
from torchlint.output.json import entry


def render(outcome: Outcome, color: bool) -> str:
    return "".join(f"{json.dumps(entry(finding, source))}\n" for finding, source in outcome.shown())
