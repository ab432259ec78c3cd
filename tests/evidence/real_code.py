#!/usr/bin/env python3
"""Run pieces of public repositories before and after the fixes of torchlint, and compare what they compute bit by bit.

usage: python -m tests.evidence.real_code CHECKOUTS [--only PIECE ...]

CHECKOUTS holds a folder OWNER__NAME with each repository at its commit, which is only read: the pieces run in copies.
There a piece runs as it is, twice (what is not the same then is no outcome of a fix), after
`torchlint check --fix`, and after `--fix --unsafe-fixes`. Outcomes go to `real_code.json` and `real_code.md` beside
this file; those of other pieces stay in it. Exit code 1 if a safe fix changed anything, or any fix ended a run.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from tests.evidence.comparing import compare
from tests.evidence.observing import Lines, observe
from tests.evidence.piece import Piece, find, names
from tests.evidence.table import table

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RECORDS = HERE / "real_code.json"
TABLE = HERE / "real_code.md"

Record = dict[str, Any]


class DoesNotRunError(Exception):
    """A piece that fails before any fix shows nothing."""


def copy(piece: Piece, checkouts: Path, folder: Path) -> Path:
    """The repository of the piece as files in `folder`, and nothing else there."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(checkouts / piece.checkout, folder, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    return folder


def blob(path: Path) -> str:
    """What git calls this file, to be held against `git rev-parse COMMIT:PATH`."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def torchlint(folder: Path, part: str, *options: str) -> str:
    command = [
        sys.executable,
        "-m",
        "torchlint",
        "check",
        "--isolated",
        "--no-cache",
        "-q",
        "-j1",
        *options,
        part or ".",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode > 1:
        raise RuntimeError(f"torchlint failed: {done.stderr}")
    return done.stdout


def applied(findings: list[dict[str, Any]], lines: Lines, kinds: set[str]) -> tuple[Counter[str], Counter[str]]:
    """How often each rule has a fix of these kinds in the files that ran, and how many of these are of lines that
    ran."""
    fixes: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    for finding in findings:
        fix = finding["fix"]
        where = finding["path"] + (f"#{finding['cell']}" if finding.get("cell") else "")
        if fix is None or fix["applicability"] not in kinds or where not in lines:
            continue
        fixes[finding["code"]] += 1
        inside = finding["function"] is not None
        spans = [finding, *fix["edits"]]
        touched = {line for span in spans for line in range(span["line"], span["end_line"] + 1)}
        ran[finding["code"]] += any(line in touched and within == inside for line, within in lines[where])
    return fixes, +ran


def outcome(before: dict[str, Any], after: dict[str, Any]) -> Record:
    comparison = compare(before["values"], after["values"])
    drawn = before["random state"] == after["random state"]
    return {
        "equal": comparison.equal and drawn,
        "random_state_equal": drawn,
        **asdict(comparison),
        "absolute": finite(comparison.absolute),
        "relative": finite(comparison.relative),
    }


def finite(value: float) -> float | str:
    return value if math.isfinite(value) else "not a number"


def measure(piece: Piece, checkouts: Path, scratch: Path) -> Record:
    """All runs of a piece. Every version lies in the same place when it runs, so that no path differs."""
    folder = copy(piece, checkouts, scratch / "checkout")
    findings = json.loads(torchlint(folder, piece.lint, "--output-format", "json"))
    original = observe(piece.run, folder, traced=True)
    if "error" in original:
        raise DoesNotRunError(original["error"])
    again = observe(piece.run, copy(piece, checkouts, folder))
    record: Record = {
        "repository": piece.repository,
        "commit": piece.commit,
        "path": piece.path,
        "blob": blob(checkouts / piece.checkout / piece.path),
        "what": piece.what,
        "original_twice": outcome(original, again),
    }
    for name, options, kinds in (
        ("safe", ["--fix"], {"safe"}),
        ("unsafe", ["--fix", "--unsafe-fixes"], {"safe", "unsafe"}),
    ):
        copy(piece, checkouts, folder)
        torchlint(folder, piece.lint, *options)
        fixes, ran = applied(findings, original["lines"], kinds)
        after = observe(piece.run, folder)
        result = {"error": after["error"]} if "error" in after else outcome(original, after)
        record[name] = {"fixes": dict(sorted(fixes.items())), "ran": dict(sorted(ran.items())), **result}
    return record


def broken(record: Record) -> bool:
    """Whether a safe fix changed more than the type of a number, or any fix ended the run."""
    safe, unsafe = record["safe"], record["unsafe"]
    kept = "error" not in safe and safe["random_state_equal"]
    return "error" in unsafe or not kept or any(safe[kind] for kind in ("numbers", "texts", "missing"))


def environment(command: str) -> dict[str, str]:
    revision = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torchlint": subprocess.run(revision, check=True, capture_output=True, text=True).stdout.strip(),
        "device": f"CPU ({platform.machine()}), one thread",
        "date": datetime.date.today().isoformat(),
        "command": command,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    torch.set_num_threads(1)
    records: dict[str, Record] = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    failed = False
    for name in options.only or names():
        with tempfile.TemporaryDirectory() as scratch:
            try:
                record = measure(find(name), options.checkouts.resolve(), Path(scratch).resolve())
            except DoesNotRunError as reason:
                print(f"{name} does not run as it is: {reason}", flush=True)
                failed = True
                continue
        records[name] = {**record, **environment("python -m tests.evidence.real_code CHECKOUTS")}
        failed |= broken(record)
        print(
            name,
            {kind: record[kind].get("equal", "error") for kind in ("original_twice", "safe", "unsafe")},
            flush=True,
        )
        RECORDS.write_text(json.dumps(dict(sorted(records.items())), indent=1) + "\n")
        TABLE.write_text(table(records))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
