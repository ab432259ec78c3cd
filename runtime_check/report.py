"""The verdict for people. Every figure taken without a GPU says so on its own line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from .equivalence import Equivalence, Sameness
from .stats import Interval, Pace
from .verdict import Counters, Environment, FixStatus, FixVerdict, Memory, Overall, Protocol, Timing, Verdict, Weight

_STYLES = {
    FixStatus.KEPT: "green",
    FixStatus.REFUSED: "red",
    Sameness.ROUNDING: "green",
    **dict.fromkeys((Overall.ACCEPT, Sameness.IDENTICAL, Sameness.EQUIVALENT, Pace.FASTER, Weight.LIGHTER), "green"),
    **dict.fromkeys((Overall.REJECT, Overall.ERROR, Sameness.DIFFERENT, Pace.SLOWER, Weight.HEAVIER), "red"),
    **dict.fromkeys((Overall.REVIEW, Sameness.UNKNOWN, Pace.INCONCLUSIVE, Weight.MIXED), "yellow"),
}
_CLOCKS = {"device": "GPU clock", "wall": "CPU wall clock", "cpu": "CPU time of the process"}
_NO_GPU = "the command needs a GPU, and torch finds none here"
_HINTS = {
    "No such file": "the copy holds the working directory and nothing beside it; --root takes in more",
    "not compiled with CUDA": _NO_GPU,
    "No CUDA GPUs are available": _NO_GPU,
    "Found no NVIDIA driver": _NO_GPU,
}
_LINES_SHOWN = 5
_FILES_SHOWN = 8
_FREQUENT = 0.05  # reads per step


def show(verdict: Verdict, console: Console) -> None:
    for line in lines(verdict):
        console.print(line, soft_wrap=True, highlight=False)


def lines(verdict: Verdict) -> Iterator[Text]:
    head = Text.assemble((verdict.overall.value, f"bold {_STYLES[verdict.overall]}"), ": ", "; ".join(verdict.reasons))
    yield head
    yield row("command", " ".join(verdict.target.command))
    yield from _fixes(verdict.fixes)
    yield row("changed", _changed(verdict))
    if verdict.target.unused:
        yield row("", f"not loaded by this command, so not checked: {_several(verdict.target.unused)}")
    if verdict.environment and verdict.equivalence and verdict.before and verdict.after and verdict.memory:
        yield from _figures(verdict.environment, verdict.equivalence, verdict.before, verdict.after, verdict.memory)
        if verdict.timing:
            yield from _time(verdict.timing, verdict.environment)
    if verdict.overall is Overall.ERROR:
        yield from (row("", hint) for sign, hint in _HINTS.items() if sign in verdict.log)
    if verdict.log.strip():
        yield Text("last lines of the program's output:")
        yield from (Text(f"  | {line}") for line in verdict.log.splitlines())


def row(label: str, text: str | Text) -> Text:
    return Text.assemble(f"  {label:<12}", text)


def _changed(verdict: Verdict) -> str:
    used = [name for name in verdict.target.changed if name not in verdict.target.unused]
    return _several([_with_fixes(name, verdict.target.fixes.get(name, {})) for name in used]) or "nothing that it loads"


def _with_fixes(name: str, rules: Mapping[str, int]) -> str:
    return f"{name} ({', '.join(f'{count} {code}' for code, count in sorted(rules.items()))})" if rules else name


def _fixes(fixes: Sequence[FixVerdict]) -> Iterator[Text]:
    """One line for each fix: what became of it, and why. Of those that the command does not run, their number."""
    tried = [fix for fix in fixes if fix.status is not FixStatus.NOT_RUN]
    width = max((len(str(fix.fix)) for fix in tried), default=0)
    for number, fix in enumerate(tried):
        gained = f"; {', '.join(fix.gained)}" if fix.gained and not fix.reason else ""
        status = (fix.status.value, _STYLES[fix.status])
        yield row(
            "" if number else "fixes", Text.assemble(f"{fix.fix!s:<{width}}  ", status, f": {fix.because}{gained}")
        )
    if missing := [fix for fix in fixes if fix.status is FixStatus.NOT_RUN]:
        names = _several([str(fix.fix) for fix in missing])
        yield row("" if tried else "fixes", f"{missing[0].reason}, so not checked and not kept: {names}")


def _several(names: Sequence[str]) -> str:
    more = len(names) - _FILES_SHOWN
    return ", ".join(names[:_FILES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _figures(
    environment: Environment, equivalence: Equivalence, before: Counters, after: Counters, memory: Memory
) -> Iterator[Text]:
    steps = "the whole program" if environment.boundary == "program" else f"{environment.steps} steps"
    per = "" if environment.boundary == "program" else " per step"
    mark = "" if environment.on_gpu else " [CPU figure]"
    yield row("ran on", f"{environment.described}; {steps}, of which {environment.warmup} to warm up")
    yield from _results(equivalence, mark)
    yield row("operations", f"{before.kernels:.1f} -> {after.kernels:.1f}{per}{mark}")
    yield row("syncs", f"{before.syncs:.1f} -> {after.syncs:.1f}{per}{_syncs_mark(environment)}")
    yield from _sync_lines(before, after, per, mark)
    changes = "; ".join(memory.reasons) or f"peak {byte_count(before.peak_bytes)} -> {byte_count(after.peak_bytes)}"
    yield row("memory", Text.assemble((memory.verdict.value, _STYLES.get(memory.verdict, "")), f": {changes}{mark}"))
    if before.graph_nodes_kept_per_step is not None and after.graph_nodes_kept_per_step is not None:
        nodes = f"{before.graph_nodes_kept_per_step:.1f} -> {after.graph_nodes_kept_per_step:.1f} autograd nodes"
        size = f"{before.bytes_kept_per_step or 0:.0f} -> {after.bytes_kept_per_step or 0:.0f} bytes of tensors"
        yield row("kept", f"{nodes}, {size}{per}{mark}")


def _results(equivalence: Equivalence, mark: str) -> Iterator[Text]:
    style = _STYLES[equivalence.verdict]
    yield row("results", Text.assemble((equivalence.verdict.value, style), f": {equivalence.reason}{mark}"))
    compared = f"{equivalence.losses} losses and {equivalence.parameters} parameters"
    if equivalence.losses and equivalence.verdict is not Sameness.IDENTICAL:
        yield row(
            "",
            f"{compared}; largest loss difference {equivalence.loss_distance:.2g}, "
            f"of parameters {equivalence.parameter_distance:.2g}{mark}",
        )
    if (distance := equivalence.double_distance) is not None:
        yield row("", f"largest difference in float64 {distance:.2g}{mark}")
    if (tensor := equivalence.first_tensor) is not None:
        norms = f"norm {tensor.before:.7g} became {tensor.after:.7g}"
        yield row("", f"first at step {tensor.step}: gradient of {tensor.name}, {norms}{mark}")
    if (first := equivalence.first_difference) is not None:
        yield row("", f"first at step {first.step}: loss {first.before!r} became {first.after!r}{mark}")
    if (line := equivalence.printed) is not None:
        yield row("", f"line {line.line} of the output: {line.before!r} became {line.after!r}{mark}")
    if not equivalence.deterministic_baseline:
        yield row("", f"the original does not agree with itself bit by bit{mark}")


def _syncs_mark(environment: Environment) -> str:
    return "" if environment.on_gpu else " would synchronise on a GPU [CPU figure]"


def _sync_lines(before: Counters, after: Counters, per: str, mark: str) -> Iterator[Text]:
    """Both versions' busiest lines; line numbers are those of the version they were counted in."""
    for name, counters in (("before", before), ("after", after)):
        frequent = [item for item in counters.sync_lines.items() if item[1] >= _FREQUENT]
        busiest = sorted(frequent, key=lambda item: -item[1])[:_LINES_SHOWN]
        if busiest:
            yield row("", f"{name}: {', '.join(f'{line} {count:.1f}' for line, count in busiest)}{per}{mark}")


def _time(timing: Timing, environment: Environment) -> Iterator[Text]:
    result = timing.comparison
    old, new = middle((*timing.original, *timing.control)), middle(timing.changed)
    per = "" if environment.boundary == "program" else " per step"
    clock = _CLOCKS[timing.metric] + ("" if environment.on_gpu else ", CPU figure")
    pace = (result.pace.value.replace("_", " "), _STYLES.get(result.pace, ""))
    effect = f": {old} -> {new}{per}, ratio {_interval(result.effect)} [{clock}]"
    yield row("time", Text.assemble(pace, effect))
    steps = "" if environment.boundary == "program" else f" of {timing.steps} steps"
    detectable = f"; a change of {result.detectable:.1%} would show" if math.isfinite(result.detectable) else ""
    together = ", in lockstep" if timing.protocol is Protocol.LOCKSTEP else ""
    control = f"original against itself {_interval(result.control)}{detectable}"
    blocks = f"{len(timing.changed)} blocks{steps}{together}, {control}"
    yield row("", f"{blocks} [{clock}]")
    if result.reason:
        yield row("", result.reason)
    if timing.data_wait_share is not None and timing.data_wait_share > 0.05:
        yield row("", f"{timing.data_wait_share:.0%} of the time went into waiting for data [{clock}]")


def _interval(value: Interval) -> str:
    if not math.isfinite(value.high):
        return f"{value.ratio:.3f}"
    return f"{value.ratio:.3f} ({value.low:.3f} to {value.high:.3f})"


def middle(values: Sequence[float]) -> str:
    """The median, with its unit."""
    return seconds(sorted(values)[len(values) // 2])


def seconds(value: float) -> str:
    return f"{value:.3f} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def byte_count(size: float) -> str:
    if size < 2**10:
        return f"{size:.0f} bytes"
    return f"{size / 2**20:.2f} MiB" if size >= 2**17 else f"{size / 2**10:.1f} KiB"
