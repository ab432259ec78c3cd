#!/usr/bin/env python3
"""Print how many generated loops the vectoriser rewrites, and whether what it makes of them computes the same.

usage: python -m tests.fixers.generated [--loops N] [--planted N] [--seed N] [--verbose]

Every loop but the planted ones could be rewritten: its iterations are independent. Each rewrite, also one that is only
shown because it is hard to read, runs beside the original on inputs of several sizes and dtypes, with an empty batch
and one of a single row; values, dtypes, gradients and errors are compared, bit for bit where the fix says that it is
safe.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import torch

from tests.fixers.agreement import Case, called, difference
from tests.fixers.loop_parts import COMPLEX, FLOATS, INTEGERS, PLANTED
from tests.fixers.loops import Generated, Maker, planted
from tests.support import findings, fixed
from torchlint.fixing.passes import apply_fixes, choose
from torchlint.testing import source_of

findings, fixed = lru_cache(maxsize=4096)(findings), lru_cache(maxsize=4096)(fixed)  # asked again for every case
RULES = ("VEC01", "VEC02", "VEC06", "VEC08", "LIN01", "LIN02", "LIN03")
SIZES = {"n": 5, "m": 4, "p": 3, "q": 2}
CASES = {
    FLOATS: (
        Case(SIZES, torch.float64),
        Case(SIZES, torch.float32, graph=False),
        Case(SIZES, torch.float32, other=torch.float64, graph=False),
        Case({**SIZES, "n": 1}, torch.float64),
        Case({"n": 3, "m": 3, "p": 3, "q": 3}, torch.float64),
        Case({"n": 2, "m": 1, "p": 1, "q": 1}, torch.float64),
        Case({**SIZES, "n": 0}, torch.float64),
        Case({**SIZES, "m": 0}, torch.float64),
        Case(SIZES, torch.float64, places="from the end"),
        Case(SIZES, torch.float64, places="marked"),
    ),
    INTEGERS: (
        Case(SIZES, torch.int64),
        Case(SIZES, torch.int32),
        Case(SIZES, torch.int32, other=torch.int64),
        Case({**SIZES, "n": 1}, torch.int64),
        Case({"n": 3, "m": 3, "p": 3, "q": 3}, torch.int64),
        Case({**SIZES, "n": 0}, torch.int64),
        Case(SIZES, torch.int64, places="marked"),
    ),
    COMPLEX: (
        Case(SIZES, torch.complex128),
        Case(SIZES, torch.complex64, graph=False),
        Case({**SIZES, "n": 1}, torch.complex128),
        Case({"n": 3, "m": 3, "p": 3, "q": 3}, torch.complex128),
        Case({**SIZES, "n": 0}, torch.complex128),
    ),
}


@dataclass(frozen=True)
class Outcome:
    """One loop: its rewrite, which is the same text where there is none, what is wrong with it, and what a finding
    says stood in the way. `is_applied`: the rewrite is not only shown."""

    loop: Generated
    new: str
    is_applied: bool
    disagreement: str | None = None
    refusal: str = ""

    @property
    def is_rewritten(self) -> bool:
        return self.new != self.loop.code


def runs(loop: Generated) -> bool:
    """Whether a loop computes anything: what raises for every input is none."""
    result, _ = called(loop.code, loop.shapes, CASES[loop.kind][0], loop.indices)
    return not isinstance(result, Exception)


def loops(count: int, seed: int = 0) -> Iterator[Generated]:
    """So many loops that can be rewritten."""
    while count:
        loop = Maker(Random(seed)).loop()
        seed += 1
        if runs(loop):
            count -= 1
            yield loop


def dependences(count: int, seed: int = 0) -> Iterator[Generated]:
    """So many loops that must not be."""
    for number in range(count):
        yield planted(Random(seed + number), PLANTED[number % len(PLANTED)])


def offered(code: str) -> str:
    """The code after all fixes, those included that are only shown."""
    code = fixed(code, *RULES)
    while shown := [finding for finding in findings(code, *RULES) if finding.fix is not None]:
        [source] = apply_fixes([source_of(code)], choose(shown))
        code = fixed(source.text, *RULES)
    return code


def outcome(loop: Generated) -> Outcome:
    new = offered(loop.code)
    is_applied = fixed(loop.code, *RULES) != loop.code
    if new == loop.code:
        return Outcome(loop, new, is_applied, refusal=_refusal(loop))
    return Outcome(loop, new, is_applied, disagreement(loop, new))


def disagreement(loop: Generated, new: str, cases: Sequence[Case] = ()) -> str | None:
    """What a rewrite changes; None where nothing changes."""
    safe = fixed(loop.code, *RULES, unsafe=False)
    for case in cases or CASES[loop.kind]:
        found = difference(loop.code, new, loop.shapes, case, indices=loop.indices)
        if found is None and safe != loop.code:
            found = difference(loop.code, safe, loop.shapes, case, indices=loop.indices, exact=True)
        if found is not None:
            return f"{case}: {found}\n{new}"
    return None


def _refusal(loop: Generated) -> str:
    reasons = [finding.no_fix for finding in findings(loop.code, *RULES)]
    return re.sub(r"`[^`]*`", "`...`", reasons[0]) if reasons else "no finding"


def _print_shares(outcomes: list[Outcome], verbose: bool) -> None:
    done, applied = sum(one.is_rewritten for one in outcomes), sum(one.is_applied for one in outcomes)
    print(f"{len(outcomes)} loops that can be rewritten, {done} rewritten ({done / len(outcomes):.1%})")
    print(f"  {applied} of these by `--fix --unsafe-fixes`; {done - applied} are hard to read and only shown")
    groups = {
        "sink": lambda one: (one.loop.sink,), "wrapper": lambda one: (one.loop.wrapper,),
        "body": lambda one: tuple(sorted(one.loop.body)), "kind": lambda one: (one.loop.kind,),
    }  # fmt: skip
    for title, group in groups.items():
        total = Counter(name for one in outcomes for name in group(one))
        part = Counter(name for one in outcomes if one.is_rewritten for name in group(one))
        shares = ", ".join(f"{name} {part[name] / total[name]:.0%} of {total[name]}" for name in sorted(total))
        print(f"  by {title}: {shares}")
    print("  what stood in the way:")
    reasons = Counter(one.refusal for one in outcomes if not one.is_rewritten)
    for reason, number in reasons.most_common(None if verbose else 12):
        print(f"    {number:5} {reason}")
    if verbose:
        for reason, _ in reasons.most_common(12):
            example = min((one for one in outcomes if one.refusal == reason), key=lambda one: len(one.loop.code))
            print(f"--- {reason}\n{example.loop.code}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loops", type=int, default=3000)
    parser.add_argument("--planted", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first loop; the others count on from it")
    parser.add_argument("--verbose", action="store_true", help="an example of each reason")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    outcomes = [outcome(loop) for loop in loops(options.loops, options.seed)]
    _print_shares(outcomes, options.verbose)
    wrong = [one for one in outcomes if one.disagreement is not None]
    print(f"{len(wrong)} disagreements")
    for one in wrong[:20]:
        print(f"{one.loop.code}\n{one.disagreement}")
    touched = [loop for loop in dependences(options.planted, options.seed) if offered(loop.code) != loop.code]
    print(f"{options.planted} loops with a planted dependence ({len(PLANTED)} kinds), {len(touched)} rewritten")
    for loop in touched[:10]:
        print(f"{loop.code}\n{offered(loop.code)}")
    return 1 if wrong or touched else 0


if __name__ == "__main__":
    raise SystemExit(main())
