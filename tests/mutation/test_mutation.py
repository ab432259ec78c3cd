"""Clean programs of many shapes are silent under every rule; a defect put into them is found."""

from __future__ import annotations

import pytest

from tests.mutation.mutations import KINDS, Kind, mutants
from tests.mutation.programs import Program, programs
from tests.mutation.recall import measure
from torchlint.config import Settings
from torchlint.rule import all_rules

PROGRAMS = programs()
RECALL = 0.95
# Kinds of which less is found, and why. A rule that learns more raises its number here.
LOWER = {
    "detach": (0.90, "MEM02 is silent about terms of one update whose buffers are freed: they go with the step"),
    "no_workers": (0.72, "DATA01 is silent about datasets that are handed in or made by classes out of sight"),
    "eval": (0.89, "TRAIN04 does not know the mode of copies, and of networks out of sight that nothing trains before"),
    "synchronize": (0.83, "Before the first reading of the clock, TIME01 asks for a wait only after a model"),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_clean_program_is_silent(program: Program) -> None:
    found = program.findings(Settings())
    assert [f"{file}:{finding.line} {finding.code} {finding.message}"
            for file, findings in found.items() for finding in findings] == []  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_defects_are_found(kind: Kind) -> None:
    [recall] = measure(PROGRAMS, (kind,))
    missed = "\n".join(map(str, recall.missed))
    wanted, _ = LOWER.get(kind.name, (RECALL, ""))
    assert len(recall.found) >= wanted * recall.total, f"{len(recall.found)} of {recall.total} found, not:\n{missed}"


def test_there_are_programs_of_many_shapes() -> None:
    assert len(PROGRAMS) >= 20
    assert all(program.files for program in PROGRAMS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_kind_has_mutants_and_rules(kind: Kind) -> None:
    assert kind.codes <= all_rules().keys()
    assert sum(1 for program in PROGRAMS for _ in mutants(program, (kind,))) >= 3
