"""A profile for people. Every figure taken without a GPU says so on its own line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from .profile import Cost, Finding, Hotspot, Profile, Ranked
from .report import byte_count, row, seconds

_SHOWN = 12


def lines(profile: Profile) -> Iterator[Text]:
    environment = profile.environment
    on_gpu, whole = environment.on_gpu, environment.boundary == "program"
    clock = "wall clock" if on_gpu else "CPU wall clock"
    unit = "the program" if whole else "a step"
    steps = "in one run" if whole else f"over {profile.timed_steps} steps; counted over {profile.counted_steps} more"
    yield Text.assemble((f"{unit} takes {seconds(profile.step_seconds)}", "bold"), f" [{clock}], {steps}")
    yield row("command", " ".join(profile.command))
    yield row("ran on", environment.described)
    figures = _Figures(on_gpu, unit)
    yield from _findings(profile.findings, figures)
    yield from _hotspots(profile.hotspots, figures)
    yield from _not_run(profile.not_run)


class _Figures:
    def __init__(self, on_gpu: bool, unit: str) -> None:
        self.on_gpu = on_gpu
        self.unit = unit

    def text(self, cost: Cost, share: float) -> str:
        """What is not nothing."""
        parts = [f"{share:.1%} of {self.unit} ({seconds(cost.total_seconds)}{self._backward(cost)})"]
        parts += [_count(cost.operations, "operation")] if cost.operations >= 0.5 else []
        parts += [_count(cost.syncs, "synchronisation")] if cost.syncs else []
        parts += [f"{byte_count(cost.moved_bytes)} moved"] if cost.moved_bytes else []
        parts += [f"{_count(cost.kept_nodes, 'autograd node')} kept"] if cost.kept_nodes >= 0.5 else []
        parts += [f"{byte_count(cost.kept_bytes)} of tensors kept"] if cost.kept_bytes else []
        return ", ".join(parts) + ("" if self.on_gpu else f" [CPU {self._kind(cost)}]")

    def _kind(self, cost: Cost) -> str:
        return "figures; a GPU would synchronise or copy" if cost.syncs or cost.moved_bytes else "figures"

    def _backward(self, cost: Cost) -> str:
        return f", {seconds(cost.backward_seconds)} of it backward" if cost.backward_seconds else ""


def _count(number: float, what: str) -> str:
    shown = f"{number:.0f}" if number >= 100 else f"{number:.3g}"
    return f"{shown} {what}{'' if shown == '1' else 's'}"


def _findings(found: Sequence[Ranked], figures: _Figures) -> Iterator[Text]:
    if not found:
        yield Text("no finding speaks of a line that ran")
        return
    yield Text("findings, by what their lines cost:", "bold")
    for number, ranked in enumerate(found, 1):
        finding = ranked.finding
        yield Text.assemble(f"{number:3}. ", (finding.code, "cyan"), f" {finding.place} {finding.message}")
        yield Text(f"     {figures.text(ranked.cost, ranked.share)}")


def _hotspots(found: Sequence[Hotspot], figures: _Figures) -> Iterator[Text]:
    if found:
        yield Text("lines that cost something and that no finding speaks of:", "bold")
    for spot in found[:_SHOWN]:
        yield Text(f"   - {spot.place} {spot.source}")
        yield Text(f"     {figures.text(spot.cost, spot.share)}")
    if len(found) > _SHOWN:
        yield Text(f"   and {len(found) - _SHOWN} more in the JSON output")


def _not_run(found: Sequence[Finding]) -> Iterator[Text]:
    if found:
        yield Text("findings whose lines this command does not run:", "bold")
    for finding in found:
        yield Text(f"   - {finding.code} {finding.place} {finding.message}")
