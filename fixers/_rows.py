"""Lines in a row that are mended together."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.model import Model


def row_around(line: cst.BaseStatement, lines: Collection[cst.CSTNode | None], model: Model) -> list[cst.BaseStatement]:
    """The unbroken row of `lines` that a line is in, of the block that it stands in; without one, the line alone."""
    body = getattr(model.parent(line), "body", ())
    rows = (list(row) for is_in, row in groupby(body, lambda node: node in lines) if is_in)
    return next((row for row in rows if line in row), [line])
