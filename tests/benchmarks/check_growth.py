#!/usr/bin/env python3
"""How the time for generated programs grows with their length: seconds for each 1,000 lines, at growing sizes.

usage: check_growth.py [NAME ...] [--lines N]

Without names: every program of tests/robustness/generated.py at its size in the tests, at half and at twice of it, and
last a file of N lines (50,000 unless given) with a training function every dozen lines. A figure that stays the same
from left to right is linear growth. Programs that LibCST's parser refuses at a size say so.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.robustness.generated import PROGRAMS, Program, many_trainings, text
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source


def measure(program: Program, n: int) -> str:
    source = Source.from_text(text(program, n), "generated.py")
    lines = source.text.count("\n") + len(source.text) // 80  # a long line is as much work as several
    begin = time.process_time()
    found = lint(source, project=Project())
    seconds = time.process_time() - begin
    refused = "  refused" if any(finding.code.startswith("LINT") for finding in found) else ""
    return f"{n:>6}: {seconds:6.2f} s, {seconds / lines * 1000:6.2f} s per 1,000 lines{refused}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--lines", type=int, default=50_000)
    options = parser.parse_args()
    gc.set_threshold(4_000_000, 10, 100)
    lint(Source.from_text(text(many_trainings, 1)))
    for program, n in PROGRAMS.items():
        if not options.names or program.__name__ in options.names:
            print(
                f"{program.__name__:22}", " | ".join(measure(program, size) for size in (n // 2, n, 2 * n)), flush=True
            )
    if not options.names:
        rows = options.lines // 12
        print(f"{'long file':22}", " | ".join(measure(many_trainings, size) for size in (rows // 4, rows // 2, rows)))


if __name__ == "__main__":
    main()
