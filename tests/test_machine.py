"""How much a process may keep of a large project is a share of the memory that there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.running import machine


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(machine, "_LIMITS", (str(tmp_path / "nothing"), str(limit)))
    monkeypatch.setattr(machine, "_physical_memory", lambda: 64 * 2**30)
    return limit


def test_the_limit_of_a_container_counts_where_it_is_below_the_memory_of_the_machine(limited: Path) -> None:
    limited.write_text("8589934592\n")
    assert machine.memory() == 8 * 2**30
    limited.write_text("9223372036854771712\n")  # what version 1 of control groups says where there is no limit
    assert machine.memory() == 64 * 2**30


@pytest.mark.parametrize("text", ["max\n", ""])
def test_a_container_without_a_limit_has_the_memory_of_the_machine(limited: Path, text: str) -> None:
    limited.write_text(text)
    assert machine.memory() == 64 * 2**30


def test_more_memory_for_each_processor_lets_a_process_keep_more(
    limited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "processors", lambda: 4)
    ample = machine.characters_kept()
    monkeypatch.setattr(machine, "processors", lambda: 8)
    assert machine.characters_kept() == ample // 2


def test_a_machine_that_does_not_tell_its_memory_is_taken_for_a_small_one(
    limited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_physical_memory", lambda: 0)
    monkeypatch.setattr(machine, "processors", lambda: 1)
    assert machine.memory() == 0
    assert machine.characters_kept() == 4_000_000
