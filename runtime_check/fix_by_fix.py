"""Each fix by itself, then those that did no harm together, then the clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .selection import agreeing
from .stats import Pace
from .trials import Contents, FailedError
from .verdict import Candidate, FixStatus, FixVerdict, Overall, Target, Timing, Verdict, gains, objection

if TYPE_CHECKING:
    from .check import Check, Evidence


class FixByFix:
    """Each fix by itself, then those that did no harm together."""

    def __init__(
        self,
        check: Check,
        candidates: Sequence[Candidate],
        contents: Callable[[Collection[Candidate]], Contents],
        target: Target,
    ) -> None:
        self.check = check
        self.candidates = candidates
        self.contents = contents
        self.target = target

    def verdict(self) -> Verdict:
        found = {candidate: self._alone(candidate) for candidate in self.candidates}
        kept = [candidate for candidate in self.candidates if found[candidate].status is FixStatus.KEPT]
        kept, dropped = agreeing(kept, self._objection_to)
        for candidate, reason in dropped:
            found[candidate] = replace(found[candidate], status=FixStatus.REFUSED, reason=f"with the others: {reason}")
        return self._final(kept, found)

    def _alone(self, candidate: Candidate) -> FixVerdict:
        if not self._ran(candidate):
            return FixVerdict(candidate, FixStatus.NOT_RUN, f"not run by this command{self._so_far}")
        try:
            evidence = self.check.evidence(self.contents([candidate]), str(candidate))
        except FailedError as failure:
            return FixVerdict(candidate, FixStatus.REFUSED, failure.reason)
        reason = self._objection(evidence)
        status = FixStatus.REFUSED if reason else FixStatus.KEPT
        gained = gains(None, evidence.memory, self.check.counters, evidence.counters)
        return FixVerdict(candidate, status, reason, gained, evidence.equivalence, evidence.counters, evidence.memory)

    def _ran(self, candidate: Candidate) -> bool:
        """By the lines that ran, or where nothing tells, by whether the file was loaded."""
        before = self.check.before
        if not before.lines:
            return candidate.path in before.loaded
        return bool(candidate.lines & before.lines.get(candidate.path, frozenset()))

    @property
    def _so_far(self) -> str:
        """Where the program was stopped, lines behind that may run as well."""
        steps = self.check.trials.options.steps
        return f" in its first {steps} steps (more with --steps)" if len(self.check.before.steps) >= steps else ""

    def _objection_to(self, chosen: Sequence[Candidate]) -> str:
        try:
            return self._objection(self.check.evidence(self.contents(chosen), f"{len(chosen)} fixes"))
        except FailedError as failure:
            return failure.reason

    def _objection(self, evidence: Evidence) -> str:
        return objection(evidence.equivalence, evidence.memory, self.check.counters, evidence.counters)

    def _final(self, kept: Sequence[Candidate], found: dict[Candidate, FixVerdict]) -> Verdict:
        """Of what is kept in the end: nothing that makes the program slower."""
        verdict = self._timed(kept)
        while verdict is not None and _is_slower(verdict.timing):
            slow = [candidate for candidate in kept if _is_slower(self._timing(candidate))] or list(kept)
            reason = "slower" if len(slow) < len(kept) or len(kept) == 1 else "slower together"
            for candidate in slow:
                found[candidate] = replace(found[candidate], status=FixStatus.REFUSED, reason=reason)
            kept = [candidate for candidate in kept if candidate not in slow]
            verdict = self._timed(kept)
        fixes = tuple(found.values())
        if verdict is None:
            refused = any(fix.status is FixStatus.REFUSED for fix in fixes)
            reason = "no fix is kept" if refused else f"the command runs no line that a fix changes{self._so_far}"
            overall = Overall.REJECT if refused else Overall.REVIEW
            return Verdict(overall, (reason,), self.target, 0.0, self.check.environment, fixes=fixes)
        return replace(verdict, fixes=fixes)

    def _timed(self, kept: Sequence[Candidate]) -> Verdict | None:
        if not kept:
            return None
        contents = self.contents(kept)
        evidence = self.check.evidence(contents, f"{len(kept)} fixes")
        target = replace(self.target, changed=tuple(sorted(contents)), fixes=by_file(kept))
        timing = self.check.timing(contents, "rewritten", evidence)
        return self.check.judged(contents, target, evidence, timing)

    def _timing(self, candidate: Candidate) -> Timing | None:
        contents = self.contents([candidate])
        return self.check.timing(contents, str(candidate), self.check.evidence(contents, str(candidate)))


def by_file(candidates: Collection[Candidate]) -> dict[str, dict[str, int]]:
    """How many fixes of each rule, by file."""
    counts = Counter((candidate.path, candidate.code) for candidate in candidates)
    return {path: {code: n for (file, code), n in counts.items() if file == path} for path, _ in sorted(counts)}


def _is_slower(timing: Timing | None) -> bool:
    return timing is not None and timing.comparison.pace is Pace.SLOWER
