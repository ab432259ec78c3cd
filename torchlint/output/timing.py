"""What the time of a run went into."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from torchlint.rule import all_rules


def table(seconds: Iterable[Mapping[str, float]]) -> str:
    """Seconds and their share, the longest first; of all processes together."""
    total: defaultdict[str, float] = defaultdict(float)
    for entry in seconds:
        for what, spent in entry.items():
            total[what] += spent
    everything, rules = sum(total.values()), all_rules()
    rows = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    lines = [
        f"{spent:10.3f} s {spent / everything:6.1%}  {what}{' ' + rules[what].name if what in rules else ''}\n"
        for what, spent in rows
    ]
    return "".join(lines)
