"""Programs that have what a rule finds, small and large: what its fix gains, measured by `verify`.

The program without the problem is what the rule's own fixer makes of it, so there is one source for both.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .check import verify_trees
from .trials import Options, Progress
from .verdict import Verdict

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCHEMA = "torchlint.evidence/1"
SCRIPT = "train.py"
_FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True, slots=True)
class Scenario:
    """`sizes` in ascending order; the program takes one as its only argument."""

    rule: str
    program: str
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Measurement:
    rule: str
    size: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Result:
    """`without`: rules that have no scenario."""

    measured: tuple[Measurement, ...]
    without: tuple[str, ...]


def scenarios() -> dict[str, Scenario]:
    """By the code of their rule."""
    document: dict[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {code: Scenario(code, item["program"], tuple(item["sizes"])) for code, item in document.items()}


def measure(
    chosen: Collection[Scenario], fixed: Callable[[Scenario], str], options: Options, progress: Progress
) -> Iterator[Measurement]:
    """Each scenario in each of its sizes, before and after `fixed`.

    Raises CommandError where the interpreter of the options cannot be started.
    """
    for scenario in chosen:
        after = fixed(scenario)
        for size in scenario.sizes:
            progress(f"{scenario.rule}, size {size}")
            with tempfile.TemporaryDirectory(prefix="torchlint-scenario-") as name:
                script = Path(name, SCRIPT)
                script.write_text(scenario.program, encoding="utf-8")
                words = ["python" if options.python else sys.executable, SCRIPT, str(size)]
                verdict = verify_trees(script.parent, {script: after}, words, options, progress=progress)
            words[0] = "python"
            yield Measurement(
                scenario.rule, size, replace(verdict, target=replace(verdict.target, command=tuple(words)))
            )


def add_evidence(file: Path, invocation: str, one: Measurement) -> None:
    """Write a measurement into a file of evidence, in the place of an older one of the same rule and size."""
    evidence: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    rows = [row for row in evidence.get("scenarios", []) if (row["rule"], row["size"]) != (one.rule, one.size)]
    verdict = json.loads(one.verdict.to_json())
    rows.append({"rule": one.rule, "size": one.size, "invocation": invocation, "verdict": verdict})
    rows.sort(key=lambda row: (row["rule"], row["size"]))
    evidence = {"schema": SCHEMA, **evidence, "scenarios": rows}
    file.write_text(json.dumps(evidence, indent=1) + "\n", encoding="utf-8")
