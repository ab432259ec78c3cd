"""What the lines of a program cost in one run of it, and which findings of the linter speak of these lines.

Seconds are of steps in which nothing else is measured; operations, synchronisations and bytes are of the steps after
them. The time of a backward pass belongs to the lines whose operations it differentiates, in proportion to what these
take while they are counted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from statistics import fmean

from .plain import plain
from .run import Run
from .trials import Contents, Options, Progress, Trials, Window, prepared
from .verdict import Environment, named_place

SCHEMA = "torchlint.profile/1"
NOTABLE_SHARE = 0.1
NOTABLE_SYNCS = 0.05
NOTABLE_BYTES = 1024.0
_FEW_STEPS = 4

Lines = Mapping[str, Collection[int]]
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Cost:
    """Per step. `syncs` were seen on CUDA; on the CPU they are reads of a tensor's value that would synchronise on a
    GPU. `moved_bytes` go between host and device; without a GPU they are what `.to(device)` and reads would move. Kept
    is what was made in a step and is still there when a later one ends: bytes of tensors, nodes of autograd's graph."""

    seconds: float = 0.0
    backward_seconds: float = 0.0
    operations: float = 0.0
    syncs: float = 0.0
    moved_bytes: float = 0.0
    kept_bytes: float = 0.0
    kept_nodes: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(**{name: getattr(self, name) + getattr(other, name) for name in _COSTS})

    @property
    def total_seconds(self) -> float:
        return self.seconds + self.backward_seconds


_COSTS = tuple(one.name for one in fields(Cost))
_COUNTED = ("operations", "syncs", "moved_bytes", "kept_bytes", "kept_nodes")


@dataclass(frozen=True, slots=True)
class Finding:
    """Of the linter. `lines` (1-based) are those that it speaks of, by file; `origins` those besides that made what it
    says is kept. Those of a notebook are of the program that its cells make, `line` is of the cell."""

    code: str
    name: str
    path: str
    line: int
    message: str
    lines: Lines
    origins: Lines = field(default_factory=dict)
    cell: int | None = None

    @property
    def place(self) -> str:
        return named_place(self.path, self.line, self.cell)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A finding and what its lines cost, with all that they call. `share` of the time of a step."""

    finding: Finding
    cost: Cost
    share: float


@dataclass(frozen=True, slots=True)
class Hotspot:
    """A line that costs something that no finding speaks of. What it calls in other lines of the program is theirs. Of
    a notebook `line` is one of the program that its cells make until `cell` is known."""

    path: str
    line: int
    source: str
    cost: Cost
    share: float
    cell: int | None = None

    @property
    def place(self) -> str:
        return named_place(self.path, self.line, self.cell)


@dataclass(frozen=True, slots=True)
class Profile:
    """`findings` by what they cost; `hotspots` no rule found; `not_run` are findings whose lines the command does not
    run. A boundary "program" means that the whole program is the step."""

    command: tuple[str, ...]
    environment: Environment
    step_seconds: float
    timed_steps: int
    counted_steps: int
    findings: tuple[Ranked, ...]
    hotspots: tuple[Hotspot, ...]
    not_run: tuple[Finding, ...]

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, **plain(asdict(self))}, indent=2)


@dataclass(frozen=True, slots=True)
class Measured:
    """What each chain of calls cost: the line that ran, and those that called it. `programs` as in the options."""

    root: Path
    command: tuple[str, ...]
    environment: Environment
    step_seconds: float
    timed_steps: int
    counted_steps: int
    ran: Lines
    spent: tuple[tuple[tuple[Place, ...], Cost], ...]
    programs: Contents = field(default_factory=dict)

    def share(self, cost: Cost) -> float:
        return cost.total_seconds / self.step_seconds

    def runs(self, lines: Lines) -> bool:
        return any(line in self.ran.get(path, ()) for path, numbers in lines.items() for line in numbers)

    def cost(self, *lines: Lines) -> Cost:
        """Of these lines and all that they call."""
        wanted = set().union(*map(_places, lines))
        return sum((cost for chain, cost in self.spent if not wanted.isdisjoint(chain)), Cost())


def measure(root: Path, words: Sequence[str], options: Options, progress: Progress = lambda message: None) -> Measured:
    """Run `words` once in a copy of `root`; a program of few steps, or of none, once more to count.

    Raises CommandError, OverlayError, and FailedError where the command fails.
    """
    root, load = root.resolve(), os.getloadavg()[0]
    with prepared(root, [], words, options, progress) as trials:
        timed, counted, window, steps = _runs(trials)
    ran = {path: timed.lines.get(path, frozenset()) | counted.lines.get(path, frozenset()) for path in counted.lines}
    walls = [step["wall"] for step in timed.steps[window.warmup : window.warmup + steps]]
    environment = Environment.of(counted, window.warmup, load)
    spent = (*_timed(timed, steps), *_counted(counted, timed.backward_seconds / steps))
    return Measured(
        root, tuple(words), environment, fmean(walls), steps, counted.counted_steps, ran, spent, options.programs
    )


def _runs(trials: Trials) -> tuple[Run, Run, Window, int]:
    """The run whose lines were timed, the one in which they were counted, and how many steps were timed."""
    window = Window(trials.options.steps, min(trials.options.warmup, trials.options.steps // 3))
    run = trials.profile(window, (window.steps - window.warmup) // 2)
    if run.boundary != "program" and run.counted_steps < 2 and len(run.steps) >= _FEW_STEPS:
        window = Window(trials.options.steps, len(run.steps) // 4)
        run = trials.profile(window, (len(run.steps) - window.warmup) // 2)
    if run.counted_steps >= 2:
        return run, run, window, len(run.steps) - window.warmup - run.counted_steps
    trials.boundary = "program"
    whole = Window(trials.options.steps, 0)
    timed = run if run.boundary == "program" else trials.profile(whole, 1)
    return timed, trials.profile(whole, 0), whole, 1


def _timed(run: Run, steps: int) -> Iterator[tuple[tuple[Place, ...], Cost]]:
    for number, site in enumerate(run.sites):
        if site.seconds:
            yield _chain(run, number), Cost(seconds=site.seconds / steps)


def _counted(run: Run, backward_seconds: float) -> Iterator[tuple[tuple[Place, ...], Cost]]:
    weights = run.costs["backward_seconds"]
    scale = backward_seconds / sum(weights.values()) if weights else 0.0
    for number in sorted({site for sums in run.costs.values() for site in sums}):
        sums = {name: run.costs[name].get(number, 0) / _steps(run, name) for name in _COUNTED}
        yield _chain(run, number), Cost(backward_seconds=scale * weights.get(number, 0.0), **sums)


def _steps(run: Run, name: str) -> int:
    """What is made in the last step says nothing of what is kept."""
    return max(1, run.counted_steps - name.startswith("kept"))


def _chain(run: Run, number: int) -> tuple[Place, ...]:
    places = []
    while number:
        site = run.sites[number]
        places.append((site.path, site.line))
        number = site.parent
    return tuple(places)


def ranked(measured: Measured, findings: Sequence[Finding]) -> Profile:
    """By share of the step's time in whole percents; among equals by synchronisations, memory kept and bytes moved."""
    ran = [finding for finding in findings if measured.runs(finding.lines)]
    rows = [Ranked(finding, cost, measured.share(cost)) for finding in ran for cost in [_cost(measured, finding)]]
    return Profile(
        measured.command,
        measured.environment,
        measured.step_seconds,
        measured.timed_steps,
        measured.counted_steps,
        tuple(sorted(rows, key=_weight, reverse=True)),
        tuple(sorted(_hotspots(measured, ran), key=_weight, reverse=True)),
        tuple(finding for finding in findings if finding not in ran),
    )


def _weight(row: Ranked | Hotspot) -> tuple[float, ...]:
    cost = row.cost
    return round(row.share, 2), cost.syncs, cost.kept_nodes, cost.kept_bytes, cost.moved_bytes, row.share


def _cost(measured: Measured, finding: Finding) -> Cost:
    cost = measured.cost(finding.lines)
    if not finding.origins:
        return cost
    kept = measured.cost(finding.lines, finding.origins)
    return replace(cost, kept_bytes=kept.kept_bytes, kept_nodes=kept.kept_nodes)


def _hotspots(measured: Measured, found: Sequence[Finding]) -> Iterator[Hotspot]:
    known = {place for finding in found for place in _places(finding.lines)}
    made = {place for finding in found for place in _places(finding.origins)}
    own: dict[Place, Cost] = {}
    for chain, cost in measured.spent:
        if chain and known.isdisjoint(chain):
            cost = cost if made.isdisjoint(chain) else replace(cost, kept_bytes=0.0, kept_nodes=0.0)
            own[chain[0]] = own.get(chain[0], Cost()) + cost
    for (path, line), cost in own.items():
        share = measured.share(cost)
        if _is_notable(cost, share):
            yield Hotspot(path, line, _source(measured, path, line), cost, share)


def _is_notable(cost: Cost, share: float) -> bool:
    return (
        share >= NOTABLE_SHARE
        or cost.syncs >= NOTABLE_SYNCS
        or cost.kept_nodes >= 1
        or max(cost.kept_bytes, cost.moved_bytes) >= NOTABLE_BYTES
    )


def _places(lines: Lines) -> set[Place]:
    return {(path, line) for path, numbers in lines.items() for line in numbers}


def _source(measured: Measured, path: str, line: int) -> str:
    try:
        data = measured.programs[path] if path in measured.programs else (measured.root / path).read_bytes()
    except OSError:
        return ""
    lines = data.decode(errors="replace").splitlines()
    return lines[line - 1].strip() if line <= len(lines) else ""
