#!/usr/bin/env python3
"""Run training programs made at random before and after their fixes, and print how many differ.

usage: python -m tests.fixers.training_runs [--unsafe] FIRST LAST

Of the programs with the numbers FIRST to LAST - 1, those that differ are printed with both outputs.
"""

from __future__ import annotations

import argparse
import io
import random
import re
import warnings
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import dataclass

import numpy as np
import torch

from tests.fixers.training_programs import program
from torchlint.config import Selection, Settings
from torchlint.fixing.passes import applicable, fix_source
from torchlint.source import Source

_RAISED = "raised "
_GRAPH = re.compile(r", (grad_fn=<\w+>|requires_grad=True)")
# What these change is said in their fixes: which steps are printed, and the mode of an evaluation; processes take time.
_SAID = ("SYNC04", "TRAIN04", "DATA01")


@dataclass(frozen=True)
class Outcome:
    """What a program printed before and after its fixes; of graphs, nothing."""

    text: str
    fixed: str
    before: str
    after: str
    applied: Counter[str]
    is_stable: bool  # a second run of the fixes would find nothing to change

    @property
    def runs(self) -> bool:
        return _RAISED not in self.before

    @property
    def agrees(self) -> bool:
        return self.before == self.after


def outcome(number: int, *, unsafe: bool) -> Outcome:
    text = program(number)
    settings = Settings(selection=Selection(ignore=_SAID))
    fixed = fix_source(Source.from_text(text), settings, unsafe=unsafe)
    is_stable = not any(applicable(finding, unsafe) for finding in fixed.remaining)
    after = fixed.source.text
    return Outcome(text, after, printed(text), printed(after), fixed.applied_by_code, is_stable)


def printed(text: str) -> str:
    """What a program prints, and the exception that ends it."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    out = io.StringIO()
    with redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, "program", "exec"), {"__name__": "__main__"})
        except Exception as error:
            out.write(f"{_RAISED}{type(error).__name__}: {error}")
    return _GRAPH.sub("", out.getvalue())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--unsafe", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    counted: Counter[str] = Counter()
    applied: Counter[str] = Counter()
    for number in range(arguments.first, arguments.last):
        found = outcome(number, unsafe=arguments.unsafe)
        if not found.runs:
            counted["fail before"] += 1
            continue
        counted["differ" if not found.agrees else "agree" if found.applied else "unchanged"] += 1
        applied += found.applied
        if not (found.agrees and found.is_stable):
            print(f"program {number}:\n{found.fixed}\nbefore:\n{found.before}\nafter:\n{found.after}\n")
    print(dict(counted))
    print(dict(applied.most_common()))


if __name__ == "__main__":
    main()
