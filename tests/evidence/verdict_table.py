"""The records of `public_scripts.json` as a table to read."""

from __future__ import annotations

from collections import Counter
from typing import Any

HEAD = """| repository | script | fixes kept | refused | of lines that did not run | results \
| synchronisations a step | operations a step | time, with its interval | verdict |
|---|---|---|---|---|---|---|---|---|---|
"""

Record = dict[str, Any]


def table(records: dict[str, Record]) -> str:
    ordered = sorted(records.values(), key=lambda record: (record["repository"].lower(), record["path"]))
    return HEAD + "".join(map(row, ordered))


def row(record: Record) -> str:
    verdict = record["verdict"]
    cells = [
        f"{record['repository']} at {record['commit'][:7]}",
        f"`{record['path']}`",
        *(fixes(verdict, status) for status in ("kept", "refused")),
        str(record["fixes_not_run"]),
        verdict["equivalence"]["verdict"] if verdict["equivalence"] else "",
        change(verdict, "syncs"),
        change(verdict, "kernels"),
        time(verdict),
        verdict["overall"],
    ]
    return f"| {' | '.join(cells)} |\n"


def fixes(verdict: Record, status: str) -> str:
    counts = Counter(fix["fix"]["code"] for fix in verdict["fixes"] if fix["status"] == status)
    return ", ".join(f"{code} {count}" for code, count in sorted(counts.items())) or "none"


def change(verdict: Record, counter: str) -> str:
    if not verdict["before"] or not verdict["after"]:
        return ""
    return f"{verdict['before'][counter]:.1f} → {verdict['after'][counter]:.1f}"


def time(verdict: Record) -> str:
    if not verdict["timing"]:
        return ""
    effect = verdict["timing"]["comparison"]["effect"]
    return f"× {effect['ratio']:.2f} ({effect['low']:.2f} to {effect['high']:.2f})"
