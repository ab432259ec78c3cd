"""What the evidence in runtime_check/evidence says of each rule, in the words of its page and of the README's table.

`python -m tests.measured` brings the pages up to date.
"""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from torchlint.rule import Rule, all_rules

ROOT = Path(__file__).resolve().parents[1]
NOTHING = "No evidence recorded yet."
SECTION = re.compile(r"(?<=    ## Measured effect\n\n).*?(?=\n    ## References)", re.DOTALL)


@cache
def evidence() -> tuple[dict[str, Any], ...]:
    """The rows of all scenarios, file by file."""
    files = sorted((ROOT / "runtime_check" / "evidence").glob("*.json"))
    return tuple(row for file in files for row in json.loads(file.read_text()).get("scenarios", []))


def page(code: str) -> str:
    """The section "Measured effect" of the rule's page: a paragraph for each device."""
    rows = [row for row in evidence() if row["rule"] == code]
    devices = dict.fromkeys(_where(row) for row in rows)
    return "\n\n".join(_paragraph(where, [row for row in rows if _where(row) == where]) for where in devices) or NOTHING


def cell(code: str) -> str:
    """The ratio of times at the largest size, with its interval, for each device."""
    last = {_where(row): row for row in evidence() if row["rule"] == code}
    return "; ".join(f"{_time(row)}, {_device(row)}" for row in last.values()) or "none recorded"


def _paragraph(where: str, rows: list[dict[str, Any]]) -> str:
    effects = "; ".join(f"size {row['size']}: {', '.join(_effects(row))}" for row in rows)
    text = (
        f"`torchlint bench {rows[0]['rule']}` on {where}; per training step, time as a part of that before the fix, "
        f"with its 99 % interval. {effects[:1].upper()}{effects[1:]}."
    )
    return textwrap.fill(text, 116, break_long_words=False, break_on_hyphens=False)


def _effects(row: dict[str, Any]) -> Iterator[str]:
    verdict = row["verdict"]
    yield f"time {_time(row)}"
    for name, key in (
        ("operations", "kernels"),
        ("synchronisations", "syncs"),
        ("graph nodes kept", "graph_nodes_kept_per_step"),
    ):
        before, after = verdict["before"][key], verdict["after"][key]
        if round(before) != round(after):
            yield f"{name} {before:.0f} → {after:.0f}"
    yield f"results {verdict['equivalence']['verdict']}"


def _time(row: dict[str, Any]) -> str:
    timing = row["verdict"]["timing"]
    if timing is None:
        return f"not taken: {'; '.join(row['verdict']['reasons'])}"
    effect = timing["comparison"]["effect"]
    return f"× {_ratio(effect['ratio'])} ({_ratio(effect['low'])} to {_ratio(effect['high'])})"


def _ratio(value: float) -> str:
    """Two decimals, and more of them where these would be zeros."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _device(row: dict[str, Any]) -> str:
    environment = row["verdict"]["environment"]
    name = environment["device_name"] or "unnamed"
    return name if environment["device"] == "cuda" else f"CPU ({name})"


def _where(row: dict[str, Any]) -> str:
    environment = row["verdict"]["environment"]
    driver = f", driver {environment['driver']}" if environment["driver"] else ""
    return f"{_device(row)}{driver}, torch {environment['torch']}, {environment['date']}"


def write(rule: type[Rule]) -> None:
    file = Path(inspect.getsourcefile(rule) or "")
    text = file.read_text()
    assert SECTION.search(text), file
    section = textwrap.indent(page(rule.code), "    ") + "\n"
    file.write_text(SECTION.sub(lambda found: section, text, count=1))


if __name__ == "__main__":
    for rule in all_rules().values():
        write(rule)
