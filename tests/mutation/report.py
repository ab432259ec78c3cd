#!/usr/bin/env python3
"""Print how many mutants of each kind torchlint finds, and those that it misses.

usage: python -m tests.mutation.report [KIND ...]
"""

from __future__ import annotations

import sys

from tests.mutation.mutations import KINDS
from tests.mutation.programs import programs
from tests.mutation.recall import measure


def main(names: list[str]) -> None:
    kinds = tuple(kind for kind in KINDS if not names or kind.name in names)
    recalls = measure(programs(), kinds)
    print(f"{'kind':18} {'mutants':>7} {'found':>5}")
    for recall in recalls:
        print(f"{recall.kind.name:18} {recall.total:7} {len(recall.found):5}")
        for mutant in recall.missed:
            print(f"    missed: {mutant}")
    print(f"{'all':18} {sum(r.total for r in recalls):7} {sum(len(r.found) for r in recalls):5}")


if __name__ == "__main__":
    main(sys.argv[1:])
