"""How many of the mutants are found."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.mutation.mutations import KINDS, Kind, Mutant, mutants
from tests.mutation.programs import Program
from torchlint.config import Settings


@dataclass
class Recall:
    """Of one kind of defect."""

    kind: Kind
    found: list[Mutant] = field(default_factory=list)
    missed: list[Mutant] = field(default_factory=list)

    @property
    def total(self) -> int:
        return len(self.found) + len(self.missed)


def measure(programs: list[Program], kinds: tuple[Kind, ...] = KINDS) -> list[Recall]:
    recalls = {kind.name: Recall(kind) for kind in kinds}
    for program in programs:
        for mutant in mutants(program, kinds):
            recall = recalls[mutant.kind.name]
            (recall.found if is_found(mutant) else recall.missed).append(mutant)
    return list(recalls.values())


def is_found(mutant: Mutant) -> bool:
    settings = Settings.selecting(*sorted(mutant.kind.codes))
    found = mutant.mutated().findings(settings)
    return any(mutant.is_hit(file, finding) for file, findings in found.items() for finding in findings)
