"""A verdict as one HTML page that needs nothing but itself: no script, no style and no picture from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

from .report import byte_count, lines, seconds
from .verdict import Candidate, Counters, Environment, FixStatus, FixVerdict, Timing, Verdict

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #222 }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
pre { background: #f6f6f6; padding: .7rem; overflow-x: auto; font-size: 13px; margin: .4rem 0 }
table { border-collapse: collapse } td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top }
.good { color: #00703c } .bad { color: #b3261e } .open { color: #8a5a00 }
ins { background: #d7f5dd; text-decoration: none } del { background: #fbdcda; text-decoration: none }
svg { max-width: 100%; height: auto } article { border-top: 1px solid #ddd; padding: .6rem 0 }
"""
_CLASSES = {"accept": "good", "kept": "good", "reject": "bad", "refused": "bad", "error": "bad"}
_NAMES = {"A": "original", "A'": "original again", "B": "with the fixes"}
_BEFORE, _AFTER = "#0072b2", "#d55e00"  # told apart by colour-blind readers
_WIDTH, _LEFT, _RIGHT = 720, 130, 20


def page(verdict: Verdict, diffs: Mapping[Candidate, str]) -> str:
    """`diffs` has the unified diff of each fix of the verdict."""
    title = f"torchlint verify: {verdict.overall.value}"
    body = [
        f'<h1 class="{_class(verdict.overall.value)}">{escape(title)}</h1>',
        f"<p>{escape('; '.join(verdict.reasons))}</p>",
        f"<pre>{escape(chr(10).join(line.plain for line in lines(verdict)))}</pre>",
        *_times(verdict.timing, verdict.environment),
        *_memory(verdict.before, verdict.after, verdict.environment),
        *_synchronisations(verdict.before, verdict.after, verdict.environment),
        *_fixes(verdict.fixes, diffs),
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(body) + "\n</body></html>\n"


def _class(word: str) -> str:
    return _CLASSES.get(word, "open")


def _device(environment: Environment | None) -> str:
    return "" if environment is None else f"<p>{escape(environment.described)}</p>"


def _times(timing: Timing | None, environment: Environment | None) -> Iterator[str]:
    """A box from the first to the third quarter of the steps, and a line from 5 % to 95 %."""
    if timing is None or not timing.spread:
        return
    yield f"<h2>Time of a step</h2>{_device(environment)}"
    x = _Scale(0.0, max(values[-1] for values in timing.spread.values()), _LEFT, _WIDTH - _RIGHT)
    rows = [_box(number, side, values, x) for number, (side, values) in enumerate(timing.spread.items())]
    yield _svg(40 * len(rows) + 30, [*rows, *_axis(x, 40 * len(rows) + 6, seconds)])
    yield "<p>Box: half of all steps; line: nine of ten; mark: the median.</p>"


def _box(number: int, side: str, values: Sequence[float], x: _Scale) -> str:
    y, colour = 40 * number + 20, _AFTER if side == "B" else _BEFORE
    low, first, middle, high = (f"{x.at(values[at]):.1f}" for at in (0, 4, 9, 18))
    width = f"{x.at(values[14]) - x.at(values[4]):.1f}"
    return (
        f'<text x="0" y="{y + 4}">{escape(_NAMES.get(side, side))}</text>'
        f'<line x1="{low}" x2="{high}" y1="{y}" y2="{y}" stroke="{colour}"/>'
        f'<rect x="{first}" y="{y - 9}" width="{width}" height="18" fill="{colour}" opacity="0.35"/>'
        f'<line x1="{middle}" x2="{middle}" y1="{y - 11}" y2="{y + 11}" stroke="{colour}" stroke-width="3"/>'
        f"<title>{escape(_NAMES.get(side, side))}: median {seconds(values[9])}</title>"
    )


def _memory(before: Counters | None, after: Counters | None, environment: Environment | None) -> Iterator[str]:
    if before is None or after is None or len(before.peak_by_step) < 2:
        return
    yield f"<h2>Memory over steps</h2>{_device(environment)}"
    series = (
        ("original, peak", before.peak_by_step, _BEFORE, ""),
        ("with the fixes, peak", after.peak_by_step, _AFTER, ""),
        ("original, between steps", before.alive_by_step, _BEFORE, "5 4"),
        ("with the fixes, between steps", after.alive_by_step, _AFTER, "5 4"),
    )
    height = 220
    x = _Scale(1.0, max(len(values) for _, values, _, _ in series), _LEFT, _WIDTH - _RIGHT)
    y = _Scale(0.0, max(max(values, default=0.0) for _, values, _, _ in series), height, 10)
    parts = [_curve(values, colour, dash, x, y) for _, values, colour, dash in series if values]
    parts += [_tick(0, y.at(value), byte_count(value)) for value in (y.low, y.middle, y.high)]
    parts += _axis(x, height + 10, lambda value: f"step {value:.0f}")
    for number, (name, _, colour, dash) in enumerate(series):
        row = height + 50 + 18 * number
        stroke = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
        parts.append(f'<line x1="{_LEFT}" x2="{_LEFT + 40}" y1="{row}" y2="{row}" {stroke}/>')
        parts.append(_tick(_LEFT + 50, row, name))
    yield _svg(height + 120, parts)


def _curve(values: Sequence[float], colour: str, dash: str, x: _Scale, y: _Scale) -> str:
    points = " ".join(f"{x.at(step):.1f},{y.at(value):.1f}" for step, value in enumerate(values, 1))
    return f'<polyline fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}" points="{points}"/>'


def _synchronisations(
    before: Counters | None, after: Counters | None, environment: Environment | None
) -> Iterator[str]:
    if before is None or after is None or not (before.sync_lines or after.sync_lines):
        return
    yield f"<h2>Where the host waits, per step</h2>{_device(environment)}"
    if environment is not None and not environment.on_gpu:
        yield "<p>These lines read a tensor's value: on a GPU each read would synchronise.</p>"
    yield "<table><tr><th>version</th><th>line</th><th>synchronisations</th></tr>"
    for name, counters in (("original", before), ("with the fixes", after)):
        for line, count in sorted(counters.sync_lines.items(), key=lambda item: -item[1]):
            yield f"<tr><td>{name}</td><td><code>{escape(line)}</code></td><td>{count:.3g}</td></tr>"
    yield "</table>"


def _fixes(fixes: Sequence[FixVerdict], diffs: Mapping[Candidate, str]) -> Iterator[str]:
    if not fixes:
        return
    yield "<h2>Fixes</h2>"
    for fix in sorted(fixes, key=lambda fix: fix.status is FixStatus.NOT_RUN):
        gained = f"; {', '.join(fix.gained)}" if fix.gained and not fix.reason else ""
        status = f'<b class="{_class(fix.status.value)}">{escape(fix.status.value)}</b>'
        yield f"<article><code>{escape(str(fix.fix))}</code> {status}: {escape(fix.because + gained)}"
        yield f"<div>{escape(fix.fix.message)}</div>{_diff(diffs.get(fix.fix, ''))}</article>"


def _diff(text: str) -> str:
    tags = {"+": "ins", "-": "del"}
    shown = []
    for line in text.rstrip().splitlines():
        tag = tags.get(line[:1]) if not line.startswith(("+++", "---")) else None
        shown.append(f"<{tag}>{escape(line)}</{tag}>" if tag else escape(line))
    return f"<pre>{chr(10).join(shown)}</pre>" if shown else ""


class _Scale:
    """Maps values to pixels, from `low` at `start` to `high` at `end`."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = low, high if high > low else low + 1.0
        self.start, self.end = start, end

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def _axis(x: _Scale, y: float, named: Callable[[float], str]) -> list[str]:
    line = f'<line x1="{x.start}" x2="{x.end}" y1="{y}" y2="{y}" stroke="#888"/>'
    ticks = zip((x.low, x.middle, x.high), ("start", "middle", "end"), strict=True)
    return [line, *(_tick(x.at(value), y + 16, named(value), anchor) for value, anchor in ticks)]


def _tick(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(height: int, parts: Sequence[str]) -> str:
    groups = "".join(f"<g>{part}</g>" for part in parts)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" '
        f'font-family="sans-serif" font-size="12">{groups}</svg>'
    )
