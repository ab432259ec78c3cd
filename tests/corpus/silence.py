#!/usr/bin/env python3
"""Run torchlint over code that has none of its problems, or hardly any, and count what it says.

usage: silence.py [--site FOLDER] [--past-the-gate] [--findings FILE] [--slow SECONDS] NAME ...

NAME is `stdlib`, a package or sub-package that is installed (torch/optim), or a folder. `--site` is where packages are
looked for, as `pip install --no-deps --target FOLDER` fills it. A file that does not mention torch is never analysed;
with `--past-the-gate` it is, as if it ended in a comment that does. Prints one row of a Markdown table per name, then
the files that took more than `--slow` seconds of the processor. `--findings` takes every finding as a line of JSON, for
reading. Exit 1 if the tool crashed on a file.
"""

from __future__ import annotations

import argparse
import json
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from platform import python_version
from typing import TextIO

from torchlint.config import Settings
from torchlint.diagnostics import is_failure
from torchlint.finding import Finding
from torchlint.running.task import Surroundings, Task
from torchlint.running.work import process
from torchlint.source import is_worth_linting

HEADER = "| package | version | files | lines | analysed | findings | CPU seconds |\n|---|---|---|---|---|---|---|"


@dataclass
class Heard:
    """What torchlint said about one package."""

    name: str
    version: str
    files: int = 0
    lines: int = 0
    analysed: int = 0
    seconds: float = 0.0
    codes: Counter[str] = field(default_factory=Counter)
    slow: list[tuple[float, Path]] = field(default_factory=list)
    crashes: list[Finding] = field(default_factory=list)

    def row(self) -> str:
        said = ", ".join(f"{code} {count}" for code, count in sorted(self.codes.items())) or "none"
        cells = (self.name, self.version, self.files, self.lines, self.analysed, said, f"{self.seconds:.0f}")
        return f"| {' | '.join(map(str, cells))} |"


def folder_of(name: str, site: Path) -> Path:
    if name == "stdlib":
        return Path(sysconfig.get_path("stdlib"))
    return next((path for path in (site / name, Path(name)) if path.is_dir()), site / name)


def version_of(name: str, site: Path) -> str:
    if name == "stdlib":
        return python_version()
    package = Path(name).parts[0]
    for distribution in distributions(path=[str(site)]):
        if any(file.parts[0] == package for file in distribution.files or ()):
            return distribution.version
    return "-"


def python_files(folder: Path) -> Iterator[Path]:
    """Modules below a folder; not packages that are installed there."""
    for path in sorted(folder.rglob("*.py")):
        if path.is_file() and "site-packages" not in path.relative_to(folder).parts:
            yield path


def listen(name: str, site: Path, past_the_gate: bool, slow: float, findings: TextIO | None) -> Heard:
    folder = folder_of(name, site)
    if not folder.is_dir():
        sys.exit(f"{name}: no such package or folder")
    heard, around = Heard(name, version_of(name, site)), Surroundings()
    for path in python_files(folder):
        data = path.read_bytes()
        heard.files += 1
        heard.lines += data.count(b"\n")
        if not is_worth_linting(data):
            if not past_the_gate:
                continue
            data += b"\n# torch\n"
        heard.analysed += 1
        started = time.process_time()
        result = process(Task(path, data, Settings(), around=around))
        seconds = time.process_time() - started
        heard.seconds += seconds
        if seconds > slow:
            heard.slow.append((seconds, path))
        for finding in result.findings:
            heard.codes[finding.code] += 1
            if is_failure(finding.code):
                heard.crashes.append(finding)
            if findings is not None:
                line = data.splitlines()[finding.line - 1].decode(errors="replace").strip()
                told = {"code": finding.code, "path": finding.path, "line": finding.line}
                print(json.dumps({**told, "text": line, "message": finding.message}), file=findings, flush=True)
    return heard


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--site", type=Path, default=Path(sysconfig.get_path("purelib")), metavar="FOLDER")
    parser.add_argument("--past-the-gate", action="store_true")
    parser.add_argument("--findings", type=argparse.FileType("w"), metavar="FILE")
    parser.add_argument("--slow", type=float, default=2.0, metavar="SECONDS")
    args = parser.parse_args()
    print(HEADER)
    crashed = False
    slow: list[tuple[float, Path]] = []
    for name in args.names:
        heard = listen(name, args.site, args.past_the_gate, args.slow, args.findings)
        print(heard.row(), flush=True)
        slow += heard.slow
        for finding in heard.crashes:
            crashed = True
            print(f"{finding.path}: {finding.code} {finding.message}", file=sys.stderr)
    for seconds, path in sorted(slow, reverse=True):
        print(f"{seconds:.1f} s: {path}")
    return int(crashed)


if __name__ == "__main__":
    sys.exit(main())
