#!/usr/bin/env python3
"""How the time of a run divides into parsing, the semantic model, the rules with their fixers, and the rest.

usage: time_shares.py FOLDER

Every Python file of FOLDER that mentions torch is linted once in this process, as one project. Models of files that
others import count as model. Figures are processor seconds.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchlint import parsing
from torchlint.engine import lint
from torchlint.semantics.model import Model
from torchlint.semantics.project import Project
from torchlint.source import Source, is_worth_linting


class Clock:
    """Processor seconds by what was at work; what runs inside of something else counts there no more."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._inside: list[str] = ["rules"]
        self._since = time.process_time()

    def _switch(self) -> None:
        now = time.process_time()
        self.seconds[self._inside[-1]] += now - self._since
        self._since = now

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._switch()
            self._inside.append(name)
            try:
                return function(*args, **kwargs)
            finally:
                self._switch()
                self._inside.pop()

        return call


def shares(folder: Path) -> tuple[Counter[str], int]:
    """Seconds in parse, model and rules, and the number of lines."""
    paths = [path for path in sorted(folder.rglob("*.py")) if is_worth_linting(path.read_bytes())]
    sources = [Source.read(path) for path in paths]
    lint(sources[0])
    clock = Clock()
    parsing.parse = clock.timed("parse", parsing.parse)
    Model.build = classmethod(clock.timed("model", Model.build.__func__))  # type: ignore[attr-defined, method-assign]
    project = Project()
    clock.seconds.clear()
    check = clock.timed("rules", lint)
    for source in sources:
        check(source, project=project)
    return clock.seconds, sum(source.text.count("\n") for source in sources)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    gc.set_threshold(4_000_000, 10, 100)
    seconds, lines = shares(parser.parse_args().folder)
    total = seconds.total()
    print(f"{lines:,} lines, {total:.2f} s, {lines / total:,.0f} lines/s")
    for name in ("parse", "model", "rules"):
        print(f"{name:6} {seconds[name] / total:4.0%}   {seconds[name]:.2f} s")


if __name__ == "__main__":
    main()
