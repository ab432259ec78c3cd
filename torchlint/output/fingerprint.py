"""What tells findings apart in the lists of code hosts, from one run to the next."""

from __future__ import annotations

import hashlib
from collections import Counter

from torchlint.finding import Finding
from torchlint.output.source_root import SourceRoot


class Fingerprints:
    """Of file, rule, function and statement, which moved lines, another layout and another working directory leave as
    they are; equal ones are counted in the order in which they come."""

    def __init__(self, root: SourceRoot) -> None:
        self._root = root
        self._repeats: Counter[str] = Counter()

    def of(self, finding: Finding) -> str:
        path = self._root.path(finding.path)
        about = "\0".join((path, finding.code, finding.function or "", finding.statement))
        digest = hashlib.sha256(about.encode("utf-8", "backslashreplace")).hexdigest()[:32]
        self._repeats[digest] += 1
        return f"{digest}:{self._repeats[digest]}"
