"""The records of `real_code.json` as a table to read."""

from __future__ import annotations

from typing import Any

HEAD = """| repository | piece | what ran | safe fixes | values | unsafe fixes besides | values |
|---|---|---|---|---|---|---|
"""


def table(records: dict[str, dict[str, Any]]) -> str:
    ordered = sorted(records.values(), key=lambda record: (record["repository"].lower(), record["path"]))
    return HEAD + "".join(map(row, ordered))


def row(record: dict[str, Any]) -> str:
    safe, unsafe = record["safe"], record["unsafe"]
    besides = {code: count - safe["fixes"].get(code, 0) for code, count in unsafe["fixes"].items()}
    besides_ran = {code: count - safe["ran"].get(code, 0) for code, count in unsafe["ran"].items()}
    cells = [
        f"{record['repository']} at {record['commit'][:7]}",
        f"`{record['path']}`",
        record["what"],
        fixes(safe["fixes"], safe["ran"]),
        values(safe),
        fixes(besides, besides_ran),
        values(unsafe) if any(besides.values()) else "",
    ]
    return f"| {' | '.join(cells)} |\n"


def fixes(made: dict[str, int], ran: dict[str, int]) -> str:
    """Each code with the fixes that ran, of those made in the files that ran."""
    return ", ".join(f"{code} {ran.get(code, 0)}/{count}" for code, count in sorted(made.items()) if count) or "none"


def values(result: dict[str, Any]) -> str:
    if "error" in result:
        return f"**fails**: {result['error'].splitlines()[-1]}"
    if result["equal"]:
        return f"{result['compared']}, all bit-equal"
    sizes = f"at most {number(result['absolute'])} absolute, {number(result['relative'])} relative"
    parts = {
        f"{len(result['numbers'])} of {result['compared']} differ, {sizes}": result["numbers"],
        f"{len(result['types'])} of {result['compared']} have another type, but the same value": result["types"],
        f"{len(result['missing'])} values are in one run only": result["missing"],
        "other text is printed": result["texts"],
        "other random numbers were drawn": not result["random_state_equal"],
    }
    return "; ".join(part for part, holds in parts.items() if holds)


def number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.2g}"
