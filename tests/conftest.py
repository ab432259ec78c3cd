"""Fixtures for tests of what surrounds the rules."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.forked.process import Forks
from torchlint import engine
from torchlint.config import Settings
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import Report, Rule, all_rules

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

Fixer = Callable[[Report, "Model"], "Fix | None"]


def pytest_configure() -> None:
    """Programs that the tests start must hear Ctrl-C, also under nohup or in the background of a script. Tensors are
    small here, and threads that wait for work take time from other tests."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class PlantedRule:
    """MEM01 for the time of a test: it reports every call of torch.zeros, and its fix makes it torch.ones."""

    code = "MEM01"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.rule = all_rules()[self.code]
        self.settings = Settings.selecting(self.code, "LINT")
        monkeypatch.setattr(self.rule, "triggers", ("zeros",))
        self.check_with(_zeros)
        self.fix_with(rename_to("torch.ones"))

    def check_with(self, check: Callable[[Rule, Model], Iterator[Report]]) -> None:
        self._monkeypatch.setattr(self.rule, "check", check)

    def fix_with(self, fixer: Fixer | None) -> None:
        self._monkeypatch.setattr(engine, "fixer_for", lambda code: fixer if code == self.code else None)


def _zeros(rule: Rule, model: Model) -> Iterator[Report]:
    for call in model.calls:
        if call.callee == "torch.zeros":
            yield Report(call.node, "There is `torch.zeros`.")


def rename_to(name: str, applicability: Applicability = Applicability.SAFE, why: str = "") -> Fixer:
    def fix(report: Report, model: Model) -> Fix:
        start, end = model.span(report.node.func)  # type: ignore[attr-defined]
        return Fix((Edit(start, end, name),), applicability, why)

    return fix


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> PlantedRule:
    return PlantedRule(monkeypatch)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory outside of any project."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    made = Forks()
    yield made
    made.close()


@pytest.fixture(scope="module")
def forked(forks: Forks) -> Iterator[None]:
    """Programs under the probe need not load torch."""
    from torchlint.runtime_check import launch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": forks.start}))
        yield
