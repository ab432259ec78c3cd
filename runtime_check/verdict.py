"""What `verify` says in the end. The JSON form is versioned: fields are added to /1, never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from enum import Enum

from .equivalence import Equivalence, Sameness
from .plain import plain
from .run import Run
from .stats import Comparison, Pace

SCHEMA = "torchlint.runtime_check/1"
_NODES = 1.0  # autograd nodes per step from which on a graph counts as kept
_BYTES = 64 << 10
_SHARE = 0.01
_FEWER = 0.9


class Overall(str, Enum):
    ACCEPT = "accept"
    REJECT = "reject"
    REVIEW = "review"
    ERROR = "error"

    @property
    def exit_code(self) -> int:
        return {"accept": 0, "reject": 1, "error": 2, "review": 3}[self.value]


class Weight(str, Enum):
    LIGHTER = "lighter"
    SAME = "same"
    HEAVIER = "heavier"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Target:
    """`unused` are changed files that the command never loaded: nothing is proven about them. `fixes` counts the rules
    whose fixes changed a file."""

    command: tuple[str, ...]
    changed: tuple[str, ...]
    unused: tuple[str, ...] = ()
    fixes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Environment:
    date: str
    device: str
    device_name: str | None
    driver: str | None
    torch: str
    cuda: str | None
    threads: int
    load: float
    boundary: str
    steps: int
    warmup: int

    @classmethod
    def of(cls, run: Run, warmup: int, load: float) -> Environment:
        return cls(
            date=date.today().isoformat(),
            device=run.device,
            device_name=run.device_name,
            driver=run.driver,
            torch=run.torch,
            cuda=run.cuda,
            threads=run.threads,
            load=load,
            boundary=run.boundary,
            steps=len(run.steps),
            warmup=warmup,
        )

    @property
    def on_gpu(self) -> bool:
        return self.device == "cuda"

    @property
    def described(self) -> str:
        on = self.device_name or "unnamed"
        return f"{on if self.on_gpu else f'CPU ({on}), no GPU was used'}; torch {self.torch}"


@dataclass(frozen=True, slots=True)
class Counters:
    """Means per step after the warm-up. `syncs` were seen on CUDA; on the CPU they are reads of a tensor's value by
    lines of the program, which would synchronise on a GPU. Bytes are the allocator's, or those of host storages; those
    of each step, from the first, are what is alive when it ends and at most during it."""

    operations: float
    kernels: float
    syncs: float
    peak_bytes: float
    peak_bytes_typical: float
    bytes_kept_per_step: float | None
    graph_nodes_kept_per_step: float | None
    sync_lines: Mapping[str, float] = field(default_factory=dict)
    alive_by_step: tuple[float, ...] = ()
    peak_by_step: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    verdict: Weight
    reasons: tuple[str, ...]


class Protocol(str, Enum):
    """How the three runs of a block stand to each other: one after the other, or alive together and a few steps in
    turn."""

    SEPARATE = "separate"
    LOCKSTEP = "lockstep"


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per step of each block, from so many `steps` each. metric: device, wall or cpu. `spread` has the 5 %,
    10 % to 95 % quantiles of the single steps of each side, all blocks together."""

    metric: str
    comparison: Comparison
    original: tuple[float, ...]
    control: tuple[float, ...]
    changed: tuple[float, ...]
    data_wait_share: float | None
    steps: int
    spread: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    protocol: Protocol = Protocol.SEPARATE


def named_place(path: str, line: int, cell: int | None = None) -> str:
    """A line as reports name it; in a notebook it is one of a cell."""
    return f"{path}:{line}" if cell is None else f"{path}:cell {cell}:{line}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One fix that may be made. `lines` are those of the original, 1-based, whose run shows what it does; those of a
    notebook are of the program that its cells make, `line` is of the cell."""

    code: str
    path: str
    line: int
    lines: frozenset[int]
    message: str = ""
    column: int = 1
    cell: int | None = None

    def __str__(self) -> str:
        return f"{self.code} {named_place(self.path, self.line, self.cell)}"


class FixStatus(str, Enum):
    KEPT = "kept"
    REFUSED = "refused"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class FixVerdict:
    """What one fix did by itself. `reason` is why it was not kept, `gained` what it gained."""

    fix: Candidate
    status: FixStatus
    reason: str
    gained: tuple[str, ...] = ()
    equivalence: Equivalence | None = None
    after: Counters | None = None
    memory: Memory | None = None

    @property
    def because(self) -> str:
        """Why it was not kept, or how its results compare."""
        return self.reason or (self.equivalence.verdict.value if self.equivalence is not None else "")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of the fixes that were kept, where each was checked by itself; `fixes` has them all then."""

    overall: Overall
    reasons: tuple[str, ...]
    target: Target
    seconds: float
    environment: Environment | None = None
    equivalence: Equivalence | None = None
    before: Counters | None = None
    after: Counters | None = None
    memory: Memory | None = None
    timing: Timing | None = None
    fixes: tuple[FixVerdict, ...] = ()
    log: str = ""

    @property
    def kept(self) -> tuple[Candidate, ...]:
        return tuple(verdict.fix for verdict in self.fixes if verdict.status is FixStatus.KEPT)

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, **plain(asdict(self))}, indent=2)


def weigh(before: Counters, after: Counters) -> Memory:
    """Compares peaks and what is kept from step to step."""
    changes: list[tuple[float, str]] = []
    for name, old, new in (
        ("highest peak", before.peak_bytes, after.peak_bytes),
        ("typical peak", before.peak_bytes_typical, after.peak_bytes_typical),
    ):
        if abs(new - old) > max(_SHARE * old, _BYTES):
            changes.append((new - old, f"{name} {old / 2**20:.1f} -> {new / 2**20:.1f} MiB"))
    old_nodes, new_nodes = before.graph_nodes_kept_per_step, after.graph_nodes_kept_per_step
    if old_nodes is not None and new_nodes is not None and abs(new_nodes - old_nodes) >= _NODES:
        changes.append((new_nodes - old_nodes, f"autograd nodes kept per step {old_nodes:.0f} -> {new_nodes:.0f}"))
    lighter, heavier = any(size < 0 for size, _ in changes), any(size > 0 for size, _ in changes)
    verdict = (Weight.SAME, Weight.LIGHTER, Weight.HEAVIER, Weight.MIXED)[lighter + 2 * heavier]
    return Memory(verdict, tuple(text for _, text in changes))


def judge(
    equivalence: Equivalence, timing: Timing | None, memory: Memory, before: Counters, after: Counters, on_gpu: bool
) -> tuple[Overall, tuple[str, ...]]:
    """Accepted is what computes the same, is not slower, and gains something that was measured."""
    pace = timing.comparison.pace if timing else None
    if equivalence.verdict is Sameness.DIFFERENT:
        return Overall.REJECT, (f"results differ: {equivalence.reason}",)
    if pace is Pace.SLOWER:
        return Overall.REJECT, ("slower",)
    doubts = _doubts(equivalence, timing, memory, on_gpu)
    gained = gains(pace, memory, before, after)
    if doubts or not gained:
        return Overall.REVIEW, (*doubts, *(gained or ("no gain was measured",)))
    return Overall.ACCEPT, gained


def objection(equivalence: Equivalence, memory: Memory, before: Counters, after: Counters) -> str:
    """Why a fix is not to be kept, from all that needs no clock; empty where nothing speaks against it."""
    if equivalence.verdict is Sameness.DIFFERENT:
        return f"results differ: {equivalence.reason}"
    if after.syncs > before.syncs / _FEWER:
        return f"more synchronisations per step: {before.syncs:.3g} -> {after.syncs:.3g}"
    if memory.verdict in (Weight.HEAVIER, Weight.MIXED):
        return f"needs more memory: {'; '.join(memory.reasons)}"
    return next(iter(_doubts(equivalence, None, memory, on_gpu=False)), "")


def _doubts(equivalence: Equivalence, timing: Timing | None, memory: Memory, on_gpu: bool) -> tuple[str, ...]:
    doubts = []
    if equivalence.verdict is Sameness.UNKNOWN:
        doubts.append(equivalence.reason)
    elif equivalence.printed is not None:
        doubts.append(f"the numbers agree, but line {equivalence.printed.line} of the output differs")
    elif equivalence.files and equivalence.verdict is Sameness.IDENTICAL:
        doubts.append(f"the numbers agree, but {equivalence.files[0]} is written with another content")
    if memory.verdict in (Weight.HEAVIER, Weight.MIXED):
        doubts.append("needs more memory")
    if on_gpu and timing and timing.comparison.pace is Pace.INCONCLUSIVE:
        doubts.append(f"time inconclusive: {timing.comparison.detectable:.0%} would have been seen")
    return tuple(doubts)


def gains(pace: Pace | None, memory: Memory, before: Counters, after: Counters) -> tuple[str, ...]:
    return tuple(
        text
        for text, holds in (
            ("faster", pace is Pace.FASTER),
            ("less memory", memory.verdict is Weight.LIGHTER),
            ("fewer synchronisations", after.syncs < _FEWER * before.syncs),
            ("fewer operations", after.kernels < _FEWER * before.kernels),
        )
        if holds
    )
