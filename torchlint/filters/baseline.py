"""The baseline: findings that a project has accepted for now, in a file that lines may move around.

An entry is a path, a rule, the qualified name of the function, a digest of the statement, and how often. One entry
takes one line of the file, so that version control merges it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchlint.config import ConfigError, is_code
from torchlint.diagnostics import is_failure
from torchlint.files.atomic import replace_file
from torchlint.filters.scope import Key, key_of
from torchlint.finding import Finding

FILE = ".torchlint-baseline.json"
VERSION = 1
_FIELDS = ("path", "rule", "function", "statement", "count")


@dataclass(frozen=True)
class Baseline:
    """Counts of accepted findings, by their path relative to the folder of `file`."""

    file: Path
    counts: Mapping[str, Mapping[Key, int]] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Baseline:
        """Raises ConfigError."""
        try:
            document = json.loads(file.read_bytes())
        except FileNotFoundError as error:
            raise ConfigError(f"{file}: no such baseline; `torchlint baseline --baseline {file}` writes it") from error
        except OSError as error:
            raise ConfigError(f"{file}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{file}: not a baseline, since it is not JSON: {error}; {_REMEDY}") from error
        version = document.get("version") if isinstance(document, dict) else None
        if version != VERSION:
            raise ConfigError(f"{file}: a baseline of version {VERSION} was expected, not {version!r}; {_REMEDY}")
        counts: dict[str, Counter[Key]] = {}
        for entry in _entries(document.get("findings"), file):
            path, rule, function, statement, count = (entry[name] for name in _FIELDS)
            counts.setdefault(path, Counter())[rule, function, statement] += count
        return cls(file, counts)

    def of(self, path: Path) -> Mapping[Key, int]:
        return self.counts.get(self.name(path), {})

    def name(self, path: Path) -> str:
        """The path as the baseline has it: relative to its folder, where there is a relative one."""
        try:
            return Path(os.path.relpath(path, self.file.parent)).as_posix()
        except ValueError:  # another drive
            return path.absolute().as_posix()

    def stale(self, found: Iterable[Finding], checked: Mapping[Path, frozenset[str]]) -> dict[str, Counter[Key]]:
        """What is no longer found. `checked` has the rules that ran on each file; entries of other files and rules
        stay, unless there is no such file or rule any more."""
        ran, seen = {self.name(path): codes for path, codes in checked.items()}, self._counted(found)
        left: dict[str, Counter[Key]] = {}
        for path, accepted in self.counts.items():
            gone = path not in ran and not os.path.lexists(self.file.parent / path)
            missing = Counter(accepted) - seen.get(path, Counter())
            for key in list(missing):
                if not gone and key[0] not in ran.get(path, ()) and is_code(key[0]):
                    del missing[key]
            if missing:
                left[path] = missing
        return left

    def without(self, stale: Mapping[str, Counter[Key]]) -> Baseline:
        counts = {path: Counter(accepted) - stale.get(path, Counter()) for path, accepted in self.counts.items()}
        return Baseline(self.file, {path: accepted for path, accepted in counts.items() if accepted})

    def with_findings(self, findings: Iterable[Finding]) -> Baseline:
        counts = {path: Counter(accepted) for path, accepted in self.counts.items()}
        for path, found in self._counted(f for f in findings if not is_failure(f.code)).items():
            counts.setdefault(path, Counter()).update(found)
        return Baseline(self.file, counts)

    def _counted(self, findings: Iterable[Finding]) -> dict[str, Counter[Key]]:
        counts: dict[str, Counter[Key]] = {}
        for finding in findings:
            counts.setdefault(self.name(Path(finding.path)), Counter())[key_of(finding)] += 1
        return counts

    def write(self) -> None:
        """Raises OSError."""
        rows = [
            dict(zip(_FIELDS, (path, *key, count)))
            for path, accepted in sorted(self.counts.items())
            for key, count in sorted(accepted.items())
        ]
        lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
        findings = f"[\n{lines}\n  ]" if rows else "[]"
        replace_file(self.file, f'{{\n  "version": {VERSION},\n  "findings": {findings}\n}}\n'.encode())

    def __len__(self) -> int:
        return total(self.counts)


_REMEDY = "delete the file and run `torchlint baseline` to write it anew"


def total(counts: Mapping[str, Mapping[Key, int]]) -> int:
    """How many findings these are."""
    return sum(sum(accepted.values()) for accepted in counts.values())


def _entries(entries: Any, file: Path) -> Sequence[dict[str, Any]]:
    if not isinstance(entries, list) or not all(map(_is_entry, entries)):
        raise ConfigError(f"{file}: not a baseline: `findings` must list entries with {', '.join(_FIELDS)}; {_REMEDY}")
    return entries


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not all(isinstance(entry.get(name), str) for name in _FIELDS[:-1]):
        return False
    count = entry.get("count")
    return isinstance(count, int) and count > 0
