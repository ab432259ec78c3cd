"""What torchlint says about a file: findings, their fixes, and the edits that a fix consists of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from torchlint.source import Source


class Severity(str, Enum):
    """How bad a finding is, the worst first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def reaches(self, least: Severity) -> bool:
        ranked = list(Severity)
        return ranked.index(self) <= ranked.index(least)


class Confidence(str, Enum):
    """How sure a finding is. What is less than likely is not reported."""

    CERTAIN = "certain"
    LIKELY = "likely"


class Applicability(str, Enum):
    """Safe: the same numbers and side effects. Unsafe: usually right. Display: shown, never applied."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the characters [start, end) of the source text by `text`. Offsets count characters, not bytes."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class FileEdits:
    """Edits of one file. `source` is the file as it was when they were made."""

    source: Source
    edits: tuple[Edit, ...]


Places: TypeAlias = tuple[tuple[int, int], ...]  # spans, as offsets: fixes that go with many others share them


@dataclass(frozen=True, slots=True)
class Fix:
    """`edits` are those of the file of the finding, `elsewhere` has those of other files: all are made, or none.

    `why` says what a fix may change, and is never empty for one that is not safe. Fixes that share an `isolation` key
    are never applied in the same pass. `needs_torch` is the oldest release that can run it, where that is not the one
    that the remedy of the rule needs. What `comes_first` changes what is to be said of other code: it is made in a pass
    before all others, so that their fixes suit what the code does then. `goes_with` are places in the file of the
    finding that say the same: where no fix that is made changes one of them, this one is only shown.
    """

    edits: tuple[Edit, ...]
    applicability: Applicability
    why: str = ""
    isolation: str | None = None
    elsewhere: tuple[FileEdits, ...] = ()
    needs_torch: str = ""
    comes_first: bool = False
    goes_with: tuple[Places, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One fact of the chain behind a finding, and where it shows. Offsets, lines and columns count as in `Finding`."""

    message: str
    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int
    cell: int | None = None


class SuppressedBy(str, Enum):
    """What keeps a finding from counting."""

    COMMENT = "comment"
    BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class Suppressed:
    """Why a finding does not count."""

    by: SuppressedBy
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnostic. Lines and columns are 1-based and count characters; in a notebook they count within `cell`.

    `start` and `end` are character offsets into `Source.text`. `chain` says why the finding is true, fact by fact.
    `no_fix` says in one line what stood in the way of the fix that the rule has for others.
    `statement` is a digest of the statement's code that layout and moved lines leave as it is. `extent` is the span of
    the function that the finding speaks of as a whole, if it does.
    """

    code: str
    name: str
    severity: Severity
    confidence: Confidence
    message: str
    path: str
    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int
    cell: int | None = None
    function: str | None = None
    fix: Fix | None = None
    no_fix: str = ""
    chain: tuple[Step, ...] = ()
    statement: str = ""
    extent: tuple[int, int] | None = None
    suppressed: Suppressed | None = None
