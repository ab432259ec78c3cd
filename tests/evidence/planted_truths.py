#!/usr/bin/env python3
"""Let `verify` judge programs of which the truth is known, and write down what it said.

usage: python -m tests.evidence.planted_truths [--only results paces itself] [--programs NAME ...] [--rounds N]
                                               [--output FILE]

results: changes of planted/changes.toml, each "equal" or "different". paces: work that takes 2, 5, 10 and 100 percent
more or less. itself: N rounds of twelve comparisons of a program with itself, in turn of several programs. What was
recorded of the other parts, and of the results of other programs than those named, stays in the file.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import platform
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torchlint.runtime_check.toolkit import device

from tests.evidence import truths

PARTS = ("results", "paces", "itself")
FILE = Path(__file__).with_suffix(".json")


def main() -> int:
    """1 where something that was said does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--programs", nargs="+", default=sorted({change.program for change in truths.changes()}))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--output", type=Path, default=FILE)
    given = parser.parse_args()
    records = {
        "results": _judged(given.programs),
        "paces": itertools.starmap(truths.paced, truths.UNITS),
        "itself": map(truths.against_itself, itertools.islice(itertools.cycle(truths.ENDLESS), given.rounds)),
    }
    for part in given.only:
        _record(part, records[part], given.output, given.programs if part == "results" else ())
    return int(any(wrong(part) for part in json.loads(given.output.read_text()).values()))


def _judged(programs: Collection[str]) -> Iterator[dict[str, Any]]:
    wanted = [change for change in truths.changes() if change.program in programs]
    for name, planted in itertools.groupby(wanted, key=lambda change: change.program):
        yield from truths.judged(name, list(planted))


def _record(part: str, records: Iterator[dict[str, Any]], output: Path, programs: Collection[str]) -> None:
    """After each record the file is whole. Older records of other programs than these stay."""
    evidence = json.loads(output.read_text()) if output.exists() else {}
    older = evidence[part]["records"] if programs and part in evidence else []
    found = [record for record in older if record["program"] not in programs]
    for record in records:
        found.append(record)
        evidence[part] = {**_about(), **summary(part, found), "records": found}
        output.write_text(_written(evidence))
        print(f"{part} {len(found)}: {record.get('name', '')} {record['said']}", flush=True)


def summary(part: str, records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    if part == "itself":
        paces = [pace for record in records for pace in record["said"]]
        return {"comparisons": len(paces), "said": {pace: paces.count(pace) for pace in sorted(set(paces))}}
    pairs = [(record["truth"], record["said"]) for record in records]
    return {
        "said": [
            {"truth": truth, "said": said, "times": pairs.count((truth, said))} for truth, said in sorted(set(pairs))
        ]
    }


def wrong(part: dict[str, Any]) -> int:
    """How many statements do not hold; of a program compared with itself, one in a hundred may come by chance."""
    if "comparisons" in part:
        return max(0, sum(record["wrong"] for record in part["records"]) - part["comparisons"] // 100)
    return sum(not record["holds"] for record in part["records"])


def _about() -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    return {
        "command": f"python -m tests.evidence.planted_truths {' '.join(sys.argv[1:])}".strip(),
        "commit": commit,
        "date": datetime.date.today().isoformat(),
        "device": device.describe(torch.device("cpu")),
        "processors": os.cpu_count(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def _written(evidence: dict[str, Any]) -> str:
    """JSON with one record on a line."""
    parts = []
    for name in sorted(evidence, key=PARTS.index):
        head = {key: value for key, value in evidence[name].items() if key != "records"}
        lines = ",\n".join(f"   {json.dumps(record)}" for record in evidence[name]["records"])
        facts = "".join(f"  {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
        parts.append(f' "{name}": {{\n{facts}  "records": [\n{lines}\n  ]\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
