"""Linting on a Dask cluster of two worker processes: the same findings, also where one of them is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from torchlint.config import ConfigError, Settings
from torchlint.files.discovery import Target
from torchlint.running.runner import Options, run

distributed = pytest.importorskip("distributed")

LEAK = """
import torch

def train_{0}(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


def found(folder: Path, cluster: str | None) -> list[tuple[str, str, int]]:
    targets = [Target(Path(path.name), Settings.selecting("MEM")) for path in sorted(folder.glob("*.py"))]
    return [(f.code, f.path, f.line) for r in run(targets, Options(jobs=1, cluster=cluster)) for f in r.findings]


def test_a_cluster_finds_the_same_and_a_lost_worker_loses_nothing(project: Path, cluster: Any) -> None:
    for number in range(12):
        text = "".join(LEAK.format(f"{number}_{part}") for part in range(4))
        (project / f"leak{number:02}.py").write_text(text)
    alone = found(project, None)
    assert len(alone) == 48
    assert found(project, cluster.scheduler_address) == alone
    victim = next(iter(cluster.workers.values())).pid

    def strike() -> None:
        time.sleep(0.3)
        os.kill(victim, signal.SIGKILL)

    killer = Thread(target=strike)
    killer.start()
    assert found(project, cluster.scheduler_address) == alone
    killer.join()


def test_a_cluster_that_is_not_there_is_said(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchlint.running.cluster._PATIENCE", "1s")
    (project / "a.py").write_text("import torch\n")
    with pytest.raises(ConfigError, match="no Dask scheduler answers"):
        run([Target(Path("a.py"), Settings())], Options(cluster="tcp://127.0.0.1:9"))
