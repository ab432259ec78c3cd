"""What tells findings apart in the lists of code hosts, from one run to the next."""

from __future__ import annotations

import hashlib
from collections import Counter

from torchlint.finding import Finding


class Fingerprints:
    """Of file, rule, function and statement, which moved lines and another layout leave as they are; equal ones are
    counted in the order in which they come."""

    def __init__(self) -> None:
        self._repeats: Counter[str] = Counter()

    def of(self, finding: Finding) -> str:
        about = "\0".join((finding.path, finding.code, finding.function or "", finding.statement))
        digest = hashlib.sha256(about.encode("utf-8", "backslashreplace")).hexdigest()[:32]
        self._repeats[digest] += 1
        return f"{digest}:{self._repeats[digest]}"
