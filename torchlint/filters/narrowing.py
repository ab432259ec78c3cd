"""What a run leaves out: findings that the baseline has, and those of lines that did not change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchlint.files.discovery import Target
from torchlint.filters.baseline import Baseline, total
from torchlint.filters.scope import Scope
from torchlint.finding import Finding, SuppressedBy


@dataclass
class Baselines:
    """The baseline that is in force for each file, each read once."""

    _read: dict[Path, Baseline] = field(default_factory=dict)

    def narrow(self, targets: Sequence[Target]) -> list[Target]:
        """Raises ConfigError."""
        return [self._narrowed(target) for target in targets]

    def _narrowed(self, target: Target) -> Target:
        file = target.settings.baseline
        if file is None:
            return target
        if file not in self._read:
            self._read[file] = Baseline.read(file)
        accepted = self._read[file].of(target.path)
        if not accepted:
            return target
        return replace(target, settings=replace(target.settings, scope=Scope(accepted=accepted)))

    def stale(self, targets: Sequence[Target], suppressed: Sequence[Finding]) -> list[str]:
        """A sentence for each baseline that has findings which are gone."""
        matched = [f for f in suppressed if f.suppressed is not None and f.suppressed.by is SuppressedBy.BASELINE]
        found = []
        for file, baseline in self._read.items():
            own = [target for target in targets if target.settings.baseline == file and baseline.of(target.path)]
            checked = {target.path: target.settings.codes(target.path) for target in own}
            number = total(baseline.stale((f for f in matched if Path(f.path) in checked), checked))
            if number:
                what = "1 finding of it is" if number == 1 else f"{number} findings of it are"
                found.append(f"{file}: {what} not found any more; `torchlint baseline` takes what is gone out of it")
        return found
