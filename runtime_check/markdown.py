"""A verdict as GitHub-flavoured Markdown, for a comment on a pull request or the summary of a job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .report import byte_count, lines, middle
from .verdict import Candidate, Counters, FixStatus, FixVerdict, Timing, Verdict

MARKER = "<!-- torchlint verify -->"  # by which a job finds its own comment, to bring it up to date
LONGEST = 65_536  # characters of a comment on GitHub
_MORE = "\n\nThe diffs of {} more fixes are left out: `--output-format html` shows them all.\n"


def comment(verdict: Verdict, diffs: Mapping[Candidate, str], longest: int = LONGEST) -> str:
    """`diffs` has the unified diff of each fix of the verdict. Diffs that would make it too long are left out."""
    head = [MARKER, f"### torchlint verify: {verdict.overall.value}", _plain("; ".join(verdict.reasons))]
    parts = [*head, *_fixes(verdict.fixes), *_figures(verdict)]
    report = "\n".join(line.plain for line in lines(verdict))
    text = "\n\n".join(part for part in parts if part)
    room = longest - len(text) - len(_MORE) - 10
    return text + _within(room, [_folded("The whole report", report, "text"), *_diffs(verdict.fixes, diffs)]) + "\n"


def _within(room: int, sections: Sequence[str]) -> str:
    """As many as there is room for, in their order."""
    text = ""
    for number, section in enumerate(sections):
        if len(text) + len(section) > room:
            return text + _MORE.format(len(sections) - number)
        text += section
    return text


def _fixes(fixes: Sequence[FixVerdict]) -> Iterator[str]:
    tried = [fix for fix in fixes if fix.status is not FixStatus.NOT_RUN]
    if tried:
        rows = ((_code(str(fix.fix)), _status(fix), _plain(_why(fix))) for fix in tried)
        yield _table(("fix", "verdict", "because"), rows)
    if missing := len(fixes) - len(tried):
        yield f"Not run by this command, so not checked and not kept: {missing} of {len(fixes)} fixes."


def _status(fix: FixVerdict) -> str:
    return f"**{fix.status.value}**" if fix.status is FixStatus.REFUSED else fix.status.value


def _why(fix: FixVerdict) -> str:
    return fix.reason or ", ".join(filter(None, (fix.because, *fix.gained)))


def _figures(verdict: Verdict) -> Iterator[str]:
    before, after, environment = verdict.before, verdict.after, verdict.environment
    if before is None or after is None or environment is None:
        return
    per = "" if environment.boundary == "program" else " per step"
    heading = (
        f"with the fixes that were kept{per}" if verdict.fixes else f"with all fixes{per}",
        "before",
        "after",
        "",
    )
    yield _table(heading, [*_time(verdict.timing), *_counted(before, after)])
    described = f"{environment.described}; {environment.steps} steps, of which {environment.warmup} to warm up."
    without = "" if environment.on_gpu else " Synchronisations are reads of a value that would wait for a GPU."
    yield f"<sub>{_plain(described + without)}</sub>"


def _time(timing: Timing | None) -> Iterator[tuple[str, ...]]:
    if timing is None:
        return
    effect = timing.comparison.effect
    ratio = f"{timing.comparison.pace.value.replace('_', ' ')}: × {effect.ratio:.3f}"
    interval = f" ({effect.low:.3f} to {effect.high:.3f})" if effect.high != float("inf") else ""
    yield "time", middle((*timing.original, *timing.control)), middle(timing.changed), ratio + interval


def _counted(before: Counters, after: Counters) -> Iterator[tuple[str, ...]]:
    yield "peak memory", byte_count(before.peak_bytes), byte_count(after.peak_bytes), ""
    yield "synchronisations", f"{before.syncs:.3g}", f"{after.syncs:.3g}", ""
    yield "operations", f"{before.kernels:.4g}", f"{after.kernels:.4g}", ""
    if before.graph_nodes_kept_per_step is not None and after.graph_nodes_kept_per_step is not None:
        kept = (f"{counters:.3g}" for counters in (before.graph_nodes_kept_per_step, after.graph_nodes_kept_per_step))
        yield "autograd nodes kept", *kept, ""


def _diffs(fixes: Sequence[FixVerdict], diffs: Mapping[Candidate, str]) -> list[str]:
    tried = [fix for fix in fixes if fix.status is not FixStatus.NOT_RUN]
    return [_folded(f"{fix.status.value}: {fix.fix}", diffs[fix.fix], "diff") for fix in tried if diffs.get(fix.fix)]


def _folded(title: str, text: str, language: str) -> str:
    """The fence is longer than any in the text, so that the text cannot end it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    summary = f"<details><summary>{_plain(title)}</summary>"
    return f"\n\n{summary}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n\n</details>"


def _table(heading: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heading, ["---"] * len(heading), *rows))


def _plain(text: str) -> str:
    """Text of the user's files and program: no markup, no line of its own, nobody who is called by it.

    GitHub looks for `@name` and `#1` after it has read the entities, but not across a comment.
    """
    entities = re.sub(r"[\\`*_{}\[\]<>|~!$&]", lambda sign: f"&#{ord(sign[0])};", " ".join(text.split()))
    return re.sub(r"@|(?<!&)#", r"\g<0><!-- -->", entities)


def _code(text: str) -> str:
    return f"<code>{_plain(text)}</code>"
