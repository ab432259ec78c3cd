#!/usr/bin/env python3
"""Print what the model believes of code of others and is false when the code runs.

usage: python -m tests.beliefs.pieces CHECKOUTS [--only PIECE ...]

CHECKOUTS holds a folder OWNER__NAME with each repository that `tests/evidence/pieces` names, at its commit. Each piece
runs in a copy in which every expression is noted; kind, rank, dtype, graph, length and constants are compared, and
whether gradients are on.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.beliefs.instrumented import Fact, Notes
from tests.beliefs.watched import Watched
from tests.evidence.observing import observe
from tests.evidence.piece import Piece, Values, find, names
from tests.evidence.real_code import copy
from torchlint.semantics.values import Kind


def noted(piece: Piece, folder: Path) -> tuple[Watched, dict[int, set[Fact]]]:
    watched = Watched(folder / piece.lint)
    with tempfile.NamedTemporaryFile() as file:

        def run(root: Path) -> Values:
            with Notes() as notes:
                try:
                    piece.run(root)
                finally:
                    Path(file.name).write_bytes(pickle.dumps(notes.facts))
            return {}

        outcome = observe(run, folder)
        if "error" in outcome:
            print(f"{piece.name}: {outcome['error'][-300:]}")
        content = Path(file.name).read_bytes()
    return watched, pickle.loads(content) if content else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    count: Counter[str] = Counter()
    for name in options.only or names():
        with tempfile.TemporaryDirectory() as scratch:
            piece = find(name)
            folder = copy(piece, options.checkouts.resolve(), Path(scratch).resolve() / "checkout")
            watched, facts = noted(piece, folder)
            wrong = list(watched.false_beliefs(facts))
            known = sum(watched.value(number).kind is not Kind.UNKNOWN for number in facts)
            count.update(pieces=1, expressions=len(facts), known=known, false=len(wrong))
            print(f"{name}: {len(facts)} expressions, {known} known, {len(wrong)} false", flush=True)
            for place, code, what in wrong:
                print(f"  {Path(place).name} `{' '.join(code.split())[:70]}` is believed {what}")
    print(dict(count))
    return int(bool(count["false"]))


if __name__ == "__main__":
    sys.exit(main())
